/*
 * Tests a store that answers PING but refuses calls: it steadily counts as away, and the reported
 * error says why, until it accepts calls again. Each row brings a real redis-server into such a
 * state.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "support/fleet/fleet_open.h"
#include "support/store/redis_alone.h"

#define DEADLINE_NS (50 * WEIR_MILLISECOND)
#define STEADY_NS (300 * WEIR_MILLISECOND) /* three times the maximum of the first probe */
#define PATIENCE_NS (20 * WEIR_SECOND)

static void say_ok(const char *command)
{
    const char *said = redis_node_run(&world.node[0], "%s", command);
    if (said == NULL || strcmp(said, "OK") != 0) {
        fail_msg("%s: %s", command, said != NULL ? said : "nothing");
    }
}

/* Makes Redis unable to write its dump, because a folder has that name. */
static void break_disk(char path[200])
{
    static const char *const save[] = {"CONFIG", "SET", "save", "3600 1"};
    (void)snprintf(path, 200, "%s/dump.rdb", world.node[0].folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_string_equal(redis_node_do(&world.node[0], save, 4), "OK");
    (void)redis_node_run(&world.node[0], "BGSAVE");
    uint64_t end = clock_monotonic_ns() + PATIENCE_NS;
    while (strncmp(redis_node_run(&world.node[0], "SET x y"), "-MISCONF", 8) != 0) {
        assert_true(clock_monotonic_ns() < end);
        redis_look_again_soon();
    }
}

static struct weir_answer check(struct weir_fleet_limit *limit)
{
    struct weir_answer a;
    assert_int_equal(weir_fleet_check(limit, "k", 1, 1, &a), 0);
    return a;
}

static void assert_away(struct weir_fleet *fleet, struct weir_fleet_limit *limit, const char *why)
{
    struct weir_error error;
    uint64_t end = clock_monotonic_ns() + PATIENCE_NS;
    while (fleet_stats_of(fleet).breakers_open == 0) {
        assert_int_equal(check(limit).flags, WEIR_FLAG_DEGRADED | WEIR_FLAG_CLOSED);
        assert_true(clock_monotonic_ns() < end);
    }
    for (end = clock_monotonic_ns() + STEADY_NS; clock_monotonic_ns() < end;) {
        assert_int_equal(fleet_stats_of(fleet).breakers_open, 1);
        assert_int_equal(check(limit).flags, WEIR_FLAG_DEGRADED | WEIR_FLAG_CLOSED);
        assert_int_equal(weir_fleet_trouble(fleet, &error), WEIR_EIO);
        assert_non_null(strstr(error.text, why));
        redis_look_again_soon();
    }
}

static void assert_back(struct weir_fleet *fleet, struct weir_fleet_limit *limit)
{
    struct weir_error error;
    uint64_t end = clock_monotonic_ns() + PATIENCE_NS;
    assert_true(fleet_await_store(limit));
    assert_int_equal(fleet_stats_of(fleet).breakers_open, 0);
    while (weir_fleet_trouble(fleet, &error) != 0) {
        assert_true(clock_monotonic_ns() < end);
        redis_look_again_soon();
    }
}

static void a_store_that_refuses_calls_is_away_until_it_takes_them(void **state)
{
    static const struct {
        const char *begin; /* NULL: break_disk() */
        const char *end;
        const char *why;
    } rows[] = {
        {"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", ": OOM "},
        {"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0",
         ": NOREPLICAS "},
        {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", ": READONLY"},
        {NULL, "CONFIG SET stop-writes-on-bgsave-error no", ": MISCONF "},
    };
    char path[200] = "";
    /* Memory is not watched: otherwise on_full would decide the key, not on_store_failure. */
    struct weir_fleet *fleet = fleet_open_with(
        world.url, (struct weir_fleet_options){.deadline_ns = DEADLINE_NS,
                                               .memory_high = WEIR_FLEET_MEMORY_IGNORED});
    struct weir_fleet_limit_options o = fleet_hourly("refusing", 1000000);
    o.on_store_failure = WEIR_FLEET_CLOSED;
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_true(fleet_await_store(limit));
        if (rows[i].begin != NULL) {
            say_ok(rows[i].begin);
        } else {
            break_disk(path);
        }
        assert_away(fleet, limit, rows[i].why);
        say_ok(rows[i].end);
        assert_back(fleet, limit);
    }
    assert_int_equal(rmdir(path), 0);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

/* The probe writes to the key of a call: it must neither create the key nor change its value. */
static void what_finds_out_writes_nothing(void **state)
{
    struct redis_node *n = &world.node[0];
    assert_string_equal(redis_node_do(n, (const char *const[]){"SETRANGE", "none", "0", ""}, 4),
                        "0");
    assert_string_equal(redis_node_run(n, "EXISTS none"), "0");
    assert_string_equal(redis_node_run(n, "SET some 12345 PX 100000"), "OK");
    assert_string_equal(redis_node_do(n, (const char *const[]){"SETRANGE", "some", "0", ""}, 4),
                        "5");
    assert_string_equal(redis_node_run(n, "GET some"), "12345");
    assert_string_not_equal(redis_node_run(n, "PTTL some"), "-1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_that_refuses_calls_is_away_until_it_takes_them),
        cmocka_unit_test(what_finds_out_writes_nothing),
    };
    return cmocka_run_group_tests(tests, start_redis, stop_redis);
}
