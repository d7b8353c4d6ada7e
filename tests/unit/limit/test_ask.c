/* Asking: modes, waits, hashed keys, keys and costs that are refused, and the clock. */
#include "base/hash.h"
#include "support/engine/unit_limiter.h"

#include <stdlib.h>

#define START (100 * WEIR_SECOND)

static struct weir *bucket(void)
{
    return unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND);
}

/* ---- errors ---- */

static void null_arguments_are_refused(void **state)
{
    struct weir *w = bucket();
    struct weir_answer a;
    struct weir_question ask = unit_question("k", 1, WEIR_CHECK);
    struct weir_key key;
    uint64_t now;
    assert_int_equal(weir_check(NULL, "k", 1, 1, &a), WEIR_EINVAL);
    assert_int_equal(weir_check_at(NULL, "k", 1, 1, START, &a), WEIR_EINVAL);
    assert_int_equal(weir_check_at(w, "k", 1, 1, START, NULL), WEIR_EINVAL);
    assert_int_equal(weir_check_at(w, NULL, 1, 1, START, &a), WEIR_EKEY);
    assert_int_equal(weir_ask(NULL, &ask, &a), WEIR_EINVAL);
    assert_int_equal(weir_ask_at(NULL, &ask, START, &a), WEIR_EINVAL);
    assert_int_equal(weir_ask_at(w, NULL, START, &a), WEIR_EINVAL);
    assert_int_equal(weir_ask_at(w, &ask, START, NULL), WEIR_EINVAL);
    ask.key = NULL;
    assert_int_equal(weir_ask_at(w, &ask, START, &a), WEIR_EKEY);
    assert_int_equal(weir_key_init(NULL, "k", 1, &key), WEIR_EINVAL);
    assert_int_equal(weir_key_init(w, "k", 1, NULL), WEIR_EINVAL);
    assert_int_equal(weir_key_init(w, NULL, 1, &key), WEIR_EKEY);
    assert_int_equal(weir_now(NULL, &now), WEIR_EINVAL);
    assert_int_equal(weir_now(w, NULL), WEIR_EINVAL);
    weir_close(w);
}

static void keys_have_1_to_4096_bytes(void **state)
{
    struct weir *w = bucket();
    struct weir_answer a;
    struct weir_key hashed;
    char *key = calloc(1, WEIR_KEY_MAX + 1);
    const size_t bad[] = {0, WEIR_KEY_MAX + 1, SIZE_MAX};
    for (int i = 0; i < 3; i++) {
        struct weir_question ask = {.key = key, .key_len = bad[i], .cost = 1};
        assert_int_equal(weir_check_at(w, key, bad[i], 1, START, &a), WEIR_EKEY);
        assert_int_equal(weir_ask_at(w, &ask, START, &a), WEIR_EKEY);
        assert_int_equal(weir_key_init(w, key, bad[i], &hashed), WEIR_EKEY);
        assert_int_equal(weir_unblock(w, key, bad[i]), WEIR_EKEY);
        assert_int_equal(weir_reset(w, key, bad[i]), WEIR_EKEY);
        assert_int_equal(weir_block_at(w, key, bad[i], WEIR_FOREVER, START), WEIR_EKEY);
        assert_int_equal(weir_penalize_at(w, key, bad[i], 1, START, NULL), WEIR_EKEY);
        assert_int_equal(weir_refund_at(w, key, bad[i], 1, START, START, NULL), WEIR_EKEY);
    }
    assert_int_equal(unit_stats(w).keys, 0);
    assert_int_equal(weir_check_at(w, key, 1, 1, START, &a), 0);
    assert_int_equal(weir_check_at(w, key, WEIR_KEY_MAX, 1, START, &a), 0);
    assert_int_equal(unit_stats(w).keys, 2);
    free(key);
    weir_close(w);
}

static void a_cost_of_0_is_an_error_except_for_a_peek(void **state)
{
    struct weir *w = bucket();
    struct weir_answer a;
    struct weir_question ask = unit_question("k", 0, WEIR_CHECK);
    assert_int_equal(weir_check_at(w, "k", 1, 0, START, &a), WEIR_ECOST);
    assert_int_equal(weir_ask_at(w, &ask, START, &a), WEIR_ECOST);
    ask.mode = WEIR_UP_TO;
    assert_int_equal(weir_ask_at(w, &ask, START, &a), WEIR_ECOST);
    a = unit_peek(w, "k", 0, START);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.remaining, 10);
    assert_int_equal(unit_stats(w).allowed + unit_stats(w).keys, 0);
    weir_close(w);
}

