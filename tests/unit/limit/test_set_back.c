/*
 * P6 and P7 together: a clock is set back by years, and the table is full of
 * states from the future. Each call that meets such a state pulls it down to
 * what it could be now, so that it ends after the time to full: a claim for a
 * new key, a sweep, a denied call and a peek.
 */
#include "limit/limiter.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>

#define START (1000 * WEIR_HOUR)
#define FUTURE (START + 3650 * WEIR_DAY)
#define QUOTA 3
/* The time to full with the default debt (steps are rounded up), and the second of slack. */
#define LONGEST (2 * WEIR_SECOND + WEIR_MICROSECOND + WEIR_SECOND)

static struct weir *open_full(int algorithm, int on_full)
{
    struct weir_options o = unit_options(algorithm, QUOTA, WEIR_SECOND);
    o.max_keys = 100;
    o.on_full = on_full;
    struct weir *w = unit_open(&o);
    for (int i = 0; i < 5000; i++) {
        char key[24];
        (void)snprintf(key, sizeof key, "future %d", i);
        (void)unit_check(w, key, QUOTA, FUTURE);
    }
    assert_int_equal(unit_stats(w).keys, unit_stats(w).capacity);
    print_message("             %s\n", weir_algorithm_name(algorithm));
    return w;
}

static void under_deny_a_new_key_enters_after_the_time_that_it_was_told(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = open_full(unit_algorithms[i], WEIR_DENY_NEW);
        struct weir_answer a = unit_check(w, "new", 1, START);
        if (unit_algorithms[i] == WEIR_SLIDING_LOG) {
            assert_int_equal(a.flags, 0); /* a log of a far future is forgotten at once */
        } else {
            assert_int_equal(a.flags, WEIR_FLAG_FULL);
            assert_true(a.retry_after_ns <= LONGEST);
            uint64_t then = START + a.retry_after_ns;
            assert_int_equal(unit_check(w, "new", 1, then - 1).flags, WEIR_FLAG_FULL);
            assert_int_equal(unit_check(w, "new", 1, then).flags, 0);
        }
        assert_int_equal(unit_stats(w).evicted, 0);
        weir_close(w);
    }
}

static void under_deny_a_table_is_not_full_for_more_than_a_day(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = open_full(unit_algorithms[i], WEIR_DENY_NEW);
        uint64_t refused = 0;
        for (uint64_t day = 0; day < 365; day++) {
            char key[24];
            (void)snprintf(key, sizeof key, "day %u", (unsigned)day);
            refused += unit_check(w, key, 1, START + day * WEIR_DAY).flags != 0;
        }
        assert_true(refused <= 3); /* a search of the first pulls most of the table down */
        weir_close(w);
    }
}

static void sweeps_free_a_table_full_of_far_futures_after_the_time_to_full(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = open_full(unit_algorithms[i], WEIR_EVICT);
        struct weir_stats s = unit_stats(w);
        int64_t freed = weir_sweep_at(w, s.capacity / 4, START);
        assert_int_equal(freed, unit_algorithms[i] == WEIR_SLIDING_LOG ? s.keys : 0);
        freed += weir_sweep_at(w, s.capacity / 4, START + LONGEST);
        assert_int_equal(freed, s.keys);
        assert_int_equal(unit_stats(w).keys, 0);
        weir_close(w);
    }
}

/* A state that was pulled down owes all that it can: those of honest keys go first. */
static void under_evict_a_far_future_is_not_forgiven(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS - 1; i++) {
        struct weir_options o = unit_options(unit_algorithms[i], QUOTA, WEIR_HOUR);
        o.max_keys = 100;
        struct weir *w = unit_open(&o);
        (void)unit_check(w, "future", QUOTA, FUTURE);
        for (int j = 0; j < 5000; j++) {
            char key[24];
            (void)snprintf(key, sizeof key, "light %d", j);
            assert_int_equal(unit_check(w, key, 1, START).verdict, WEIR_ALLOW);
        }
        assert_int_equal(unit_check(w, "future", 1, START).verdict, WEIR_DENY);
        weir_close(w);
    }
}

/* Clocks may differ by a second: neither a claim nor a sweep takes that for a step back. */
static void a_second_behind_changes_no_state(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir_options o = unit_options(unit_algorithms[i], QUOTA, 10 * WEIR_SECOND);
        o.max_keys = 1;
        o.on_full = WEIR_DENY_NEW;
        struct weir *w = unit_open(&o);
        for (int j = 0; j < 5000; j++) {
            char key[24];
            (void)snprintf(key, sizeof key, "key %d", j);
            (void)unit_check(w, key, QUOTA, START);
            (void)weir_penalize_at(w, key, strlen(key), QUOTA, START, NULL);
        }
        struct line before[64];
        size_t bytes = w->table.all * sizeof before[0];
        assert_true(bytes <= sizeof before);
        memcpy(before, w->table.lines, bytes);
        assert_int_equal(unit_check(w, "new", 1, START - WEIR_SECOND).flags, WEIR_FLAG_FULL);
        assert_int_equal(weir_sweep_at(w, w->table.all, START - WEIR_SECOND), 0);
        assert_memory_equal(before, w->table.lines, bytes);
        weir_close(w);
    }
}

