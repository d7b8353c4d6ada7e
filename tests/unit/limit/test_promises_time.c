/*
 * The promises of the design, P4 to P6, each over all algorithms: what is not
 * written, who does not matter, and clocks that do not agree.
 */
#include "limit/limiter.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>

#define START (100 * WEIR_SECOND)

/* Mostly bursts, now and then an idle of up to two periods. */
static uint64_t next_time(uint64_t now, uint64_t period, uint64_t *seed)
{
    uint64_t r = unit_random(seed);
    if (r % 10 < 6) {
        return now + r / 16 % (period / 50);
    }
    return now + (r % 10 == 6 ? r / 16 % (2 * period) : r / 16 % (period / 5));
}

/* ---- P4 ---- */

/* Everything but the locks, which denied calls take as well. */
static void forget_locks(const struct weir *w, unsigned char *copy)
{
    size_t stripes = (size_t)((unsigned char *)w->table.stripes - (unsigned char *)w->region->head);
    memset(copy + stripes, 0, (w->table.stripe_mask + 1) * sizeof(struct lock));
}

static unsigned char *copy_of(const struct weir *w)
{
    unsigned char *copy = malloc(w->region->bytes);
    assert_non_null(copy);
    memcpy(copy, w->region->head, w->region->bytes);
    forget_locks(w, copy);
    return copy;
}

static void assert_unchanged(const struct weir *w, unsigned char *copy)
{
    unsigned char *after = copy_of(w);
    assert_memory_equal(after, copy, w->region->bytes);
    free(after);
    free(copy);
}

static void denied_and_peeked_calls(struct weir *w, int algorithm)
{
    struct weir_answer a;
    struct weir_question up_to = unit_question("k", 3, WEIR_UP_TO);
    assert_int_equal(unit_drain(w, "k", START), 5);
    unsigned char *copy = copy_of(w);
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t now = START + i * (WEIR_MILLISECOND / 10);
        assert_int_equal(unit_check(w, "k", 1, now).verdict, WEIR_DENY);
        assert_int_equal(unit_check(w, "k", 6, now).verdict, WEIR_NEVER);
        assert_int_equal(unit_check(w, "new", 6, now).verdict, WEIR_NEVER);
        assert_int_equal(unit_ask(w, &up_to, now).verdict, WEIR_DENY);
        (void)unit_peek(w, "k", i, now);
        (void)unit_peek(w, "new", i, now);
        (void)unit_peek(w, "k", 0, now + 10 * WEIR_SECOND);
        assert_int_equal(weir_check_at(w, "k", 1, 0, now, &a), WEIR_ECOST);
    }
    assert_unchanged(w, copy);
}

static void p4_a_denied_or_peeked_call_writes_nothing(void **state)
{
    unit_each(5, WEIR_SECOND, denied_and_peeked_calls);
}

/* The first peek pulls it down (test_set_back.c); the others find nothing to do. */
static void p4_a_peek_of_a_far_future_state_writes_once(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], 5, WEIR_SECOND);
        (void)unit_drain(w, "k", START + WEIR_HOUR);
        struct weir_answer first = unit_peek(w, "k", 1, START);
        unsigned char *copy = copy_of(w);
        struct weir_answer second = unit_peek(w, "k", 1, START);
        unit_assert_same(&first, &second);
        assert_unchanged(w, copy);
        weir_close(w);
    }
}

/* ---- P5 ---- */

static void p5_no_key_influences_another(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *alone = unit_limit(unit_algorithms[i], 5, WEIR_SECOND);
        struct weir *crowd = unit_limit(unit_algorithms[i], 5, WEIR_SECOND);
        uint64_t seed = 17;
        uint64_t now = START;
        for (uint64_t n = 0; n < unit_scale(5000); n++) {
            char other[24];
            now = next_time(now, WEIR_SECOND, &seed);
            for (int j = 0; j < 4; j++) {
                (void)snprintf(other, sizeof other, "k%u", (unsigned)(unit_random(&seed) % 300));
                (void)unit_check(crowd, other, 1 + unit_random(&seed) % 5, now);
            }
            uint64_t cost = 1 + unit_random(&seed) % 4;
            struct weir_answer a = unit_check(alone, "k", cost, now);
            struct weir_answer b = unit_check(crowd, "k", cost, now);
            unit_assert_same(&a, &b);
        }
        weir_close(alone);
        weir_close(crowd);
    }
}

static void p5_keys_are_bytes_and_their_length_counts(void **state)
{
    static const char bytes[] = "a\0b\0\0";
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 1, WEIR_HOUR);
    struct weir_answer a;
    for (size_t len = 1; len <= 5; len++) {
        assert_int_equal(weir_check_at(w, bytes, len, 1, START, &a), 0);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        assert_int_equal(weir_check_at(w, bytes, len, 1, START, &a), 0);
        assert_int_equal(a.verdict, WEIR_DENY);
    }
    weir_close(w);
}

/* ---- P6 ---- */