static void bad_modes_and_flags_are_refused(void **state)
{
    struct weir *w = bucket();
    struct weir_answer a;
    const int bad[] = {-1, 3, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        struct weir_question ask = unit_question("k", 1, bad[i]);
        assert_int_equal(weir_ask_at(w, &ask, START, &a), WEIR_EINVAL);
    }
    struct weir_question ask = unit_question("k", 1, WEIR_CHECK);
    ask.flags = WEIR_SHADOW << 1;
    assert_int_equal(weir_ask_at(w, &ask, START, &a), WEIR_EINVAL);
    ask = unit_question("k", 1, WEIR_UP_TO);
    ask.max_wait_ns = 1;
    assert_int_equal(weir_ask_at(w, &ask, START, &a), WEIR_EINVAL);
    assert_int_equal(unit_stats(w).keys, 0);
    weir_close(w);
}

static void short_forms_are_errors_with_explicit_time(void **state)
{
    struct weir *w = bucket();
    struct weir_answer a;
    struct weir_question ask = unit_question("k", 1, WEIR_CHECK);
    struct weir_reservation r;
    uint64_t now;
    assert_int_equal(weir_check(w, "k", 1, 1, &a), WEIR_EINVAL);
    assert_int_equal(weir_ask(w, &ask, &a), WEIR_EINVAL);
    assert_int_equal(weir_ask_batch(w, &ask, 1, &a, NULL), WEIR_EINVAL);
    assert_int_equal(weir_check_several(&(struct weir_part){w, ask}, 1, &a), WEIR_EINVAL);
    assert_int_equal(weir_refund(w, "k", 1, 1, &a), WEIR_EINVAL);
    assert_int_equal(weir_penalize(w, "k", 1, 1, &a), WEIR_EINVAL);
    assert_int_equal(weir_block(w, "k", 1, WEIR_FOREVER), WEIR_EINVAL);
    assert_int_equal(weir_reserve(w, "k", 1, 1, 1, &r, &a), WEIR_EINVAL);
    assert_int_equal(weir_settle(w, &r, 1, &a), WEIR_EINVAL);
    assert_int_equal(weir_cancel(w, &r, &a), WEIR_EINVAL);
    assert_int_equal(weir_sweep(w, 1), WEIR_EINVAL);
    assert_int_equal(weir_now(w, &now), WEIR_EINVAL);
    weir_close(w);
}

static void times_outside_the_line_are_errors(void **state)
{
    const uint64_t bad[] = {(uint64_t)INT64_MAX + 1, UINT64_MAX};
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], 5, WEIR_SECOND);
        struct weir_answer a;
        for (int j = 0; j < 2; j++) {
            assert_int_equal(weir_check_at(w, "k", 1, 1, bad[j], &a), WEIR_ETIME);
            assert_int_equal(weir_sweep_at(w, 1, bad[j]), WEIR_ETIME);
        }
        assert_int_equal(unit_stats(w).keys, 0);
        weir_close(w);
    }
}

/* ---- up to ---- */

static void take_up_to(struct weir *w, int algorithm)
{
    struct weir_question ask = unit_question("k", 7, WEIR_UP_TO);
    assert_int_equal(unit_ask(w, &ask, START).granted, 7);
    struct weir_answer a = unit_ask(w, &ask, START);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.granted, 3);
    assert_int_equal(a.remaining, 0);
    a = unit_ask(w, &ask, START);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.granted, 0);
    /* The retry is that of a single unit. */
    assert_int_equal(a.retry_after_ns, unit_peek(w, "k", 1, START).retry_after_ns);
    assert_true(unit_ask(w, &ask, START + a.retry_after_ns).granted >= 1);
}

static void up_to_takes_what_there_is_and_denies_only_if_there_is_none(void **state)
{
    unit_each(10, WEIR_MINUTE, take_up_to);
}

static void take_more_than_the_quota(struct weir *w, int algorithm)
{
    const uint64_t costs[] = {11, UINT64_C(1) << 32, UINT64_MAX};
    for (int i = 0; i < 3; i++) {
        struct weir_question ask = unit_question(&"abc"[i], costs[i], WEIR_UP_TO);
        assert_int_equal(unit_ask(w, &ask, START).granted, 10);
        assert_int_equal(unit_ask(w, &ask, START).verdict, WEIR_DENY);
    }
}

static void up_to_more_than_the_quota_is_the_quota_not_never(void **state)
{
    unit_each(10, WEIR_MINUTE, take_more_than_the_quota);
}

