/* Who is told when a limit says no, and what is told of limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/rules/rules_ask.h"

#define T0 RULES_T0

struct heard {
    unsigned calls;
    char last[200]; /* "limit key" */
};

static void hear(void *arg, const struct weir_rules_denial *d)
{
    struct heard *heard = arg;
    char text[100];
    (void)weir_rules_key_text(d->key, d->key_len, text, sizeof text);
    (void)snprintf(heard->last, sizeof heard->last, "%s %s", d->limit, text);
    heard->calls++;
}

static struct weir_rules *open_heard(const char *yaml, struct heard *heard)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_rules *rules = NULL;
    struct weir_error error = {0};
    o.flags = WEIR_EXPLICIT_TIME;
    o.denied = hear;
    o.denied_arg = heard;
    if (weir_rules_open_text(&rules, "test", yaml, strlen(yaml), &o, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return rules;
}

static void a_refusal_is_told_with_the_key_that_was_counted(void **state)
{
    struct heard heard = {0};
    struct weir_rules *r =
        open_heard("limits:\n"
                   "- {name: ip, when: {path: /ip}, key: [ip], rate: 1/h}\n"
                   "- {name: pair, when: {path: /pair}, key: [user|ip, path], rate: 1/h}\n"
                   "- {name: all, when: {path: /all}, key: [], rate: 1/h}\n",
                   &heard);
    assert_int_equal(rules_allowed(r, T0, "path=/ip ip=::ffff:192.0.2.1", 1), 1);
    assert_int_equal(heard.calls, 0);
    assert_int_equal(rules_allowed(r, T0, "path=/ip ip=192.0.2.1", 1), 0);
    assert_string_equal(heard.last, "ip 192.0.2.1");
    assert_int_equal(rules_allowed(r, T0, "path=/ip ip=2001:db8::7", 2), 1);
    assert_string_equal(heard.last, "ip 2001:db8::");
    assert_int_equal(rules_allowed(r, T0, "path=/pair user=alice ip=192.0.2.1", 2), 1);
    assert_string_equal(heard.last, "pair user=alice|/pair");
    assert_int_equal(rules_allowed(r, T0, "path=/pair ip=192.0.2.1", 2), 1);
    assert_string_equal(heard.last, "pair ip=192.0.2.1|/pair");
    assert_int_equal(rules_allowed(r, T0, "path=/all", 2), 1);
    assert_string_equal(heard.last, "all *");
    assert_int_equal(heard.calls, 5);
    weir_rules_close(r);
}

static void never_is_a_refusal_too(void **state)
{
    struct heard heard = {0};
    struct weir_rules *r = open_heard("limits: [{name: l, key: [user], rate: 5/h}]", &heard);
    assert_int_equal(rules_ask_cost(r, T0, "user=u", 6).answer.verdict, WEIR_NEVER);
    assert_string_equal(heard.last, "l u");
    weir_rules_close(r);
}

static void of_several_limits_the_one_that_bound_is_told(void **state)
{
    struct heard heard = {0};
    struct weir_rules *r = open_heard("limits:\n"
                                      "- {name: wide, key: [], rate: 9/h}\n"
                                      "- {name: narrow, key: [user], rate: 1/h}\n",
                                      &heard);
    assert_int_equal(rules_allowed(r, T0, "user=u", 2), 1);
    assert_int_equal(heard.calls, 1);
    assert_string_equal(heard.last, "narrow u");
    weir_rules_close(r);
}

static void peeks_lists_shadow_limits_and_missing_keys_are_not_told(void **state)
{
    struct heard heard = {0};
    struct weir_rules *r =
        open_heard("block: [{user: eve}]\n"
                   "limits:\n"
                   "- {name: s, when: {path: /s}, key: [], rate: 1/h, shadow: true}\n"
                   "- {name: m, when: {path: /m}, key: [user], rate: 1/h, on_missing: deny}\n"
                   "- {name: l, when: {path: /l}, key: [], rate: 1/h}\n",
                   &heard);
    assert_int_equal(rules_allowed(r, T0, "path=/s", 3), 3);
    assert_int_equal(rules_allowed(r, T0, "path=/m", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "path=/l user=eve", 1), 0);
    assert_int_equal(rules_allowed(r, T0, "path=/l", 1), 1);
    assert_int_equal(rules_peek(r, T0, "path=/l").answer.verdict, WEIR_DENY);
    assert_int_equal(weir_rules_shadow_set(r, "l", 1, NULL), 0);
    assert_int_equal(rules_allowed(r, T0, "path=/l", 1), 1);
    assert_int_equal(heard.calls, 0);
    weir_rules_close(r);
}

static void it_is_told_after_a_reload_too(void **state)
{
    static const char other[] = "limits: [{name: m, key: [user], rate: 1/h}]";
    struct heard heard = {0};
    struct weir_rules *r = open_heard("limits: [{name: l, key: [user], rate: 5/h}]", &heard);
    assert_int_equal(weir_rules_reload_text(r, "test", other, strlen(other), NULL), 0);
    assert_int_equal(rules_allowed(r, T0, "user=u", 3), 1);
    assert_int_equal(heard.calls, 2);
    assert_string_equal(heard.last, "m u");
    weir_rules_close(r);
}

/* ---- answers for headers ---- */

static void assert_window(const char *limit, uint64_t window_ns)
{
    char yaml[300];
    (void)snprintf(yaml, sizeof yaml, "limits: [{name: l, key: [], %s}]", limit);
    struct weir_rules *r = rules_open(yaml);
    struct weir_rules_answer a = rules_ask(r, T0, "path=/");
    if (a.window_ns != window_ns) {
        fail_msg("%s: found %llu, expected %llu", yaml, (unsigned long long)a.window_ns,
                 (unsigned long long)window_ns);
    }
    weir_rules_close(r);
}

static void an_answer_says_the_time_that_its_quota_is_for(void **state)
{
    assert_window("rate: 100/min", WEIR_MINUTE);
    assert_window("rate: 100/min, burst: 50", 30 * WEIR_SECOND);
    assert_window("rate: 100/min, burst: 200", 2 * WEIR_MINUTE);
    assert_window("rate: 3/s, burst: 1", 333333334); /* rounded up */
    assert_window("rate: 10/s, algorithm: leaky_bucket, queue: 4", WEIR_SECOND / 2);
    assert_window("rate: 10/90s, algorithm: fixed_window", 90 * WEIR_SECOND);
    assert_window("rate: 10/90s, algorithm: sliding_window", 90 * WEIR_SECOND);
    assert_window("rate: 10/90s, algorithm: sliding_log", 90 * WEIR_SECOND);
}

static void jitter_and_window_are_those_of_the_limit_that_bound(void **state)
{
    struct weir_rules *r = rules_open(
        "limits:\n"
        "- {name: wide, key: [], rate: 9/h, retry_jitter: 50%}\n"
        "- {name: narrow, when: {path: /n}, key: [user], rate: 1/min, retry_jitter: 12.5%, "
        "tiers: {pro: {rate: 2/s}}}\n");
    struct weir_rules_answer a = rules_ask(r, T0, "path=/n user=u");
    assert_string_equal(a.limit, "narrow");
    assert_int_equal(a.retry_jitter, 1250);
    assert_int_equal(a.window_ns, WEIR_MINUTE);
    a = rules_ask(r, T0, "path=/n user=u tier=pro");
    assert_int_equal(a.window_ns, WEIR_SECOND);
    a = rules_ask(r, T0, "path=/other");
    assert_int_equal(a.retry_jitter, 5000);
    assert_int_equal(a.window_ns, WEIR_HOUR);
    assert_int_equal(weir_rules_shadow_set(r, NULL, 1, NULL), 0);
    a = rules_ask(r, T0, "path=/other");
    assert_int_equal(a.retry_jitter, 0);
    assert_int_equal(a.window_ns, 0);
    weir_rules_close(r);
}

static int look(void *arg, struct weir *limiter, const void *key, size_t key_len,
                const struct weir_rules_found *found)
{
    *(struct weir_rules_found *)arg = *found;
    (void)limiter;
    (void)key;
    (void)key_len;
    return 0;
}

static void whoever_uses_one_limit_has_them_too(void **state)
{
    struct weir_rules *r =
        rules_open("limits: [{name: l, key: [], rate: 6/min, burst: 3, retry_jitter: 5%}]");
    struct weir_rules_key key = {.limit = {"l", 1}};
    struct weir_rules_found found;
    assert_int_equal(weir_rules_use(r, &key, look, &found, NULL), 0);
    assert_int_equal(found.window_ns, 30 * WEIR_SECOND);
    assert_int_equal(found.retry_jitter, 500);
    weir_rules_close(r);
}

/* ---- limits are looked at ---- */

struct listing {
    char text[500];
};

static int list(void *arg, const struct weir_rules_limit *l)
{
    struct listing *listing = arg;
    size_t n = strlen(listing->text);
    (void)snprintf(listing->text + n, sizeof listing->text - n,
                   "%s,%s,%s,missing=%llu,shadow=%llu,%d%d\n", l->name, l->tier, l->rate,
                   (unsigned long long)l->missing, (unsigned long long)l->stats.shadow_denied,
                   l->shadow, l->switched);
    return 0;
}

static void assert_listed(struct weir_rules *rules, const char *expected)
{
    struct listing listing = {.text = ""};
    assert_int_equal(weir_rules_limits(rules, list, &listing), 0);
    assert_string_equal(listing.text, expected);
}

static void a_limit_says_its_rate_mode_missing_keys_and_shadow_refusals(void **state)
{
    static const char yaml[] =
        "limits:\n"
        "- {name: l, key: [user], rate: 2/min, tiers: {pro: {rate: 1.5k/day}}}\n"
        "- {name: s, key: [], rate: 1/s, shadow: true}\n";
    struct weir_rules *r = rules_open(yaml);
    assert_int_equal(weir_rules_shadow_set(r, "l", 1, NULL), 0);
    assert_int_equal(rules_allowed(r, T0, "user=u", 5), 5);
    (void)rules_peek(r, T0, "user=u");
    (void)rules_ask(r, T0, "path=/");
    (void)rules_ask(r, T0, "path=/ tier=pro");
    (void)rules_ask(r, T0, "path=/ tier=pro");
    assert_listed(r, "l,,2/min,missing=1,shadow=3,01\n"
                     "l,pro,1.5k/day,missing=2,shadow=0,01\n"
                     "s,,1/s,missing=0,shadow=7,10\n");
    assert_int_equal(weir_rules_reload_text(r, "test", yaml, strlen(yaml), NULL), 0);
    assert_int_equal(weir_rules_shadow_set(r, "l", 0, NULL), 0);
    assert_listed(r, "l,,2/min,missing=1,shadow=3,00\n"
                     "l,pro,1.5k/day,missing=2,shadow=0,00\n"
                     "s,,1/s,missing=0,shadow=7,10\n");
    weir_rules_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_is_told_with_the_key_that_was_counted),
        cmocka_unit_test(never_is_a_refusal_too),
        cmocka_unit_test(of_several_limits_the_one_that_bound_is_told),
        cmocka_unit_test(peeks_lists_shadow_limits_and_missing_keys_are_not_told),
        cmocka_unit_test(it_is_told_after_a_reload_too),
        cmocka_unit_test(an_answer_says_the_time_that_its_quota_is_for),
        cmocka_unit_test(jitter_and_window_are_those_of_the_limit_that_bound),
        cmocka_unit_test(whoever_uses_one_limit_has_them_too),
        cmocka_unit_test(a_limit_says_its_rate_mode_missing_keys_and_shadow_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
