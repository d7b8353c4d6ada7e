/* Which limits the log says do not limit, and which it leaves alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/log.h"
#include "server/admin/uncovered.h"
#include "support/server/server_admin.h"

#define LOGIN "  - {name: login, when: {path: /login}, key: [ip], rate: 500/s}\n"
#define T0 (UINT64_C(5000) * WEIR_SECOND)

static const char rules[] =
    "limits:\n" LOGIN
    "  - {name: strict, when: {path: /strict}, key: [ip], rate: 500/s, on_missing: deny}\n"
    "  - {name: trial, when: {path: /trial}, key: [ip], rate: 500/s, shadow: true}\n"
    "  - {name: by-user, when: {path: /s}, key: [user], group: g, rate: 500/s}\n"
    "  - {name: by-ip, when: {path: /s}, key: [ip], group: g, rate: 500/s}\n";

static struct admin_world *world;
static struct uncovered watch;
static int lines; /* a file that the log goes to */

static int start(void **state)
{
    world = calloc(1, sizeof *world);
    admin_world_start(world, rules, NULL);
    watch = uncovered_begin(T0);
    lines = memfd_create("log", MFD_CLOEXEC);
    log_init(lines, LOG_AS_TEXT, LOG_KEYS_CUT);
    return 0;
}

static int stop(void **state)
{
    log_init(STDERR_FILENO, LOG_AS_TEXT, LOG_KEYS_CUT);
    (void)close(lines);
    uncovered_finish(&watch);
    admin_world_stop(world);
    free(world);
    return 0;
}

/* Sends requests with a path and, if `name` is not "", one more attribute. */
static void ask(const char *path, const char *name, const char *value, unsigned times)
{
    struct weir_rules_attribute attributes[] = {{"path", 4, path, strlen(path)},
                                                {name, strlen(name), value, strlen(value)}};
    struct weir_rules_question q = {
        .attributes = attributes, .attributes_count = 2, .mode = WEIR_CHECK};
    struct weir_rules_answer a;
    for (unsigned i = 0; i < times; i++) {
        assert_int_equal(weir_rules_ask(world->server.rules, &q, &a, NULL), 0);
    }
}

/* Looks at a time. A look fails while the server's own thread reads the limits: then it looks
 * again. */
static void look(uint64_t now_ns)
{
    uncovered_look(&watch, &world->server, now_ns);
    while (watch.due_ns == now_ns + WEIR_SECOND) {
        watch.due_ns = now_ns;
        uncovered_look(&watch, &world->server, now_ns);
    }
}

/* Looks after so many minutes. Requires the text that was logged, without times. */
static void assert_logged(unsigned minutes, const char *expected)
{
    char text[8192];
    char said[8192] = "";
    assert_int_equal(ftruncate(lines, 0), 0);
    assert_int_equal(lseek(lines, 0, SEEK_SET), 0);
    look(T0 + minutes * WEIR_MINUTE);
    ssize_t n = pread(lines, text, sizeof text - 1, 0);
    assert_true(n >= 0);
    text[n] = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL && line[0] != 0;) {
        (void)strcat(strcat(said, strchr(line, ' ') + 1), "\n");
    }
    assert_string_equal(said, expected);
}

#define SKIPPED(limit, requests, skipped)                                                          \
    "warning a limit does not limit: requests have no value for its key limit=" limit              \
    " requests=" requests " skipped=" skipped " minutes=10\n"

static void a_limit_that_is_always_skipped_is_told_each_ten_minutes(void **state)
{
    ask("/login", "", "", 101);
    assert_logged(9, "");
    assert_logged(10, SKIPPED("login", "101", "101"));
    ask("/login", "", "", 101);
    assert_logged(11, "");
    assert_logged(20, SKIPPED("login", "101", "101"));
    assert_logged(30, "");
}

static void few_requests_are_no_fault(void **state)
{
    ask("/login", "", "", 100);
    assert_logged(10, "");
    ask("/login", "", "", 100);
    assert_logged(20, "");
}

static void one_request_in_a_hundred_with_a_key_is_enough(void **state)
{
    ask("/login", "", "", 198);
    ask("/login", "ip", "192.0.2.1", 2);
    assert_logged(10, "");
    ask("/login", "", "", 199);
    ask("/login", "ip", "192.0.2.1", 1);
    assert_logged(20, SKIPPED("login", "200", "199"));
}

static void the_idiom_of_a_group_is_no_fault(void **state)
{
    ask("/s", "ip", "192.0.2.1", 1000);
    assert_logged(10, "");
    ask("/s", "ip", "192.0.2.1", 2);
    ask("/s", "", "", 300);
    assert_logged(20, SKIPPED("by-ip", "302", "300") SKIPPED("by-user", "302", "300"));
}

static void a_limit_that_denies_is_no_fault_and_one_in_shadow_mode_is(void **state)
{
    ask("/strict", "", "", 200);
    ask("/trial", "", "", 200);
    assert_logged(10, SKIPPED("trial", "200", "200"));
}

static void limits_that_are_made_again_begin_anew(void **state)
{
    struct weir_error error;
    ask("/login", "", "", 90);
    admin_world_write(world, "limits: [{name: other, key: [], rate: 1/s}]\n");
    assert_int_equal(server_reload(&world->server, NULL, &error), 0);
    assert_logged(10, "");
    admin_world_write(world, rules);
    assert_int_equal(server_reload(&world->server, NULL, &error), 0);
    ask("/login", "", "", 95);
    assert_logged(20, "");
    ask("/login", "", "", 101);
    assert_logged(30, SKIPPED("login", "101", "101"));
}

static void many_faults_get_some_lines(void **state)
{
    char yaml[4096] = "limits:\n";
    struct weir_error error;
    for (unsigned i = 0; i < UNCOVERED_LINES + 5; i++) {
        (void)sprintf(yaml + strlen(yaml), "  - {name: l%02u, key: [user], rate: 5/s}\n", i);
    }
    admin_world_write(world, yaml);
    assert_int_equal(server_reload(&world->server, NULL, &error), 0);
    ask("/x", "", "", 150);
    char expected[8192] = "";
    for (unsigned i = 0; i < UNCOVERED_LINES; i++) {
        (void)sprintf(expected + strlen(expected), SKIPPED("l%02u", "150", "150"), i);
    }
    (void)strcat(expected, "warning more limits do not limit: requests have no value for their "
                           "keys limits=5\n");
    assert_logged(10, expected);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(a_limit_that_is_always_skipped_is_told_each_ten_minutes),
        TEST(few_requests_are_no_fault),
        TEST(one_request_in_a_hundred_with_a_key_is_enough),
        TEST(the_idiom_of_a_group_is_no_fault),
        TEST(a_limit_that_denies_is_no_fault_and_one_in_shadow_mode_is),
        TEST(limits_that_are_made_again_begin_anew),
        TEST(many_faults_get_some_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
