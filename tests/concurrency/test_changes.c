/*
 * The limit itself changes while threads decide: every answer is one that the
 * old or the new limit would give, and what is admitted in the end is what the
 * last limit admits. Far more changes than the header holds versions.
 */
// test-timeout: 300
// test-serial: yes
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"

#define SMALL 30
#define LARGE 50
#define KEYS 64
#define CHANGES 64 /* at least; the header holds 16 versions */

struct changing {
    struct weir *w;
    int algorithm;
    unsigned threads;
    uint64_t rounds; /* each with a new key of which all threads want more than there is */
    struct threads_barrier barrier;
    uint64_t done; /* threads that have ended */
    uint64_t changes;
    uint64_t granted[KEYS];
    struct threads_tally told;
};

static void assert_one_of_both(const struct weir_answer *a)
{
    threads_require(a->quota == SMALL || a->quota == LARGE);
    threads_require(a->remaining <= a->quota);
    threads_require(a->verdict != WEIR_NEVER);
    threads_require(a->verdict == WEIR_ALLOW ? a->remaining < a->quota : a->remaining == 0);
    threads_require(a->verdict == WEIR_ALLOW ? a->retry_after_ns == 0 : a->retry_after_ns > 0);
    threads_require(a->retry_after_ns <= 2 * WEIR_HOUR);
    threads_require(a->reset_after_ns > 0 && a->reset_after_ns <= 2 * WEIR_HOUR);
}

static void change_until_all_are_done(struct changing *c)
{
    while (threads_get(&c->done) < c->threads - 1) {
        uint64_t changes = threads_get(&c->changes);
        threads_change(c->w, c->algorithm, LARGE, changes % 2 == 0 ? SMALL : LARGE);
        (void)threads_add(&c->changes, 1);
        if (changes % 32 == 0) {
            (void)sched_yield(); /* others may be waiting for this processor */
        }
    }
    threads_change(c->w, c->algorithm, LARGE, LARGE);
}

static void ask_about(struct changing *c, uint64_t k, struct threads_tally *told)
{
    struct weir_answer a = threads_check(c->w, threads_key("key", k).name, 1, THREADS_T0);
    assert_one_of_both(&a);
    threads_count(told, &a);
    (void)threads_add(&c->granted[k], a.granted);
}

static void ask_while_the_limit_changes(unsigned index, void *arg)
{
    struct changing *c = arg;
    struct threads_tally told = {0};
    if (index == 0) {
        change_until_all_are_done(c);
        return;
    }
    for (uint64_t round = 0; round < c->rounds; round++) {
        threads_meet(&c->barrier, c->threads - 1);
        for (unsigned i = 0; i < LARGE / 2; i++) {
            ask_about(c, round % KEYS, &told);
        }
    }
    /* On a busy machine the changer may not have had its turn yet. */
    while (threads_get(&c->changes) <= CHANGES) {
        ask_about(c, index % KEYS, &told);
        (void)sched_yield();
    }
    (void)threads_add(&c->done, 1);
    threads_merge(&c->told, &told);
}

/* Under the last limit every key can be filled up to it, and no further. */
static void fill_up(struct changing *c)
{
    for (unsigned k = 0; k < KEYS; k++) {
        struct weir_answer a = {.verdict = WEIR_ALLOW};
        while (a.verdict == WEIR_ALLOW) {
            a = threads_check(c->w, threads_key("key", k).name, 1, THREADS_T0);
            assert_int_equal(a.quota, LARGE);
            threads_count(&c->told, &a);
            c->granted[k] += a.granted;
        }
        assert_int_equal(c->granted[k], LARGE);
    }
}

static void run_changes(int algorithm, unsigned threads)
{
    struct weir_options o = threads_options(algorithm, LARGE, WEIR_HOUR);
    struct changing c = {.algorithm = algorithm, .threads = threads};
    c.rounds = THREADS_ROUNDS(1000, 200, 128);
    c.rounds = threads > 3 ? KEYS : c.rounds;
    c.w = threads_open(&o);
    threads_run(threads, ask_while_the_limit_changes, &c);
    assert_true(c.changes > CHANGES);
    fill_up(&c);
    threads_assert_told(c.w, &c.told);
    threads_assert_sound(c.w);
    weir_close(c.w);
}

static void answers_under_a_changing_limit_are_those_of_one_limit_or_the_other(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        run_changes(algorithm, 2);
        run_changes(algorithm, 3);
        run_changes(algorithm, 8);
    }
}

/* ---- reset under load ---- */

struct resetting {
    struct weir *w;
    uint64_t calls;
    uint64_t granted;
    uint64_t resets; /* that found a state */
    struct threads_tally told;
};

static void take_or_reset(unsigned index, void *arg)
{
    struct resetting *r = arg;
    struct threads_tally told = {0};
    for (uint64_t i = 0; i < r->calls; i++) {
        if (index == 0 && i % 32 == 0) {
            int found = weir_reset(r->w, "key", 3);
            threads_require(found == 0 || found == 1);
            (void)threads_add(&r->resets, (uint64_t)found);
        } else {
            struct weir_answer a = threads_check(r->w, "key", 1, THREADS_T0);
            threads_count(&told, &a);
        }
    }
    threads_merge(&r->told, &told);
}

static void each_reset_allows_one_quota_more_and_nothing_else(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        struct weir_options o = threads_options(algorithm, SMALL, WEIR_HOUR);
        struct resetting r = {.calls = THREADS_ROUNDS(50000, 10000, 4000)};
        o.max_keys = 10;
        r.w = threads_open(&o);
        threads_run(4, take_or_reset, &r);
        assert_true(r.resets > 0);
        assert_true(r.told.granted <= SMALL * (r.resets + 1));
        /* What the last life has not taken is still there. */
        uint64_t left = SMALL - threads_taken(r.w, "key", THREADS_T0);
        struct weir_answer a = threads_ask(r.w, "key", SMALL, WEIR_UP_TO, THREADS_T0);
        threads_count(&r.told, &a);
        assert_int_equal(a.granted, left);
        threads_assert_told(r.w, &r.told);
        threads_assert_sound(r.w);
        weir_close(r.w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_under_a_changing_limit_are_those_of_one_limit_or_the_other),
        cmocka_unit_test(each_reset_allows_one_quota_more_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
