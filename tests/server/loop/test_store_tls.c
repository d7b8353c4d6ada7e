/* The program with a store by TLS: rules, log, status, and certificates that change. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"
#include "support/server/server_program.h"
#include "support/store/fault_proxy.h"
#include "support/store/redis_world.h"

static struct certificates certs;
static struct redis_world world;
static struct server_program program;
static struct fault_proxy *proxy;

static void write_file(const char *name, const char *text)
{
    char path[400];
    (void)snprintf(path, sizeof path, "%s/%s", program.folder, name);
    FILE *f = fopen(path, "w");
    threads_require(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void copy(const char *file, const char *to)
{
    char text[4096];
    FILE *from = fopen(certificates_path(&certs, file), "r");
    threads_require(from != NULL);
    text[fread(text, 1, sizeof text - 1, from)] = 0;
    (void)fclose(from);
    write_file(to, text);
}

/* The files of the rules lie beside them: their paths are relative. */
static void begin(const char *tls)
{
    char rules[600];
    server_program_init(&program, "");
    write_file("secret", "0123456789abcdef0123456789abcdef\n");
    copy("ca.crt", "ca.crt");
    copy("client.crt", "node.crt");
    copy("client.key", "node.key");
    (void)snprintf(rules, sizeof rules,
                   "adhoc: off\n"
                   "server: {admin_secrets: secret}\n"
                   "store: {url: 'rediss://127.0.0.1:%u', deadline: 1s, tls: {%s}}\n"
                   "limits: [{name: api, key: [user], rate: 1000/week}]\n",
                   fault_proxy_port(proxy), tls);
    server_program_write_rules(&program, rules);
    threads_require(server_program_start(&program));
}

static int finish(void **state)
{
    server_program_signal(&program, SIGTERM);
    server_program_finish(&program);
    return 0;
}

static void a_store_by_tls_decides(void **state)
{
    struct server_client c;
    begin("ca: ca.crt, cert: node.crt, key: node.key");
    server_program_await(&program, "the store is there", 0);
    threads_require(server_program_connect(&program, &c));
    assert_memory_equal(server_ask(&c, "WEIR.CHECK api alice"), "['allow' 'api' ", 15);
    server_disconnect(&c);
    assert_true(server_program_metric(&program, "weir_store_up") == 1);
    const char *keys = redis_node_run(&world.node[0], "KEYS *alice*");
    assert_non_null(keys);
    assert_string_not_equal(keys, "");
}

/* Returns what `weir ctl status` prints. */
static const char *status(void)
{
    static char said[4096];
    char line[900];
    (void)snprintf(line, sizeof line,
                   "%s/weir ctl --admin unix:%s/admin --secret-file %s/secret status",
                   WEIR_BUILD_DIR, program.folder, program.folder);
    FILE *ctl = popen(line, "r"); /* NOLINT(cert-env33-c): the test's own words */
    assert_non_null(ctl);
    said[fread(said, 1, sizeof said - 1, ctl)] = 0;
    assert_int_equal(pclose(ctl), 0);
    return said;
}

static void a_failed_handshake_is_told_with_its_cause(void **state)
{
    static const char why[] = "TLS: the certificate is not for store.test";
    begin("ca: ca.crt, cert: node.crt, key: node.key, server_name: store.test");
    server_program_await(&program, why, 0);
    const char *said = status();
    if (strstr(said, why) == NULL) {
        fail_msg("%s", said);
    }
}

static void bad_new_certificates_are_told_once_and_the_old_ones_stay(void **state)
{
    static const char bad[] = "the new certificates for the store are not used";
    begin("ca: ca.crt, cert: node.crt, key: node.key");
    server_program_await(&program, "the store is there", 0);
    copy("server.key", "node.key");
    fault_proxy_reset(proxy);
    server_program_await(&program, bad, 0);
    server_program_await(&program, "node.key: expected the certificate's key", 0);
    fault_proxy_reset(proxy);
    copy("client.key", "node.key");
    do {
        fault_proxy_reset(proxy);
        redis_look_again_soon();
    } while (server_program_logged(&program, "the new certificates for the store are used") == 0);
    assert_int_equal(server_program_logged(&program, bad), 1);
    uint64_t end = redis_now_ms() + 20000;
    while (server_program_metric(&program, "weir_store_up") != 1) {
        assert_true(redis_now_ms() < end);
        redis_look_again_soon();
    }
}

/* Makes a certificate of the node that ends in so many days. */
static void renew(long days)
{
    certificates_add(&certs, &(struct certificate){.name = "node",
                                                   .issuer = "ca",
                                                   .common_name = "node",
                                                   .from_s = -3600,
                                                   .end_s = days * 24 * 3600});
    copy("node.crt", "node.crt");
    copy("node.key", "node.key");
}

/* No connection ends meanwhile: that the file is another one is enough. */
static void a_certificate_that_ends_soon_is_told_until_it_is_renewed(void **state)
{
    begin("ca: ca.crt, cert: node.crt, key: node.key");
    server_program_await(&program, "the store is there", 0);
    double connects = server_program_metric(&program, "weir_store_connects_total");
    renew(3);
    while (strstr(status(), "Certificate ends: that of this node for the store in 3 days, on ") ==
           NULL) {
        redis_look_again_soon();
    }
    renew(30);
    while (strstr(status(), "notices      none") == NULL) {
        redis_look_again_soon();
    }
    assert_true(server_program_metric(&program, "weir_store_certificate_expiry_timestamp_seconds") >
                1e9);
    assert_true(server_program_metric(&program, "weir_store_connects_total") == connects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_store_by_tls_decides, finish),
        cmocka_unit_test_teardown(a_failed_handshake_is_told_with_its_cause, finish),
        cmocka_unit_test_teardown(bad_new_certificates_are_told_once_and_the_old_ones_stay, finish),
        cmocka_unit_test_teardown(a_certificate_that_ends_soon_is_told_until_it_is_renewed, finish),
    };
    certificates_make(&certs);
    redis_world_alone(
        &world, &(struct redis_world_options){.tls = &(struct redis_tls){&certs, NULL, true}});
    proxy = fault_proxy_start(world.node[0].public_port);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fault_proxy_stop(proxy);
    redis_world_stop(&world);
    certificates_remove(&certs);
    return failed;
}
