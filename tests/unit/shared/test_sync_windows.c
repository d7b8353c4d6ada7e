/* Tests Y4 of shared/synced/sync.h: windows are the store's, and a node knows them only from its
 * replies. */
#include "unit/shared/sync_story.h"

/* ---- Y4 ---- */

static void a_node_that_has_heard_nothing_leaves_the_window_to_the_store(void **state)
{
    for (int algorithm = WEIR_FIXED_WINDOW; algorithm <= WEIR_SLIDING_WINDOW; algorithm++) {
        struct store_limit *l = window(algorithm);
        assert_int_equal(fake_admit(node, l, "k", 7, T0), 7);
        struct sync_call c = next(T0);
        assert_int_equal(c.delta, 7);
        assert_int_equal(c.window, -1);
        assert_int_equal(c.extra, 0);
        assert_int_equal(fake_ask(node, l, "k", 1, T0 + MS).remaining, 2);
        assert_int_equal(say(&c, T0 + 200 * MS, WINDOW, 8, 0, T0 + RTT), 0);
        struct weir_answer a = fake_ask(node, l, "k", 2, T0 + RTT);
        assert_int_equal(a.verdict, WEIR_DENY);
        assert_int_equal(a.remaining, 1);
        if (algorithm == WEIR_FIXED_WINDOW) {
            assert_int_equal(a.retry_after_ns, 800 * MS);
            assert_int_equal(a.reset_after_ns, 800 * MS);
        }
        c = next(T0 + S_NS);
        assert_int_equal(c.delta, 1);
        assert_int_equal(c.window, WINDOW);
        sync_lost(node, &c, T0 + S_NS);
        node_keys_destroy(node);
        assert_int_equal(node_keys_of(&node, KEY_SYNCED, 64), 0);
    }
}

/* The local clock is unrelated to the store's: T0 may be anywhere within a second of it. */
static void windows_begin_by_the_stores_time(void **state)
{
    struct store_limit *l = window(WEIR_FIXED_WINDOW);
    assert_int_equal(fake_admit(node, l, "k", 20, T0), 10);
    struct sync_call c = next(T0);
    uint64_t late = 990 * MS; /* within the store's second */
    assert_int_equal(say(&c, T0 + late, WINDOW, 10, 0, T0), 0);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 9 * MS), 0);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 11 * MS), 10);
    c = next(T0 + S_NS);
    assert_int_equal(c.delta, 10);
    assert_int_equal(c.window, WINDOW + 1);
    assert_int_equal(say(&c, T0 + late + S_NS, WINDOW + 1, 10, 0, T0 + S_NS), 0);
}

/* At T0 a window that begins 300 ms after a whole second has 10 ms left. */
static void windows_begin_at_their_offset(void **state)
{
    struct store_limit *l = window(WEIR_FIXED_WINDOW);
    fake.numbers.params.b = 300000;
    assert_int_equal(fake_admit(node, l, "k", 20, T0), 10);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0 + 290 * MS, WINDOW - 1, 10, 0, T0), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0).retry_after_ns, 10 * MS);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 9 * MS), 0);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 11 * MS), 10);
    c = next(T0 + S_NS);
    assert_int_equal(c.window, WINDOW);
    sync_lost(node, &c, T0 + S_NS);
}

/* The units given back were taken in both windows; the store hears of the present one's. */
static void units_of_a_window_that_is_over_do_not_come_back(void **state)
{
    struct store_limit *l = window(WEIR_FIXED_WINDOW);
    uint64_t later = T0 + 900 * MS;
    assert_int_equal(fake_admit(node, l, "k", 1, T0), 1);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0 + 200 * MS, WINDOW, 1, 0, T0 + RTT), 0);
    assert_int_equal(fake_admit(node, l, "k", 5, T0 + RTT), 5);
    c = next(T0 + S_NS);
    assert_int_equal(say(&c, T0 + 300 * MS, WINDOW, 6, 0, T0 + S_NS + RTT), 0);
    assert_int_equal(fake_admit(node, l, "k", 4, later), 4);
    c = next(later);
    assert_int_equal(c.window, WINDOW + 1);
    assert_int_equal(c.delta, 4);
    assert_int_equal(say(&c, later + 200 * MS, WINDOW + 1, 9, 0, later + RTT), 0);
    sync_refund(node, PART(l, TEXT("k"), 9), later + RTT);
    c = next(later + S_NS);
    assert_int_equal(c.delta, -4);
    sync_lost(node, &c, later + S_NS);
}

