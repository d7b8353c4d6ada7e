/* Rates without a count: `unlimited` never denies, `0/s` always does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/rules/faked_world.h"

#define T0 RULES_T0
#define TIERS "tiers: {vip: {rate: unlimited}, out: {rate: 0/s}}"

static void assert_unlimited(const struct weir_rules_answer *a)
{
    assert_int_equal(a->answer.verdict, WEIR_ALLOW);
    assert_true(a->answer.quota == WEIR_UNLIMITED && a->answer.remaining == WEIR_UNLIMITED);
    assert_int_equal(a->answer.reset_after_ns, 0);
    assert_int_equal(a->window_ns, 0);
}

static void assert_never(const struct weir_rules_answer *a)
{
    assert_int_equal(a->answer.verdict, WEIR_NEVER);
    assert_int_equal(a->answer.quota, 0);
    assert_int_equal(a->answer.remaining, 0);
    assert_true(a->answer.retry_after_ns == WEIR_FOREVER);
}

/* Statistics of the variant with this tier. */
struct variant_stats {
    const char *tier;
    struct weir_rules_limit found;
    char rate[32]; /* found.rate: that of the list is gone after the call */
};

static int find_tier(void *arg, const struct weir_rules_limit *limit)
{
    struct variant_stats *v = arg;
    if (strcmp(limit->tier, v->tier) == 0) {
        v->found = *limit;
        (void)snprintf(v->rate, sizeof v->rate, "%s", limit->rate);
    }
    return 0;
}

static struct variant_stats stats_of(struct weir_rules *r, const char *tier)
{
    struct variant_stats v = {.tier = tier};
    assert_int_equal(weir_rules_limits(r, find_tier, &v), 0);
    return v;
}

static void a_tier_without_limit_is_counted_and_never_denied(void **state)
{
    static const char *const algorithms[] = {"token_bucket", "leaky_bucket", "fixed_window",
                                             "sliding_window", "sliding_log"};
    for (size_t i = 0; i < 5; i++) {
        char yaml[512];
        (void)snprintf(yaml, sizeof yaml,
                       "limits: [{name: l, key: [user], rate: 2/min, algorithm: %s, " TIERS "}]",
                       algorithms[i]);
        struct weir_rules *r = rules_open(yaml);
        struct weir_rules_answer a = rules_ask(r, T0, "user=ann tier=vip");
        assert_unlimited(&a);
        assert_string_equal(a.limit, "l");
        assert_string_equal(a.tier, "vip");
        assert_int_equal(rules_allowed(r, T0, "user=ann tier=vip", 5000), 5000);
        a = rules_ask_cost(r, T0, "user=ann tier=vip", UINT64_MAX);
        assert_unlimited(&a);
        assert_int_equal(stats_of(r, "vip").found.stats.allowed, 5002);
        weir_rules_close(r);
    }
}

static void a_rate_of_0_denies_for_ever_and_remembers_no_key(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, key: [user], rate: 2/min, " TIERS "}]");
    struct weir_rules_answer a = rules_ask(r, T0, "user=ann tier=out");
    assert_never(&a);
    assert_int_equal(rules_allowed(r, T0 + WEIR_DAY, "user=ann tier=out", 9), 0);
    struct variant_stats out = stats_of(r, "out");
    assert_int_equal(out.found.stats.never, 10);
    assert_int_equal(out.found.stats.keys, 0);
    assert_string_equal(out.rate, "0/s");
    a = rules_peek(r, T0, "user=ann tier=out");
    assert_never(&a);
    weir_rules_close(r);
}

static void with_other_limits_the_scarcest_is_named_and_never_charges_none(void **state)
{
    struct weir_rules *r = rules_open("limits:\n"
                                      "- {name: free, key: [user], rate: unlimited}\n"
                                      "- {name: few, key: [user], rate: 2/day}\n"
                                      "- {name: shut, when: {path: /shut}, key: [], rate: 0/s}\n");
    struct weir_rules_answer a = rules_ask(r, T0, "user=ann path=/shut");
    assert_never(&a);
    assert_string_equal(a.limit, "shut");
    a = rules_ask(r, T0, "user=ann");
    assert_string_equal(a.limit, "few");
    assert_int_equal(a.answer.remaining, 1);
    assert_int_equal(rules_allowed(r, T0, "user=ann", 3), 1);
    weir_rules_close(r);
}

static void a_shadow_limit_of_rate_0_would_deny(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, key: [user], rate: 0/s, shadow: true}]");
    struct weir_rules_answer a = rules_ask(r, T0, "user=ann");
    assert_int_equal(a.answer.verdict, WEIR_ALLOW);
    assert_int_equal(a.shadow_denied, 1);
    weir_rules_close(r);
}

