/* Calls of several descriptors that are decided at once, by limits of this node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rules/file/adhoc.h"
#include "support/rules/faked_call.h"

/* Limits `a` to `d` by the value of their key, with as many units as the letter says: 1 to 4. */
#define LETTERS                                                                                    \
    "limits:\n"                                                                                    \
    "- {name: a, key: [a], rate: 1/h}\n"                                                           \
    "- {name: b, key: [b], rate: 2/h}\n"                                                           \
    "- {name: c, key: [c], rate: 3/h}\n"                                                           \
    "- {name: d, key: [d], rate: 4/h}\n"

static const char *told(struct weir_rules *rules, const char *words)
{
    return faked_call_settle(NULL, rules, words);
}

static struct weir_rules_stats stats_of(const struct weir_rules *rules)
{
    struct weir_rules_stats stats = {.size = sizeof stats};
    assert_int_equal(weir_rules_stats_read((struct weir_rules *)(uintptr_t)rules, &stats), 0);
    return stats;
}

/* ---- all or nothing ---- */

static void all_limits_are_charged_or_none(void **state)
{
    struct weir_rules *rules = rules_open(LETTERS);
    assert_string_equal(told(rules, "b=x; c=x; d=x"), "allow b: allow 1, allow 2, allow 3");
    assert_string_equal(told(rules, "b=x; c=x; d=x"), "allow b: allow 0, allow 1, allow 2");
    assert_string_equal(told(rules, "b=x; c=x; d=x"), "deny b: deny 0, allow 1, allow 2");
    assert_string_equal(told(rules, "c=x; d=x"), "allow c: allow 0, allow 1");
    weir_rules_close(rules);
}

static void a_call_that_takes_the_last_units_of_two_limits_is_allowed_by_both(void **state)
{
    struct weir_rules *rules = rules_open("limits:\n"
                                          "- {name: a, key: [a], rate: 1/h}\n"
                                          "- {name: b, key: [b], rate: 1/h}\n");
    assert_string_equal(told(rules, "a=x; b=x"), "allow a: allow 0, allow 0");
    assert_string_equal(told(rules, "a=x; b=x"), "deny a: deny 0, deny 0");
    weir_rules_close(rules);
}

static void several_limits_may_apply_to_one_descriptor(void **state)
{
    struct weir_rules *rules = rules_open(LETTERS);
    assert_string_equal(told(rules, "b=x d=x; c=x"), "allow b: allow 1, allow 2");
    assert_string_equal(told(rules, "b=x d=x; c=x +3"), "deny c: allow 1, deny 0");
    assert_string_equal(told(rules, "b=x +3; e=x"), "never b: never 0, allow -");
    weir_rules_close(rules);
}

static void the_same_key_twice_is_charged_once_for_both(void **state)
{
    struct weir_rules *rules = rules_open(LETTERS);
    assert_string_equal(told(rules, "c=x; c=x"), "allow c: allow 1, allow 1");
    assert_string_equal(told(rules, "c=x; c=y"), "allow c: allow 0, allow 2");
    assert_string_equal(told(rules, "c=y +2; c=y"), "deny c: deny 0, deny 0");
    assert_string_equal(told(rules, "c=y +2; d=x"), "allow c: allow 0, allow 3");
    assert_string_equal(told(rules, "d=y +3; d=y +2"), "never d: never 0, never 0");
    weir_rules_close(rules);
}

static void costs_are_added_without_overflow(void **state)
{
    struct weir_rules *rules = rules_open(LETTERS);
    assert_string_equal(told(rules, "d=x +9223372036854775807; d=x +9223372036854775807; d=x +2"),
                        "never d: never 0, never 0, never 0");
    assert_string_equal(told(rules, "d=x -9223372036854775807"), "allow d: allow 4");
    assert_string_equal(told(rules, "d=x +9223372036854775807; c=x"), "never d: never 0, allow 3");
    assert_string_equal(told(rules, "d=x +4"), "allow d: allow 0");
    weir_rules_close(rules);
}

static void hits_of_a_rate_of_nothing_never_fit_and_those_of_no_rate_always_do(void **state)
{
    struct weir_rules *rules = rules_open("limits:\n"
                                          "- {name: none, key: [n], rate: 0/s}\n"
                                          "- {name: all, key: [u], rate: unlimited}\n"
                                          "- {name: d, key: [d], rate: 4/h}\n");
    assert_string_equal(told(rules, "u=x +9; d=x"), "allow d: allow 18446744073709551615, allow 3");
    assert_string_equal(told(rules, "u=x; n=x; d=x"),
                        "never none: allow 18446744073709551615, never 0, allow 3");
    assert_string_equal(told(rules, "n=x +0; d=x"), "never none: never 0, allow 3");
    assert_string_equal(told(rules, "n=x -1; u=x -1; d=x +0"),
                        "allow none: allow 0, allow 18446744073709551615, allow 3");
    weir_rules_close(rules);
}

