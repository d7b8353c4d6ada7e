/*
 * Every other way to take units and to give them back, from many threads at
 * once: what is taken in the end is what the threads hold, to the unit.
 */
// test-timeout: 300
// test-serial: yes
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"

#define THREADS 8

static void for_each_algorithm(void (*run)(int algorithm, unsigned threads))
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        run(algorithm, 2);
        run(algorithm, THREADS);
        run(algorithm, 32);
    }
}

/* ---- take up to n ---- */

struct up_to {
    struct weir *w;
    uint64_t calls;
    struct threads_tally told;
};

static void take_up_to(unsigned index, void *arg)
{
    struct up_to *u = arg;
    struct threads_tally told = {0};
    uint64_t random = index;
    for (uint64_t i = 0; i < u->calls; i++) {
        uint64_t cost = i % 256 == 255 ? UINT64_MAX : threads_random(&random) % 9 + 1;
        struct weir_answer one = threads_check(u->w, "key", 1, THREADS_T0);
        struct weir_answer a = threads_ask(u->w, "key", cost, WEIR_UP_TO, THREADS_T0);
        threads_require(a.granted <= cost);
        threads_count(&told, &one);
        threads_require((a.verdict == WEIR_ALLOW) == (a.granted != 0));
        threads_require(a.granted == cost || a.remaining == 0);
        threads_count(&told, &a);
    }
    threads_merge(&u->told, &told);
}

static void run_up_to(int algorithm, unsigned threads)
{
    uint64_t quota = THREADS_TSAN ? 2000 : 20000;
    for (uint64_t round = 0; round < THREADS_ROUNDS(5, 2, 2); round++) {
        struct weir_options o = threads_options(algorithm, quota, WEIR_HOUR);
        struct up_to u = {.w = NULL, .calls = quota / threads + 256};
        o.max_keys = 10;
        u.w = threads_open(&o);
        threads_run(threads, take_up_to, &u);
        assert_int_equal(u.told.granted, quota);
        threads_assert_told(u.w, &u.told);
        weir_close(u.w);
    }
}

static void threads_that_take_one_or_up_to_n_share_exactly_the_quota(void **state)
{
    for_each_algorithm(run_up_to);
}

/* ---- batches ---- */

#define BATCH 48 /* more than one group */
#define BATCH_KEYS 16

struct batches {
    struct weir *w;
    struct threads_key name[BATCH_KEYS];
    struct weir_key hashed[BATCH_KEYS];
    uint64_t calls;
    uint64_t granted[BATCH_KEYS];
    uint64_t peeks;
    struct threads_tally told;
};

static struct weir_question ask_of_batch(const struct batches *b, uint64_t r)
{
    unsigned k = r % BATCH_KEYS;
    struct weir_question ask = {.cost = (r >> 8) % 3 + 1};
    ask.mode = (r >> 16) % 8 == 0 ? WEIR_PEEK : (r >> 16) % 8 == 1 ? WEIR_UP_TO : WEIR_CHECK;
    if ((r >> 24) % 2 == 0) {
        ask.hashed = &b->hashed[k];
    } else {
        ask.key = b->name[k].name;
        ask.key_len = strlen(b->name[k].name);
    }
    return ask;
}

static void ask_in_batches(unsigned index, void *arg)
{
    struct batches *b = arg;
    struct threads_tally told = {0};
    uint64_t random = index;
    uint64_t r[BATCH];
    struct weir_question asks[BATCH];
    struct weir_answer answers[BATCH];
    for (uint64_t i = 0; i < b->calls; i++) {
        for (unsigned j = 0; j < BATCH; j++) {
            r[j] = threads_random(&random);
            asks[j] = ask_of_batch(b, r[j]);
        }
        threads_require(weir_ask_batch_at(b->w, asks, BATCH, THREADS_T0, answers, NULL) == 0);
        for (unsigned j = 0; j < BATCH; j++) {
            if (asks[j].mode == WEIR_PEEK) {
                threads_require(answers[j].granted == 0);
                continue;
            }
            threads_count(&told, &answers[j]);
            (void)threads_add(&b->granted[r[j] % BATCH_KEYS], answers[j].granted);
        }
    }
    threads_merge(&b->told, &told);
}

static void run_batches(int algorithm, unsigned threads)
{
    uint64_t quota = THREADS_TSAN ? 300 : 3000;
    struct weir_options o = threads_options(algorithm, quota, WEIR_HOUR);
    struct batches b = {.calls = 2 * quota * BATCH_KEYS / BATCH / threads + 8};
    o.max_keys = 100;
    b.w = threads_open(&o);
    for (unsigned k = 0; k < BATCH_KEYS; k++) {
        b.name[k] = threads_key("key", k);
        assert_int_equal(weir_key_init(b.w, b.name[k].name, strlen(b.name[k].name), &b.hashed[k]),
                         0);
    }
    threads_run(threads, ask_in_batches, &b);
    for (unsigned k = 0; k < BATCH_KEYS; k++) {
        assert_int_equal(b.granted[k], quota);
    }
    threads_assert_told(b.w, &b.told);
    threads_assert_sound(b.w);
    weir_close(b.w);
}

