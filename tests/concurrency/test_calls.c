/*
 * Calls of several descriptors that share limits, made by many threads: what is admitted is exactly
 * the quota, and a denied call charges nothing.
 */
// test-serial: yes
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/arena.h"
#include "rules/live/call_ask.h"
#include "support/engine/threads_run.h"
#include "support/rules/rules_ask.h"

#define THREADS 4
#define CALLS THREADS_ROUNDS(20000, 4000, 2000)
#define SHARED 5000 /* units of the limit that all calls share */

struct crowd {
    struct weir_rules *rules;
    const char *const *first; /* the keys of the two descriptors: "name=value" */
    const char *const *second;
    uint64_t allowed;
    uint64_t denied;
};

static struct weir_rules_attribute attribute_of(const char *word)
{
    const char *value = strchr(word, '=') + 1;
    return (struct weir_rules_attribute){word, (size_t)(value - word) - 1, value, strlen(value)};
}

/* Makes one call with two descriptors. Returns its verdict. */
static int ask(struct weir_rules *rules, const char *first, const char *second, uint64_t hits)
{
    struct weir_rules_attribute with[2] = {attribute_of(first), attribute_of(second)};
    struct call_question questions[2] = {
        {.attributes = &with[0], .attributes_count = 1, .hits = hits},
        {.attributes = &with[1], .attributes_count = 1, .hits = hits}};
    struct arena memory = ARENA_INIT;
    struct weir_error error;
    struct call call = {
        .rules = rules, .memory = &memory, .now_ns = RULES_T0, .questions = questions, .count = 2};
    threads_require(call_ask(&call, &error) == 0);
    int verdict = call.answer.answer.verdict;
    for (size_t i = 0; i < 2; i++) {
        threads_require(verdict != WEIR_ALLOW || call.statuses[i].verdict == WEIR_ALLOW);
    }
    arena_finish(&memory);
    return verdict;
}

static void make_calls(unsigned index, void *arg)
{
    struct crowd *c = arg;
    uint64_t allowed = 0;
    for (uint64_t i = 0; i < CALLS; i++) {
        allowed += ask(c->rules, c->first[index], c->second[index], 1) == WEIR_ALLOW;
    }
    (void)__atomic_fetch_add(&c->allowed, allowed, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&c->denied, CALLS - allowed, __ATOMIC_RELAXED);
}

static uint64_t left(struct weir_rules *rules, const char *words)
{
    return rules_peek(rules, RULES_T0, words).answer.remaining;
}

static void a_limit_that_two_descriptors_share_admits_exactly_its_quota(void **state)
{
    static const char *const word[] = {"s=x", "s=x", "s=x", "s=x"};
    struct weir_rules *rules = rules_open("limits: [{name: s, key: [s], rate: 5001/h}]");
    struct crowd crowd = {rules, word, word, 0, 0};
    threads_run(THREADS, make_calls, &crowd);
    assert_int_equal(crowd.allowed, SHARED / 2); /* each call takes two; one unit is left */
    assert_int_equal(left(rules, "s=x"), 1);
    weir_rules_close(rules);
}

static void limits_of_denied_calls_keep_their_units(void **state)
{
    static const char *const shared[] = {"s=x", "s=x", "s=x", "s=x"};
    static const char *const own[] = {"o=0", "o=1", "o=2", "o=3"};
    struct weir_rules *rules = rules_open("limits:\n"
                                          "- {name: s, key: [s], rate: 5000/h}\n"
                                          "- {name: o, key: [o], rate: 1M/h}\n");
    struct crowd crowd = {rules, shared, own, 0, 0};
    uint64_t taken = 0;
    threads_run(THREADS, make_calls, &crowd);
    for (unsigned i = 0; i < THREADS; i++) {
        taken += 1000000 - left(rules, own[i]);
    }
    assert_int_equal(crowd.allowed, SHARED);
    assert_int_equal(crowd.allowed + crowd.denied, THREADS * CALLS);
    assert_int_equal(taken, SHARED);
    assert_int_equal(left(rules, "s=x"), 0);
    weir_rules_close(rules);
}

static void calls_that_name_two_limits_in_either_order_charge_both_alike(void **state)
{
    static const char *const first[] = {"a=x", "b=x", "a=x", "b=x"};
    static const char *const second[] = {"b=x", "a=x", "b=x", "a=x"};
    struct weir_rules *rules = rules_open("limits:\n"
                                          "- {name: a, key: [a], rate: 5000/h}\n"
                                          "- {name: b, key: [b], rate: 6000/h}\n");
    struct crowd crowd = {rules, first, second, 0, 0};
    threads_run(THREADS, make_calls, &crowd);
    /* a race may deny a call that would have fitted; the rest is admitted now */
    while (ask(rules, "a=x", "b=x", 1) == WEIR_ALLOW) {
        crowd.allowed++;
    }
    assert_int_equal(crowd.allowed, SHARED);
    assert_int_equal(left(rules, "a=x"), 0);
    assert_int_equal(left(rules, "b=x"), 1000);
    weir_rules_close(rules);
}

static void units_of_quota_mode_are_given_back_exactly(void **state)
{
    static const char *const shared[] = {"s=x", "s=x", "s=x", "s=x"};
    static const char *const quota[] = {"q=x", "q=x", "q=x", "q=x"};
    struct weir_rules *rules = rules_open("limits:\n"
                                          "- {name: s, key: [s], rate: 5000/h}\n"
                                          "- {name: q, key: [q], rate: 1M/h, quota_mode: true}\n");
    struct crowd crowd = {rules, quota, shared, 0, 0};
    threads_run(THREADS, make_calls, &crowd);
    assert_int_equal(crowd.allowed, SHARED);
    assert_int_equal(left(rules, "q=x"), 1000000 - SHARED);
    weir_rules_close(rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_that_two_descriptors_share_admits_exactly_its_quota),
        cmocka_unit_test(limits_of_denied_calls_keep_their_units),
        cmocka_unit_test(calls_that_name_two_limits_in_either_order_charge_both_alike),
        cmocka_unit_test(units_of_quota_mode_are_given_back_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
