/* Exchanges of many keys go in few calls, and each key gets its own answer; a key whose value in
 * the store is not ours keeps no other from being exchanged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "fleet/fleet.h"
#include "shared/store/stores.h"
#include "support/fleet/fleet_open.h"
#include "support/store/redis_alone.h"

#define KEYS 64u
#define LIMITS 3u
#define SYNC_NS (200 * WEIR_MILLISECOND)

struct node {
    struct weir_fleet *fleet;
    struct weir_fleet_limit *limits[LIMITS];
};

static struct node open_node(void)
{
    static const int algorithms[LIMITS] = {WEIR_TOKEN_BUCKET, WEIR_FIXED_WINDOW,
                                           WEIR_SLIDING_WINDOW};
    static const char *const names[LIMITS] = {"token", "fixed", "sliding"};
    struct node n = {.fleet = fleet_open_at(world.url, 0, 0)};
    for (unsigned i = 0; i < LIMITS; i++) {
        struct weir_fleet_limit_options o = fleet_hourly(names[i], 1000000);
        o.limit.algorithm = algorithms[i];
        o.limit.burst = 0;
        o.limit.period_ns = 7 * WEIR_DAY;
        o.consistency = WEIR_FLEET_SYNCED;
        o.on_store_failure = WEIR_FLEET_OPEN;
        o.sync_ns = SYNC_NS;
        n.limits[i] = fleet_limit_of(n.fleet, &o);
    }
    return n;
}

static void close_node(struct node *n)
{
    for (unsigned i = 0; i < LIMITS; i++) {
        weir_fleet_limit_close(n->limits[i]);
    }
    weir_fleet_close(n->fleet);
}

/* Takes `cost` of a key; returns how much of it is taken as far as the node knows. */
static uint64_t take(struct node *n, unsigned limit, unsigned key, uint64_t cost)
{
    char name[16];
    struct weir_answer a;
    int len = snprintf(name, sizeof name, "k%u", key);
    assert_int_equal(weir_fleet_check(n->limits[limit], name, (size_t)len, cost, &a), 0);
    return a.quota - a.remaining;
}

/* Returns whether the node hears that so much is taken of the key, while it takes 1 at a time. */
static bool hears(struct node *n, unsigned limit, unsigned key, uint64_t least)
{
    uint64_t end = clock_monotonic_ns() + 20 * WEIR_SECOND;
    while (take(n, limit, key, 1) < least) {
        if (clock_monotonic_ns() > end) {
            return false;
        }
    }
    return true;
}

static void each_key_hears_its_own_total(void **state)
{
    struct node one = open_node();
    struct node other = open_node();
    for (unsigned i = 0; i < LIMITS * KEYS; i++) {
        (void)take(&one, i % LIMITS, i / LIMITS, 1000 * (1 + i));
    }
    for (unsigned i = 0; i < LIMITS * KEYS; i++) {
        assert_true(hears(&other, i % LIMITS, i / LIMITS, 1000 * (1 + i)));
        assert_in_range(take(&other, i % LIMITS, i / LIMITS, 1), 1000 * (1 + i), 900000);
    }
    close_node(&one);
    close_node(&other);
    /* A third one begins with the totals of the two. */
    struct node third = open_node();
    for (unsigned i = 0; i < LIMITS * KEYS; i++) {
        assert_true(hears(&third, i % LIMITS, i / LIMITS, 1000 * (1 + i)));
    }
    close_node(&third);
}

static void many_keys_go_in_one_call(void **state)
{
    struct node one = open_node();
    uint64_t begun = clock_monotonic_ns();
    uint64_t calls = fleet_stats_of(one.fleet).calls;
    uint64_t rounds = 0;
    while (clock_monotonic_ns() - begun < 10 * SYNC_NS) { /* every key stays in use */
        for (unsigned i = 0; i < LIMITS * KEYS; i++) {
            (void)take(&one, i % LIMITS, i / LIMITS, 1);
        }
        rounds++;
    }
    calls = fleet_stats_of(one.fleet).calls - calls;
    print_message("%u keys, %llu calls in %u intervals\n", LIMITS * KEYS, (unsigned long long)calls,
                  10u);
    assert_true(rounds > 0);
    assert_in_range(calls, 1, 10 * LIMITS * KEYS / 2); /* one for each key would be 1,920 */
    close_node(&one);
}

static void a_damaged_key_harms_no_other(void **state)
{
    (void)redis_node_run(&world.node[0], "FLUSHALL");
    (void)redis_node_run(&world.node[0], "SET weir:1:token:t:{rk7} rubbish");
    struct node one = open_node();
    struct node other = open_node();
    uint64_t begun = clock_monotonic_ns();
    do { /* keeps every key in use for some intervals */
        for (unsigned key = 0; key < KEYS; key++) {
            (void)take(&one, 0, key, 10);
        }
    } while (clock_monotonic_ns() - begun < 10 * SYNC_NS);
    for (unsigned key = 0; key < KEYS; key++) {
        (void)take(&one, 0, key, 5000);
    }
    for (unsigned key = 0; key < KEYS; key++) {
        assert_true(key == 7 || hears(&other, 0, key, 5000));
    }
    struct sync_counts counts;
    sync_counts(one.fleet->shared->keys, &counts);
    print_message("%llu exchanges, %llu lost\n", (unsigned long long)counts.exchanges,
                  (unsigned long long)counts.lost);
    assert_in_range(counts.lost, 1, counts.exchanges / 16); /* only those of that key */
    close_node(&one);
    close_node(&other);
    assert_string_equal(redis_node_run(&world.node[0], "GET weir:1:token:t:{rk7}"), "rubbish");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_hears_its_own_total),
        cmocka_unit_test(many_keys_go_in_one_call),
        cmocka_unit_test(a_damaged_key_harms_no_other),
    };
    return cmocka_run_group_tests(tests, start_redis, stop_redis);
}
