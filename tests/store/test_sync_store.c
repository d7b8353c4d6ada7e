/* Tests what exchanges do to the state of a key, and what `exact` and the other verbs see of it. */
#include "store/sync_fleet.h"

static void what_two_nodes_tell_is_what_exact_sees(void **state)
{
    static const int algorithms[] = {WEIR_TOKEN_BUCKET, WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW};
    for (unsigned i = 0; i < 3; i++) {
        struct store_limit *l = fake_limit(&fake, algorithms[i], 100, WEIR_MINUTE, 0);
        start(2);
        assert_int_equal(fake_admit(nodes[0].keys, l, KEY, 30, nodes[0].ahead_ns), 30);
        assert_int_equal(fake_admit(nodes[1].keys, l, KEY, 25, nodes[1].ahead_ns), 25);
        assert_int_equal(exchange(&nodes[0], 0), 30);
        assert_int_equal(peek(0).remaining, 70);
        assert_int_equal(exchange(&nodes[1], 0), 25);
        assert_int_equal(peek(0).remaining, 45);
        assert_int_equal(fake_ask(nodes[1].keys, l, KEY, 1, nodes[1].ahead_ns).remaining, 44);
        assert_int_equal(fake_ask(nodes[0].keys, l, KEY, 1, nodes[0].ahead_ns).remaining, 69);
        assert_int_equal(exchange(&nodes[0], S_NS), 1);
        uint64_t left = fake_ask(nodes[0].keys, l, KEY, 1, S_NS + nodes[0].ahead_ns).remaining;
        assert_int_equal(left, 43); /* it does not know of the other's last unit */
        stop();
    }
}

static void the_store_goes_into_debt_and_nobody_admits_until_it_is_paid(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 10);
    start(3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fake_admit(nodes[i].keys, l, KEY, 20, nodes[i].ahead_ns), 10);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(exchange(&nodes[i], 0), 10);
    }
    struct weir_answer a = peek(0);
    assert_int_equal(a.remaining, 0);
    assert_int_equal(a.reset_after_ns, 3 * WEIR_SECOND); /* 30 units, not cut off */
    a = fake_ask(nodes[2].keys, l, KEY, 1, nodes[2].ahead_ns);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.retry_after_ns, 2100 * MS);
    stop();
}

/* Makes the call like shared/store/store_group.c. */
static struct weir_answer run_verb(unsigned verb, uint64_t cost, uint64_t time_ns, uint64_t now_ns)
{
    struct store_key key;
    struct weir_answer a;
    struct buffer b;
    buffer_init(&b, 4096);
    store_key(&fake.limit.head, NO_SHARD, TEXT(KEY), &key);
    struct store_part part = {&fake.numbers.params, store_key_text(&key), cost, time_ns};
    int64_t beyond = (int64_t)sync_beyond(&fake.limit, part.params);
    unsigned count = script_put_arguments(&b, verb, &part, 1);
    count += script_put_numbers(&b, &beyond, 1);
    store_run_clock(&redis, store_ns(now_ns));
    script_put_head(&redis.out, script_for(&clocked_scripts, &part, 1), SCRIPT_BY_SHA, count);
    buffer_put(&redis.out, buffer_text(&b));
    store_redis_send(&redis);
    (void)store_redis_next(&redis);
    assert_int_equal(script_answer(store_redis_next(&redis), &part, 1, &a, NULL), 0);
    buffer_finish(&b);
    return a;
}

/* 60 units of a bucket of 10, which on its own owes 20 at most. That is a lead of 6 s, and not the
 * error of a clock. */
static void verbs_forgive_no_debt_but_what_they_give_back(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 10);
    start(6);
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(fake_admit(nodes[i].keys, l, KEY, 20, nodes[i].ahead_ns), 10);
        assert_int_equal(exchange(&nodes[i], 0), 10);
    }
    static const struct {
        unsigned verb;
        uint64_t cost, time_ns, left_ms;
    } steps[] = {
        {REMOTE_CHECK, 1, WEIR_SECOND, 6000}, /* it would wait, but is denied */
        {REMOTE_UP_TO, 5, 0, 6000},
        {REMOTE_PEEK, 1, WEIR_SECOND, 6000},
        {REMOTE_PENALIZE, 3, 0, 6000}, /* no room is left */
        {REMOTE_REFUND, 3, WEIR_FOREVER, 5700},
        {REMOTE_REFUND, 10, WEIR_FOREVER, 4700},
    };
    for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct weir_answer a = run_verb(steps[i].verb, steps[i].cost, steps[i].time_ns, 0);
        assert_int_equal(a.reset_after_ns, steps[i].left_ms * MS);
        assert_int_equal(a.granted, 0);
        a = run_verb(REMOTE_PEEK, 1, 0, 0); /* the stored state is the same */
        assert_int_equal(a.reset_after_ns, steps[i].left_ms * MS);
    }
    stop();
}

