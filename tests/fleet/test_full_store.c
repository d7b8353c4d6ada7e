/*
 * Tests that a flood of new keys into a store with little memory costs the new keys, not those that
 * are in the store: with each maxmemory-policy, each on_full, a single Redis and a Cluster.
 */
// test-timeout: 600
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"
#include "support/fleet/fleet_open.h"
#include "support/store/redis_world.h"

#define CUSTOMERS 20
#define UNITS 5 /* of each customer, in an hour */
#define THREADS 4
#define HIGH 50
#define ROOM (16ll << 20) /* bytes that a Redis may use in addition to what it has */
#define ROUND 5000        /* strangers in a round of each thread */
#define ROUNDS_MOST 40

static struct redis_world world;
static struct weir_fleet *fleet;
static struct weir_fleet_limit *limit;

/* ---- the store's memory ---- */

static long long evicted(unsigned nodes)
{
    long long n = 0;
    for (unsigned i = 0; i < nodes; i++) {
        n += redis_node_info(&world.node[i], "stats", "evicted_keys");
    }
    return n;
}

/* Lets each Redis use ROOM more than it does now. */
static void confine(unsigned nodes, const char *policy)
{
    for (unsigned i = 0; i < nodes; i++) {
        struct redis_node *n = &world.node[i];
        long long most = redis_node_info(n, "memory", "used_memory") + ROOM;
        assert_string_equal(redis_node_run(n, "CONFIG SET maxmemory-policy %s", policy), "OK");
        assert_string_equal(redis_node_run(n, "CONFIG SET maxmemory %lld", most), "OK");
    }
}

/* ---- those who ask ---- */

static struct weir_answer ask(const char *key)
{
    struct weir_answer a;
    threads_require(weir_fleet_check(limit, key, strlen(key), 1, &a) == 0);
    return a;
}

/* Returns how many of the customers' requests pass. Each must be decided by the store. */
static unsigned customers_ask(void)
{
    unsigned allowed = 0;
    for (unsigned i = 0; i < CUSTOMERS; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "customer-%u", i);
        struct weir_answer a = ask(key);
        assert_int_equal(a.flags, 0);
        allowed += a.verdict == WEIR_ALLOW;
    }
    return allowed;
}

struct flood {
    unsigned round;
    uint64_t full; /* answers that say that the store is full */
    uint64_t full_allowed;
};

static void strangers(unsigned index, void *arg)
{
    struct flood *f = arg;
    for (unsigned i = 0; i < ROUND; i++) {
        char key[48];
        (void)snprintf(key, sizeof key, "stranger-%u-%u-%u", f->round, index, i);
        struct weir_answer a = ask(key);
        if ((a.flags & WEIR_FLAG_FULL) != 0) {
            threads_require((a.flags & WEIR_FLAG_DEGRADED) != 0);
            (void)threads_add(&f->full, 1);
            (void)threads_add(&f->full_allowed, a.verdict == WEIR_ALLOW);
        }
    }
}

/* Floods the store until `rounds` whole rounds of strangers were decided here. The customers, who
 * have taken what they have, ask between the rounds. */
static void flood(struct flood *f, unsigned rounds)
{
    unsigned whole = 0;
    for (; f->round < ROUNDS_MOST && whole < rounds; f->round++) {
        uint64_t before = f->full;
        threads_run(THREADS, strangers, f);
        whole += f->full - before == (uint64_t)THREADS * ROUND;
        assert_int_equal(customers_ask(), 0);
    }
    assert_int_equal(whole, rounds);
}

/* ---- stories ---- */

static void open_limit(int on_full, int consistency)
{
    struct weir_fleet_limit_options o = fleet_hourly("api", UNITS);
    o.limit.on_full = on_full;
    o.consistency = consistency;
    fleet = fleet_open_with(world.url, (struct weir_fleet_options){.memory_high = HIGH});
    limit = fleet_limit_of(fleet, &o);
    assert_true(fleet_await_store(limit));
}

