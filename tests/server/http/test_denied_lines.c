/* Log lines of denials, as text and as JSON, and the denials that get no line. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/log.h"
#include "support/server/server_admin.h"

#define RULES                                                                                      \
    "limits:\n"                                                                                    \
    "  - {name: api, when: {path: /api}, key: [user], rate: 1/day, log: {denied: 10/s}}\n"         \
    "  - {name: quiet, when: {path: /quiet}, key: [user], rate: 1/day}\n"                          \
    "  - {name: dry, when: {path: /dry}, key: [user], rate: 1/day, shadow: true, log: {denied: "   \
    "10/s}}\n"

static struct admin_world *world;
static struct http_answer a;
static char lines[1 << 16];

static void check(const char *body, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        admin_check(world, body, &a);
    }
}

/* Runs a server whose log has this format, lets clients be denied, and returns the log. */
static void tell_story(enum log_format format)
{
    char path[] = "/tmp/weir-denied-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    log_init(fd, format, LOG_KEYS_CUT);
    world = calloc(1, sizeof *world);
    admin_world_start(world, RULES, NULL);
    check("{\"limit\":\"api\",\"key\":\"alice\"}", 3);
    check("{\"attributes\":{\"path\":\"/api\",\"user\":\"bob\"}}", 3);
    check("{\"limit\":\"quiet\",\"key\":\"alice\"}", 3);
    check("{\"attributes\":{\"path\":\"/quiet\",\"user\":\"bob\"}}", 3);
    check("{\"limit\":\"dry\",\"key\":\"alice\"}", 3);
    check("{\"attributes\":{\"path\":\"/dry\",\"user\":\"bob\"}}", 3);
    admin_ask(world, "POST /v1/keys/block", "", "{\"limit\":\"api\",\"key\":\"mal\\nlory\"}", &a);
    assert_int_equal(a.status, 200);
    check("{\"limit\":\"api\",\"key\":\"mal\\nlory\"}", 2);
    assert_true(admin_metric(world, "weir_denials_not_logged_total{limit=\"api\"}") == 3);
    assert_true(admin_metric(world, "weir_denials_not_logged_total{limit=\"quiet\"}") == 0);
    admin_world_stop(world);
    free(world);
    log_init(STDERR_FILENO, LOG_AS_TEXT, LOG_KEYS_CUT);
    ssize_t n = pread(fd, lines, sizeof lines - 1, 0);
    assert_true(n > 0);
    lines[n] = 0;
    (void)close(fd);
    (void)unlink(path);
}

/* Returns how often a text is in the log. */
static unsigned count(const char *text)
{
    unsigned n = 0;
    for (const char *at = lines; (at = strstr(at, text)) != NULL; at++) {
        n++;
    }
    return n;
}

static void as_text(void **state)
{
    tell_story(LOG_AS_TEXT);
    assert_int_equal(count(" info request denied "), 3);
    assert_int_equal(count("request denied limit=api key=alice reason=limit times=1 "), 1);
    assert_int_equal(count("request denied limit=api key=bob reason=limit times=1 "), 1);
    assert_int_equal(count("reason=blocked times=1 retry_after_ms=-1 left_out=1\n"), 1);
}

static void as_json(void **state)
{
    tell_story(LOG_AS_JSON);
    assert_int_equal(count("\"message\":\"request denied\""), 3);
    assert_int_equal(count("\"limit\":\"api\",\"key\":\"bob\",\"reason\":\"limit\",\"times\":1,"),
                     1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_text), cmocka_unit_test(as_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
