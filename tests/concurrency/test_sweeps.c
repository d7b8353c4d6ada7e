/*
 * Keys that have become fresh are taken out by sweeps and by new keys
 * at the very moment at which somebody asks for them again. Whoever asks must
 * not be forgotten with the state that he just made.
 */
// test-timeout: 300
// test-serial: yes
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"

#define QUOTA 2
#define KEYS 6
#define THREADS 2

/* From one round to the next every key becomes fresh, the clocks' slack included. */
#define ROUND_NS (10 * WEIR_SECOND)

struct rounds {
    struct weir *w;
    uint64_t count;
    uint64_t crowd; /* other new keys in each round and thread; they take fresh slots over */
    struct threads_barrier barrier;
    uint64_t granted[2][KEYS]; /* of this round and the last one */
    uint64_t freed;
    struct threads_tally told;
};

static void ask_all(struct rounds *r, uint64_t round, unsigned first, struct threads_tally *told)
{
    uint64_t now = THREADS_T0 + round * ROUND_NS;
    for (unsigned i = 0; i < KEYS; i++) {
        unsigned k = (first + i) % KEYS;
        struct weir_answer a = threads_check(r->w, threads_key("key", k).name, 1, now);
        threads_require((a.flags & WEIR_FLAG_FULL) == 0);
        threads_count(told, &a);
        (void)threads_add(&r->granted[round % 2][k], a.granted);
    }
}

/* With a crowd, every second round leaves the fresh ones to the newcomers. */
static void sweep_all(struct rounds *r, uint64_t round)
{
    if (r->crowd != 0 && round % 2 == 1) {
        return;
    }
    long freed = weir_sweep_at(r->w, UINT64_MAX, THREADS_T0 + round * ROUND_NS);
    threads_require(freed >= 0);
    (void)threads_add(&r->freed, (uint64_t)freed);
}

static void crowd_in(struct rounds *r, uint64_t round, unsigned index, struct threads_tally *told)
{
    for (uint64_t i = 0; i < r->crowd; i++) {
        struct threads_key key = threads_key("crowd", (round * THREADS + index) * r->crowd + i);
        struct weir_answer a = threads_check(r->w, key.name, 1, THREADS_T0 + round * ROUND_NS);
        threads_require(a.verdict == WEIR_ALLOW && a.granted == 1);
        threads_count(told, &a);
    }
}

static void sweep_and_ask(unsigned index, void *arg)
{
    struct rounds *r = arg;
    struct threads_tally told = {0};
    for (uint64_t round = 0; round < r->count; round++) {
        threads_meet(&r->barrier, THREADS);
        if ((round + index) % 2 == 0) {
            sweep_all(r, round);
        }
        ask_all(r, round, index * KEYS / 2, &told);
        sweep_all(r, round);
        crowd_in(r, round, index, &told);
        ask_all(r, round, 0, &told);
        sweep_all(r, round);
        ask_all(r, round, 0, &told);
        threads_meet(&r->barrier, THREADS);
        for (unsigned k = index; k < KEYS; k += THREADS) {
            threads_require(threads_get(&r->granted[round % 2][k]) == QUOTA);
            threads_set(&r->granted[(round + 1) % 2][k], 0);
        }
    }
    threads_merge(&r->told, &told);
}

static void run_rounds(int algorithm, uint64_t crowd)
{
    struct weir_options o = threads_options(algorithm, QUOTA, WEIR_SECOND);
    struct rounds r = {.count = THREADS_ROUNDS(10000, 3000, 1500), .crowd = crowd};
    /* Room for two rounds: what one has left behind does not make the next one's table full. */
    o.max_keys = 3 * (KEYS + THREADS * crowd);
    o.on_full = WEIR_DENY_NEW;
    r.w = threads_open(&o);
    threads_run(THREADS, sweep_and_ask, &r);
    assert_true(r.freed > 0);
    assert_int_equal(threads_stats(r.w).evicted, 0);
    threads_assert_told(r.w, &r.told);
    threads_assert_sound(r.w);
    weir_close(r.w);
}

static void a_key_that_is_swept_while_it_is_asked_for_gets_its_quota_once(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        run_rounds(algorithm, 0);
    }
}

static void a_key_whose_slot_others_want_gets_its_quota_once(void **state)
{
    run_rounds(WEIR_TOKEN_BUCKET, 12);
    run_rounds(WEIR_FIXED_WINDOW, 12);
    run_rounds(WEIR_SLIDING_LOG, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_that_is_swept_while_it_is_asked_for_gets_its_quota_once),
        cmocka_unit_test(a_key_whose_slot_others_want_gets_its_quota_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