static void close_limit(void)
{
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

static void a_flood_spares_customers(unsigned nodes, const char *policy, int on_full,
                                     struct flood *f)
{
    open_limit(on_full, WEIR_FLEET_EXACT);
    for (unsigned i = 0; i < UNITS; i++) {
        assert_int_equal(customers_ask(), CUSTOMERS);
    }
    confine(nodes, policy);
    flood(f, 2);
    assert_int_equal(evicted(nodes), 0);
}

static void by_this_nodes_share_and_noeviction(void **state)
{
    struct flood f = {0};
    redis_world_alone(&world, NULL);
    a_flood_spares_customers(1, "noeviction", WEIR_EVICT, &f);
    assert_int_equal(f.full, f.full_allowed); /* each has a share of its own, */
    unsigned allowed = 0;
    for (unsigned i = 0; i < 2 * UNITS; i++) {
        struct weir_answer a = ask("one more stranger");
        assert_int_equal(a.flags & WEIR_FLAG_FULL, WEIR_FLAG_FULL);
        allowed += a.verdict == WEIR_ALLOW;
    }
    assert_int_equal(allowed, UNITS); /* which is the limit, of the only node */
    close_limit();
}

static void denied_with_volatile_ttl(void **state)
{
    struct flood f = {0};
    redis_world_alone(&world, NULL);
    a_flood_spares_customers(1, "volatile-ttl", WEIR_DENY_NEW, &f);
    assert_int_equal(f.full_allowed, 0);
    assert_in_range(ask("one more stranger").retry_after_ns, 1, WEIR_MINUTE);
    close_limit();
}

static void allowed_with_allkeys_lru(void **state)
{
    struct flood f = {0};
    redis_world_alone(&world, NULL);
    a_flood_spares_customers(1, "allkeys-lru", WEIR_ALLOW_NEW, &f);
    assert_int_equal(f.full, f.full_allowed);
    close_limit();
}

static void on_each_primary_of_a_cluster(void **state)
{
    struct flood f = {0};
    redis_world_cluster(&world, NULL);
    a_flood_spares_customers(REDIS_PRIMARIES, "volatile-ttl", WEIR_EVICT, &f);
    close_limit();
}

/* Room comes back: strangers are in the store again. */
static void a_store_with_room_again_takes_new_keys(void **state)
{
    struct flood f = {0};
    redis_world_alone(&world, NULL);
    a_flood_spares_customers(1, "noeviction", WEIR_DENY_NEW, &f);
    assert_string_equal(redis_node_run(&world.node[0], "CONFIG SET maxmemory 0"), "OK");
    uint64_t end_ms = redis_now_ms() + 20000;
    while (ask("one more stranger").flags != 0 && redis_now_ms() < end_ms) {
        redis_look_again_soon();
    }
    assert_int_equal(ask("one more stranger").flags, 0);
    close_limit();
}

static void leases_of_new_keys_are_decided_here(void **state)
{
    struct flood f = {0};
    redis_world_alone(&world, NULL);
    a_flood_spares_customers(1, "noeviction", WEIR_DENY_NEW, &f);
    struct weir_fleet_limit_options o = fleet_hourly("leased", 100000);
    struct weir_fleet_limit *leased;
    struct weir_answer a;
    o.limit.on_full = WEIR_DENY_NEW;
    o.consistency = WEIR_FLEET_LEASED;
    leased = fleet_limit_of(fleet, &o);
    assert_int_equal(weir_fleet_check(leased, "new", 3, 1, &a), 0);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.flags, WEIR_FLAG_FULL | WEIR_FLAG_DEGRADED);
    weir_fleet_limit_close(leased);
    close_limit();
}

static int stop(void **state)
{
    (void)state;
    redis_world_stop(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(by_this_nodes_share_and_noeviction, stop),
        cmocka_unit_test_teardown(denied_with_volatile_ttl, stop),
        cmocka_unit_test_teardown(allowed_with_allkeys_lru, stop),
        cmocka_unit_test_teardown(on_each_primary_of_a_cluster, stop),
        cmocka_unit_test_teardown(a_store_with_room_again_takes_new_keys, stop),
        cmocka_unit_test_teardown(leases_of_new_keys_are_decided_here, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