/* ---- calls on the key itself ---- */

static void assert_retry_comes_true(struct weir *w, const struct weir_answer *a)
{
    assert_int_equal(a->verdict, WEIR_DENY);
    assert_true(a->retry_after_ns <= LONGEST);
    assert_int_equal(unit_peek(w, "k", 1, START + a->retry_after_ns - 1).verdict, WEIR_DENY);
    assert_int_equal(unit_peek(w, "k", 1, START + a->retry_after_ns).verdict, WEIR_ALLOW);
}

static void a_denied_peek_of_a_far_future_comes_true(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS - 1; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], QUOTA, WEIR_SECOND);
        (void)unit_drain(w, "k", FUTURE);
        struct weir_answer a = unit_peek(w, "k", 1, START);
        assert_retry_comes_true(w, &a);
        weir_close(w);
    }
}

static void the_peek_after_a_refund_comes_true(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS - 1; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], QUOTA, WEIR_SECOND);
        struct weir_answer a;
        (void)unit_drain(w, "k", FUTURE);
        assert_int_equal(weir_refund_at(w, "k", 1, 1, START - WEIR_HOUR, START, &a), 0);
        assert_retry_comes_true(w, &a);
        weir_close(w);
    }
}

/* The retry of a blocked key is the later of two ends, and both have to come. */
static void the_answer_to_a_blocked_key_comes_true(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS - 1; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], QUOTA, WEIR_SECOND);
        (void)unit_drain(w, "k", FUTURE);
        assert_int_equal(weir_block_at(w, "k", 1, START + 1, START), 0);
        struct weir_answer a = unit_check(w, "k", 1, START);
        assert_int_equal(a.flags, WEIR_FLAG_BLOCKED);
        assert_retry_comes_true(w, &a);
        weir_close(w);
    }
}

/* One limit denies; the state of the other, which allows, must not come back in the meantime. */
static void the_retry_of_several_limits_comes_true(void **state)
{
    const int modes[] = {WEIR_CHECK, WEIR_PEEK};
    for (int i = 0; i < 2 * UNIT_ALGORITHMS; i++) {
        struct weir *w = unit_limit(unit_algorithms[i / 2], QUOTA, WEIR_MINUTE);
        struct weir *other = unit_limit(WEIR_TOKEN_BUCKET, 1, 4 * WEIR_SECOND);
        uint64_t soon = START + WEIR_MINUTE - 2 * WEIR_SECOND; /* of a window that ends in 2 s */
        (void)unit_check(w, "k", QUOTA, soon + 3500 * WEIR_MILLISECOND - WEIR_MINUTE);
        (void)unit_check(w, "k", QUOTA, soon + 3500 * WEIR_MILLISECOND);
        (void)unit_check(other, "k", 1, soon);
        struct weir_part parts[2] = {{w, unit_question("k", 1, modes[i % 2])},
                                     {other, unit_question("k", 1, modes[i % 2])}};
        struct weir_answer a;
        assert_int_equal(weir_check_several_at(parts, 2, soon, &a), 0);
        assert_int_equal(a.verdict, WEIR_DENY);
        uint64_t then = soon + a.retry_after_ns;
        assert_int_equal(weir_check_several_at(parts, 2, then - 1, &a), 0);
        assert_int_equal(a.verdict, WEIR_DENY);
        assert_int_equal(weir_check_several_at(parts, 2, then, &a), 0);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        weir_close(w);
        weir_close(other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(under_deny_a_new_key_enters_after_the_time_that_it_was_told),
        cmocka_unit_test(under_deny_a_table_is_not_full_for_more_than_a_day),
        cmocka_unit_test(sweeps_free_a_table_full_of_far_futures_after_the_time_to_full),
        cmocka_unit_test(under_evict_a_far_future_is_not_forgiven),
        cmocka_unit_test(a_second_behind_changes_no_state),
        cmocka_unit_test(a_denied_peek_of_a_far_future_comes_true),
        cmocka_unit_test(the_peek_after_a_refund_comes_true),
        cmocka_unit_test(the_answer_to_a_blocked_key_comes_true),
        cmocka_unit_test(the_retry_of_several_limits_comes_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