/* ---- questions without units, and units given back ---- */

static void a_look_takes_nothing(void **state)
{
    struct weir_rules *rules = rules_open(LETTERS);
    assert_string_equal(told(rules, "b=x +0; c=x"), "allow b: allow 2, allow 2");
    assert_string_equal(told(rules, "b=x +0"), "allow b: allow 2");
    weir_rules_close(rules);
}

static void a_look_at_an_empty_limit_denies_the_call_before_others_are_charged(void **state)
{
    struct weir_rules *rules = rules_open(LETTERS);
    assert_string_equal(told(rules, "a=x"), "allow a: allow 0");
    assert_string_equal(told(rules, "c=x; a=x +0"), "deny a: allow 3, deny 0");
    assert_string_equal(told(rules, "c=x; a=y +0"), "allow a: allow 2, allow 1");
    weir_rules_close(rules);
}

static void a_call_that_takes_the_last_unit_may_look_at_it(void **state)
{
    struct weir_rules *rules = rules_open(LETTERS);
    assert_string_equal(told(rules, "a=x; a=x +0"), "allow a: allow 0, allow 1");
    weir_rules_close(rules);
}

static void units_are_given_back_also_by_a_call_that_is_denied(void **state)
{
    struct weir_rules *rules = rules_open(LETTERS);
    assert_string_equal(told(rules, "d=x +3; a=x"), "allow a: allow 1, allow 0");
    assert_string_equal(told(rules, "d=x -2; a=x"), "deny a: allow 3, deny 0");
    assert_string_equal(told(rules, "d=x -9"), "allow d: allow 4");
    weir_rules_close(rules);
}

#define OF_ENVOY(section)                                                                          \
    "domain: x\n"                                                                                  \
    "descriptors: [{key: d, rate_limit: {unit: day, requests_per_unit: 4}}]\n" section

/* Asks as a caller of whom units are taken only. */
static const char *told_by_client(struct weir_rules *rules, const char *words)
{
    struct faked_call c = faked_call_init();
    c.call.may_give = false;
    faked_call_ask(&c, rules, NULL, words);
    const char *said = faked_call_told(&c);
    faked_call_finish(&c);
    return said;
}

static void a_client_gives_nothing_back_and_its_other_questions_are_decided(void **state)
{
    struct weir_rules *rules = rules_open("envoy: {negative_hits: true}\n" LETTERS);
    assert_string_equal(told_by_client(rules, "d=x +3; a=x"), "allow a: allow 1, allow 0");
    assert_string_equal(told_by_client(rules, "d=x -2"), "allow d: allow 1");
    assert_string_equal(told_by_client(rules, "d=x -2; b=x"), "allow d: allow 1, allow 1");
    assert_string_equal(told_by_client(rules, "d=x -2; a=x"), "deny a: allow 1, deny 0");
    assert_string_equal(told_by_client(rules, "d=x; d=y -1"), "allow d: allow 0, allow 4");
    assert_string_equal(told_by_client(rules, "d=x -4"), "allow d: allow 0");
    weir_rules_close(rules);
}

static void a_client_gives_back_to_limits_of_envoy_files_only_if_that_is_switched_on(void **state)
{
    static const char take[] = "domain=x descriptor=d value_1=u +3";
    static const char give[] = "domain=x descriptor=d value_1=u -2";
    struct weir_rules *off = rules_open(OF_ENVOY(""));
    struct weir_rules *on = rules_open(OF_ENVOY("envoy: {negative_hits: true}\n"));
    assert_string_equal(told_by_client(off, take), "allow x.d: allow 1");
    assert_string_equal(told_by_client(off, give), "allow x.d: allow 1");
    assert_string_equal(told_by_client(on, take), "allow x.d: allow 1");
    assert_string_equal(told_by_client(on, give), "allow x.d: allow 3");
    weir_rules_close(on);
    weir_rules_close(off);
}

/* ---- quota_mode, shadow and replaces ---- */

#define QUOTAS                                                                                     \
    "limits:\n"                                                                                    \
    "- {name: a, key: [a], rate: 1/h, quota_mode: true}\n"                                         \
    "- {name: b, key: [b], rate: 2/h, quota_mode: true}\n"                                         \
    "- {name: c, key: [c], rate: 3/h}\n"

