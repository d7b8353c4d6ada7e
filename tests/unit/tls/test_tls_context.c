/* Contexts: files that are read, refused, and read again when they change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/tls/certificates.h"
#include "support/tls/tls_pair.h"

static struct certificates certs;

static const char *path(const char *file)
{
    return certificates_path(&certs, file);
}

static void write_file(const char *file, const char *text)
{
    FILE *f = fopen(path(file), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Runs a shell command in the folder. */
static void run(const char *command)
{
    char line[400];
    (void)snprintf(line, sizeof line, "cd %s && %s", certs.folder, command);
    assert_int_equal(system(line), 0); /* NOLINT(cert-env33-c): the test's own words */
}

/* ---- what is refused ---- */

static void assert_refused(const struct tls_options *o, int code, const char *file, const char *why)
{
    char text[300];
    struct tls_context *c = (struct tls_context *)&certs;
    struct weir_error error = {0};
    assert_int_equal(tls_context_create(&c, o, &error), code);
    assert_null(c);
    (void)snprintf(text, sizeof text, "%s%s%s", file != NULL ? path(file) : "",
                   file != NULL ? ": " : "", why);
    if (strncmp(error.text, text, strlen(text)) != 0) {
        fail_msg("'%s' is not '%s'", error.text, text);
    }
}

static void options_without_their_counterpart_are_refused(void **state)
{
    assert_refused(&(struct tls_options){.cert = path("client.crt")}, WEIR_EINVAL, NULL,
                   "TLS: found a certificate without its key, expected both");
    assert_refused(&(struct tls_options){.key = path("client.key")}, WEIR_EINVAL, NULL,
                   "TLS: found a key without its certificate, expected both");
    assert_refused(&(struct tls_options){.server = true}, WEIR_EINVAL, NULL,
                   "TLS: a server needs a certificate and its key");
    assert_refused(&(struct tls_options){.server = true,
                                         .cert = path("server.crt"),
                                         .key = path("server.key"),
                                         .client_cert = TLS_CLIENT_CERT_OPTIONAL},
                   WEIR_EINVAL, NULL, "TLS: client certificates need a CA to verify them with");
    assert_refused(&(struct tls_options){.alpn = (const char *[]){"", NULL}}, WEIR_EINVAL, NULL,
                   "found the protocol \"\" for ALPN");
}

static void bad_files_are_named_with_the_cause(void **state)
{
    write_file("bad.crt", "hello\n");
    run("openssl ec -in client.key -aes128 -passout pass:x -out locked.key 2>/dev/null");
    assert_refused(&(struct tls_options){.ca = path("none")}, WEIR_ENOENT, "none",
                   "cannot be read: No such file or directory");
    assert_refused(&(struct tls_options){.ca = path("bad.crt")}, WEIR_EINVAL, "bad.crt",
                   "expected CA certificates in PEM form: ");
    assert_refused(&(struct tls_options){.cert = path("bad.crt"), .key = path("client.key")},
                   WEIR_EINVAL, "bad.crt", "expected a certificate in PEM form: no start line");
    assert_refused(&(struct tls_options){.cert = path("client.crt"), .key = path("none")},
                   WEIR_ENOENT, "none", "cannot be read: No such file");
    assert_refused(&(struct tls_options){.cert = path("client.crt"), .key = path("server.key")},
                   WEIR_EINVAL, "server.key",
                   "expected the certificate's key, in PEM form, not encrypted: key values");
    assert_refused(&(struct tls_options){.cert = path("client.crt"), .key = path("locked.key")},
                   WEIR_EINVAL, "locked.key",
                   "expected the certificate's key, in PEM form, not encrypted: ");
}

/* ---- what is read ---- */

