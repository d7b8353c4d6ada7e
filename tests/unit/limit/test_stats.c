/* Statistics count each call once; a sweep frees only what is fresh. */
#include "support/engine/unit_limiter.h"

#include <stdio.h>

#define START (120 * WEIR_SECOND)

static void bad_arguments_are_refused(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_MINUTE);
    struct weir_stats s;
    memset(&s, 0, sizeof s);
    assert_int_equal(weir_stats_read(w, &s), WEIR_EINVAL);
    s.size = 1;
    assert_int_equal(weir_stats_read(w, &s), WEIR_EINVAL);
    s.size = sizeof s + 1;
    assert_int_equal(weir_stats_read(w, &s), WEIR_EINVAL);
    s.size = sizeof s;
    assert_int_equal(weir_stats_read(NULL, &s), WEIR_EINVAL);
    assert_int_equal(weir_stats_read(w, NULL), WEIR_EINVAL);
    assert_int_equal(weir_sweep_at(NULL, 1, START), WEIR_EINVAL);
    assert_int_equal(weir_sweep(NULL, 1), WEIR_EINVAL);
    weir_close(w);
}

static void an_older_caller_gets_only_the_fields_it_knows(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_MINUTE);
    struct weir_stats s;
    memset(&s, 0x5a, sizeof s);
    (void)unit_check(w, "k", 1, START);
    s.size = offsetof(struct weir_stats, denied);
    assert_int_equal(weir_stats_read(w, &s), 0);
    assert_int_equal(s.allowed, 1);
    assert_int_equal(s.denied, 0x5a5a5a5a5a5a5a5a);
    assert_int_equal(s.size, offsetof(struct weir_stats, denied));
    weir_close(w);
}

/* In shadow a denial is counted as one that did not happen, by every call that decides. */
static void denials_in_shadow_are_counted_apart(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_MINUTE);
    struct weir_question ask = unit_question("k", 10, WEIR_CHECK);
    struct weir_answer a;
    ask.flags = WEIR_SHADOW;
    for (int i = 0; i < 3; i++) {
        (void)unit_ask(w, &ask, START);
    }
    ask.cost = 11;
    assert_int_equal(unit_ask(w, &ask, START).verdict, WEIR_NEVER);
    struct weir_part parts[] = {{w, ask}, {w, unit_question("other", 1, WEIR_CHECK)}};
    assert_int_equal(weir_check_several_at(parts, 2, START, &a), 0);
    assert_int_equal(weir_throttle_at(w, WEIR_SECOND, 1, &ask, START, &a), 0);
    assert_int_equal(weir_ask_batch_at(w, &ask, 1, START, &a, NULL), 0);
    ask.mode = WEIR_PEEK;
    (void)unit_ask(w, &ask, START);
    (void)unit_check(w, "k", 1, START);
    struct weir_stats s = unit_stats(w);
    assert_int_equal(s.allowed, 1);
    assert_int_equal(s.shadow_denied, 6);
    assert_int_equal(s.denied, 1);
    assert_int_equal(s.never, 0);
    weir_close(w);
}

static void count_everything(struct weir *w, int algorithm)
{
    struct weir_answer a;
    struct weir_reservation r;
    struct weir_question up_to = unit_question("k", 99, WEIR_UP_TO);
    (void)unit_check(w, "k", 4, START);
    (void)unit_ask(w, &up_to, START);
    (void)unit_ask(w, &up_to, START);
    (void)unit_check(w, "k", 1, START);
    (void)unit_check(w, "k", 11, START);
    (void)unit_peek(w, "k", 1, START);
    (void)unit_peek(w, "k", 100, START);
    struct weir_question batch[3] = {unit_question("b", 1, WEIR_CHECK),
                                     unit_question("b", 1, WEIR_PEEK),
                                     unit_question("b", 10, WEIR_CHECK)};
    struct weir_answer answers[3];
    assert_int_equal(weir_ask_batch_at(w, batch, 3, START, answers, NULL), 0);
    assert_int_equal(weir_reserve_at(w, "r", 1, 2, WEIR_SECOND, START, &r, &a), 0);
    assert_int_equal(weir_settle_at(w, &r, 1, START, &a), 0);
    assert_int_equal(weir_block_at(w, "x", 1, WEIR_FOREVER, START), 0);
    (void)unit_check(w, "x", 1, START);
    (void)unit_check(w, "x", 11, START);
    struct weir_stats s = unit_stats(w);
    assert_int_equal(s.allowed, 4); /* check, up to, batch, reserve */
    assert_int_equal(s.denied, 4);  /* up to, check, batch, blocked */
    assert_int_equal(s.never, 2);
    assert_int_equal(s.keys, 3); /* k, b, r */
    assert_int_equal(s.blocks, 1);
    assert_int_equal(s.spurious + s.evicted + s.reclaimed + s.full_denied + s.full_allowed, 0);
}

static void each_call_counts_once_and_peeks_do_not(void **state)
{
    unit_each(10, WEIR_MINUTE, count_everything);
}

