/* Changing count and burst of a live limiter. */
#include "support/engine/unit_limiter.h"

#include <stdlib.h>

#define START (120 * WEIR_SECOND)

static uint64_t second_argument(int algorithm, uint64_t quota)
{
    return algorithm == WEIR_TOKEN_BUCKET ? quota : algorithm == WEIR_LEAKY_BUCKET ? quota - 1 : 0;
}

static void change(struct weir *w, int algorithm, uint64_t quota)
{
    struct weir_error error = {0, ""};
    int e = weir_change(w, quota, second_argument(algorithm, quota), &error);
    if (e != 0) {
        fail_msg("weir_change to %d: %s", (int)quota, error.text);
    }
}

static void assert_refused(struct weir *w, uint64_t count, uint64_t second, int code,
                           const char *words)
{
    struct weir_error error = {0, ""};
    struct weir_answer before = unit_peek(w, "k", 1, START);
    assert_int_equal(weir_change(w, count, second, &error), code);
    assert_int_equal(error.code, code);
    if (strstr(error.text, words) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", error.text, words);
    }
    assert_int_equal(weir_change(w, count, second, NULL), code);
    struct weir_answer after = unit_peek(w, "k", 1, START);
    unit_assert_same(&before, &after);
}

static void bad_changes_are_refused_and_change_nothing(void **state)
{
    struct weir_error error;
    assert_int_equal(weir_change(NULL, 1, 1, &error), WEIR_EINVAL);
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], 10, WEIR_SECOND);
        (void)unit_check(w, "k", 3, START);
        assert_refused(w, 0, 0, WEIR_ERATE, "count is 0");
        if (unit_algorithms[i] > WEIR_LEAKY_BUCKET) {
            assert_refused(w, 10, 1, WEIR_EINVAL, "neither burst nor queue");
            assert_refused(w, UINT64_MAX, 0, WEIR_EQUOTA, "expected at most");
        } else {
            assert_refused(w, UINT64_MAX, 1, WEIR_ERATE, "expected at most 1,000,000,000");
            assert_refused(w, 10000000, 1, WEIR_ERATE, "finer time unit");
            assert_refused(w, 10, UINT64_MAX, WEIR_EQUOTA, "expected at most");
        }
        weir_close(w);
    }
}

static void a_log_cannot_grow_beyond_its_first_count(void **state)
{
    struct weir *w = unit_limit(WEIR_SLIDING_LOG, 10, WEIR_SECOND);
    (void)unit_check(w, "k", 3, START);
    assert_refused(w, 11, 0, WEIR_EQUOTA, "count 11 is too large for this limiter's log");
    change(w, WEIR_SLIDING_LOG, 4);
    assert_int_equal(unit_peek(w, "k", 1, START).remaining, 1);
    change(w, WEIR_SLIDING_LOG, 10);
    assert_int_equal(unit_peek(w, "k", 1, START).remaining, 7);
    weir_close(w);
}

static void keep_state(struct weir *w, int algorithm)
{
    (void)unit_check(w, "k", 4, START);
    change(w, algorithm, 8);
    struct weir_answer a = unit_peek(w, "k", 1, START);
    assert_int_equal(a.quota, 8);
    assert_true(a.remaining < 8);
    assert_int_equal(unit_peek(w, "fresh", 9, START).verdict, WEIR_NEVER);
    assert_int_equal(unit_drain(w, "fresh", START), 8);
    if (algorithm > WEIR_LEAKY_BUCKET) {
        assert_int_equal(a.remaining, 4); /* counters count units, whatever the quota */
    }
}

static void keys_keep_their_state_and_the_new_quota_holds_at_once(void **state)
{
    unit_each(10, WEIR_MINUTE, keep_state);
}

