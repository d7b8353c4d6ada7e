/* The page for browsers: every client gets its files, compressed or not, until it is off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/admin/page.h"
#include "server/access/access.h"
#include "support/server/server_admin.h"

#define RULES "limits: [{name: api, key: [user], rate: 3/day}]\n"

static struct admin_world *world;
static struct access *access_made;
static struct http_answer a;

/* Starts a server that has secrets for everything that needs one. */
static int start(void **state)
{
    struct access_sources from = {
        .text = {[ROLE_CHECK] = "a-secret-of-clients", [ROLE_ADMIN] = "a-secret-of-operators"}};
    struct weir_error error = {0};
    assert_int_equal(access_open(&access_made, &from, &error), 0);
    struct server_options o = {.access = access_made};
    world = calloc(1, sizeof *world);
    admin_world_start(world, RULES, &o);
    return 0;
}

static int stop(void **state)
{
    admin_world_stop(world);
    access_close(access_made);
    free(world);
    return 0;
}

/* Asks for a file and checks the answer, which must have these bytes. */
static void expect_bytes(const char *path, const char *fields, struct weir_text bytes)
{
    char line[128];
    (void)snprintf(line, sizeof line, "GET %s", path);
    admin_ask(world, line, fields, "", &a);
    assert_int_equal(a.status, 200);
    assert_memory_equal(a.body, bytes.at, bytes.len);
    assert_int_equal(a.body[bytes.len], 0);
}

/* Returns the bytes that gzip makes of the compressed file; the caller frees them. */
static char *unzip(struct weir_text zipped, size_t *size)
{
    char path[] = "/tmp/weir-page-XXXXXX";
    char command[64];
    int fd = mkstemp(path);
    assert_int_equal(write(fd, zipped.at, zipped.len), (ssize_t)zipped.len);
    (void)close(fd);
    (void)snprintf(command, sizeof command, "gzip -dc <%s", path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 20, pipe);
    assert_int_equal(pclose(pipe), 0);
    (void)unlink(path);
    return bytes;
}

static void every_file_is_served_compressed_and_plain(void **state)
{
    for (const struct page_file *f = page_files; f->name != NULL; f++) {
        char path[96];
        size_t size;
        (void)snprintf(path, sizeof path, "/page/%s", f->name);
        expect_bytes(path, "", f->plain);
        assert_false(http_has_line(&a, "Content-Encoding: gzip"));
        expect_bytes(path, "Accept-Encoding: deflate, gzip\r\n", f->zipped);
        assert_true(http_has_line(&a, "Content-Encoding: gzip"));
        assert_true(http_has_line(&a, "Vary: Accept-Encoding"));
        char *bytes = unzip(f->zipped, &size);
        assert_int_equal(size, f->plain.len);
        assert_memory_equal(bytes, f->plain.at, size);
        free(bytes);
    }
}

static void all_files_take_less_than_256_kilobytes(void **state)
{
    size_t sum = 0;
    for (const struct page_file *f = page_files; f->name != NULL; f++) {
        sum += f->plain.len;
    }
    assert_in_range(sum, 1, 256 * 1024);
}

static void the_page_may_run_no_foreign_script_and_be_in_no_frame(void **state)
{
    admin_ask(world, "GET /", "", "", &a);
    assert_int_equal(a.status, 200);
    assert_true(http_has_line(&a, "Content-Type: text/html; charset=utf-8"));
    assert_true(http_has_line(
        &a, "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
            "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"));
    assert_true(http_has_line(&a, "Referrer-Policy: no-referrer"));
    assert_true(http_has_line(&a, "X-Content-Type-Options: nosniff"));
    assert_true(http_has_line(&a, "Cache-Control: no-cache"));
    assert_null(strstr(a.text, "no-store"));
}

/* A bookmark or a link in a wiki leads to the page: there is nothing in it to protect. */
static void a_link_on_another_site_leads_to_the_page(void **state)
{
    admin_ask(world, "GET /", "Sec-Fetch-Site: cross-site\r\nHost: weir.example\r\n", "", &a);
    assert_int_equal(a.status, 200);
}

static void a_client_that_refuses_gzip_gets_plain_bytes(void **state)
{
    static const char *const refusals[] = {
        "Accept-Encoding: \r\n",         "Accept-Encoding: br, deflate\r\n",
        "Accept-Encoding: gzip;q=0\r\n", "Accept-Encoding: GZIP; q=0.000, *\r\n",
        "Accept-Encoding: *;q=0\r\n",    "Accept-Encoding: xgzip\r\n"};
    static const char *const others[] = {"Accept-Encoding: *\r\n", "Accept-Encoding: x-gzip\r\n",
                                         "Accept-Encoding: gzip;q=0.001\r\n",
                                         "Accept-Encoding: br;q=1, gzip;q=0.8\r\n"};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        admin_ask(world, "GET /page/style.css", refusals[i], "", &a);
        assert_false(http_has_line(&a, "Content-Encoding: gzip"));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        admin_ask(world, "GET /page/style.css", others[i], "", &a);
        assert_true(http_has_line(&a, "Content-Encoding: gzip"));
    }
}