static void refused_calls_are_not_counted(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_MINUTE);
    struct weir_answer a;
    (void)weir_check_at(w, "k", 1, 0, START, &a);
    (void)weir_check_at(w, "", 0, 1, START, &a);
    (void)weir_check_at(w, "k", 1, 1, UINT64_MAX, &a);
    struct weir_stats s = unit_stats(w);
    assert_int_equal(s.allowed + s.denied + s.never, 0);
    weir_close(w);
}

static void blocked_calls_count_as_denied_and_blocked(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_MINUTE);
    assert_int_equal(weir_block_at(w, "x", 1, WEIR_FOREVER, START), 0);
    for (int i = 0; i < 5; i++) {
        (void)unit_check(w, "x", 1, START);
    }
    assert_int_equal(unit_stats(w).blocked, 5);
    assert_int_equal(unit_stats(w).denied, 5);
    weir_close(w);
}

/* ---- sweeping ---- */

#define ALL UINT64_MAX

static void fill(struct weir *w, unsigned keys, uint64_t now)
{
    for (unsigned i = 0; i < keys; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%u", i);
        (void)unit_check(w, key, 1, now);
    }
}

static void sweep_states(struct weir *w, int algorithm)
{
    fill(w, 300, START);
    (void)unit_drain(w, "poor", START);
    struct weir_answer young = unit_peek(w, "k0", 1, START);
    assert_int_equal(weir_sweep_at(w, ALL, START), 0);
    uint64_t fresh = START + young.reset_after_ns;
    assert_int_equal(weir_sweep_at(w, ALL, fresh + WEIR_SECOND - 1), 0); /* the slowest clock */
    long freed = weir_sweep_at(w, ALL, fresh + WEIR_SECOND);
    assert_true(freed == 300 || freed == 301);
    assert_int_equal(unit_stats(w).keys, 301 - freed);
    struct weir_answer poor = unit_peek(w, "poor", 1, fresh);
    (void)weir_sweep_at(w, ALL, fresh + WEIR_HOUR);
    assert_int_equal(unit_stats(w).keys, 0);
    (void)poor;
}

static void a_sweep_frees_exactly_what_is_as_good_as_new(void **state)
{
    unit_each(10, WEIR_MINUTE, sweep_states);
}

static void sweep_with_a_slow_clock(struct weir *w, int algorithm)
{
    const uint64_t lags[] = {0, 1, WEIR_SECOND / 2, WEIR_SECOND};
    (void)unit_drain(w, "k", START);
    struct weir_answer before = unit_peek(w, "k", 1, START);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(weir_sweep_at(w, ALL, START - lags[i]), 0);
    }
    struct weir_answer after = unit_peek(w, "k", 1, START);
    unit_assert_same(&before, &after);
}

static void a_sweep_by_a_lagging_clock_frees_nobody_who_is_throttled(void **state)
{
    unit_each(10, WEIR_MINUTE, sweep_with_a_slow_clock);
}

static void a_sweep_visits_as_many_lines_as_it_is_told(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND);
    uint64_t lines = unit_stats(w).capacity / 4;
    uint64_t later = START + WEIR_MINUTE;
    fill(w, 500, START);
    assert_int_equal(weir_sweep_at(w, 0, later), 0);
    long freed = 0;
    for (uint64_t i = 0; i < lines; i++) {
        long one = weir_sweep_at(w, 1, later);
        assert_true(one >= 0 && one <= 4);
        freed += one;
    }
    assert_int_equal(freed, 500); /* together they went round once */
    assert_int_equal(unit_stats(w).keys, 0);
    weir_close(w);
}

static void a_sweep_frees_blocks_that_have_ended(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND);
    assert_int_equal(weir_block_at(w, "x", 1, START + 10, START), 0);
    assert_int_equal(weir_block_at(w, "y", 1, WEIR_FOREVER, START), 0);
    assert_int_equal(weir_sweep_at(w, ALL, START + 9), 0);
    assert_int_equal(weir_sweep_at(w, ALL, START + 10), 1);
    assert_int_equal(unit_stats(w).blocks, 1);
    assert_int_equal(unit_check(w, "y", 1, START + WEIR_HOUR).verdict, WEIR_DENY);
    weir_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(an_older_caller_gets_only_the_fields_it_knows),
        cmocka_unit_test(each_call_counts_once_and_peeks_do_not),
        cmocka_unit_test(denials_in_shadow_are_counted_apart),
        cmocka_unit_test(refused_calls_are_not_counted),
        cmocka_unit_test(blocked_calls_count_as_denied_and_blocked),
        cmocka_unit_test(a_sweep_frees_exactly_what_is_as_good_as_new),
        cmocka_unit_test(a_sweep_by_a_lagging_clock_frees_nobody_who_is_throttled),
        cmocka_unit_test(a_sweep_visits_as_many_lines_as_it_is_told),
        cmocka_unit_test(a_sweep_frees_blocks_that_have_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
