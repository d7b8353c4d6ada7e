/* What reload, put and remove keep, change and forget. Files: test_rules_reload_files.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rules/live/live.h"
#include "support/rules/rules_ask.h"

#define T0 RULES_T0

static void reload(struct weir_rules *rules, const char *yaml)
{
    struct weir_error error = {0};
    if (weir_rules_reload_text(rules, "test", yaml, strlen(yaml), &error) != 0) {
        fail_msg("%s", error.text);
    }
}

static void put(struct weir_rules *rules, const char *yaml)
{
    struct weir_error error = {0};
    if (weir_rules_put(rules, yaml, strlen(yaml), &error) != 0) {
        fail_msg("%s", error.text);
    }
}

static uint64_t left(struct weir_rules *rules, const char *words)
{
    return rules_peek(rules, T0, words).answer.remaining;
}

static struct weir_rules_stats stats_of(struct weir_rules *rules)
{
    struct weir_rules_stats stats = {.size = sizeof stats};
    assert_int_equal(weir_rules_stats_read(rules, &stats), 0);
    return stats;
}

/* ---- what is kept ---- */

/* Three of ten are taken; then the rules become `after`, and alice has `expected` left. */
static void assert_left_after(const char *before, const char *after, uint64_t expected)
{
    struct weir_rules *r = rules_open(before);
    assert_int_equal(rules_allowed(r, T0, "path=/x user=alice ip=192.0.2.1", 3), 3);
    reload(r, after);
    uint64_t found = left(r, "path=/x user=alice ip=192.0.2.1");
    if (found != expected) {
        fail_msg("%s\nbecame\n%s\nand left %llu, expected %llu", before, after,
                 (unsigned long long)found, (unsigned long long)expected);
    }
    weir_rules_close(r);
}

static void a_limit_that_stays_keeps_its_keys(void **state)
{
    const char *plain = "limits: [{name: l, key: [user], rate: 10/h}]";
    assert_left_after(plain, plain, 7);
    assert_left_after(plain, "limits: [{key: [user], name: l, rate: 10/60min, burst: 10}]", 7);
    assert_left_after(plain, "limits: [{name: l, when: {path: /x}, key: [user], rate: 10/h}]", 7);
    assert_left_after(plain,
                      "allow: [{path: /ok}]\n"
                      "limits: [{name: a, key: [], rate: 99/h}, {name: l, key: [user], rate: "
                      "10/h, cost: 1, group: g, on_missing: deny, retry_jitter: 5%}]",
                      7);
    assert_left_after("limits: [{name: l, key: [user], rate: 10/h, shadow: true}]", plain, 7);
}

static void every_algorithm_keeps_its_keys(void **state)
{
    static const char *const names[] = {"token_bucket", "fixed_window", "sliding_window",
                                        "sliding_log"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char yaml[200];
        (void)snprintf(yaml, sizeof yaml,
                       "limits: [{name: l, key: [user], rate: 10/h, algorithm: %s}]", names[i]);
        assert_left_after(yaml, yaml, 7);
    }
    const char *leaky =
        "limits: [{name: l, key: [user], rate: 1/h, algorithm: leaky_bucket, queue: 9}]";
    assert_left_after(leaky, leaky, 7);
}

static void another_name_window_algorithm_key_or_size_starts_afresh(void **state)
{
    const char *plain = "limits: [{name: l, key: [user], rate: 10/h}]";
    assert_left_after(plain, "limits: [{name: m, key: [user], rate: 10/h}]", 10);
    assert_left_after(plain, "limits: [{name: l, key: [user], rate: 10/2h}]", 10);
    assert_left_after(
        plain, "limits: [{name: l, key: [user], rate: 10/h, algorithm: sliding_window}]", 10);
    assert_left_after(plain, "limits: [{name: l, key: [user|ip], rate: 10/h}]", 10);
    assert_left_after(plain, "limits: [{name: l, key: [user, ip], rate: 10/h}]", 10);
    assert_left_after(plain, "limits: [{name: l, key: [], rate: 10/h}]", 10);
    assert_left_after(plain, "limits: [{name: l, key: [user], rate: 10/h, max_keys: 5}]", 10);
    assert_left_after(plain, "limits: [{name: l, key: [user], rate: 10/h, on_full: deny}]", 10);
    assert_left_after("limits: [{name: l, key: [ip], rate: 10/h}]",
                      "limits: [{name: l, key: [ip], rate: 10/h, ipv4_prefix: 24}]", 10);
    assert_left_after(
        "limits: [{name: l, key: [user], rate: 10/h, algorithm: fixed_window}]",
        "limits: [{name: l, key: [user], rate: 10/h, algorithm: fixed_window, align: key}]", 10);
}