/* From any state, through any change: one extra quota at most. */
static void gain(struct weir *w, int algorithm)
{
    static const uint64_t quotas[] = {10, 1, 9, 2, 10, 5, 1, 10};
    for (int used = 0; used <= 10; used++) {
        char key[2] = {(char)('a' + used), 0};
        change(w, algorithm, 10);
        if (used > 0) {
            (void)unit_check(w, key, used, START);
        }
        for (int i = 0; i < 8; i++) {
            uint64_t left = unit_peek(w, key, 1, START).remaining;
            change(w, algorithm, quotas[i]);
            assert_true(unit_peek(w, key, 1, START).remaining <= left + quotas[i]);
            assert_true(unit_peek(w, key, 1, START).remaining <= quotas[i]);
        }
    }
}

static void a_change_gives_at_most_one_extra_quota(void **state)
{
    unit_each(10, WEIR_MINUTE, gain);
}

/* Rate and quota change by up to a thousand; a key that had used all is let in soon enough. */
static void change_and_wait(int algorithm, uint64_t before, uint64_t count, uint64_t quota,
                            bool debt)
{
    struct weir_options o = unit_options(algorithm, before, 100 * WEIR_SECOND);
    o.max_debt = debt ? 0 : WEIR_NO_DEBT;
    struct weir *w = unit_open(&o);
    (void)unit_drain(w, "k", START);
    assert_int_equal(weir_penalize_at(w, "k", 1, UINT64_MAX, START, NULL), 0);
    assert_int_equal(weir_change(w, count, second_argument(algorithm, quota), NULL), 0);
    uint64_t full = 100 * WEIR_SECOND / count * quota * (debt ? 2 : 1);
    struct weir_answer a = unit_check(w, "k", 1, START);
    assert_true(a.retry_after_ns <= full + WEIR_SECOND);
    assert_int_equal(unit_check(w, "k", 1, START + a.retry_after_ns).verdict, WEIR_ALLOW);
    weir_close(w);
}

static void nobody_is_locked_out_for_longer_than_the_new_time_to_full(void **state)
{
    const uint64_t rates[] = {1, 10, 1000};
    for (int i = 0; i < 27; i++) {
        for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_FIXED_WINDOW; algorithm++) {
            uint64_t count = rates[i / 3 % 3];
            uint64_t quota = algorithm == WEIR_FIXED_WINDOW ? count : rates[i / 9 % 3];
            change_and_wait(algorithm, rates[i % 3], count, quota, false);
            change_and_wait(algorithm, rates[i % 3], count, quota, true);
        }
    }
}

static void a_default_burst_and_a_default_debt_follow_the_count(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_MINUTE);
    struct weir_answer a;
    assert_int_equal(weir_change(w, 6, 0, NULL), 0);
    assert_int_equal(unit_peek(w, "k", 1, START).quota, 6);
    assert_int_equal(weir_penalize_at(w, "k", 1, 100, START, &a), 0);
    assert_int_equal(a.granted, 12);
    weir_close(w);
}

static void many_changes(struct weir *w, int algorithm)
{
    uint64_t seed = 71;
    for (int i = 0; i < 500; i++) {
        uint64_t quota = 1 + unit_random(&seed) % 10;
        change(w, algorithm, quota);
        struct weir_answer a = unit_check(w, "k", 1, START + i * WEIR_SECOND);
        assert_int_equal(a.quota, quota);
    }
}

static void any_number_of_changes_is_as_good_as_one(void **state)
{
    unit_each(10, WEIR_MINUTE, many_changes);
}

static void retry_stays_exact_after_a_change(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], 10, WEIR_MINUTE);
        uint64_t seed = 73;
        uint64_t now = START;
        for (int j = 0; j < 3000; j++) {
            if (j % 7 == 0) {
                change(w, unit_algorithms[i], 1 + unit_random(&seed) % 10);
            }
            struct weir_answer a = unit_check(w, "k", 1, now);
            if (a.verdict == WEIR_DENY) {
                assert_int_equal(unit_peek(w, "k", 1, now + a.retry_after_ns - 1).verdict,
                                 WEIR_DENY);
                assert_int_equal(unit_peek(w, "k", 1, now + a.retry_after_ns).verdict, WEIR_ALLOW);
            }
            now += unit_random(&seed) % (10 * WEIR_SECOND);
        }
        weir_close(w);
    }
}