static void limits_in_quota_mode_deny_only_if_all_of_them_are_over(void **state)
{
    struct weir_rules *rules = rules_open(QUOTAS);
    assert_string_equal(told(rules, "a=x; b=x"), "allow a: allow 0, allow 1");
    assert_string_equal(told(rules, "a=x; b=x"), "allow b: deny 0, allow 0");
    assert_string_equal(told(rules, "a=x; b=x; c=x"), "deny a: deny 0, deny 0, allow 3");
    assert_string_equal(told(rules, "a=x; c=x"), "deny a: deny 0, allow 3");
    weir_rules_close(rules);
}

static void units_of_quota_mode_come_back_if_another_limit_denies(void **state)
{
    struct weir_rules *rules = rules_open(QUOTAS);
    assert_string_equal(told(rules, "b=x; c=x +4"), "never c: allow 2, never 0");
    assert_string_equal(told(rules, "b=x; a=x; c=x +4"), "never c: allow 2, allow 1, never 0");
    assert_string_equal(told(rules, "b=x +2; c=x"), "allow b: allow 0, allow 2");
    weir_rules_close(rules);
}

static void a_shadow_limit_never_denies_and_is_charged_only_for_calls_that_pass(void **state)
{
    struct weir_rules *rules = rules_open("limits:\n"
                                          "- {name: s, key: [s], rate: 1/h, shadow: true}\n"
                                          "- {name: b, key: [b], rate: 2/h}\n");
    assert_string_equal(told(rules, "s=x; b=x +3"), "never b: allow 1, never 0");
    assert_string_equal(told(rules, "s=x; b=x"), "allow b: allow 0, allow 1");
    assert_string_equal(told(rules, "s=x; b=x"), "allow b: allow 0, allow 0");
    assert_int_equal(stats_of(rules).shadow_denied, 1);
    assert_string_equal(told(rules, "s=x"), "allow -: allow 0");
    assert_int_equal(stats_of(rules).shadow_denied, 2);
    assert_int_equal(stats_of(rules).unmatched, 4); /* shadow limits do not count as limits */
    weir_rules_close(rules);
}

static void an_error_that_only_a_shadow_limit_has_does_not_fail_the_call(void **state)
{
    char yaml[4000] = "limits:\n- {name: b, key: [b], rate: 2/h}\n";
    for (unsigned i = 0; i < CALL_MAX; i++) { /* one more part than a call can have */
        (void)snprintf(yaml + strlen(yaml), sizeof yaml - strlen(yaml),
                       "- {name: s%u, key: [b], rate: 9/h, shadow: true}\n", i);
    }
    struct weir_rules *rules = rules_open(yaml);
    assert_string_equal(told(rules, "b=x"), "allow b: allow 1");
    assert_int_equal(stats_of(rules).shadow_failed, 1);
    assert_int_equal(stats_of(rules).bad, 0);
    weir_rules_close(rules);
}

static void a_limit_that_replaces_others_is_asked_instead_of_them(void **state)
{
    struct weir_rules *rules = rules_open("limits:\n"
                                          "- {name: a, key: [a], rate: 1/h, label: 'l a'}\n"
                                          "- {name: b, key: [b], rate: 2/h, replaces: ['l a']}\n"
                                          "- {name: c, key: [c], rate: 3/h, replaces: [b]}\n");
    assert_string_equal(told(rules, "a=x; b=x"), "allow b: allow -, allow 1");
    assert_string_equal(told(rules, "a=x; b=x; c=x"), "allow c: allow -, allow -, allow 2");
    assert_string_equal(told(rules, "a=x"), "allow a: allow 0");
    assert_string_equal(told(rules, "b=x"), "allow b: allow 0");
    weir_rules_close(rules);
}

static void limits_that_replace_each_other_are_all_left_out(void **state)
{
    struct weir_rules *rules = rules_open("limits:\n"
                                          "- {name: a, key: [a], rate: 1/h, replaces: [b]}\n"
                                          "- {name: b, key: [b], rate: 1/h, replaces: [a]}\n");
    assert_string_equal(told(rules, "a=x +9; b=x +9"), "allow -: allow -, allow -");
    assert_string_equal(told(rules, "b=x"), "allow b: allow 0");
    weir_rules_close(rules);
}

/* ---- charge: each ---- */

