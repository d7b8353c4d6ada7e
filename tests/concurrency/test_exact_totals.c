/*
 * Any number of threads admit exactly what one would (P8): at a frozen time the
 * quota, and while time advances a total that does not depend on who was faster.
 */
// test-timeout: 300
// test-serial: yes
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"

static const unsigned crowds[] = {2, 8, 32};
#define CROWDS (sizeof crowds / sizeof crowds[0])

/* ---- time stands still ---- */

#define KEYS_MAX 64

struct frozen {
    struct weir *w;
    unsigned keys;
    uint64_t quota;
    uint64_t calls; /* of each thread */
    struct threads_tally told;
    uint64_t granted[KEYS_MAX];
};

static void ask_at_a_frozen_time(unsigned index, void *arg)
{
    struct frozen *f = arg;
    struct threads_tally told = {0};
    uint64_t random = index;
    for (uint64_t i = 0; i < f->calls; i++) {
        uint64_t k = threads_random(&random) % f->keys;
        /* Now and then a cost that can never fit; and 1 often, so that every key is used up. */
        uint64_t some = threads_random(&random) % 7 + 1;
        uint64_t cost = i % 64 == 63 ? f->quota + 1 : i % 4 == 3 ? some : 1;
        struct weir_answer a = threads_check(f->w, threads_key("key", k).name, cost, THREADS_T0);
        threads_require((a.verdict == WEIR_NEVER) == (cost > f->quota));
        threads_require(a.granted == (a.verdict == WEIR_ALLOW ? cost : 0));
        threads_require(a.verdict != WEIR_DENY || a.remaining < cost);
        threads_count(&told, &a);
        (void)threads_add(&f->granted[k], a.granted);
    }
    threads_merge(&f->told, &told);
}

static void run_frozen(int algorithm, unsigned threads, unsigned keys, uint64_t quota)
{
    struct weir_options o = threads_options(algorithm, quota, WEIR_HOUR);
    struct frozen f = {.keys = keys, .quota = quota};
    o.max_keys = 100;
    f.w = threads_open(&o);
    /* Five times what the quotas hold: that a key is not used up has chances of 1 in e^100. */
    f.calls = keys * quota * 3 / threads + 64;
    threads_run(threads, ask_at_a_frozen_time, &f);
    for (unsigned k = 0; k < keys; k++) {
        assert_int_equal(f.granted[k], quota);
    }
    assert_int_equal(f.told.granted, keys * quota);
    assert_int_equal(f.told.allowed + f.told.denied + f.told.never, threads * f.calls);
    threads_assert_told(f.w, &f.told);
    assert_int_equal(threads_stats(f.w).keys, keys);
    threads_assert_sound(f.w);
    weir_close(f.w);
}

static void run_frozen_all(unsigned keys, uint64_t quota, uint64_t rounds)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        for (unsigned i = 0; i < CROWDS; i++) {
            for (uint64_t round = 0; round < rounds; round++) {
                run_frozen(algorithm, crowds[i], keys, quota);
            }
        }
    }
}

static void threads_on_one_key_get_exactly_its_quota(void **state)
{
    run_frozen_all(1, THREADS_TSAN ? 2000 : 20000, THREADS_ROUNDS(5, 2, 2));
}

static void threads_on_many_keys_get_exactly_the_quota_of_each(void **state)
{
    run_frozen_all(KEYS_MAX, 100, THREADS_ROUNDS(10, 2, 1));
}

static void a_hundred_threads_lose_no_count_although_some_share_a_counter(void **state)
{
    run_frozen(WEIR_TOKEN_BUCKET, 100, KEYS_MAX, 100);
    run_frozen(WEIR_SLIDING_LOG, 100, KEYS_MAX, 100);
}

/* ---- time advances, a little with each call ---- */