/* The opposite case: a lead of up to (1 + 1 + 2 * 8) times to full of 1 s, plus a second, is
 * accepted. */
static void verbs_bring_a_bucket_of_another_time_down_as_exchanges_do(void **state)
{
    (void)fake_limit(&fake, WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 10);
    start(2);
    struct store_key key;
    char full_at[32];
    store_key(&fake.limit.head, NO_SHARD, TEXT(KEY), &key);
    key.at[key.len] = '\0';
    static const uint64_t leads_ms[][2] = {{19000, 18900}, {19001, 17900}};
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(full_at, sizeof full_at, "%" PRIu64, STORE_US + leads_ms[i][0] * 1000);
        (void)store_redis_do(&redis, "SET", key.at, full_at);
        struct weir_answer a = run_verb(REMOTE_REFUND, 1, WEIR_FOREVER, 0);
        assert_int_equal(a.reset_after_ns, leads_ms[i][1] * MS);
    }
    stop();
}

static void a_windows_debt_stays_in_its_window(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_FIXED_WINDOW, 10, WEIR_SECOND, 0);
    start(3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fake_admit(nodes[i].keys, l, KEY, 20, nodes[i].ahead_ns), 10);
        assert_int_equal(exchange(&nodes[i], 0), 10);
    }
    assert_int_equal(fake_admit(nodes[0].keys, l, KEY, 5, 990 * MS + nodes[0].ahead_ns), 0);
    assert_int_equal(fake_admit(nodes[0].keys, l, KEY, 20, 1010 * MS + nodes[0].ahead_ns), 10);
    stop();
}

static void verbs_go_straight_to_the_state_and_are_heard_of(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_SLIDING_WINDOW, 100, WEIR_MINUTE, 0);
    struct store_key key;
    start(1);
    uint64_t ahead = nodes[0].ahead_ns;
    store_key(&l->head, NO_SHARD, TEXT(KEY), &key);
    static const struct {
        unsigned verb;
        uint64_t cost, left;
        unsigned flags;
    } steps[] = {
        {REMOTE_PENALIZE, 20, 75, 0},
        {REMOTE_REFUND, 10, 84, 0},
        {SCRIPT_BLOCK_UNTIL, 1, 0, WEIR_FLAG_BLOCKED},
        {REMOTE_UNBLOCK, 1, 83, 0},
        {REMOTE_RESET, 1, 99, 0},
    };
    assert_int_equal(fake_admit(nodes[0].keys, l, KEY, 4, ahead), 4);
    assert_int_equal(exchange(&nodes[0], 0), 4);
    for (unsigned i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        uint64_t now_ns = (i + 1) * S_NS;
        struct store_part part = {
            &fake.numbers.params, store_key_text(&key), steps[i].cost,
            store_ns(steps[i].verb == SCRIPT_BLOCK_UNTIL ? WEIR_HOUR : now_ns)};
        store_run_clock(&redis, store_ns(now_ns));
        script_put_call(&redis.out, script_for(&clocked_scripts, &part, 1), SCRIPT_BY_SHA,
                        steps[i].verb, &part, 1);
        store_redis_send(&redis);
        (void)store_redis_next(&redis);
        assert_int_equal(store_redis_next(&redis)->type, ':');
        (void)fake_ask(nodes[0].keys, l, KEY, 1, now_ns - 1 + ahead);
        (void)exchange(&nodes[0], now_ns);
        struct weir_answer a = fake_ask(nodes[0].keys, l, KEY, 101, now_ns + ahead);
        assert_int_equal(a.remaining, steps[i].left);
        assert_int_equal(a.flags, steps[i].flags);
    }
    stop();
}

/* Late units of a sliding window count in the previous window; those of a fixed window are
 * dropped. */
static void a_delta_of_a_window_that_is_over_counts_there_or_is_dropped(void **state)
{
    for (int algorithm = WEIR_FIXED_WINDOW; algorithm <= WEIR_SLIDING_WINDOW; algorithm++) {
        struct store_limit *l = fake_limit(&fake, algorithm, 100, WEIR_SECOND, 0);
        struct sync_counts n;
        start(1);
        uint64_t ahead = nodes[0].ahead_ns;
        (void)fake_ask(nodes[0].keys, l, KEY, 1, 900 * MS + ahead);
        (void)exchange(&nodes[0], 900 * MS);
        assert_int_equal(fake_admit(nodes[0].keys, l, KEY, 40, 950 * MS + ahead), 40);
        assert_int_equal(exchange(&nodes[0], 1000 * MS), 40);
        sync_counts(nodes[0].keys, &n);
        bool fixed = algorithm == WEIR_FIXED_WINDOW;
        assert_int_equal(n.dropped, fixed ? 40 : 0);
        assert_int_equal(peek(1000 * MS).remaining, fixed ? 100 : 59);
        stop();
    }
}

