#include "cli/serve/serve_watch.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Looking at files without the kernel's help, on a clock that stands still. */

static char folder[] = "/tmp/weir-watch-XXXXXX";
static char config[64];
static char certificate[64];
static struct weir_rules *rules;

static void write_rules(unsigned rate)
{
    FILE *out = fopen(config, "w");
    assert_non_null(out);
    (void)fprintf(out, "limits: [{name: a, key: [user], rate: %u/min}]\n", rate);
    (void)fclose(out);
}

static void write_certificate(const char *text)
{
    FILE *out = fopen(certificate, "w");
    assert_non_null(out);
    (void)fputs(text, out);
    (void)fclose(out);
}

static int begin(void **state)
{
    (void)snprintf(folder, sizeof folder, "/tmp/weir-watch-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    (void)snprintf(config, sizeof config, "%s/weir.yaml", folder);
    (void)snprintf(certificate, sizeof certificate, "%s/server.crt", folder);
    write_rules(5);
    return weir_rules_open(&rules, config, NULL, NULL);
}

static int end(void **state)
{
    weir_rules_close(rules);
    (void)unlink(config);
    (void)unlink(certificate);
    return rmdir(folder);
}

static void files_are_looked_at_now_and_then_and_again_when_it_is_quiet(void **state)
{
    struct watch w;
    uint64_t now = 10 * WEIR_SECOND;
    watch_open(&w, config, false);
    watch_begin(&w, rules, now);
    assert_int_equal(w.fd, -1);
    assert_int_equal(watch_due_ns(&w), now + WATCH_LOOK_NS);
    write_rules(10);
    assert_false(watch_is_new(&w, now + WATCH_LOOK_NS - 1));
    now += WATCH_LOOK_NS;
    assert_false(watch_is_new(&w, now)); /* perhaps somebody is still writing */
    assert_int_equal(watch_due_ns(&w), now + WATCH_QUIET_NS);
    now += WATCH_QUIET_NS;
    assert_true(watch_is_new(&w, now));
    assert_false(watch_is_new(&w, now + WATCH_LOOK_NS));
    watch_close(&w);
}

static void the_same_bytes_are_no_news(void **state)
{
    struct watch w;
    uint64_t now = 10 * WEIR_SECOND;
    watch_open(&w, config, false);
    watch_begin(&w, rules, now);
    (void)unlink(config);
    write_rules(5);
    now += WATCH_LOOK_NS;
    assert_false(watch_is_new(&w, now));
    now += WATCH_QUIET_NS;
    assert_false(watch_is_new(&w, now));
    watch_close(&w);
}

static void what_is_written_while_rules_are_read_is_not_missed(void **state)
{
    struct watch w;
    uint64_t now = 10 * WEIR_SECOND;
    watch_open(&w, config, true);
    write_rules(20); /* after they were read, before anybody watches */
    watch_begin(&w, rules, now);
    assert_int_equal(watch_due_ns(&w), now + WATCH_QUIET_NS);
    assert_true(watch_is_new(&w, now + WATCH_QUIET_NS));
    watch_close(&w);
}

/* A server that renewed its certificate once more right after a reload kept the older one. */
static void a_certificate_written_while_rules_are_read_is_not_missed(void **state)
{
    const char *const also[WATCH_ALSO] = {certificate};
    struct watch w;
    uint64_t now = 10 * WEIR_SECOND;
    watch_open(&w, config, true);
    write_certificate("first");
    watch_also(&w, also);
    write_certificate("second"); /* after the first was read at the start */
    watch_begin(&w, rules, now);
    assert_int_equal(watch_due_ns(&w), now + WATCH_QUIET_NS);
    now += WATCH_QUIET_NS;
    assert_true(watch_is_new(&w, now));
    watch_before(&w);
    write_certificate("third"); /* after the second was read by the reload */
    watch_after(&w);
    watch_events(&w, now);
    assert_true(watch_is_new(&w, now + WATCH_QUIET_NS));
    watch_before(&w);
    watch_after(&w);
    watch_events(&w, now);
    assert_false(watch_is_new(&w, now + WATCH_QUIET_NS));
    assert_int_equal(watch_due_ns(&w), UINT64_MAX);
    watch_close(&w);
}

/* A limit that was put after `weir ctl reload` was lost when the watch found the same file. */
static void what_an_operator_has_had_read_is_no_news(void **state)
{
    struct watch w;
    uint64_t now = 10 * WEIR_SECOND;
    watch_open(&w, config, true);
    watch_begin(&w, rules, now);
    write_rules(20);
    watch_events(&w, now);
    watch_before(&w);
    assert_int_equal(weir_rules_reload(rules, NULL, NULL), 0);
    watch_after(&w);
    assert_false(watch_is_new(&w, now + WATCH_QUIET_NS));
    write_rules(30);
    watch_events(&w, now);
    watch_before(&w);
    assert_int_equal(weir_rules_reload(rules, NULL, NULL), 0);
    write_rules(40); /* after it was read */
    watch_after(&w);
    watch_events(&w, now);
    assert_true(watch_is_new(&w, now + WATCH_QUIET_NS));
    watch_close(&w);
}

static void a_change_that_never_ends_is_looked_at_after_a_second(void **state)
{
    struct watch w;
    uint64_t now = 10 * WEIR_SECOND;
    watch_open(&w, config, true);
    watch_begin(&w, rules, now);
    assert_true(w.complete);
    assert_int_equal(watch_due_ns(&w), UINT64_MAX);
    for (unsigned i = 0; i < 30; i++) {
        watch_events(&w, now + i * WATCH_QUIET_NS / 2);
    }
    assert_int_equal(watch_due_ns(&w), now + WATCH_MOST_NS);
    watch_close(&w);
}

/* Certificates of a server without a rule file were not watched. */
static void a_certificate_is_watched_without_a_rule_file(void **state)
{
    const char *const also[WATCH_ALSO] = {certificate};
    struct watch w;
    uint64_t now = 10 * WEIR_SECOND;
    watch_open(&w, NULL, true);
    write_certificate("first");
    watch_also(&w, also);
    watch_begin(&w, rules, now);
    assert_true(w.complete);
    assert_int_equal(watch_due_ns(&w), UINT64_MAX);
    write_certificate("second");
    watch_events(&w, now);
    assert_true(watch_is_new(&w, now + WATCH_QUIET_NS));
    watch_close(&w);
}

static void a_watch_that_is_not_opened_finds_nothing(void **state)
{
    const char *const also[WATCH_ALSO] = {certificate};
    struct watch w = WATCH_NOTHING;
    watch_also(&w, also);
    watch_before(&w);
    watch_begin(&w, rules, WEIR_SECOND);
    assert_int_equal(w.fd, -1);
    assert_int_equal(watch_due_ns(&w), UINT64_MAX);
    assert_false(watch_is_new(&w, 100 * WEIR_SECOND));
    watch_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_looked_at_now_and_then_and_again_when_it_is_quiet,
                                        begin, end),
        cmocka_unit_test_setup_teardown(the_same_bytes_are_no_news, begin, end),
        cmocka_unit_test_setup_teardown(what_is_written_while_rules_are_read_is_not_missed, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_certificate_written_while_rules_are_read_is_not_missed,
                                        begin, end),
        cmocka_unit_test_setup_teardown(what_an_operator_has_had_read_is_no_news, begin, end),
        cmocka_unit_test_setup_teardown(a_change_that_never_ends_is_looked_at_after_a_second, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_certificate_is_watched_without_a_rule_file, begin, end),
        cmocka_unit_test_setup_teardown(a_watch_that_is_not_opened_finds_nothing, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
