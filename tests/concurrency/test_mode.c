/*
 * Limits are switched to shadow and back while threads ask: every request is decided by
 * the one mode or the other, and every unit is charged once, whoever charged it.
 */
// test-timeout: 120
// test-serial: yes
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <weir_rules.h>

#include "support/engine/threads_run.h"

struct scene {
    struct weir_rules *rules;
    unsigned threads; /* the first switches, perhaps the second reloads, the others ask */
    uint64_t asks;    /* of each, at least */
    uint64_t done;
    uint64_t switches;
    uint64_t enforced;  /* requests that were charged by an enforced limit */
    uint64_t shadowed;  /* by a shadow one */
    uint64_t denied;    /* by the enforced */
    uint64_t would_not; /* by the shadow one */
};

/* `a` and `b` have the same numbers and the same key: they are charged alike, by any mode. */
#define QUOTA 20000
static const char pair[] =
    "limits:\n"
    "  - {name: a, key: [user], rate: 20000/week, algorithm: fixed_window}\n"
    "  - {name: b, key: [user], rate: 20000/week, algorithm: fixed_window}\n";
static const char pair_and_more[] =
    "limits:\n"
    "  - {name: more, key: [], rate: 5M/s, burst: 5M}\n"
    "  - {name: a, key: [user], rate: 20000/week, algorithm: fixed_window}\n"
    "  - {name: b, key: [user], rate: 20000/week, algorithm: fixed_window, on_missing: deny}\n";