static void a_store_whose_clock_was_set_back_goes_on(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_WINDOW; algorithm++) {
        if (algorithm == WEIR_LEAKY_BUCKET) {
            continue;
        }
        struct store_limit *l = fake_limit(&fake, algorithm, 10, WEIR_SECOND, 0);
        start(1);
        uint64_t back_ns = 0;
        uint64_t admitted = 0;
        for (uint64_t now_ns = WEIR_HOUR; now_ns < WEIR_HOUR + 60 * WEIR_SECOND;
             now_ns += 10 * MS) {
            struct sync_call call;
            struct store_reply reply;
            uint64_t here_ns = now_ns + nodes[0].ahead_ns;
            back_ns = now_ns > WEIR_HOUR + 10 * WEIR_SECOND ? WEIR_HOUR : 0;
            admitted += fake_admit(nodes[0].keys, l, KEY, 1, here_ns);
            if (sync_next(nodes[0].keys, here_ns, &call)) {
                run_script(&call, now_ns - back_ns, &reply);
                assert_int_equal(sync_reply(nodes[0].keys, &call, &reply, here_ns), 0);
            }
        }
        /* At most one burst more; units taken an hour ahead count for one time to full. */
        assert_in_range(admitted, algorithm == WEIR_TOKEN_BUCKET ? 590 : 520, 620);
        stop();
    }
}

/* This holds even for a step that is smaller than what a fleet could owe. The second is how far
 * clocks may differ. */
static void a_clock_that_was_set_back_locks_a_bucket_out_for_one_time_to_full_and_a_second(
    void **state)
{
    static const unsigned seconds[] = {2, 5, 16, 18, 1000};
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
        struct store_limit *l = fake_limit(&fake, WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 0);
        uint64_t begin_ns = WEIR_HOUR;
        uint64_t locked_ns = 0;
        start(1);
        for (uint64_t t = 0; t < 10 * WEIR_SECOND; t += 10 * MS) {
            struct sync_call call;
            struct store_reply reply;
            uint64_t here_ns = begin_ns + t + nodes[0].ahead_ns;
            bool set_back = t >= 2 * WEIR_SECOND;
            uint64_t store_ns = begin_ns + t - (set_back ? seconds[i] * WEIR_SECOND : 0);
            if (fake_admit(nodes[0].keys, l, KEY, 1, here_ns) > 0 && set_back && locked_ns == 0) {
                locked_ns = t >= 2200 * MS ? t - 2 * WEIR_SECOND : 0;
            }
            if (sync_next(nodes[0].keys, here_ns, &call)) {
                run_script(&call, store_ns, &reply);
                assert_int_equal(sync_reply(nodes[0].keys, &call, &reply, here_ns), 0);
            }
        }
        assert_in_range(locked_ns, 900 * MS, 2200 * MS);
        stop();
    }
}

/* This happens while a change is rolled out: from the other node's view the bucket has long been
 * full, and it reports for a unit less than a unit, or a return. */
static void what_a_node_of_a_small_burst_tells_is_counted_by_who_knows_a_larger_one(void **state)
{
    struct fake_limit other;
    struct store_limit *large = fake_limit(&fake, WEIR_TOKEN_BUCKET, 1, WEIR_SECOND, 1000);
    struct store_limit *small = fake_limit(&other, WEIR_TOKEN_BUCKET, 1, WEIR_SECOND, 10);
    start(2);
    uint64_t ahead_ns = nodes[1].ahead_ns;
    assert_int_equal(fake_admit(nodes[0].keys, large, KEY, 1000, nodes[0].ahead_ns), 1000);
    assert_int_equal(exchange(&nodes[0], 0), 1000);
    assert_int_equal(fake_admit(nodes[1].keys, small, KEY, 1, ahead_ns), 1);
    assert_int_equal(exchange(&nodes[1], 0), 1);
    uint64_t now_ns = 500 * WEIR_SECOND;
    (void)exchange(&nodes[1], now_ns);
    for (unsigned i = 0; i < 20; i++) {
        now_ns += WEIR_SECOND;
        assert_int_equal(fake_admit(nodes[1].keys, small, KEY, 1, now_ns + ahead_ns), 1);
        assert_int_equal(exchange(&nodes[1], now_ns + 900 * MS), 1);
    }
    assert_int_equal(peek(now_ns + 900 * MS).remaining, 520 - 21);
    now_ns += 100 * WEIR_SECOND;
    (void)fake_ask(nodes[1].keys, small, KEY, 1, now_ns + ahead_ns);
    (void)exchange(&nodes[1], now_ns);
    assert_int_equal(peek(now_ns).remaining, 620 - 22);
    sync_refund(nodes[1].keys, PART(small, TEXT(KEY), 1), now_ns + 20 * S_NS + ahead_ns);
    assert_int_equal(exchange(&nodes[1], now_ns + 20 * S_NS), -1);
    assert_int_equal(peek(now_ns + 20 * S_NS).remaining, 622 - 21);
    stop();
    assert_int_equal(other.limit.references, 0);
}