/* ---- numbers ---- */

static void a_changed_rate_applies_at_once_to_keys_in_use(void **state)
{
    const char *ten = "limits: [{name: l, key: [user], rate: 10/h, algorithm: fixed_window}]";
    assert_left_after(ten, "limits: [{name: l, key: [user], rate: 25/h, algorithm: fixed_window}]",
                      22);
    assert_left_after(ten, "limits: [{name: l, key: [user], rate: 2/h, algorithm: fixed_window}]",
                      0);
    assert_left_after(
        "limits: [{name: l, key: [user], rate: 10/h, algorithm: leaky_bucket, queue: 4}]",
        "limits: [{name: l, key: [user], rate: 10/h, algorithm: leaky_bucket, queue: 9}]", 7);
}

static void a_raised_rate_lets_a_denied_key_pass_at_the_same_instant(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, key: [user], rate: 2/h, burst: 2}]");
    assert_int_equal(rules_allowed(r, T0, "user=alice", 5), 2);
    assert_int_equal(rules_peek(r, T0, "user=alice").answer.verdict, WEIR_DENY);
    reload(r, "limits: [{name: l, key: [user], rate: 60/h, burst: 2}]");
    struct weir_rules_answer a = rules_peek(r, T0, "user=alice");
    assert_true(a.answer.retry_after_ns <= WEIR_HOUR / 2); /* 1 at 2/h, at most; not of 60/h */
    assert_int_equal(rules_allowed(r, T0 + WEIR_HOUR, "user=alice", 100), 2);
    assert_int_equal(rules_allowed(r, T0 + WEIR_HOUR + WEIR_MINUTE, "user=alice", 100), 1);
    weir_rules_close(r);
}

static void a_log_that_grows_beyond_its_ring_starts_afresh_and_one_that_shrinks_does_not(
    void **state)
{
#define LOG(rate)                                                                                  \
    "limits: [{name: l, key: [user], rate: " rate ", algorithm: sliding_log, max_keys: 10}]"
    assert_left_after(LOG("10/h"), LOG("8/h"), 5);
    assert_left_after(LOG("10/h"), LOG("2k/h"), 2000);
}

/* ---- tiers and overrides ---- */

static const char tiers[] =
    "limits: [{name: l, key: [user], rate: 10/h, "
    "tiers: {default: free, free: {}, pro: {rate: 100/h}, old: {rate: 50/h}}}]";

static struct weir_rules *use_tiers(void)
{
    struct weir_rules *r = rules_open(tiers);
    assert_int_equal(rules_allowed(r, T0, "user=a", 3), 3);
    assert_int_equal(rules_allowed(r, T0, "user=b tier=pro", 4), 4);
    assert_int_equal(rules_allowed(r, T0, "user=c tier=old", 5), 5);
    return r;
}

static void a_tier_that_stays_keeps_its_keys_whatever_becomes_of_the_others(void **state)
{
    struct weir_rules *r = use_tiers();
    reload(r, "limits: [{name: l, key: [user], rate: 10/h, "
              "tiers: {default: free, new: {rate: 7/h}, pro: {rate: 200/h}, free: {}}}]");
    assert_int_equal(left(r, "user=a"), 7);
    struct weir_rules_answer pro = rules_peek(r, T0, "user=b tier=pro");
    assert_int_equal(pro.answer.quota, 200);
    assert_true(pro.answer.remaining < 200); /* its debt is kept */
    assert_int_equal(left(r, "user=d tier=new"), 7);
    assert_string_equal(rules_peek(r, T0, "user=c tier=old").tier, "free"); /* it is gone */
    assert_int_equal(left(r, "user=c tier=old"), 10);
    weir_rules_close(r);
}

static void a_tier_under_another_name_starts_afresh(void **state)
{
    struct weir_rules *r = use_tiers();
    reload(r, "limits: [{name: l, key: [user], rate: 10/h, "
              "tiers: {default: free, free: {}, gold: {rate: 100/h}, old: {rate: 50/h}}}]");
    assert_int_equal(left(r, "user=b tier=gold"), 100);
    assert_int_equal(left(r, "user=c tier=old"), 45);
    weir_rules_close(r);
}