static void limits_that_are_charged_each_lose_what_a_denied_call_asked_for(void **state)
{
    struct weir_rules *rules = rules_open("envoy: {charge: each}\n" LETTERS);
    assert_string_equal(told(rules, "b=x; c=x"), "allow b: allow 1, allow 2");
    assert_string_equal(told(rules, "b=x +2; c=x"), "deny b: deny 0, allow 1");
    assert_string_equal(told(rules, "c=x +0"), "allow c: allow 1");
    assert_string_equal(told(rules, "c=x; c=x"), "deny c: allow 0, deny 0");
    weir_rules_close(rules);
}

static void a_queue_is_never_used_by_a_call_because_nobody_would_wait(void **state)
{
    static const char *const modes[] = {"together", "each"};
    for (size_t i = 0; i < 2; i++) {
        char yaml[200];
        (void)snprintf(yaml, sizeof yaml,
                       "envoy: {charge: %s}\n"
                       "limits: [{name: q, key: [q], rate: 60/h, algorithm: leaky_bucket,"
                       " queue: 5}]\n",
                       modes[i]);
        struct weir_rules *rules = rules_open(yaml);
        assert_string_equal(told(rules, "q=x"), "allow q: allow 5");
        assert_string_equal(told(rules, "q=x"), "deny q: deny 0");
        weir_rules_close(rules);
    }
}

/* ---- overrides ---- */

static struct weir *open_builtin(void)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir *w = NULL;
    adhoc_options(100, WEIR_EVICT, &o);
    o.flags = WEIR_EXPLICIT_TIME;
    assert_int_equal(weir_open(&w, &o, NULL), 0);
    return w;
}

static const char *told_with(struct weir_rules *rules, struct weir *builtin, bool shadow,
                             const char *words)
{
    struct faked_call c = faked_call_init();
    c.call.adhoc = builtin;
    c.call.adhoc_shadow = shadow;
    faked_call_ask(&c, rules, NULL, words);
    const char *said = faked_call_told(&c);
    faked_call_finish(&c);
    return said;
}

static void an_override_is_charged_only_if_the_call_passes(void **state)
{
    struct weir_rules *rules = rules_open(LETTERS);
    struct weir *w = open_builtin();
    assert_string_equal(told_with(rules, w, false, "2/k; a=x +2"), "never a: allow 2, never 0");
    assert_string_equal(told_with(rules, w, false, "2/k; a=x"), "allow a: allow 1, allow 0");
    assert_string_equal(told_with(rules, w, false, "2/k +2; b=x"),
                        "deny override: deny 0, allow 2");
    assert_string_equal(told_with(rules, w, false, "2/k; b=x"), "allow override: allow 0, allow 1");
    assert_string_equal(told_with(rules, w, false, "2/k +0; b=x"),
                        "deny override: deny 0, allow 1");
    assert_string_equal(told_with(rules, w, false, "0/k; b=x"), "never -: never 0, allow 1");
    weir_close(w);
    weir_rules_close(rules);
}

static void an_override_that_is_charged_each_loses_what_a_denied_call_asked_for(void **state)
{
    struct weir_rules *rules = rules_open("envoy: {charge: each}\n" LETTERS);
    struct weir *w = open_builtin();
    assert_string_equal(told_with(rules, w, false, "2/k; a=x +2"), "deny a: allow 1, deny 0");
    assert_string_equal(told_with(rules, w, false, "2/k +2; b=x"),
                        "deny override: deny 0, allow 1");
    assert_string_equal(told_with(rules, w, false, "2/k; b=x"), "deny override: deny 0, allow 0");
    assert_string_equal(told_with(rules, w, false, "3/l; 3/l; d=x"),
                        "allow override: allow 2, allow 1, allow 3");
    assert_string_equal(told_with(rules, w, false, "0/k; c=x"), "never -: never 0, allow 2");
    assert_string_equal(told_with(rules, w, false, "c=x +0"), "allow c: allow 2");
    weir_close(w);
    weir_rules_close(rules);
}

static void an_override_that_is_named_twice_is_charged_once_for_both(void **state)
{
    struct weir_rules *rules = rules_open(LETTERS);
    struct weir *w = open_builtin();
    assert_string_equal(told_with(rules, w, false, "3/k; 3/k; a=x"),
                        "allow a: allow 1, allow 1, allow 0");
    assert_string_equal(told_with(rules, w, false, "3/k; 3/k; b=x"),
                        "deny override: deny 0, deny 0, allow 2");
    assert_string_equal(told_with(rules, w, false, "3/k; b=x"), "allow override: allow 0, allow 1");
    weir_close(w);
    weir_rules_close(rules);
}

