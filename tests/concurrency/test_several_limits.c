/*
 * Several limits at once are all or nothing, also when many threads fight for
 * the last units: every limiter is charged for the calls that were allowed and
 * for no other, and roll-backs leave nothing behind.
 */
// test-timeout: 300
// test-serial: yes
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"

#define LIMITERS 3

struct several {
    struct weir *w[LIMITERS];
    uint64_t calls;
    uint64_t held[LIMITERS];    /* units that threads hold of each limiter */
    uint64_t allowed[LIMITERS]; /* allowed calls that had a part of it */
    struct threads_tally told;  /* by the answers of whole calls */
};

/* Each thread asks for some limiters, in its own order: parts are lost at different places. */
static size_t choose_parts(const struct several *s, uint64_t r, struct weir_part *parts,
                           unsigned *which)
{
    size_t n = r % 4 == 0 ? 2 : LIMITERS;
    for (size_t i = 0; i < n; i++) {
        which[i] = ((r >> 8) + i * ((r >> 16) % 2 + 1)) % LIMITERS;
        memset(&parts[i], 0, sizeof parts[i]);
        parts[i].limiter = s->w[which[i]];
        parts[i].ask.key = "key";
        parts[i].ask.key_len = 3;
        parts[i].ask.cost = which[i] + 1;
    }
    return n;
}

/* What was allowed is held for a few calls, so that the last units are fought for all the time. */
static void give_all_back(const struct several *s, uint64_t *held)
{
    for (unsigned i = 0; i < LIMITERS; i++) {
        if (held[i] != 0) {
            threads_require(
                weir_refund_at(s->w[i], "key", 3, held[i], THREADS_T0, THREADS_T0, NULL) == 0);
            held[i] = 0;
        }
    }
}

static void check_several(unsigned index, void *arg)
{
    struct several *s = arg;
    struct threads_tally told = {0};
    uint64_t held[LIMITERS] = {0};
    uint64_t allowed[LIMITERS] = {0};
    uint64_t random = index;
    for (uint64_t i = 0; i < s->calls; i++) {
        struct weir_part parts[LIMITERS];
        unsigned which[LIMITERS];
        struct weir_answer a;
        size_t n = choose_parts(s, threads_random(&random), parts, which);
        threads_require(weir_check_several_at(parts, n, THREADS_T0, &a) == 0);
        threads_count(&told, &a);
        threads_require((a.flags & WEIR_FLAG_SPURIOUS) == 0 || a.verdict == WEIR_DENY);
        for (size_t j = 0; j < n && a.verdict == WEIR_ALLOW; j++) {
            held[which[j]] += parts[j].ask.cost;
            allowed[which[j]]++;
        }
        if (i % 4 == 0 && i + 1 != s->calls) {
            give_all_back(s, held);
        }
    }
    for (unsigned i = 0; i < LIMITERS; i++) {
        (void)threads_add(&s->held[i], held[i]);
        (void)threads_add(&s->allowed[i], allowed[i]);
    }
    threads_merge(&s->told, &told);
}

static void open_three(struct several *s, int algorithm)
{
    for (unsigned i = 0; i < LIMITERS; i++) {
        /* Different algorithms, each with room for a few calls of its cost. A queue cannot give
         * back a place that another one follows: it has a test of its own. */
        static const int algorithms[] = {WEIR_TOKEN_BUCKET, WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW,
                                         WEIR_SLIDING_LOG};
        int id = algorithms[(unsigned)(algorithm - 1 + (int)i) % 4];
        struct weir_options o = threads_options(id, 5 * (i + 1), WEIR_HOUR);
        o.max_keys = 10;
        s->w[i] = threads_open(&o);
    }
}

static void assert_nothing_is_left_over(struct several *s)
{
    uint64_t denied = 0;
    uint64_t spurious = 0;
    for (unsigned i = 0; i < LIMITERS; i++) {
        struct weir_stats stats = threads_stats(s->w[i]);
        assert_int_equal(threads_taken(s->w[i], "key", THREADS_T0), s->held[i]);
        assert_int_equal(stats.allowed, s->allowed[i]);
        threads_assert_sound(s->w[i]);
        denied += stats.denied;
        spurious += stats.spurious;
        weir_close(s->w[i]);
    }
    assert_int_equal(denied, s->told.denied);
    assert_int_equal(spurious, s->told.spurious);
}

static void several_limits_are_charged_for_allowed_calls_and_no_other(void **state)
{
    static const unsigned crowds[] = {2, 8, 32};
    uint64_t spurious = 0;
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        for (unsigned i = 0; i < 3; i++) {
            struct several s = {.calls = THREADS_ROUNDS(60000, 10000, 6000) / crowds[i]};
            open_three(&s, algorithm);
            threads_run(crowds[i], check_several, &s);
            spurious += s.told.spurious;
            assert_nothing_is_left_over(&s);
        }
    }
    print_message("%llu calls were rolled back\n", (unsigned long long)spurious);
}

/* ---- a race that must happen ---- */

/*
 * Two limits of one unit each, and two threads that charge them in opposite
 * order. Both may lose; then both units are there again. Otherwise one of them
 * holds both.
 */
struct pair_race {
    struct weir *w[2];
    struct threads_barrier barrier;
    uint64_t rounds;
    uint64_t verdicts[2];
    uint64_t none;
};