static struct weir_rules *open_rules(void)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error;
    struct weir_rules *rules;
    o.flags = WEIR_EXPLICIT_TIME;
    if (weir_rules_open_text(&rules, "test", pair, strlen(pair), &o, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return rules;
}

static void ask(struct weir_rules *rules, int mode, struct weir_rules_answer *a)
{
    struct weir_rules_attribute with[] = {WEIR_RULES_ATTRIBUTE("user", "alice")};
    struct weir_rules_question q = {.attributes = with, .attributes_count = 1, .mode = mode};
    threads_require(weir_rules_ask_at(rules, &q, THREADS_T0, a, NULL) == 0);
}

static bool somebody_asks(struct scene *s, unsigned others)
{
    (void)sched_yield();
    return threads_get(&s->done) < s->threads - others;
}

static void flip(struct scene *s, unsigned others)
{
    for (uint64_t i = 0; somebody_asks(s, others); i++) {
        threads_require(weir_rules_shadow_set(s->rules, NULL, i % 2 == 0, NULL) == 0);
        (void)threads_add(&s->switches, 1);
    }
}

static void reload(struct scene *s, unsigned others)
{
    for (uint64_t i = 0; somebody_asks(s, others); i++) {
        const char *text = i % 2 == 0 ? pair_and_more : pair;
        threads_require(weir_rules_reload_text(s->rules, "test", text, strlen(text), NULL) == 0);
    }
}

static void count_one(struct scene *mine, const struct weir_rules_answer *a)
{
    bool shadow = a->applied == 0;
    threads_require(!shadow || a->answer.verdict == WEIR_ALLOW);
    threads_require(shadow || a->shadow_denied == 0);
    mine->enforced += !shadow && a->answer.verdict == WEIR_ALLOW;
    mine->denied += !shadow && a->answer.verdict == WEIR_DENY;
    mine->shadowed += shadow && a->shadow_denied == 0;
    mine->would_not += a->shadow_denied;
}

static void take_what_there_is(unsigned index, void *arg)
{
    struct scene *s = arg;
    if (index == 0) {
        flip(s, 1);
        return;
    }
    struct scene mine = {0};
    for (uint64_t i = 0; i < s->asks || threads_get(&s->switches) < 64; i++) {
        struct weir_rules_answer a;
        ask(s->rules, WEIR_CHECK, &a);
        count_one(&mine, &a);
    }
    (void)threads_add(&s->enforced, mine.enforced);
    (void)threads_add(&s->shadowed, mine.shadowed);
    (void)threads_add(&s->denied, mine.denied);
    (void)threads_add(&s->would_not, mine.would_not);
    (void)threads_add(&s->done, 1);
}

static void every_unit_is_taken_once_by_one_mode_or_the_other(void **state)
{
    struct scene s = {.threads = 5, .asks = THREADS_ROUNDS(40000, 8000, 6000)};
    struct weir_rules_stats stats = {.size = sizeof stats};
    s.rules = open_rules();
    assert_int_equal(weir_rules_remove(s.rules, "b", NULL), 0);
    threads_run(s.threads, take_what_there_is, &s);
    assert_true(s.switches >= 64);
    assert_int_equal(s.enforced + s.shadowed, QUOTA);
    assert_int_equal(weir_rules_stats_read(s.rules, &stats), 0);
    assert_int_equal(stats.asked, s.enforced + s.shadowed + s.denied + s.would_not);
    assert_int_equal(stats.shadow_denied, s.would_not);
    assert_int_equal(stats.unmatched, s.shadowed + s.would_not);
    weir_rules_close(s.rules);
}

/* Less than the quota is asked for, by many: every charge must be there in the end. */
static void take_half(unsigned index, void *arg)
{
    struct scene *s = arg;
    if (index < 2) {
        (index == 0 ? flip : reload)(s, 2);
        return;
    }
    for (uint64_t i = 0; i < s->asks; i++) {
        struct weir_rules_answer a;
        ask(s->rules, WEIR_CHECK, &a);
        threads_require(a.answer.verdict == WEIR_ALLOW && a.shadow_denied == 0);
        threads_require(a.applied == 0 || a.applied >= 2); /* never one mode for each */
    }
    (void)threads_add(&s->done, 1);
}

static void no_charge_is_lost_while_modes_and_rules_change(void **state)
{
    struct scene s = {.threads = 6, .asks = QUOTA / 8};
    struct weir_rules_answer a;
    s.rules = open_rules();
    threads_run(s.threads, take_half, &s);
    assert_int_equal(weir_rules_shadow_set(s.rules, NULL, 0, NULL), 0);
    assert_int_equal(weir_rules_reload_text(s.rules, "test", pair, strlen(pair), NULL), 0);
    ask(s.rules, WEIR_PEEK, &a);
    assert_int_equal(a.answer.remaining, QUOTA / 2);
    assert_int_equal(weir_rules_remove(s.rules, a.limit, NULL), 0);
    ask(s.rules, WEIR_PEEK, &a);
    assert_int_equal(a.answer.remaining, QUOTA / 2);
    weir_rules_close(s.rules);
}

/* Many limits, so that matching takes long enough to be caught in the middle. */
static const char eight[] = "limits:\n"
                            "  - {name: a, key: [], rate: 1/week}\n"
                            "  - {name: b, key: [], rate: 1/week}\n"
                            "  - {name: c, key: [], rate: 1/week}\n"
                            "  - {name: d, key: [], rate: 1/week}\n"
                            "  - {name: e, key: [], rate: 1/week}\n"
                            "  - {name: f, key: [], rate: 1/week}\n"
                            "  - {name: g, key: [], rate: 1/week}\n"
                            "  - {name: h, key: [], rate: 1/week}\n";

static void look_for_a_mixture(unsigned index, void *arg)
{
    struct scene *s = arg;
    if (index == 0) {
        flip(s, 1);
        return;
    }
    struct scene mine = {0};
    for (uint64_t i = 0; i < s->asks || threads_get(&s->switches) < 2000; i++) {
        struct weir_rules_answer a;
        ask(s->rules, WEIR_PEEK, &a);
        threads_require(a.applied == 0 || a.applied == 8);
        mine.enforced += a.applied == 8;
        mine.shadowed += a.applied == 0;
    }
    (void)threads_add(&s->enforced, mine.enforced);
    (void)threads_add(&s->shadowed, mine.shadowed);
    (void)threads_add(&s->done, 1);
}

static void no_request_is_decided_by_a_mixture_of_modes(void **state)
{
    struct scene s = {.threads = 3, .asks = THREADS_ROUNDS(100000, 20000, 5000)};
    s.rules = open_rules();
    assert_int_equal(weir_rules_reload_text(s.rules, "test", eight, strlen(eight), NULL), 0);
    threads_run(s.threads, look_for_a_mixture, &s);
    assert_true(s.enforced > 0 && s.shadowed > 0);
    weir_rules_close(s.rules);
}

/* When the call has returned, no request is decided by the old mode. */
static void ask_only(unsigned index, void *arg)
{
    struct scene *s = arg;
    struct weir_rules_answer a;
    if (index > 0) {
        for (uint64_t i = 0; i < s->asks; i++) {
            ask(s->rules, WEIR_PEEK, &a);
        }
        (void)threads_add(&s->done, 1);
        return;
    }
    for (uint64_t i = 0; somebody_asks(s, 1); i++) {
        threads_require(weir_rules_shadow_set(s->rules, i % 4 < 2 ? "a" : "b", i % 2 == 0, NULL) ==
                        0);
        ask(s->rules, WEIR_PEEK, &a);
        threads_require(a.applied == (i % 2 == 0 ? 1 : 2));
    }
}

static void it_applies_to_every_request_that_begins_afterwards(void **state)
{
    struct scene s = {.threads = 4, .asks = THREADS_ROUNDS(50000, 10000, 3000)};
    s.rules = open_rules();
    threads_run(s.threads, ask_only, &s);
    weir_rules_close(s.rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_is_taken_once_by_one_mode_or_the_other),
        cmocka_unit_test(no_charge_is_lost_while_modes_and_rules_change),
        cmocka_unit_test(no_request_is_decided_by_a_mixture_of_modes),
        cmocka_unit_test(it_applies_to_every_request_that_begins_afterwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