static void a_built_in_limit_in_shadow_mode_denies_nothing(void **state)
{
    struct weir_rules *rules = rules_open(LETTERS);
    struct weir *w = open_builtin();
    assert_string_equal(told_with(rules, w, true, "1/k; d=x"), "allow d: allow 0, allow 3");
    assert_string_equal(told_with(rules, w, true, "1/k; d=x"), "allow d: allow 0, allow 2");
    assert_string_equal(told_with(rules, w, true, "1/k +0; d=x"), "allow d: allow 0, allow 1");
    assert_string_equal(told_with(rules, w, true, "0/k; d=x"), "allow d: allow 0, allow 0");
    weir_close(w);
    weir_rules_close(rules);
}

static void an_override_without_a_built_in_limit_is_an_error(void **state)
{
    struct weir_rules *rules = rules_open(LETTERS);
    struct faked_call c = faked_call_init();
    faked_call_ask(&c, rules, NULL, "d=x +3; 1/k");
    assert_int_equal(c.result, WEIR_ENOTSUP);
    assert_non_null(strstr(c.error.text, "adhoc: off"));
    assert_string_equal(told(rules, "d=x +4"), "allow d: allow 0");
    faked_call_finish(&c);
    weir_rules_close(rules);
}

/* ---- lists, missing keys, hidden limits, errors ---- */

static unsigned listed_line;

static void hear_listed(void *arg, const char *file, unsigned line)
{
    (void)arg;
    (void)file;
    listed_line = line;
}

static void lists_come_before_limits(void **state)
{
    static const char yaml[] = "allow: [{user: root}]\n"
                               "block: [{user: eve}]\n" LETTERS;
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_rules *rules = NULL;
    struct weir_error error;
    o.flags = WEIR_EXPLICIT_TIME;
    o.listed = hear_listed;
    assert_int_equal(weir_rules_open_text(&rules, "t", yaml, strlen(yaml), &o, &error), 0);
    assert_string_equal(told(rules, "user=root a=x +9; b=x"), "allow b: allow -, allow 1");
    assert_int_equal(listed_line, 0);
    assert_string_equal(told(rules, "b=x; user=eve a=x"), "never -: allow 1, never -");
    assert_int_equal(listed_line, 2);
    assert_string_equal(told(rules, "b=x"), "allow b: allow 0");
    assert_int_equal(stats_of(rules).block_listed, 1);
    assert_int_equal(stats_of(rules).allow_listed, 1);
    assert_int_equal(stats_of(rules).asked, 5);
    weir_rules_close(rules);
}

static void a_missing_key_can_deny(void **state)
{
    struct weir_rules *rules =
        rules_open("limits:\n"
                   "- {name: m, when: {path: /m}, key: [user], rate: 9/h, on_missing: deny}\n"
                   "- {name: k, when: {path: /m}, key: [user], rate: 9/h}\n"
                   "- {name: b, key: [b], rate: 2/h}\n");
    assert_string_equal(told(rules, "b=x; path=/m"), "never m: allow 2, never -");
    assert_int_equal(stats_of(rules).missing, 3);
    assert_string_equal(told(rules, "b=x; path=/m user=u"), "allow b: allow 1, allow 8");
    weir_rules_close(rules);
}

static void hidden_limits_are_not_told(void **state)
{
    struct weir_rules *rules =
        rules_open("limits:\n"
                   "- {name: h, key: [h], rate: 1/h, expose: false, label: a secret}\n"
                   "- {name: b, key: [b], rate: 2/h}\n");
    struct faked_call c = faked_call_init();
    assert_string_equal(told(rules, "h=x; b=x"), "allow h: allow -, allow 1");
    faked_call_ask(&c, rules, NULL, "h=x; b=x");
    assert_string_equal(faked_call_told(&c), "deny h: deny -, allow 1");
    assert_int_equal(c.call.answer.hidden, 1);
    faked_call_finish(&c);
    weir_rules_close(rules);
}