static void race_for_two(unsigned index, void *arg)
{
    struct pair_race *p = arg;
    for (uint64_t round = 0; round < p->rounds; round++) {
        struct threads_key key = threads_key("round", round);
        struct weir_part parts[2];
        struct weir_answer a;
        memset(parts, 0, sizeof parts);
        for (unsigned i = 0; i < 2; i++) {
            parts[i].limiter = p->w[(index + i) % 2];
            parts[i].ask.key = key.name;
            parts[i].ask.key_len = strlen(key.name);
            parts[i].ask.cost = 1;
        }
        threads_meet(&p->barrier, 2);
        threads_require(weir_check_several_at(parts, 2, THREADS_T0, &a) == 0);
        threads_set(&p->verdicts[index], (uint64_t)a.verdict);
        threads_meet(&p->barrier, 2);
        if (index == 0) {
            bool won[2] = {threads_get(&p->verdicts[0]) == WEIR_ALLOW,
                           threads_get(&p->verdicts[1]) == WEIR_ALLOW};
            threads_require(!(won[0] && won[1]));
            uint64_t held = won[0] || won[1];
            p->none += held == 0;
            threads_require(threads_taken(p->w[0], key.name, THREADS_T0) == held);
            threads_require(threads_taken(p->w[1], key.name, THREADS_T0) == held);
        }
        threads_meet(&p->barrier, 2);
    }
}

static void two_calls_that_take_two_units_crosswise_leave_no_unit_behind(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        struct weir_options o = threads_options(algorithm, 1, WEIR_HOUR);
        struct pair_race p = {.rounds = THREADS_ROUNDS(20000, 5000, 2000)};
        o.max_keys = p.rounds;
        p.w[0] = threads_open(&o);
        p.w[1] = threads_open(&o);
        threads_run(2, race_for_two, &p);
        threads_assert_sound(p.w[0]);
        threads_assert_sound(p.w[1]);
        print_message("%llu of %llu races had no winner\n", (unsigned long long)p.none,
                      (unsigned long long)p.rounds);
        weir_close(p.w[0]);
        weir_close(p.w[1]);
    }
}

/* ---- places in a queue ---- */

#define TURN_NS WEIR_MICROSECOND
#define TURNS_MOST 400000
#define BUCKET_COST 4

/*
 * A queue of four, and a bucket for two calls at a time. The queue never has more
 * left than the bucket, so it is charged first, and rolled back when the bucket is
 * lost to others.
 */
struct turns {
    struct weir *queue;
    struct weir *bucket;
    uint64_t calls;
    uint64_t now;
    uint64_t allowed;
    uint64_t spurious;
    uint64_t *released; /* TURNS_MOST */
};

static void take_turns(unsigned index, void *arg)
{
    struct turns *t = arg;
    (void)index;
    for (uint64_t i = 0; i < t->calls; i++) {
        uint64_t now = threads_add(&t->now, TURN_NS / 2);
        struct weir_answer a;
        struct weir_part parts[2];
        memset(parts, 0, sizeof parts);
        for (unsigned j = 0; j < 2; j++) {
            parts[j].limiter = j == 0 ? t->queue : t->bucket;
            parts[j].ask.key = "key";
            parts[j].ask.key_len = 3;
            parts[j].ask.cost = j == 0 ? 1 : BUCKET_COST;
        }
        threads_require(weir_check_several_at(parts, 2, now, &a) == 0);
        if (a.verdict == WEIR_ALLOW) {
            threads_set(&t->released[threads_add(&t->allowed, 1)], now + a.delay_ns);
            threads_require(weir_refund_at(t->bucket, "key", 3, BUCKET_COST, now, now, NULL) == 0);
        }
        (void)threads_add(&t->spurious, (a.flags & WEIR_FLAG_SPURIOUS) != 0);
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void no_two_calls_leave_a_queue_at_one_time_whatever_is_rolled_back(void **state)
{
    struct weir_options queue = threads_options(WEIR_LEAKY_BUCKET, 4, 4 * TURN_NS);
    struct weir_options bucket = threads_options(WEIR_TOKEN_BUCKET, 2 * BUCKET_COST, WEIR_HOUR);
    struct turns t = {.calls = THREADS_ROUNDS(20000, 5000, 2000) / (THREADS_LONG ? 10 : 1)};
    t.queue = threads_open(&queue);
    t.bucket = threads_open(&bucket);
    t.now = THREADS_T0;
    t.released = calloc(TURNS_MOST, sizeof *t.released);
    assert_non_null(t.released);
    threads_run(16, take_turns, &t);
    qsort(t.released, t.allowed, sizeof *t.released, by_value);
    for (uint64_t i = 1; i < t.allowed; i++) {
        assert_true(t.released[i] - t.released[i - 1] >= TURN_NS);
    }
    print_message("%llu calls left the queue, %llu were rolled back\n",
                  (unsigned long long)t.allowed, (unsigned long long)t.spurious);
    free(t.released);
    weir_close(t.queue);
    weir_close(t.bucket);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_limits_are_charged_for_allowed_calls_and_no_other),
        cmocka_unit_test(two_calls_that_take_two_units_crosswise_leave_no_unit_behind),
        cmocka_unit_test(no_two_calls_leave_a_queue_at_one_time_whatever_is_rolled_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