/* At T0 it is 2023-11-14 22:13:20 in the store: month 24284 since March of the year 0. */
static void calendar_months_begin_by_the_stores_time(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_FIXED_WINDOW, 10, WEIR_MONTH, 0);
    uint64_t left = UINT64_C(1701388800) * WEIR_SECOND - STORE_US * WEIR_MICROSECOND;
    assert_int_equal(fake_admit(node, l, "k", 20, T0), 10);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0 + left - 10 * MS, 24284, 10, 0, T0), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0).retry_after_ns, 10 * MS);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 9 * MS), 0);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 11 * MS), 10);
    c = next(T0 + S_NS);
    assert_int_equal(c.delta, 10);
    assert_int_equal(c.window, 24285);
    sync_lost(node, &c, T0 + S_NS);
}

static void a_call_in_doubt_about_its_window_must_fit_into_both(void **state)
{
    struct store_limit *l = window(WEIR_FIXED_WINDOW);
    assert_int_equal(fake_admit(node, l, "k", 1, T0), 1);
    struct sync_call c = next(T0);
    /* The exchange was made at T0 and answered 20 ms later. It ran 10 ms before the window's end,
     * which is therefore between 10 and 30 ms after T0. All nodes together have taken 8. */
    assert_int_equal(say(&c, T0 + 990 * MS, WINDOW, 8, 0, T0 + 20 * MS), 0);
    /* The key is not fresh before that either, or it could be forgotten. */
    uint64_t reset_ns = fake_ask(node, l, "k", 11, T0 + 20 * MS).reset_after_ns;
    assert_in_range(reset_ns, 10 * MS, 11 * MS);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 20 * MS), 2);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 29 * MS), 0);
    struct weir_answer a = fake_ask(node, l, "k", 1, T0 + 29 * MS);
    assert_int_equal(a.remaining, 0);
    assert_in_range(a.retry_after_ns, MS, 2 * MS);
    /* The units are reported under the later window. */
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 31 * MS), 8);
    c = next(T0 + S_NS);
    assert_int_equal(c.window, WINDOW + 1);
    assert_int_equal(c.delta, 10);
    sync_lost(node, &c, T0 + S_NS);
}

/* With windows of 10 ms and a round trip of 35 ms, the present window may be the reported one or
 * one of three others. */
static void a_round_trip_of_several_windows_makes_a_call_fit_into_each(void **state)
{
    for (int algorithm = WEIR_FIXED_WINDOW; algorithm <= WEIR_SLIDING_WINDOW; algorithm++) {
        struct store_limit *l = fake_limit(&fake, algorithm, 10, 10 * MS, 0);
        int64_t heard = (int64_t)(STORE_US / 10000);
        assert_int_equal(fake_admit(node, l, "k", 1, T0), 1);
        struct sync_call c = next(T0);
        assert_int_equal(fake_admit(node, l, "k", 3, T0 + MS), 3);
        assert_int_equal(say(&c, T0, heard, 5, 0, T0 + 35 * MS), 0);
        assert_int_equal(fake_admit(node, l, "k", 20, T0 + 35 * MS), 2);
        assert_int_equal(fake_admit(node, l, "k", 20, T0 + 42 * MS), 0);
        /* Units admitted then are reported, as long as their window may not be over. */
        sync_hurry(node, PART(l, TEXT("k"), 1));
        c = next(T0 + 42 * MS);
        assert_int_equal(c.window, heard + 4);
        assert_int_equal(c.delta + c.extra, 5);
        assert_int_equal(say(&c, T0 + 43 * MS, heard + 4, 5, 5, T0 + 43 * MS), 0);
        struct sync_counts n;
        sync_counts(node, &n);
        assert_int_equal(n.dropped, 0);
        (void)done(state);
        (void)fresh(state);
    }
}

/* Units of a window weigh until the end of the next one. */
static void a_new_key_of_a_sliding_window_is_fresh_after_two_windows(void **state)
{
    struct weir_answer a = fake_ask(node, window(WEIR_SLIDING_WINDOW), "k", 1, T0);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.reset_after_ns, 2 * WEIR_SECOND);
}

static void a_sliding_windows_older_part_is_told_beside(void **state)
{
    struct store_limit *l = window(WEIR_SLIDING_WINDOW);
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0 + 950 * MS, WINDOW, 1, 0, T0), 0);
    assert_int_equal(fake_admit(node, l, "k", 3, T0 + MS), 3);
    struct weir_answer a = fake_ask(node, l, "k", 2, T0 + 60 * MS); /* 10 ms into the next window */
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.remaining, 4); /* 10 - 2 - 4 * 0.99..., rounded up */
    c = next(T0 + S_NS);
    assert_int_equal(c.window, WINDOW + 1);
    assert_int_equal(c.delta, 2);
    assert_int_equal(c.extra, 3);
    assert_int_equal(say(&c, T0 + 950 * MS + S_NS, WINDOW + 1, 2, 4, T0 + S_NS), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + S_NS).remaining, 3);
}