static void a_key_that_changes_its_tier_starts_afresh_and_finds_its_old_state_again(void **state)
{
    struct weir_rules *r = use_tiers();
    assert_int_equal(left(r, "user=b tier=old"), 50);
    assert_int_equal(left(r, "user=b tier=pro"), 96);
    weir_rules_close(r);
}

/* ---- rules that are refused ---- */

static void assert_refused(struct weir_rules *r, const char *yaml)
{
    struct weir_error error = {0};
    assert_int_equal(weir_rules_reload_text(r, "bad", yaml, strlen(yaml), &error), WEIR_ERULES);
    assert_true(strncmp(error.text, "bad", 3) == 0);
    assert_int_equal(stats_of(r).generation, 1);
    assert_int_equal(left(r, "user=alice"), 7);
}

static void rules_with_errors_change_nothing(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, key: [user], rate: 10/h}]");
    assert_int_equal(rules_allowed(r, T0, "user=alice", 3), 3);
    uint64_t bytes = stats_of(r).bytes;
    assert_refused(r, "");
    assert_refused(r, "limits: [{name: l, key: [user], rate: 20/h}, {name: l}]");
    assert_refused(r, "limits: [{name: l, key: [user], rate: 20/h, burst: none}]");
    assert_refused(r, "server: {memory: 1kB}\nlimits: [{name: l, key: [user], rate: 20/h}]");
    assert_refused(r, "block: [{user: ['file:/nonexistent']}]\nlimits: []");
    assert_int_equal(weir_rules_reload(r, "/nonexistent/rules.yaml", NULL), WEIR_ERULES);
    assert_int_equal(weir_rules_reload(r, NULL, NULL), WEIR_EINVAL); /* they came from a text */
    assert_int_equal(weir_rules_put(r, "{name: l}", 9, NULL), WEIR_ERULES);
    assert_int_equal(weir_rules_put(r, "", 0, NULL), WEIR_ERULES);
    assert_int_equal(weir_rules_remove(r, "m", NULL), WEIR_ENOLIMIT);
    assert_int_equal(stats_of(r).generation, 1);
    assert_int_equal(stats_of(r).bytes, bytes);
    assert_int_equal(left(r, "user=alice"), 7);
    weir_rules_close(r);
}

/* ---- one limit ---- */

static int add_name(void *arg, const struct weir_rules_limit *limit)
{
    (void)strcat(strcat(arg, limit->name), " ");
    return 0;
}

static void assert_order(struct weir_rules *r, const char *expected)
{
    char names[200] = "";
    assert_int_equal(weir_rules_limits(r, add_name, names), 0);
    assert_string_equal(names, expected);
}

static const char three[] = "limits:\n"
                            "- {name: a, when: {path: /a}, key: [user], rate: 10/h, group: g}\n"
                            "- {name: b, when: {path: /**}, key: [user], rate: 20/h, group: g}\n"
                            "- {name: c, key: [user], rate: 30/h, group: g}\n";

static void a_limit_that_is_put_in_again_keeps_its_place_and_its_keys(void **state)
{
    struct weir_rules *r = rules_open(three);
    assert_int_equal(rules_allowed(r, T0, "path=/b user=alice", 3), 3);
    put(r, "{name: b, when: {path: /**}, key: [user], rate: 20/h, cost: 2, group: g}");
    assert_order(r, "a b c ");
    assert_int_equal(left(r, "path=/b user=alice"), 17);
    assert_int_equal(rules_allowed(r, T0, "path=/b user=alice", 1), 1);
    assert_int_equal(left(r, "path=/b user=alice"), 15);
    put(r, "{name: d, key: [user], rate: 5/h}");
    assert_order(r, "a b c d ");
    assert_int_equal(left(r, "path=/b user=alice"), 5);
    assert_int_equal(stats_of(r).generation, 3);
    weir_rules_close(r);
}

