/* Limits that a fleet decides, asked by many threads while rules are switched and closed. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "support/rules/faked_world.h"

#define ASKERS 3
#define EACH 400
#define QUOTA 500

struct crowd {
    struct fake_fleet fleet;
    struct weir_rules *rules;
    uint64_t allowed;
    uint64_t denied;
    uint64_t shadowed;
    uint64_t answered;
    uint64_t told; /* refusals */
    uint64_t over;
};

static const char *const crowd_rules[] = {
    "limits:\n"
    "- {name: l, key: [user], rate: 500/h}\n"
    "- {name: here, key: [user], rate: 100k/h, consistency: local}\n"
    "- {name: s, key: [user], rate: 200/h, shadow: true}\n"
    "- {name: t, key: [user], rate: 300/h, shadow: true, consistency: local}\n",
    "limits:\n"
    "- {name: here, key: [user], rate: 90k/h, consistency: local}\n"
    "- {name: l, key: [user], rate: 500/h, retry_jitter: 5%}\n"
    "- {name: t, key: [user], rate: 300/h, shadow: true, consistency: local}\n"
    "- {name: s, key: [user], rate: 200/h, shadow: true}\n",
};

static void crowd_denied(void *arg, const struct weir_rules_denial *denial)
{
    struct crowd *c = arg;
    (void)denial;
    (void)fetch_add(&c->told, 1);
}

static void take(struct crowd *c, const struct weir_rules_answer *answer)
{
    bool allowed = answer->answer.verdict == WEIR_ALLOW;
    (void)fetch_add(allowed ? &c->allowed : &c->denied, 1);
    (void)fetch_add(&c->shadowed, answer->shadow_denied);
    (void)fetch_add(&c->answered, 1);
}

static void crowd_hear(void *arg, int error, const struct weir_rules_answer *answer)
{
    if (error == 0) {
        take(arg, answer);
    }
}

static void *ask_much(void *arg)
{
    struct crowd *c = arg;
    for (unsigned i = 0; i < EACH; i++) {
        struct weir_rules_answer answer;
        int e = rules_ask_async(c->rules, NULL, "user=u", (struct weir_rules_question){0}, &answer,
                                crowd_hear, c, NULL);
        if (e == 1) {
            take(c, &answer);
        }
    }
    return NULL;
}

static void *answer_much(void *arg)
{
    struct crowd *c = arg;
    for (unsigned i = 0; load_acquire(&c->over) == 0; i++) {
        if (!(i % 3 == 0 ? fake_answer_newest(&c->fleet) : fake_answer(&c->fleet))) {
            (void)sched_yield();
        }
    }
    return NULL;
}

/* Every question is counted once, whoever answers it, and whatever happens to the rules. */
static void totals_are_exact_while_rules_are_switched(void **state)
{
    static struct crowd c;
    pthread_t askers[ASKERS];
    pthread_t fleet[2];
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    memset(&c, 0, sizeof c);
    fake_init(&c.fleet);
    o.flags = WEIR_EXPLICIT_TIME;
    o.fleet = fake_of(&c.fleet);
    o.denied = crowd_denied;
    o.denied_arg = &c;
    assert_int_equal(
        weir_rules_open_text(&c.rules, "test", crowd_rules[0], strlen(crowd_rules[0]), &o, NULL),
        0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&fleet[i], NULL, answer_much, &c), 0);
    }
    for (unsigned i = 0; i < ASKERS; i++) {
        assert_int_equal(pthread_create(&askers[i], NULL, ask_much, &c), 0);
    }
    for (unsigned i = 0; load_acquire(&c.answered) < (uint64_t)ASKERS * EACH; i++) {
        const char *yaml = crowd_rules[i % 2];
        assert_int_equal(weir_rules_reload_text(c.rules, "test", yaml, strlen(yaml), NULL), 0);
    }
    for (unsigned i = 0; i < ASKERS; i++) {
        (void)pthread_join(askers[i], NULL);
    }
    assert_int_equal(c.allowed, QUOTA);
    assert_int_equal(c.denied, ASKERS * EACH - QUOTA);
    assert_int_equal(c.told, c.denied);
    assert_int_equal(c.shadowed, (QUOTA - 200) + (QUOTA - 300));
    struct weir_rules_stats stats = {.size = sizeof stats};
    assert_int_equal(weir_rules_stats_read(c.rules, &stats), 0);
    assert_int_equal(stats.asked, ASKERS * EACH);
    assert_int_equal(stats.bad, 0);
    store_release(&c.over, 1);
    for (unsigned i = 0; i < 2; i++) {
        (void)pthread_join(fleet[i], NULL);
    }
    weir_rules_close(c.rules);
    fake_finish(&c.fleet);
}

/* The rules end on whatever thread answers last. */
static void rules_end_under_the_threads_that_answer(void **state)
{
    static struct crowd c;
    pthread_t fleet[2];
    for (unsigned round = 0; round < 20; round++) {
        struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
        memset(&c, 0, sizeof c);
        fake_init(&c.fleet);
        o.flags = WEIR_EXPLICIT_TIME;
        o.fleet = fake_of(&c.fleet);
        assert_int_equal(weir_rules_open_text(&c.rules, "test", crowd_rules[0],
                                              strlen(crowd_rules[0]), &o, NULL),
                         0);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(pthread_create(&fleet[i], NULL, answer_much, &c), 0);
        }
        for (unsigned i = 0; i < 20; i++) {
            struct weir_rules_answer answer;
            if (rules_ask_async(c.rules, NULL, "user=u", (struct weir_rules_question){0}, &answer,
                                crowd_hear, &c, NULL) == 1) {
                take(&c, &answer);
            }
        }
        weir_rules_close(c.rules);
        while (load_acquire(&c.answered) < 20) {
            (void)sched_yield();
        }
        store_release(&c.over, 1);
        for (unsigned i = 0; i < 2; i++) {
            (void)pthread_join(fleet[i], NULL);
        }
        assert_int_equal(c.allowed, 20);
        fake_finish(&c.fleet);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_exact_while_rules_are_switched),
        cmocka_unit_test(rules_end_under_the_threads_that_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