static void units_of_windows_that_nobody_knows_are_dropped_and_counted(void **state)
{
    struct store_limit *l = window(WEIR_SLIDING_WINDOW);
    l->sync_ns = 10 * WEIR_SECOND;
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, WINDOW, 1, 0, T0), 0);
    assert_int_equal(fake_admit(node, l, "k", 3, T0 + MS), 3);
    (void)fake_ask(node, l, "k", 1, T0 + 4 * WEIR_SECOND);
    c = next(T0 + 10 * WEIR_SECOND);
    assert_int_equal(c.delta, 0);
    assert_int_equal(c.extra, 0);
    assert_int_equal(say(&c, T0 + 10 * WEIR_SECOND, WINDOW + 10, 0, 0, T0 + 10 * WEIR_SECOND), 0);
    struct sync_counts n;
    sync_counts(node, &n);
    assert_int_equal(n.dropped, 4);
}

/* For a new key: the units may belong to the window before. */
static void units_admitted_before_the_window_was_known_count_in_both(void **state)
{
    struct store_limit *l = window(WEIR_FIXED_WINDOW);
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(fake_admit(node, l, "k", 6, T0 + MS), 6);
    assert_int_equal(say(&c, T0 + 995 * MS, WINDOW, 1, 0, T0 + 10 * MS), 0);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 11 * MS), 3);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 16 * MS), 1);
}

/* After some time without an exchange the node was in doubt about the window, and went ahead. */
static void a_node_that_was_ahead_of_the_store_comes_back_with_its_units(void **state)
{
    struct store_limit *l = window(WEIR_FIXED_WINDOW);
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0 + 500 * MS, WINDOW, 1, 0, T0), 0);
    (void)fake_ask(node, l, "k", 1, T0 + 495 * MS);
    c = next(T0 + 495 * MS);
    assert_int_equal(c.window, WINDOW);
    assert_int_equal(fake_admit(node, l, "k", 4, T0 + 495 * MS), 4);
    assert_int_equal(fake_admit(node, l, "k", 2, T0 + 497 * MS), 2); /* perhaps the next */
    assert_int_equal(say(&c, T0 + 995 * MS, WINDOW, 2, 0, T0 + 497 * MS), 0);
    assert_int_equal(fake_ask(node, l, "k", 3, T0 + 497 * MS).remaining, 2);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 497 * MS), 2);
}

/* An exchange ran at an unknown time between its call and its reply, and clocks drift by 1/128. */
static void what_was_taken_drains_late_rather_than_early(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 1000000, 0, 0, T0 + 50 * MS), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 50 * MS).retry_after_ns, 100 * MS);
    struct weir_answer a = fake_ask(node, l, "k", 1, T0 + 114 * MS);
    assert_int_equal(a.retry_after_ns, 36 * MS + 64 * MS / 128);
    node_keys_destroy(node); /* time begins anew */
    assert_int_equal(node_keys_of(&node, KEY_SYNCED, 1), 0);
    struct fake_limit sliding;
    l = fake_limit(&sliding, WEIR_SLIDING_WINDOW, 10, WEIR_SECOND, 0);
    (void)fake_ask(node, l, "k", 1, T0);
    c = next(T0);
    assert_int_equal(say(&c, T0 + 400 * MS, WINDOW, 0, 10, T0 + 50 * MS), 0);
    a = fake_ask(node, l, "k", 5, T0 + 50 * MS);
    assert_int_equal(a.remaining, 4);
    assert_int_equal(a.retry_after_ns, 100 * MS);
    node_keys_destroy(node); /* before the second limit ends */
    assert_int_equal(node_keys_of(&node, KEY_SYNCED, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_node_that_has_heard_nothing_leaves_the_window_to_the_store),
        TEST(windows_begin_by_the_stores_time),
        TEST(windows_begin_at_their_offset),
        TEST(units_of_a_window_that_is_over_do_not_come_back),
        TEST(calendar_months_begin_by_the_stores_time),
        TEST(a_call_in_doubt_about_its_window_must_fit_into_both),
        TEST(a_round_trip_of_several_windows_makes_a_call_fit_into_each),
        TEST(a_new_key_of_a_sliding_window_is_fresh_after_two_windows),
        TEST(a_sliding_windows_older_part_is_told_beside),
        TEST(units_of_windows_that_nobody_knows_are_dropped_and_counted),
        TEST(units_admitted_before_the_window_was_known_count_in_both),
        TEST(a_node_that_was_ahead_of_the_store_comes_back_with_its_units),
        TEST(what_was_taken_drains_late_rather_than_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