static void a_reload_changes_a_rate_to_unlimited_and_back(void **state)
{
    static const char *const puts[] = {
        "{name: l, key: [user], rate: unlimited}", "{name: l, key: [user], rate: 0/s}",
        "{name: l, key: [user], rate: 3/s}", "{name: l, key: [user], rate: unlimited}"};
    static const unsigned allowed[] = {100, 0, 3, 100};
    struct weir_rules *r = rules_open("limits: [{name: l, key: [user], rate: 2/s}]");
    assert_int_equal(rules_allowed(r, T0, "user=ann", 100), 2);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(weir_rules_put(r, puts[i], strlen(puts[i]), NULL), 0);
        assert_int_equal(rules_allowed(r, T0, "user=ann", 100), allowed[i]);
    }
    weir_rules_close(r);
}

static void nothing_is_waited_for(void **state)
{
    struct weir_rules *r = rules_open(
        "limits: [{name: l, key: [user], rate: 2/min, algorithm: leaky_bucket, " TIERS "}]");
    struct weir_rules_question q = {.max_wait_ns = WEIR_MINUTE};
    struct weir_rules_answer a;
    assert_int_equal(rules_ask_async(r, NULL, "user=ann tier=vip", q, &a, faked_hear, NULL, NULL),
                     1);
    assert_unlimited(&a);
    assert_int_equal(rules_ask_async(r, NULL, "user=ann tier=out", q, &a, faked_hear, NULL, NULL),
                     1);
    assert_never(&a);
    weir_rules_close(r);
}

/* The store is asked for tiers with a count only. */
static void no_fleet_is_asked_about_a_rate_without_count(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits: [{name: l, key: [user], rate: 2/min, " TIERS "}]");
    assert_int_equal(faked_ask(&w, "user=ann tier=vip"), 1);
    assert_unlimited(&w.answer);
    assert_int_equal(faked_ask(&w, "user=ann tier=out"), 1);
    assert_never(&w.answer);
    (void)faked_settle(&w, "user=bob");
    assert_int_equal(w.answer.answer.quota, 2);
    struct weir_rules_limit limit = stats_of(w.rules, "vip").found;
    assert_int_equal(limit.consistency, WEIR_RULES_LOCAL);
    assert_int_equal(limit.stats.allowed, 1);
    faked_end(&w);
}

static void beside_a_shared_limit_it_is_decided_here(void **state)
{
    struct faked_world w;
    faked_begin(&w, "limits:\n"
                    "- {name: l, key: [user], rate: 2/min, " TIERS "}\n"
                    "- {name: all, key: [], rate: 9/min}\n");
    assert_int_equal(faked_settle(&w, "user=ann tier=vip")->answer.verdict, WEIR_ALLOW);
    assert_string_equal(w.answer.limit, "all");
    assert_never(faked_settle(&w, "user=ann tier=out"));
    assert_string_equal(w.answer.limit, "l");
    faked_end(&w);
}

static int use_it(void *arg, struct weir *limiter, const void *key, size_t key_len,
                  const struct weir_rules_found *found)
{
    struct weir_answer a;
    int e = weir_check_at(limiter, key, key_len, 1, T0, &a);
    *(int *)arg = a.verdict;
    return e;
}

static void the_limiter_of_rate_0_is_given_to_nobody(void **state)
{
    struct weir_rules *r = rules_open("limits: [{name: l, key: [user], rate: 2/min, " TIERS "}]");
    struct weir_text part = {"ann", 3};
    struct weir_rules_key key = {
        .limit = {"l", 1}, .tier = {"out", 3}, .parts = &part, .parts_count = 1};
    struct weir_error error;
    int verdict = 0;
    assert_int_equal(weir_rules_use(r, &key, use_it, &verdict, &error), WEIR_ENOTSUP);
    key.tier = (struct weir_text){"vip", 3};
    assert_int_equal(weir_rules_use(r, &key, use_it, &verdict, &error), 0);
    assert_int_equal(verdict, WEIR_ALLOW);
    weir_rules_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tier_without_limit_is_counted_and_never_denied),
        cmocka_unit_test(a_rate_of_0_denies_for_ever_and_remembers_no_key),
        cmocka_unit_test(with_other_limits_the_scarcest_is_named_and_never_charges_none),
        cmocka_unit_test(a_shadow_limit_of_rate_0_would_deny),
        cmocka_unit_test(a_reload_changes_a_rate_to_unlimited_and_back),
        cmocka_unit_test(nothing_is_waited_for),
        cmocka_unit_test(no_fleet_is_asked_about_a_rate_without_count),
        cmocka_unit_test(beside_a_shared_limit_it_is_decided_here),
        cmocka_unit_test(the_limiter_of_rate_0_is_given_to_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