/*
 * Every call takes the next tick of a common clock. A thread may be delayed
 * between taking its tick and deciding, so ticks arrive out of order: by as
 * many ticks as there are threads, or, from one that was put to sleep, by far.
 * The whole run stays within the clocks' slack; then the total is still exact:
 *
 *   buckets         always asked for more than they refill, so their TAT never
 *                   falls behind: quota + time / step;
 *   fixed_window    all but 31 of a window's 2,000 ticks arrive within it: quota each;
 *   sliding_window  the first holds the quota, each later one quota - 1, the
 *                   last of them admitted in its last 33 us, 333 ticks;
 *   sliding_log     as soon as units expire others take their place: quota in
 *                   each period, plus a drift far below the half that is left out.
 */
#define TICK_NS UINT64_C(100)
#define STEP_QUOTA 30

struct stepping {
    struct weir *w;
    uint64_t clock;
    uint64_t end;
    struct threads_tally told;
};

static void ask_while_time_advances(unsigned index, void *arg)
{
    struct stepping *s = arg;
    struct threads_tally told = {0};
    for (;;) {
        uint64_t now = threads_add(&s->clock, TICK_NS);
        if (now >= s->end) {
            break;
        }
        struct weir_answer a = threads_check(s->w, "key", 1, now);
        threads_count(&told, &a);
    }
    threads_merge(&s->told, &told);
}

/* Takes what there is at `now`. */
static void drain(struct stepping *s, uint64_t now)
{
    struct weir_answer a;
    do {
        a = threads_check(s->w, "key", 1, now);
        threads_count(&s->told, &a);
    } while (a.verdict == WEIR_ALLOW);
}

static uint64_t run_stepping(int algorithm, unsigned threads, uint64_t period, uint64_t length)
{
    struct weir_options o = threads_options(algorithm, STEP_QUOTA, period);
    struct stepping s = {.clock = THREADS_T0, .end = THREADS_T0 + length};
    s.w = threads_open(&o);
    drain(&s, THREADS_T0);
    threads_run(threads, ask_while_time_advances, &s);
    drain(&s, THREADS_T0 + length);
    threads_assert_told(s.w, &s.told);
    threads_assert_sound(s.w);
    weir_close(s.w);
    return s.told.granted;
}

static void threads_admit_what_one_would_while_time_advances(void **state)
{
    uint64_t n = THREADS_ROUNDS(20, 6, 3); /* periods */
    for (unsigned i = 0; i < CROWDS; i++) {
        unsigned threads = crowds[i];
        uint64_t period = 300 * WEIR_MICROSECOND; /* a step of 10 us: 100 ticks */
        uint64_t rest = period / 3;               /* of the last period */
        uint64_t length = n * period + rest;
        uint64_t steps = length / (period / STEP_QUOTA);
        assert_int_equal(run_stepping(WEIR_TOKEN_BUCKET, threads, period, length),
                         STEP_QUOTA + steps);
        assert_int_equal(run_stepping(WEIR_LEAKY_BUCKET, threads, period, length),
                         STEP_QUOTA + steps);
        period = 200 * WEIR_MICROSECOND; /* 2,000 ticks; T0 is a multiple of it */
        length = n * period + period / 2;
        assert_int_equal(run_stepping(WEIR_FIXED_WINDOW, threads, period, length),
                         (n + 1) * STEP_QUOTA);
        assert_int_equal(run_stepping(WEIR_SLIDING_LOG, threads, period, length),
                         (n + 1) * STEP_QUOTA);
        period = 1000 * WEIR_MICROSECOND;
        n = n < 5 ? n : n / 4;
        length = n * period - TICK_NS;
        assert_int_equal(run_stepping(WEIR_SLIDING_WINDOW, threads, period, length),
                         STEP_QUOTA + (n - 1) * (STEP_QUOTA - 1));
        n = THREADS_ROUNDS(20, 6, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_on_one_key_get_exactly_its_quota),
        cmocka_unit_test(threads_on_many_keys_get_exactly_the_quota_of_each),
        cmocka_unit_test(a_hundred_threads_lose_no_count_although_some_share_a_counter),
        cmocka_unit_test(threads_admit_what_one_would_while_time_advances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