static void up_to_more_than_the_quota_on_a_blocked_key_is_denied_not_never(void **state)
{
    struct weir *w = bucket();
    struct weir_question ask = unit_question("k", 1000, WEIR_UP_TO);
    assert_int_equal(weir_block_at(w, "k", 1, START + WEIR_SECOND, START), 0);
    struct weir_answer a = unit_ask(w, &ask, START);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.retry_after_ns, WEIR_SECOND);
    weir_close(w);
}

/* ---- waiting ---- */

static void only_buckets_can_wait(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], 5, WEIR_SECOND);
        struct weir_answer a;
        struct weir_question ask = unit_question("k", 1, WEIR_CHECK);
        ask.max_wait_ns = 1;
        bool waits = unit_algorithms[i] <= WEIR_LEAKY_BUCKET;
        assert_int_equal(weir_ask_at(w, &ask, START, &a), waits ? 0 : WEIR_ENOTSUP);
        weir_close(w);
    }
}

/* A delay never exceeds the caller's patience; later callers wait for the units charged. */
static void a_delay_is_at_most_max_wait(void **state)
{
    const uint64_t counts[] = {1, 3, 7, 9, 11, 999983};
    uint64_t seed = 29;
    for (uint64_t i = 0; i < unit_scale(6000); i++) {
        struct weir_options o = unit_options(1 + i % 2, counts[i / 2 % 6], WEIR_SECOND);
        o.queue = i % 2 == 0 ? 0 : unit_random(&seed) % 3;
        o.burst = i % 2 == 0 ? 1 + unit_random(&seed) % 3 : 0;
        o.max_debt = unit_random(&seed) % 4;
        o.max_keys = 1;
        struct weir *w = unit_open(&o);
        struct weir_question ask = unit_question("k", 1, WEIR_CHECK);
        struct weir_answer a = unit_ask(w, &ask, START);
        for (int j = 0; j < 5; j++) {
            ask.max_wait_ns = WEIR_FOREVER;
            struct weir_question peek = ask;
            peek.mode = WEIR_PEEK;
            uint64_t delay = unit_ask(w, &peek, START).delay_ns;
            ask.max_wait_ns = delay > 2 && j % 2 == 0 ? delay - unit_random(&seed) % 2 : 1 + delay;
            a = unit_ask(w, &ask, START);
            assert_true(a.delay_ns <= ask.max_wait_ns);
        }
        weir_close(w);
    }
}

static void the_last_fraction_of_the_debt_does_not_exceed_max_wait(void **state)
{
    struct weir_options o = unit_options(WEIR_LEAKY_BUCKET, 9, WEIR_SECOND);
    o.queue = 0;
    o.max_debt = 1;
    struct weir *w = unit_open(&o);
    struct weir_question ask = unit_question("k", 1, WEIR_CHECK);
    assert_int_equal(unit_ask(w, &ask, START).verdict, WEIR_ALLOW);
    ask.max_wait_ns = 111111111; /* its turn comes after 111,111,111.25 ns */
    assert_int_equal(unit_ask(w, &ask, START).verdict, WEIR_DENY);
    ask.max_wait_ns++;
    assert_int_equal(unit_ask(w, &ask, START).delay_ns, 111111112);
    weir_close(w);
}

static void later_calls_see_what_a_waiting_call_was_charged(void **state)
{
    struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 1, WEIR_SECOND);
    o.max_debt = 3;
    struct weir *w = unit_open(&o);
    struct weir_question ask = unit_question("k", 1, WEIR_CHECK);
    ask.max_wait_ns = WEIR_HOUR;
    for (uint64_t i = 0; i <= 3; i++) {
        struct weir_answer a = unit_ask(w, &ask, START);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        assert_int_equal(a.delay_ns, i * WEIR_SECOND);
    }
    struct weir_answer a = unit_ask(w, &ask, START);
    assert_int_equal(a.verdict, WEIR_DENY); /* the debt is at its bound */
    assert_int_equal(a.retry_after_ns, WEIR_SECOND);
    assert_int_equal(unit_check(w, "k", 1, START).retry_after_ns, 4 * WEIR_SECOND);
    assert_int_equal(unit_check(w, "k", 1, START + 4 * WEIR_SECOND).verdict, WEIR_ALLOW);
    weir_close(w);
}

