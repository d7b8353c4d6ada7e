/*
 * Many threads meet a new key at the same moment. Whoever is first puts it into
 * the table; nobody puts it there twice, and its quota is admitted once.
 */
// test-timeout: 300
// test-serial: yes
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"

#define QUOTA 3
#define KEYS 8 /* new ones in each round */

struct birth {
    struct weir *w;
    unsigned threads;
    uint64_t rounds;
    struct threads_barrier barrier;
    uint64_t *granted; /* of each key */
    struct threads_tally told;
};

/*
 * All threads want all keys of a round, QUOTA + 1 times: in the same order, so
 * that they collide on each, or in their own, so that they collide on lines and stripes.
 */
static void want_new_keys(unsigned index, void *arg)
{
    struct birth *b = arg;
    struct threads_tally told = {0};
    for (uint64_t round = 0; round < b->rounds; round++) {
        threads_meet(&b->barrier, b->threads);
        for (unsigned i = 0; i < KEYS * (QUOTA + 1); i++) {
            uint64_t number = round * KEYS + (i + (round % 2 == 0 ? 0 : index)) % KEYS;
            struct weir_answer a =
                threads_check(b->w, threads_key("new", number).name, 1, THREADS_T0);
            threads_count(&told, &a);
            if (a.verdict == WEIR_ALLOW) {
                (void)threads_add(&b->granted[number], 1);
            }
        }
    }
    threads_merge(&b->told, &told);
}

static void run_births(int algorithm, unsigned threads, uint64_t rounds)
{
    struct weir_options o = threads_options(algorithm, QUOTA, WEIR_HOUR);
    struct birth b = {.threads = threads, .rounds = rounds};
    uint64_t keys = rounds * KEYS;
    o.max_keys = keys;
    o.on_full = WEIR_DENY_NEW;
    b.w = threads_open(&o);
    b.granted = calloc(keys, sizeof *b.granted);
    assert_non_null(b.granted);
    threads_run(threads, want_new_keys, &b);
    for (uint64_t i = 0; i < keys; i++) {
        assert_int_equal(b.granted[i], QUOTA);
    }
    assert_int_equal(b.told.full, 0);
    assert_int_equal(threads_stats(b.w).keys, keys);
    threads_assert_told(b.w, &b.told);
    threads_assert_sound(b.w);
    free(b.granted);
    weir_close(b.w);
}

static void a_new_key_that_many_threads_want_at_once_gets_its_quota_once(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        run_births(algorithm, 2, THREADS_ROUNDS(10000, 3000, 1000));
        run_births(algorithm, 8, THREADS_ROUNDS(500, 100, 50));
        run_births(algorithm, 32, THREADS_ROUNDS(50, 10, 10));
    }
}

/* ---- born again and again ---- */

struct rebirth {
    struct weir *w;
    uint64_t rounds;
    struct threads_barrier barrier;
    uint64_t granted;
};

/* Two threads race for a key that is absent; one of them removes it afterwards. */
static void race_and_reset(unsigned index, void *arg)
{
    struct rebirth *r = arg;
    for (uint64_t round = 0; round < r->rounds; round++) {
        threads_meet(&r->barrier, 2);
        for (unsigned i = 0; i <= QUOTA; i++) {
            (void)threads_add(&r->granted, threads_check(r->w, "key", 1, THREADS_T0).granted);
        }
        threads_meet(&r->barrier, 2);
        if (index == 0) {
            threads_require(threads_get(&r->granted) == QUOTA);
            threads_set(&r->granted, 0);
            threads_require(weir_reset(r->w, "key", 3) == 1);
        }
    }
}

static void a_key_that_is_forgotten_each_round_gets_its_quota_in_each(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        struct weir_options o = threads_options(algorithm, QUOTA, WEIR_HOUR);
        struct rebirth r = {.rounds = THREADS_ROUNDS(50000, 10000, 5000)};
        o.max_keys = 10;
        r.w = threads_open(&o);
        threads_run(2, race_and_reset, &r);
        assert_int_equal(threads_stats(r.w).keys, 0);
        threads_assert_sound(r.w);
        weir_close(r.w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_key_that_many_threads_want_at_once_gets_its_quota_once),
        cmocka_unit_test(a_key_that_is_forgotten_each_round_gets_its_quota_in_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