static void batches_of_many_threads_get_exactly_the_quota_of_each_key(void **state)
{
    for_each_algorithm(run_batches);
}

/* ---- refund, penalize, reserve, settle, cancel ---- */

struct verbs {
    struct weir *w;
    uint64_t calls;
    uint64_t held; /* what all threads hold when they end */
    struct threads_tally told;
};

/* One thread's view: it only gives back what it holds. */
struct holder {
    struct weir *w;
    uint64_t random;
    uint64_t held;
    struct threads_tally told;
};

static void do_check(struct holder *h, uint64_t n)
{
    struct weir_answer a = threads_check(h->w, "key", n, THREADS_T0);
    threads_count(&h->told, &a);
    h->held += a.granted;
}

static void do_refund(struct holder *h, uint64_t n)
{
    uint64_t units = n < h->held ? n : h->held;
    if (units != 0) {
        threads_require(weir_refund_at(h->w, "key", 3, units, THREADS_T0, THREADS_T0, NULL) == 0);
        h->held -= units;
    }
}

static void do_penalize(struct holder *h, uint64_t n)
{
    struct weir_answer a;
    threads_require(weir_penalize_at(h->w, "key", 3, n, THREADS_T0, &a) == 0);
    threads_require(a.granted <= n);
    h->held += a.granted;
}

/* Reserves n, and uses more, less or none of it. */
static void do_reserve(struct holder *h, uint64_t n)
{
    struct weir_reservation r;
    struct weir_answer a;
    uint64_t actual = threads_random(&h->random) % (2 * n);
    threads_require(weir_reserve_at(h->w, "key", 3, n, WEIR_HOUR, THREADS_T0, &r, &a) == 0);
    threads_count(&h->told, &a);
    if (a.verdict != WEIR_ALLOW) {
        return;
    }
    if (actual == 0) {
        threads_require(weir_cancel_at(h->w, &r, THREADS_T0, &a) == 0);
    } else {
        threads_require(weir_settle_at(h->w, &r, actual, THREADS_T0, &a) == 0);
        h->held += actual < n ? actual : n + a.granted;
    }
    threads_require(weir_settle_at(h->w, &r, actual, THREADS_T0, &a) == WEIR_ESTALE);
}

static void use_all_verbs(unsigned index, void *arg)
{
    static void (*const verb[])(struct holder *, uint64_t) = {do_check,    do_refund,  do_refund,
                                                              do_penalize, do_reserve, do_check};
    struct verbs *v = arg;
    struct holder h = {.w = v->w, .random = index};
    for (uint64_t i = 0; i < v->calls; i++) {
        uint64_t r = threads_random(&h.random);
        verb[r % (sizeof verb / sizeof verb[0])](&h, (r >> 8) % 5 + 1);
    }
    (void)threads_add(&v->held, h.held);
    threads_merge(&v->told, &h.told);
}

/* All that is taken, debt included: gives back until there is a unit to take. */
static uint64_t taken_with_debt(struct weir *w, int algorithm)
{
    uint64_t returned = 0;
    struct weir_answer a = threads_ask(w, "key", 0, WEIR_PEEK, THREADS_T0);
    while (a.remaining == 0) {
        uint64_t place = algorithm == WEIR_LEAKY_BUCKET ? a.reset_after_ns : 0;
        assert_int_equal(weir_refund_at(w, "key", 3, 1, THREADS_T0 + place, THREADS_T0, &a), 0);
        returned++;
    }
    return returned + threads_taken(w, "key", THREADS_T0);
}

static void run_verbs(int algorithm, unsigned threads)
{
    for (uint64_t round = 0; round < THREADS_ROUNDS(3, 2, 1); round++) {
        /* A quota that is fought for: penalties push it into debt, refunds pull it out. */
        struct weir_options o = threads_options(algorithm, 40, WEIR_HOUR);
        struct verbs v = {.w = NULL, .calls = THREADS_ROUNDS(40000, 10000, 5000) / threads};
        o.max_debt = algorithm == WEIR_SLIDING_LOG ? 0 : 20;
        v.w = threads_open(&o);
        threads_run(threads, use_all_verbs, &v);
        assert_true(v.held <= 60);
        uint64_t taken = taken_with_debt(v.w, algorithm);
        if (algorithm == WEIR_LEAKY_BUCKET) {
            assert_true(taken >= v.held); /* places that others follow stay taken */
        } else {
            assert_int_equal(taken, v.held);
        }
        threads_assert_told(v.w, &v.told);
        threads_assert_sound(v.w);
        weir_close(v.w);
    }
}

static void what_is_taken_is_what_threads_hold_after_refunds_penalties_and_settlements(void **state)
{
    for_each_algorithm(run_verbs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_take_one_or_up_to_n_share_exactly_the_quota),
        cmocka_unit_test(batches_of_many_threads_get_exactly_the_quota_of_each_key),
        cmocka_unit_test(
            what_is_taken_is_what_threads_hold_after_refunds_penalties_and_settlements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