static void patience(struct weir_options *o, int algorithm)
{
    struct weir *w = unit_open(o);
    struct weir_question ask = unit_question("k", 1, WEIR_CHECK);
    uint64_t seed = 31;
    uint64_t now = START;
    for (uint64_t i = 0; i < unit_scale(5000); i++) {
        now += unit_random(&seed) % (400 * WEIR_MILLISECOND);
        ask.cost = 1 + unit_random(&seed) % 3;
        ask.max_wait_ns = 1 + unit_random(&seed) % (2 * WEIR_SECOND);
        struct weir_question peek = ask;
        peek.mode = WEIR_PEEK;
        struct weir_answer said = unit_ask(w, &peek, now);
        struct weir_answer a = unit_ask(w, &ask, now);
        assert_int_equal(said.verdict, a.verdict);
        assert_int_equal(said.delay_ns, a.delay_ns);
        assert_int_equal(said.retry_after_ns, a.retry_after_ns);
        if (a.verdict == WEIR_DENY) {
            assert_int_equal(unit_ask(w, &peek, now + a.retry_after_ns - 1).verdict, WEIR_DENY);
            assert_int_equal(unit_ask(w, &peek, now + a.retry_after_ns).verdict, WEIR_ALLOW);
        }
    }
    weir_close(w);
}

static void a_peek_with_max_wait_says_what_the_check_will_say(void **state)
{
    struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 3, WEIR_SECOND);
    patience(&o, WEIR_TOKEN_BUCKET);
    o = unit_options(WEIR_LEAKY_BUCKET, 3, WEIR_SECOND);
    patience(&o, WEIR_LEAKY_BUCKET);
}

static void leaky_bucket_answers_with_the_turn_of_each_call(void **state)
{
    struct weir *w = unit_limit(WEIR_LEAKY_BUCKET, 4, 4 * WEIR_SECOND);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(unit_peek(w, "k", 1, START).delay_ns, i * WEIR_SECOND);
        assert_int_equal(unit_check(w, "k", 1, START).delay_ns, i * WEIR_SECOND);
    }
    assert_int_equal(unit_check(w, "k", 1, START).verdict, WEIR_DENY);
    weir_close(w);
}

static void a_never_carries_no_delay_even_for_an_indebted_key(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], 5, WEIR_SECOND);
        assert_int_equal(weir_penalize_at(w, "k", 1, 10, START, NULL), 0);
        assert_int_equal(unit_check(w, "k", 6, START).delay_ns, 0);
        assert_int_equal(unit_peek(w, "k", 6, START).delay_ns, 0);
        weir_close(w);
    }
}

/* ---- hashed keys ---- */

static void a_hashed_key_is_the_key(void **state)
{
    for (int hash = WEIR_SIPHASH; hash <= (hash_has_xxh3 ? WEIR_XXH3 : WEIR_SIPHASH); hash++) {
        struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 10, WEIR_HOUR);
        o.hash = hash;
        struct weir *w = unit_open(&o);
        struct weir_key key;
        assert_int_equal(weir_key_init(w, "alice", 5, &key), 0);
        struct weir_question ask = {.hashed = &key, .cost = 4};
        assert_int_equal(unit_check(w, "alice", 3, START).remaining, 7);
        assert_int_equal(unit_ask(w, &ask, START).remaining, 3);
        ask.key = "bob"; /* the hashed key wins */
        ask.key_len = 3;
        assert_int_equal(unit_ask(w, &ask, START).verdict, WEIR_DENY);
        assert_int_equal(unit_check(w, "alice", 3, START).remaining, 0);
        weir_close(w);
    }
}

static void fetching_memory_ahead_changes_nothing(void **state)
{
    struct weir *w = bucket();
    struct weir *other = bucket();
    struct weir_key key;
    assert_int_equal(weir_key_init(w, "alice", 5, &key), 0);
    weir_key_prefetch(NULL, &key);
    weir_key_prefetch(w, NULL);
    weir_key_prefetch(other, &key);
    weir_key_prefetch(w, &key);
    assert_int_equal(unit_stats(w).keys + unit_stats(other).keys, 0);
    struct weir_question ask = {.hashed = &key, .cost = 1};
    assert_int_equal(unit_ask(w, &ask, START).verdict, WEIR_ALLOW);
    weir_close(other);
    weir_close(w);
}

static void a_hashed_key_of_another_limiter_is_stale(void **state)
{
    struct weir *w = bucket();
    struct weir *other = bucket();
    struct weir_answer a;
    struct weir_key key;
    struct weir_key zero = {{0, 0, 0}};
    struct weir_question ask = {.hashed = &key, .cost = 1};
    assert_int_equal(weir_key_init(other, "k", 1, &key), 0);
    assert_int_equal(weir_ask_at(w, &ask, START, &a), WEIR_ESTALE);
    assert_int_equal(weir_ask_at(other, &ask, START, &a), 0);
    ask.hashed = &zero;
    assert_int_equal(weir_ask_at(w, &ask, START, &a), WEIR_ESTALE);
    assert_int_equal(unit_stats(w).keys, 0);
    weir_close(w);
    weir_close(other);
}