/* A bucket that is smaller than the rate times S still admits its full rate. */
static void a_small_burst_does_not_cost_its_rate(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 2);
    uint64_t admitted = 0;
    start(1);
    for (uint64_t now_ns = 0; now_ns < 5 * WEIR_SECOND; now_ns += MS / 2) {
        admitted += fake_admit(nodes[0].keys, l, KEY, 1, now_ns + nodes[0].ahead_ns);
        (void)exchange(&nodes[0], now_ns);
    }
    assert_in_range(admitted, 4900, 5002);
    stop();
}

/* One node at a million decisions a second: a thousand each millisecond. */
static void a_million_decisions_are_a_dozen_calls(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_TOKEN_BUCKET, 1000000, WEIR_SECOND, 1000000);
    struct sync_counts n;
    struct timespec from, to;
    uint64_t admitted = 0;
    uint64_t spent_ns = 0;
    start(1);
    for (uint64_t now_ns = 0; now_ns < WEIR_SECOND; now_ns += MS) {
        (void)clock_gettime(CLOCK_MONOTONIC, &from);
        admitted += fake_admit(nodes[0].keys, l, KEY, 1000, now_ns + nodes[0].ahead_ns);
        (void)clock_gettime(CLOCK_MONOTONIC, &to);
        spent_ns += (uint64_t)(to.tv_sec - from.tv_sec) * WEIR_SECOND + (uint64_t)to.tv_nsec -
                    (uint64_t)from.tv_nsec;
        (void)exchange(&nodes[0], now_ns);
    }
    sync_counts(nodes[0].keys, &n);
    print_message("%" PRIu64 " ns for each decision, %" PRIu64 " calls for %" PRIu64 "\n",
                  spent_ns / admitted, n.exchanges, admitted);
    assert_int_equal(admitted, 1000000);
    assert_in_range(n.exchanges, 9, 11);
    stop();
}

/* The state is that of `exact`: a plain number if the rate has no remainder. */
static void a_synced_bucket_is_no_larger_than_an_exact_one(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 100);
    start(1);
    (void)fake_admit(nodes[0].keys, l, KEY, 50, 12345 + nodes[0].ahead_ns);
    (void)exchange(&nodes[0], MS + 23456);
    struct weir_text value = state_of_key();
    assert_int_equal(value.len, 16);
    assert_null(memchr(value.at, ':', value.len));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_two_nodes_tell_is_what_exact_sees),
        cmocka_unit_test(the_store_goes_into_debt_and_nobody_admits_until_it_is_paid),
        cmocka_unit_test(verbs_forgive_no_debt_but_what_they_give_back),
        cmocka_unit_test(verbs_bring_a_bucket_of_another_time_down_as_exchanges_do),
        cmocka_unit_test(a_windows_debt_stays_in_its_window),
        cmocka_unit_test(verbs_go_straight_to_the_state_and_are_heard_of),
        cmocka_unit_test(a_delta_of_a_window_that_is_over_counts_there_or_is_dropped),
        cmocka_unit_test(a_store_whose_clock_was_set_back_goes_on),
        cmocka_unit_test(
            a_clock_that_was_set_back_locks_a_bucket_out_for_one_time_to_full_and_a_second),
        cmocka_unit_test(what_a_node_of_a_small_burst_tells_is_counted_by_who_knows_a_larger_one),
        cmocka_unit_test(a_small_burst_does_not_cost_its_rate),
        cmocka_unit_test(a_million_decisions_are_a_dozen_calls),
        cmocka_unit_test(a_synced_bucket_is_no_larger_than_an_exact_one),
    };
    return cmocka_run_group_tests(tests, start_store, stop_store);
}