static void a_limit_that_is_removed_forgets_its_keys(void **state)
{
    struct weir_rules *r = rules_open(three);
    uint64_t bytes = stats_of(r).bytes;
    assert_int_equal(rules_allowed(r, T0, "path=/b user=alice", 3), 3);
    assert_int_equal(weir_rules_remove(r, "b", NULL), 0);
    assert_order(r, "a c ");
    assert_true(stats_of(r).bytes < bytes);
    assert_string_equal(rules_peek(r, T0, "path=/b user=alice").limit, "c");
    put(r, "{name: b, when: {path: /**}, key: [user], rate: 20/h}");
    assert_order(r, "a c b ");
    assert_int_equal(left(r, "path=/b user=alice"), 20);
    assert_int_equal(stats_of(r).bytes, bytes);
    weir_rules_close(r);
}

static void a_reload_drops_what_was_put_in_unless_the_file_has_it(void **state)
{
    struct weir_rules *r = rules_open("limits: []");
    put(r, "{name: x, key: [user], rate: 10/h}");
    put(r, "{name: y, key: [user], rate: 10/h}");
    assert_int_equal(rules_allowed(r, T0, "user=alice", 3), 3);
    reload(r, "limits: [{name: y, key: [user], rate: 10/h}]");
    assert_order(r, "y ");
    assert_int_equal(left(r, "user=alice"), 7);
    weir_rules_close(r);
}

static void counts_go_on_over_reloads(void **state)
{
    struct weir_rules *r = rules_open(three);
    assert_int_equal(rules_allowed(r, T0, "path=/b user=alice", 3), 3);
    reload(r, "block: [{user: eve}]\nlimits: []");
    (void)rules_ask(r, T0, "user=eve");
    (void)rules_ask(r, T0, "user=alice");
    struct weir_rules_stats stats = stats_of(r);
    assert_int_equal(stats.asked, 5);
    assert_int_equal(stats.block_listed, 1);
    assert_int_equal(stats.unmatched, 1);
    assert_int_equal(stats.bytes, 0);
    weir_rules_close(r);
}

static void limits_that_come_after_the_clock_was_set_ahead_answer(void **state)
{
    static const char text[] = "limits: [{name: a, when: {path: /a}, key: [user], rate: 5/min}]";
    static const char more[] = "{name: b, when: {path: /b}, key: [user], rate: 5/min}";
    struct weir_rules_attribute with[] = {WEIR_RULES_ATTRIBUTE("path", "/b"),
                                          WEIR_RULES_ATTRIBUTE("user", "alice")};
    struct weir_rules_question q = {.attributes = with, .attributes_count = 2};
    struct weir_rules_answer a;
    struct weir_error error = {0};
    struct weir_rules *r;
    (void)state;
    assert_int_equal(weir_rules_open_text(&r, "test", text, sizeof text - 1, NULL, &error), 0);
    r->anchor_unix_ns -= 3 * WEIR_DAY; /* as if it had been opened before */
    assert_int_equal(weir_rules_put(r, more, sizeof more - 1, &error), 0);
    assert_int_equal(weir_rules_ask(r, &q, &a, &error), 0);
    assert_int_equal(a.answer.remaining, 4);
    weir_rules_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_that_come_after_the_clock_was_set_ahead_answer),
        cmocka_unit_test(a_limit_that_stays_keeps_its_keys),
        cmocka_unit_test(every_algorithm_keeps_its_keys),
        cmocka_unit_test(another_name_window_algorithm_key_or_size_starts_afresh),
        cmocka_unit_test(a_changed_rate_applies_at_once_to_keys_in_use),
        cmocka_unit_test(a_raised_rate_lets_a_denied_key_pass_at_the_same_instant),
        cmocka_unit_test(
            a_log_that_grows_beyond_its_ring_starts_afresh_and_one_that_shrinks_does_not),
        cmocka_unit_test(a_tier_that_stays_keeps_its_keys_whatever_becomes_of_the_others),
        cmocka_unit_test(a_tier_under_another_name_starts_afresh),
        cmocka_unit_test(a_key_that_changes_its_tier_starts_afresh_and_finds_its_old_state_again),
        cmocka_unit_test(rules_with_errors_change_nothing),
        cmocka_unit_test(a_limit_that_is_put_in_again_keeps_its_place_and_its_keys),
        cmocka_unit_test(a_limit_that_is_removed_forgets_its_keys),
        cmocka_unit_test(a_reload_drops_what_was_put_in_unless_the_file_has_it),
        cmocka_unit_test(counts_go_on_over_reloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
