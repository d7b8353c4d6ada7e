/*
 * Rules are switched while threads ask: no request sees a mixture of two rule
 * sets, a kept limit loses and mints nothing, and what was removed is gone for
 * every request that begins afterwards.
 */
// test-timeout: 300
// test-serial: yes
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <weir_rules.h>

#include "support/engine/threads_run.h"

struct scene {
    struct weir_rules *rules;
    unsigned threads; /* the first reloads, the others ask */
    uint64_t asks;    /* of each */
    uint64_t done;
    uint64_t switches;
    uint64_t allowed;
    uint64_t seen[2]; /* answers by the one and by the other rules */
};

static struct weir_rules *open_rules(const char *text)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error;
    struct weir_rules *rules;
    o.flags = WEIR_EXPLICIT_TIME;
    if (weir_rules_open_text(&rules, "test", text, strlen(text), &o, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return rules;
}

static void ask(struct weir_rules *rules, int mode, struct weir_rules_answer *a)
{
    struct weir_rules_attribute with[] = {WEIR_RULES_ATTRIBUTE("path", "/x"),
                                          WEIR_RULES_ATTRIBUTE("user", "alice")};
    struct weir_rules_question q = {.attributes = with, .attributes_count = 2, .mode = mode};
    threads_require(weir_rules_ask_at(rules, &q, THREADS_T0, a, NULL) == 0);
}

static void reload(struct scene *s, const char *text)
{
    struct weir_error error;
    int e = weir_rules_reload_text(s->rules, "test", text, strlen(text), &error);
    threads_require(e == 0);
    (void)threads_add(&s->switches, 1);
}

static bool somebody_asks(struct scene *s)
{
    (void)sched_yield();
    return threads_get(&s->done) < s->threads - 1;
}

/*
 * Whichever rules count, the smaller of the two numbers is 100. Only a request
 * that took one number from the old rules and one from the new can be told 200.
 */
static const char one_way[] =
    "limits:\n"
    "  - {name: a, key: [], rate: 100/week, algorithm: fixed_window}\n"
    "  - {name: b, when: {path: /x}, key: [user], rate: 200/week, algorithm: fixed_window}\n";
static const char other_way[] =
    "limits:\n"
    "  - {name: a, key: [], rate: 200/week, algorithm: fixed_window}\n"
    "  - {name: b, when: {path: /x}, key: [user], rate: 100/week, algorithm: fixed_window}\n";

static void look_for_a_mixture(unsigned index, void *arg)
{
    struct scene *s = arg;
    if (index == 0) {
        for (uint64_t i = 0; somebody_asks(s); i++) {
            reload(s, i % 2 == 0 ? other_way : one_way);
        }
        return;
    }
    uint64_t seen[2] = {0, 0};
    for (uint64_t i = 0; i < s->asks || threads_get(&s->switches) < 64; i++) {
        struct weir_rules_answer a;
        ask(s->rules, WEIR_PEEK, &a);
        threads_require(a.answer.remaining == 100);
        threads_require(a.answer.quota == 100);
        threads_require(strcmp(a.limit, "a") == 0 || strcmp(a.limit, "b") == 0);
        seen[a.limit[0] == 'b']++;
    }
    (void)threads_add(&s->seen[0], seen[0]);
    (void)threads_add(&s->seen[1], seen[1]);
    (void)threads_add(&s->done, 1);
}

static void no_request_sees_a_mixture_of_old_and_new_rules(void **state)
{
    struct scene s = {.threads = 5, .asks = THREADS_ROUNDS(100000, 10000, 2000)};
    s.rules = open_rules(one_way);
    threads_run(s.threads, look_for_a_mixture, &s);
    assert_true(s.switches >= 64);
    assert_true(s.seen[0] > 0 && s.seen[1] > 0);
    struct weir_rules_stats stats = {.size = sizeof stats};
    assert_int_equal(weir_rules_stats_read(s.rules, &stats), 0);
    assert_int_equal(stats.generation, s.switches + 1);
    assert_int_equal(stats.asked, s.seen[0] + s.seen[1]);
    weir_rules_close(s.rules);
}

/* The kept limit has `quota` units; the others come, go, and change around it. */
#define QUOTA 20000
static const char *const around[] = {
    "limits:\n"
    "  - {name: kept, key: [user], rate: 20000/week, algorithm: fixed_window}\n",
    "limits:\n"
    "  - {name: first, key: [], rate: 1M/s}\n"
    "  - {name: kept, key: [user], rate: 20000/week, algorithm: fixed_window}\n",
    "limits:\n"
    "  - {name: kept, when: {path: [/x, /y]}, key: [user], rate: 20000/week, "
    "algorithm: fixed_window}\n"
    "  - {name: last, when: {path: /**}, key: [user], rate: 2M/s, burst: 5M}\n"
    "  - {name: seen, key: [user], rate: 1/week, shadow: true}\n",
};

static void take_what_there_is(unsigned index, void *arg)
{
    struct scene *s = arg;
    if (index == 0) {
        for (uint64_t i = 1; somebody_asks(s); i++) {
            reload(s, around[i % 3]);
        }
        return;
    }
    uint64_t allowed = 0;
    for (uint64_t i = 0; i < s->asks || threads_get(&s->switches) < 30; i++) {
        struct weir_rules_answer a;
        ask(s->rules, WEIR_CHECK, &a);
        allowed += a.answer.verdict == WEIR_ALLOW;
    }
    (void)threads_add(&s->allowed, allowed);
    (void)threads_add(&s->done, 1);
}

static void a_kept_limit_admits_exactly_its_quota_over_reloads(void **state)
{
    for (unsigned threads = 3; threads <= 9; threads += 6) {
        struct scene s = {.threads = threads, .asks = THREADS_ROUNDS(30000, 21000, 21000)};
        s.rules = open_rules(around[0]);
        threads_run(s.threads, take_what_there_is, &s);
        assert_int_equal(s.allowed, QUOTA);
        weir_rules_close(s.rules);
    }
}

/* Less than the quota is asked for: every charge must be there in the end. */
static void take_half(unsigned index, void *arg)
{
    struct scene *s = arg;
    if (index == 0) {
        static const char put[] = "{name: other, key: [], rate: 5M/s}";
        for (uint64_t i = 0; somebody_asks(s); i++) {
            int e = i % 2 == 0 ? weir_rules_put(s->rules, put, sizeof put - 1, NULL)
                               : weir_rules_remove(s->rules, "other", NULL);
            threads_require(e == 0);
            (void)threads_add(&s->switches, 1);
        }
        return;
    }
    for (uint64_t i = 0; i < s->asks; i++) {
        struct weir_rules_answer a;
        ask(s->rules, WEIR_CHECK, &a);
        threads_require(a.answer.verdict == WEIR_ALLOW);
    }
    (void)threads_add(&s->done, 1);
}

static void no_charge_is_lost_while_limits_are_put_in_and_removed(void **state)
{
    struct scene s = {.threads = 5, .asks = QUOTA / 8};
    struct weir_rules_answer a;
    s.rules = open_rules(around[0]);
    threads_run(s.threads, take_half, &s);
    (void)weir_rules_remove(s.rules, "other", NULL);
    ask(s.rules, WEIR_PEEK, &a);
    assert_string_equal(a.limit, "kept");
    assert_int_equal(a.answer.remaining, QUOTA / 2);
    weir_rules_close(s.rules);
}

/* Several threads reload at once, some with rules that have errors. */
static void reload_all_at_once(unsigned index, void *arg)
{
    struct scene *s = arg;
    struct weir_rules_answer a;
    for (uint64_t i = 0; i < s->asks; i++) {
        const char *text = index % 2 == 0 ? around[i % 3] : "limits: [{name: bad}]";
        struct weir_error error;
        int e = weir_rules_reload_text(s->rules, "test", text, strlen(text), &error);
        threads_require(e == (index % 2 == 0 ? 0 : WEIR_ERULES));
        ask(s->rules, WEIR_CHECK, &a);
        threads_require(a.answer.verdict == WEIR_ALLOW);
    }
}

static void reloads_of_several_threads_follow_each_other(void **state)
{
    struct scene s = {.threads = 4, .asks = THREADS_ROUNDS(300, 60, 30)};
    struct weir_rules_stats stats = {.size = sizeof stats};
    s.rules = open_rules(around[0]);
    threads_run(s.threads, reload_all_at_once, &s);
    assert_int_equal(weir_rules_stats_read(s.rules, &stats), 0);
    assert_int_equal(stats.generation, 1 + 2 * s.asks); /* the bad ones changed nothing */
    assert_int_equal(stats.asked, 4 * s.asks);
    struct weir_rules_answer a;
    const char *kept = around[0];
    assert_int_equal(weir_rules_reload_text(s.rules, "test", kept, strlen(kept), NULL), 0);
    ask(s.rules, WEIR_PEEK, &a);
    assert_int_equal(a.answer.remaining, QUOTA - 4 * s.asks);
    weir_rules_close(s.rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_request_sees_a_mixture_of_old_and_new_rules),
        cmocka_unit_test(a_kept_limit_admits_exactly_its_quota_over_reloads),
        cmocka_unit_test(no_charge_is_lost_while_limits_are_put_in_and_removed),
        cmocka_unit_test(reloads_of_several_threads_follow_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