/* ---- the clock ---- */

static uint64_t told(void *arg)
{
    return *(uint64_t *)arg;
}

static void the_short_forms_use_the_clock_that_was_given(void **state)
{
    uint64_t now = 1700000000 * WEIR_SECOND;
    uint64_t seen;
    struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 1, WEIR_SECOND);
    o.flags = 0;
    o.clock = told;
    o.clock_arg = &now;
    struct weir *w = unit_open(&o);
    struct weir_answer a;
    struct weir_question ask = unit_question("k", 1, WEIR_CHECK);
    assert_int_equal(weir_now(w, &seen), 0);
    assert_int_equal(seen, now);
    assert_int_equal(weir_check(w, "k", 1, 1, &a), 0);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(weir_ask(w, &ask, &a), 0);
    assert_int_equal(a.retry_after_ns, WEIR_SECOND);
    now += WEIR_SECOND;
    assert_int_equal(weir_ask(w, &ask, &a), 0);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    now = UINT64_MAX;
    assert_int_equal(weir_check(w, "k", 1, 1, &a), WEIR_ETIME);
    weir_close(w);
}

static void the_own_clock_is_unix_time_and_explicit_times_are_on_its_line(void **state)
{
    struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 1, WEIR_HOUR);
    o.flags = 0;
    struct weir *w = unit_open(&o);
    struct weir_answer a;
    uint64_t first;
    uint64_t second;
    assert_int_equal(weir_now(w, &first), 0);
    assert_true(first > 1600000000 * WEIR_SECOND);
    assert_int_equal(weir_check(w, "k", 1, 1, &a), 0);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(weir_now(w, &second), 0);
    assert_true(second >= first);
    a = unit_check(w, "k", 1, first + WEIR_HOUR - WEIR_SECOND);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_true(a.retry_after_ns <= WEIR_SECOND + (second - first));
    weir_close(w);
}

/* The line of explicit times begins at 0, any other a day before the limiter was made. */
static void the_time_line_begins_a_day_before_the_limiter(void **state)
{
    struct weir *w = bucket();
    assert_int_equal(unit_drain(w, "k", 0), 10);
    weir_close(w);
    uint64_t made = 1700000000 * WEIR_SECOND;
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir_options o = unit_options(unit_algorithms[i], 10, WEIR_SECOND);
        struct weir_answer a;
        o.flags = 0;
        o.clock = told;
        o.clock_arg = &made;
        w = unit_open(&o);
        assert_int_equal(unit_drain(w, "k", made - WEIR_DAY), 10);
        assert_int_equal(unit_drain(w, "k", made), 10);
        assert_int_equal(weir_check_at(w, "k", 1, 1, made - WEIR_DAY - 1, &a), WEIR_ETIME);
        assert_int_equal(weir_check_at(w, "k", 1, 1, 0, &a), WEIR_ETIME);
        weir_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_arguments_are_refused),
        cmocka_unit_test(keys_have_1_to_4096_bytes),
        cmocka_unit_test(a_cost_of_0_is_an_error_except_for_a_peek),
        cmocka_unit_test(bad_modes_and_flags_are_refused),
        cmocka_unit_test(short_forms_are_errors_with_explicit_time),
        cmocka_unit_test(times_outside_the_line_are_errors),
        cmocka_unit_test(up_to_takes_what_there_is_and_denies_only_if_there_is_none),
        cmocka_unit_test(up_to_more_than_the_quota_is_the_quota_not_never),
        cmocka_unit_test(up_to_more_than_the_quota_on_a_blocked_key_is_denied_not_never),
        cmocka_unit_test(only_buckets_can_wait),
        cmocka_unit_test(a_delay_is_at_most_max_wait),
        cmocka_unit_test(the_last_fraction_of_the_debt_does_not_exceed_max_wait),
        cmocka_unit_test(later_calls_see_what_a_waiting_call_was_charged),
        cmocka_unit_test(a_peek_with_max_wait_says_what_the_check_will_say),
        cmocka_unit_test(leaky_bucket_answers_with_the_turn_of_each_call),
        cmocka_unit_test(a_never_carries_no_delay_even_for_an_indebted_key),
        cmocka_unit_test(a_hashed_key_is_the_key),
        cmocka_unit_test(fetching_memory_ahead_changes_nothing),
        cmocka_unit_test(a_hashed_key_of_another_limiter_is_stale),
        cmocka_unit_test(the_short_forms_use_the_clock_that_was_given),
        cmocka_unit_test(the_own_clock_is_unix_time_and_explicit_times_are_on_its_line),
        cmocka_unit_test(the_time_line_begins_a_day_before_the_limiter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