static void windows_at_multiples_since_1970_are_told_apart(void **state)
{
    static const struct {
        const char *limit;
        bool windows;
    } rows[] = {{"rate: 9/day", true},
                {"rate: 9/week", false},
                {"rate: 9/14day", false},
                {"rate: 9/week, align: epoch", true},
                {"rate: 9/14day, align: epoch", true},
                {"rate: 9/30day", true},
                {"rate: 9/month", false},
                {"rate: 9/day, align: key", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char yaml[200];
        (void)snprintf(yaml, sizeof yaml,
                       "limits: [{name: l, key: [l], algorithm: fixed_window, %s}]", rows[i].limit);
        struct weir_rules *rules = rules_open(yaml);
        struct faked_call c = faked_call_init();
        faked_call_ask(&c, rules, NULL, "l=x");
        const struct call_status *s = &c.call.statuses[0];
        assert_int_equal(s->windows, rows[i].windows);
        bool multiple = (RULES_T0 + s->reset_after_ns) % s->rate.period_ns == 0;
        assert_true(multiple || !s->windows);
        faked_call_finish(&c);
        weir_rules_close(rules);
    }
}

static void a_full_table_is_told_apart_from_a_limit_without_units(void **state)
{
    static const char *const policies[] = {"deny", "allow"};
    static const char *const expected[] = {"deny l: deny 0, allow 9", "allow l: allow 5, allow 8"};
    for (size_t i = 0; i < 2; i++) {
        char yaml[300];
        (void)snprintf(yaml, sizeof yaml,
                       "limits:\n"
                       "- {name: l, key: [l], rate: 5/h, max_keys: 1, on_full: %s}\n"
                       "- {name: b, key: [b], rate: 9/h}\n",
                       policies[i]);
        struct weir_rules *rules = rules_open(yaml);
        char words[20];
        for (unsigned key = 0; key < 2000; key++) {
            (void)snprintf(words, sizeof words, "l=%u", key);
            (void)told(rules, words);
        }
        struct faked_call c = faked_call_init();
        faked_call_ask(&c, rules, NULL, "l=new; b=x");
        assert_string_equal(faked_call_told(&c), expected[i]);
        assert_true((c.call.answer.answer.flags & WEIR_FLAG_FULL) != 0);
        faked_call_finish(&c);
        weir_rules_close(rules);
    }
}

static void tiers_and_costs_of_the_request_apply(void **state)
{
    struct weir_rules *rules =
        rules_open("limits:\n"
                   "- {name: t, key: [user], rate: 3/h, tiers: {by: tier, pro: {rate: 9/h}}}\n"
                   "- {name: size, key: [file], rate: 100/h, cost: 'attribute:size'}\n"
                   "- {name: two, key: [two], rate: 10/h, cost: 2}\n");
    assert_string_equal(told(rules, "user=u; user=u tier=pro; user=v tier=x"),
                        "allow t: allow 2, allow 8, allow 2");
    assert_int_equal(stats_of(rules).tier_unknown, 1);
    assert_string_equal(told(rules, "file=f size=70 +5; two=x +3"), "allow two: allow 30, allow 8");
    assert_string_equal(told(rules, "two=x"), "allow two: allow 6");
    weir_rules_close(rules);
}

/* ---- values that cannot be read ---- */

/* Asks, and returns what is odd about the call. */
static unsigned oddities(struct weir_rules *rules, const char *words)
{
    struct faked_call c = faked_call_init();
    faked_call_ask(&c, rules, NULL, words);
    assert_int_equal(c.result, 0);
    faked_call_finish(&c);
    return c.call.oddities;
}

static void a_cost_that_cannot_be_read_is_one(void **state)
{
    struct weir_rules *rules =
        rules_open("limits:\n"
                   "- {name: size, key: [file], rate: 100/h, cost: 'attribute:size'}\n"
                   "- {name: dry, key: [file], rate: 9/h, cost: 'attribute:size', shadow: true}\n");
    assert_string_equal(told(rules, "file=f size=7"), "allow size: allow 93");
    assert_string_equal(told(rules, "file=f"), "allow size: allow 92");
    assert_string_equal(told(rules, "file=f size=-7"), "allow size: allow 91");
    assert_string_equal(told(rules, "file=f size=many"), "allow size: allow 90");
    assert_string_equal(told(rules, "file=f size=0"), "allow size: allow 89");
    assert_string_equal(told(rules, "file=f size=99999999999999999999"), "allow size: allow 88");
    assert_int_equal(oddities(rules, "file=f"), CALL_UNREAD_COST);
    assert_int_equal(oddities(rules, "file=f size=1"), 0);
    assert_int_equal(stats_of(rules).bad, 0);
    weir_rules_close(rules);
}

static void limits_that_use_what_cannot_be_read_answer_by_on_missing(void **state)
{
    struct weir_rules *rules = rules_open(
        "limits:\n"
        "- {name: a, when: {path: /a, kind: k}, key: [user], rate: 9/h, on_missing: deny}\n"
        "- {name: b, when: {kind: [l, m]}, key: [ip], rate: 8/h, group: g}\n"
        "- {name: c, when: {kind: l}, key: [user], rate: 7/h, group: g}\n"
        "- {name: d, unless: {path: /d}, key: [user], rate: 60/h}\n");
    assert_string_equal(told(rules, "path=/a kind=k user=u"), "allow a: allow 8");
    assert_string_equal(told(rules, "path=/%00 kind=k user=u"), "never a: never -");
    assert_string_equal(told(rules, "path=/%00 kind=k user=u; user=u"),
                        "never a: never -, allow 59");
    /* the other condition does not hold, and `unless` does not either */
    assert_string_equal(told(rules, "path=/%00 kind=x user=u"), "allow d: allow 58");
    assert_string_equal(told(rules, "path=/d user=u"), "allow -: allow -");
    /* the next limit of the group takes its place */
    assert_string_equal(told(rules, "ip=10.0.0.1 kind=l user=v"), "allow b: allow 7");
    assert_string_equal(told(rules, "ip=10.0.0.256 kind=l user=v"), "allow c: allow 6");
    assert_int_equal(oddities(rules, "ip=none kind=m"), CALL_UNREAD_VALUE);
    assert_int_equal(oddities(rules, "ip=10.0.0.1 kind=m"), 0);
    assert_int_equal(stats_of(rules).bad, 0);
    weir_rules_close(rules);
}

static void an_attribute_is_not_derived_from_the_next_source_if_one_cannot_be_read(void **state)
{
    struct weir_rules *rules = rules_open(
        "attributes: {tenant: ['path:1', 'header:x-tenant'], sid: ['cookie:s', 'header:x-sid']}\n"
        "limits:\n"
        "- {name: t, when: {tenant: '*'}, key: [tenant], rate: 9/h, on_missing: deny}\n"
        "- {name: s, when: {sid: '*'}, key: [sid], rate: 5/h, on_missing: deny}\n");
    assert_string_equal(told(rules, "path=/x header:x-tenant=y"), "allow t: allow 8");
    assert_string_equal(told(rules, "path=/ header:x-tenant=x"), "allow t: allow 7");
    assert_string_equal(told(rules, "path=/%00 header:x-tenant=x"), "never t: never -");
    assert_string_equal(told(rules, "header:cookie=s=1 header:X-Sid=2"), "allow s: allow 4");
    /* of two values the first counts */
    assert_string_equal(told(rules, "header:x-sid=1 header:X-SID=2"), "allow s: allow 3");
    weir_rules_close(rules);
}

static void limits_that_are_too_many_are_an_error_before_any_is_charged(void **state)
{
    char yaml[4000] = "limits:\n";
    char words[400] = "n=x; n=y";
    for (unsigned i = 0; i < CALL_MAX / 2 + 1; i++) {
        (void)snprintf(yaml + strlen(yaml), sizeof yaml - strlen(yaml),
                       "- {name: l%u, key: [n], rate: 1/h}\n", i);
    }
    struct weir_rules *rules = rules_open(yaml);
    struct faked_call c = faked_call_init();
    faked_call_ask(&c, rules, NULL, words);
    assert_int_equal(c.result, WEIR_EINVAL);
    assert_non_null(strstr(c.error.text, "too many limits apply"));
    assert_string_equal(told(rules, "n=x"), "allow l0: allow 0");
    faked_call_finish(&c);
    weir_rules_close(rules);
}

/* ---- denials ---- */

struct heard {
    char limits[100];
};

static void hear_denied(void *arg, const struct weir_rules_denial *d)
{
    struct heard *h = arg;
    size_t len = strlen(h->limits);
    (void)snprintf(h->limits + len, sizeof h->limits - len, "%s ", d->limit);
}

static void a_denial_is_reported_once_for_the_limit_that_bound(void **state)
{
    static const char yaml[] = "limits:\n"
                               "- {name: a, key: [a], rate: 1/h}\n"
                               "- {name: b, key: [b], rate: 1/h}\n"
                               "- {name: q, key: [q], rate: 1/h, quota_mode: true}\n"
                               "- {name: r, key: [r], rate: 2/h, quota_mode: true}\n"
                               "- {name: s, key: [s], rate: 1/h, shadow: true}\n";
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_rules *rules = NULL;
    struct weir_error error;
    struct heard heard = {{0}};
    o.flags = WEIR_EXPLICIT_TIME;
    o.denied = hear_denied;
    o.denied_arg = &heard;
    assert_int_equal(weir_rules_open_text(&rules, "t", yaml, strlen(yaml), &o, &error), 0);
    (void)told(rules, "a=x; b=x; s=x; q=x; r=x");
    assert_string_equal(heard.limits, "");
    assert_string_equal(told(rules, "a=y; b=y; s=x; q=x; r=x"),
                        "allow a: allow 0, allow 0, allow 0, deny 0, allow 0");
    assert_string_equal(heard.limits, ""); /* s and q were over, and the call passed */
    (void)told(rules, "a=x; b=x");
    assert_string_equal(heard.limits, "a ");
    (void)told(rules, "a=x +0; q=x +0");
    assert_string_equal(heard.limits, "a ");
    (void)told(rules, "q=x; r=x");
    assert_string_equal(heard.limits, "a q r ");
    weir_rules_close(rules);
}

static void denied_calls_lead_to_a_ban(void **state)
{
    struct weir_rules *rules =
        rules_open("limits:\n"
                   "- {name: b, key: [b], rate: 1/h, ban: {denials: 2, within: 1min, for: 2h}}\n"
                   "- {name: d, key: [d], rate: 9/h}\n");
    struct faked_call c = faked_call_init();
    assert_string_equal(told(rules, "b=x; d=x"), "allow b: allow 0, allow 8");
    assert_string_equal(told(rules, "b=x; d=x"), "deny b: deny 0, allow 8");
    faked_call_ask(&c, rules, NULL, "b=x; d=x");
    assert_string_equal(faked_call_told(&c), "deny b: deny 0, allow 8");
    assert_int_equal(c.call.answer.reason, WEIR_REASON_BAN);
    assert_int_equal(c.call.statuses[0].reset_after_ns, 2 * WEIR_HOUR);
    faked_call_finish(&c);
    weir_rules_close(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_limits_are_charged_or_none),
        cmocka_unit_test(a_call_that_takes_the_last_units_of_two_limits_is_allowed_by_both),
        cmocka_unit_test(several_limits_may_apply_to_one_descriptor),
        cmocka_unit_test(the_same_key_twice_is_charged_once_for_both),
        cmocka_unit_test(costs_are_added_without_overflow),
        cmocka_unit_test(hits_of_a_rate_of_nothing_never_fit_and_those_of_no_rate_always_do),
        cmocka_unit_test(a_look_takes_nothing),
        cmocka_unit_test(a_look_at_an_empty_limit_denies_the_call_before_others_are_charged),
        cmocka_unit_test(a_call_that_takes_the_last_unit_may_look_at_it),
        cmocka_unit_test(units_are_given_back_also_by_a_call_that_is_denied),
        cmocka_unit_test(a_client_gives_nothing_back_and_its_other_questions_are_decided),
        cmocka_unit_test(a_client_gives_back_to_limits_of_envoy_files_only_if_that_is_switched_on),
        cmocka_unit_test(limits_in_quota_mode_deny_only_if_all_of_them_are_over),
        cmocka_unit_test(units_of_quota_mode_come_back_if_another_limit_denies),
        cmocka_unit_test(a_shadow_limit_never_denies_and_is_charged_only_for_calls_that_pass),
        cmocka_unit_test(an_error_that_only_a_shadow_limit_has_does_not_fail_the_call),
        cmocka_unit_test(a_limit_that_replaces_others_is_asked_instead_of_them),
        cmocka_unit_test(limits_that_replace_each_other_are_all_left_out),
        cmocka_unit_test(limits_that_are_charged_each_lose_what_a_denied_call_asked_for),
        cmocka_unit_test(a_queue_is_never_used_by_a_call_because_nobody_would_wait),
        cmocka_unit_test(an_override_is_charged_only_if_the_call_passes),
        cmocka_unit_test(an_override_that_is_charged_each_loses_what_a_denied_call_asked_for),
        cmocka_unit_test(an_override_that_is_named_twice_is_charged_once_for_both),
        cmocka_unit_test(a_built_in_limit_in_shadow_mode_denies_nothing),
        cmocka_unit_test(an_override_without_a_built_in_limit_is_an_error),
        cmocka_unit_test(lists_come_before_limits),
        cmocka_unit_test(a_missing_key_can_deny),
        cmocka_unit_test(hidden_limits_are_not_told),
        cmocka_unit_test(windows_at_multiples_since_1970_are_told_apart),
        cmocka_unit_test(a_full_table_is_told_apart_from_a_limit_without_units),
        cmocka_unit_test(tiers_and_costs_of_the_request_apply),
        cmocka_unit_test(a_cost_that_cannot_be_read_is_one),
        cmocka_unit_test(limits_that_use_what_cannot_be_read_answer_by_on_missing),
        cmocka_unit_test(an_attribute_is_not_derived_from_the_next_source_if_one_cannot_be_read),
        cmocka_unit_test(limits_that_are_too_many_are_an_error_before_any_is_charged),
        cmocka_unit_test(a_denial_is_reported_once_for_the_limit_that_bound),
        cmocka_unit_test(denied_calls_lead_to_a_ban),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