/* ---- files ---- */

static void with_file(void (*scenario)(struct weir_options *o))
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        char *folder = unit_folder();
        char *path = unit_path(folder, "limit");
        struct weir_options o = unit_options(unit_algorithms[i], 10, WEIR_MINUTE);
        o.memory = WEIR_FILE;
        o.path = path;
        scenario(&o);
        free(path);
        unit_folder_remove(folder);
    }
}

static void change_for_two(struct weir_options *o)
{
    struct weir *a = unit_open(o);
    struct weir *b = unit_open(o);
    change(a, o->algorithm, 3);
    assert_int_equal(unit_drain(b, "k", START), 3);
    assert_int_equal(unit_check(a, "k", 1, START).verdict, WEIR_DENY);
    weir_close(a);
    weir_close(b);
    struct weir *w;
    assert_int_equal(weir_open(&w, o, NULL), WEIR_EMISMATCH);
    o->count = 3;
    o->queue = o->algorithm == WEIR_LEAKY_BUCKET ? 2 : 0;
    w = unit_open(o); /* who now agrees may come in */
    assert_int_equal(unit_check(w, "k", 1, START).verdict, WEIR_DENY);
    weir_close(w);
}

static void a_change_is_seen_by_all_who_share_the_file(void **state)
{
    with_file(change_for_two);
}

static void change_on_open(struct weir_options *o)
{
    struct weir *a = unit_open(o);
    (void)unit_check(a, "k", 2, START);
    o->count = 3;
    o->queue = o->algorithm == WEIR_LEAKY_BUCKET ? 2 : 0;
    struct weir_error error;
    struct weir *b;
    assert_int_equal(weir_open(&b, o, &error), WEIR_EMISMATCH);
    assert_int_equal(unit_peek(a, "k", 1, START).quota, 10);
    o->flags |= WEIR_CHANGE;
    b = unit_open(o);
    assert_int_equal(unit_peek(a, "k", 1, START).quota, 3);
    assert_true(unit_peek(a, "k", 1, START).remaining < 3);
    weir_close(b);
    b = unit_open(o); /* nothing to change any more */
    weir_close(b);
    o->period_ns *= 2;
    assert_int_equal(weir_open(&b, o, &error), WEIR_EMISMATCH);
    assert_non_null(strstr(error.text, "period_ns"));
    assert_int_equal(unit_peek(a, "k", 1, START).quota, 3);
    weir_close(a);
}

static void weir_change_on_open_changes_what_can_be_changed(void **state)
{
    with_file(change_on_open);
}

static void keep_policy(struct weir_options *o)
{
    struct weir *a = unit_open(o);
    struct weir *b;
    struct weir_error error;
    o->on_full = WEIR_DENY_NEW;
    o->flags |= WEIR_CHANGE;
    assert_int_equal(weir_open(&b, o, &error), WEIR_EMISMATCH);
    assert_non_null(strstr(error.text, "on_full"));
    weir_close(a);
}

static void weir_change_on_open_does_not_change_the_policy_for_full_tables(void **state)
{
    with_file(keep_policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_changes_are_refused_and_change_nothing),
        cmocka_unit_test(a_log_cannot_grow_beyond_its_first_count),
        cmocka_unit_test(keys_keep_their_state_and_the_new_quota_holds_at_once),
        cmocka_unit_test(a_change_gives_at_most_one_extra_quota),
        cmocka_unit_test(nobody_is_locked_out_for_longer_than_the_new_time_to_full),
        cmocka_unit_test(a_default_burst_and_a_default_debt_follow_the_count),
        cmocka_unit_test(any_number_of_changes_is_as_good_as_one),
        cmocka_unit_test(retry_stays_exact_after_a_change),
        cmocka_unit_test(a_change_is_seen_by_all_who_share_the_file),
        cmocka_unit_test(weir_change_on_open_changes_what_can_be_changed),
        cmocka_unit_test(weir_change_on_open_does_not_change_the_policy_for_full_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