/* Copies the ETag of the answer. */
static void read_tag(char *tag, size_t size)
{
    const char *found = strstr(a.text, "\r\nETag: ");
    assert_non_null(found);
    found += strlen("\r\nETag: ");
    (void)snprintf(tag, size, "%.*s", (int)strcspn(found, "\r"), found);
}

static void a_file_that_has_not_changed_is_not_sent_again(void **state)
{
    char plain[64];
    char zipped[64];
    char fields[256];
    admin_ask(world, "GET /page/style.css", "", "", &a);
    read_tag(plain, sizeof plain);
    admin_ask(world, "GET /page/style.css", "Accept-Encoding: gzip\r\n", "", &a);
    read_tag(zipped, sizeof zipped);
    assert_string_not_equal(plain, zipped);
    (void)snprintf(fields, sizeof fields, "If-None-Match: \"other\", W/%s\r\n", plain);
    admin_ask(world, "GET /page/style.css", fields, "", &a);
    assert_int_equal(a.status, 304);
    assert_string_equal(a.body, "");
    assert_null(strstr(a.text, "Content-Length"));
    read_tag(zipped, sizeof zipped);
    assert_string_equal(zipped, plain);
    (void)snprintf(fields, sizeof fields, "If-None-Match: %s\r\nAccept-Encoding: gzip\r\n", plain);
    admin_ask(world, "GET /page/style.css", fields, "", &a);
    assert_int_equal(a.status, 200);
}

static void head_sends_the_head_alone(void **state)
{
    static const char request[] = "HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    char reply[4096] = "";
    size_t n = 0;
    int fd = admin_connect(world, 1);
    http_send(fd, request, strlen(request));
    for (ssize_t got = 1; got > 0; n += got > 0 ? (size_t)got : 0) {
        got = recv(fd, reply + n, sizeof reply - 1 - n, 0);
        assert_true(got >= 0);
    }
    (void)close(fd);
    assert_non_null(strstr(reply, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(reply, "Content-Length: "));
    assert_null(strstr(reply, "Content-Length: 0"));
    assert_string_equal(reply + n - 4, "\r\n\r\n");
    assert_null(strstr(reply, "<"));
}

static void what_is_no_file_of_the_page_is_not_found(void **state)
{
    static const char *const lines[] = {"GET /page", "GET /page/", "GET /page/none.js",
                                        "GET /page/style.css/x", "GET /page/..%2Fstyle.css"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        admin_ask(world, lines[i], "", "", &a);
        assert_int_equal(a.status, 404);
    }
    admin_ask(world, "POST /", "", "{}", &a);
    assert_int_equal(a.status, 405);
}

static void clients_and_scrapers_have_no_page(void **state)
{
    metrics_ask(world, "GET /", &a);
    assert_int_equal(a.status, 404);
}

static void a_page_that_is_off_says_so(void **state)
{
    struct server_options o = {.no_page = true};
    struct admin_world *other = calloc(1, sizeof *other);
    admin_world_start(other, RULES, &o);
    admin_ask(other, "GET /", "", "", &a);
    assert_int_equal(a.status, 404);
    assert_non_null(strstr(a.body, "the page is off"));
    admin_ask(other, "GET /page/style.css", "", "", &a);
    assert_int_equal(a.status, 404);
    admin_world_stop(other);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_is_served_compressed_and_plain),
        cmocka_unit_test(all_files_take_less_than_256_kilobytes),
        cmocka_unit_test(the_page_may_run_no_foreign_script_and_be_in_no_frame),
        cmocka_unit_test(a_link_on_another_site_leads_to_the_page),
        cmocka_unit_test(a_client_that_refuses_gzip_gets_plain_bytes),
        cmocka_unit_test(a_file_that_has_not_changed_is_not_sent_again),
        cmocka_unit_test(head_sends_the_head_alone),
        cmocka_unit_test(what_is_no_file_of_the_page_is_not_found),
        cmocka_unit_test(clients_and_scrapers_have_no_page),
        cmocka_unit_test(a_page_that_is_off_says_so),
    };
    if (page_files[0].name == NULL) {
        return 77; /* built without it */
    }
    return cmocka_run_group_tests(tests, start, stop);
}