/* Two callers whose clocks differ by a second, against one whose clock is the later one. */
static void skewed_callers(struct weir *w, int algorithm)
{
    struct weir *truth = unit_limit(algorithm, 5, 3 * WEIR_SECOND);
    uint64_t seed = 23;
    uint64_t now = START;
    uint64_t skewed = 0;
    uint64_t exact = 0;
    for (uint64_t i = 0; i < unit_scale(20000); i++) {
        now += unit_random(&seed) % (300 * WEIR_MILLISECOND);
        uint64_t lag = unit_random(&seed) % (WEIR_SECOND + 1);
        skewed += unit_check(w, "k", 1, now - lag).granted;
        exact += unit_check(truth, "k", 1, now).granted;
    }
    /* Nothing is minted: what lags can only be granted later, one quota at the end. */
    assert_true(skewed <= exact + 5);
    assert_true(skewed + 5 >= exact - exact / 10);
    weir_close(truth);
}

static void p6_a_skew_of_a_second_mints_nothing(void **state)
{
    unit_each(5, 3 * WEIR_SECOND, skewed_callers);
}

static void lagging_caller(struct weir *w, int algorithm)
{
    assert_int_equal(unit_drain(w, "k", START), 5);
    struct weir_answer on_time = unit_peek(w, "k", 1, START);
    for (uint64_t lag = 1; lag <= WEIR_SECOND; lag += 99999999) {
        struct weir_answer late = unit_check(w, "k", 1, START - lag);
        assert_int_equal(late.verdict, WEIR_DENY);
        assert_int_equal(late.remaining, 0);
        assert_int_equal(late.retry_after_ns, on_time.retry_after_ns + lag);
    }
}

static void p6_a_lagging_caller_is_delayed_by_its_lag_and_no_more(void **state)
{
    unit_each(5, WEIR_MINUTE, lagging_caller);
}

static void older_time(struct weir *w, int algorithm)
{
    (void)unit_check(w, "k", 3, START);
    struct weir_answer before = unit_peek(w, "k", 1, START + WEIR_SECOND);
    (void)unit_check(w, "k", 3, START - WEIR_SECOND / 2);
    (void)unit_peek(w, "k", 1, START - WEIR_SECOND);
    struct weir_answer after = unit_peek(w, "k", 1, START + WEIR_SECOND);
    unit_assert_same(&before, &after);
}

static void p6_a_call_with_an_older_time_never_moves_a_state_back(void **state)
{
    unit_each(5, WEIR_MINUTE, older_time);
}

/* The clock was an hour fast; now it is right. */
static void step_back(struct weir *w, int algorithm)
{
    assert_int_equal(unit_drain(w, "k", START + WEIR_HOUR), 5);
    struct weir_answer p;
    assert_int_equal(weir_penalize_at(w, "k", 1, 100, START + WEIR_HOUR, &p), 0);
    uint64_t now = START;
    uint64_t extra = unit_drain(w, "k", now);
    assert_true(extra <= 5);
    struct weir_answer a = unit_check(w, "k", 1, now);
    assert_int_equal(a.verdict, WEIR_DENY);
    /* Time to full and the debt on top: the default debt is another quota. */
    assert_true(a.retry_after_ns <= 2 * WEIR_MINUTE);
    assert_true(a.reset_after_ns <= 2 * WEIR_MINUTE);
    now += a.retry_after_ns;
    assert_int_equal(unit_check(w, "k", 1, now).verdict, WEIR_ALLOW);
}

static void p6_after_a_large_step_back_nobody_is_locked_out_for_long(void **state)
{
    unit_each(5, WEIR_MINUTE, step_back);
}

static void every_step(struct weir *w, int algorithm)
{
    for (uint64_t step = 1; step < WEIR_DAY; step = step * 3 + 1) {
        char key[32];
        (void)snprintf(key, sizeof key, "step %llu", (unsigned long long)step);
        assert_int_equal(unit_drain(w, key, START + WEIR_DAY), 5);
        uint64_t now = START + WEIR_DAY - step;
        assert_true(unit_drain(w, key, now) <= 5);
        struct weir_answer a = unit_peek(w, key, 1, now);
        assert_int_equal(a.verdict, WEIR_DENY);
        assert_true(a.retry_after_ns <= 2 * WEIR_MINUTE + WEIR_SECOND);
        assert_int_equal(unit_check(w, key, 1, now + a.retry_after_ns).verdict, WEIR_ALLOW);
    }
}

static void p6_a_step_back_of_any_size_costs_at_most_one_quota_either_way(void **state)
{
    unit_each(5, WEIR_MINUTE, every_step);
}

static void step_forward(struct weir *w, int algorithm)
{
    assert_int_equal(unit_drain(w, "k", START), 5);
    assert_int_equal(unit_drain(w, "k", START + 365 * WEIR_DAY), 5);
}

static void p6_a_step_forward_gives_one_quota(void **state)
{
    unit_each(5, WEIR_MINUTE, step_forward);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p4_a_denied_or_peeked_call_writes_nothing),
        cmocka_unit_test(p4_a_peek_of_a_far_future_state_writes_once),
        cmocka_unit_test(p5_no_key_influences_another),
        cmocka_unit_test(p5_keys_are_bytes_and_their_length_counts),
        cmocka_unit_test(p6_a_skew_of_a_second_mints_nothing),
        cmocka_unit_test(p6_a_lagging_caller_is_delayed_by_its_lag_and_no_more),
        cmocka_unit_test(p6_a_call_with_an_older_time_never_moves_a_state_back),
        cmocka_unit_test(p6_after_a_large_step_back_nobody_is_locked_out_for_long),
        cmocka_unit_test(p6_a_step_back_of_any_size_costs_at_most_one_quota_either_way),
        cmocka_unit_test(p6_a_step_forward_gives_one_quota),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