static struct tls_context *made(const struct tls_options *o)
{
    struct tls_context *c;
    struct weir_error error = {0};
    if (tls_context_create(&c, o, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return c;
}

/* True if a client with this context trusts the server's certificate. */
static bool trusts(struct tls_context *client)
{
    struct tls_pair p;
    struct tls_context *server = made(&(struct tls_options){
        .server = true, .cert = path("server.crt"), .key = path("server.key")});
    tls_pair_open(&p, client, server, "localhost");
    tls_pair_run(&p);
    bool up = tls_is_up(p.end[PAIR_SERVER].session);
    tls_pair_close(&p);
    tls_context_unref(server);
    return up;
}

static void a_folder_of_cas_is_read(void **state)
{
    assert_int_equal(mkdir(path("cas"), 0700), 0);
    run("cp ca.crt cas && openssl rehash cas");
    struct tls_context *c = made(&(struct tls_options){.ca = path("cas")});
    assert_true(trusts(c));
    tls_context_unref(c);
    run("rm -r cas");
}

static void without_a_ca_only_the_system_is_trusted(void **state)
{
    struct tls_context *c = made(&(struct tls_options){0});
    assert_false(trusts(c));
    tls_context_unref(c);
    assert_int_equal(setenv("SSL_CERT_FILE", path("ca.crt"), 1), 0);
    c = made(&(struct tls_options){0});
    assert_int_equal(unsetenv("SSL_CERT_FILE"), 0);
    assert_true(trusts(c));
    tls_context_unref(c);
}

/* ---- changes ---- */

static void link_to(const char *to, const char *from)
{
    assert_int_equal(symlink(path(to), path("link.new")), 0);
    assert_int_equal(rename(path("link.new"), path(from)), 0);
}

static void a_swapped_link_is_a_change_that_renews(void **state)
{
    struct weir_error error = {0};
    link_to("other-ca.crt", "link");
    struct tls_context *c = made(&(struct tls_options){.ca = path("link")});
    assert_false(tls_context_changed(c));
    assert_int_equal(tls_context_renew(&c, &error), 0);
    assert_false(trusts(c));
    link_to("ca.crt", "link");
    assert_true(tls_context_changed(c));
    assert_int_equal(tls_context_renew(&c, &error), 1);
    assert_false(tls_context_changed(c));
    assert_true(trusts(c));
    tls_context_unref(c);
}

static void a_bad_file_keeps_the_old_context_and_is_reported_once(void **state)
{
    struct weir_error error = {0};
    run("cp ca.crt mine.crt");
    struct tls_context *c = made(&(struct tls_options){.ca = path("mine.crt")});
    struct tls_context *before = c;
    write_file("mine.crt", "half");
    assert_int_equal(tls_context_renew(&c, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.text, "mine.crt: expected CA certificates in PEM form"));
    assert_int_equal(tls_context_renew(&c, &error), 0);
    assert_ptr_equal(c, before);
    assert_true(trusts(c));
    assert_int_equal(unlink(path("mine.crt")), 0);
    assert_int_equal(tls_context_renew(&c, &error), WEIR_ENOENT);
    assert_int_equal(tls_context_renew(&c, &error), 0);
    run("cp ca.crt mine.crt");
    assert_int_equal(tls_context_renew(&c, &error), 1);
    assert_true(trusts(c));
    tls_context_unref(c);
}

static void a_session_keeps_its_context_and_a_renewed_one_keeps_the_options(void **state)
{
    static const char *const protocols[] = {"http/1.1", "x", NULL};
    struct weir_error error = {0};
    struct tls_pair p;
    struct tls_context *client =
        made(&(struct tls_options){.ca = path("ca.crt"), .alpn = (const char *[]){"x", NULL}});
    certificates_add(&certs, &(struct certificate){"s", "ca", "s", "DNS:localhost", -60, 600});
    struct tls_context *server = made(&(struct tls_options){
        .server = true, .cert = path("s.crt"), .key = path("s.key"), .alpn = protocols});
    for (int i = 0; i < 2; i++) {
        tls_pair_open(&p, client, server, "localhost");
        certificates_add(&certs, &(struct certificate){"s", "ca", "s", "DNS:localhost", -60, 600});
        assert_int_equal(tls_context_renew(&server, &error), 1);
        tls_pair_run(&p);
        assert_true(text_is(tls_alpn(p.end[PAIR_SERVER].session), "x"));
        tls_pair_close(&p);
    }
    tls_context_unref(server);
    tls_context_unref(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_without_their_counterpart_are_refused),
        cmocka_unit_test(bad_files_are_named_with_the_cause),
        cmocka_unit_test(a_folder_of_cas_is_read),
        cmocka_unit_test(without_a_ca_only_the_system_is_trusted),
        cmocka_unit_test(a_swapped_link_is_a_change_that_renews),
        cmocka_unit_test(a_bad_file_keeps_the_old_context_and_is_reported_once),
        cmocka_unit_test(a_session_keeps_its_context_and_a_renewed_one_keeps_the_options),
    };
    certificates_make(&certs);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    certificates_remove(&certs);
    return failed;
}
