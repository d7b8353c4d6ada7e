// test-timeout: 300
/*
 * Tests the faults of the network and of Redis, one row each, under continuous questions: all of
 * them are answered, in time and once; the store admits no more than it should; answers without the
 * store are marked; and the fleet recovers by itself when the fault is over.
 */
#include <arpa/inet.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/store/fault_proxy.h"
#include "support/fleet/fleet_open.h"
#include "support/fleet/fleet_traffic.h"
#include "support/store/redis_world.h"

#define DEADLINE_NS (200 * WEIR_MILLISECOND)
#define FAULT_MS 600 /* several deadlines */
#define NODES 4

/* The limits: the policy without the store, and the quota. */
enum { WIDE, CLOSED, LOCAL, OPEN };

static const struct {
    const char *name;
    int policy;
    uint64_t quota;
} limits[TRAFFIC_LIMITS] = {[WIDE] = {"wide", WEIR_FLEET_CLOSED, 1000000},
                            [CLOSED] = {"closed", WEIR_FLEET_CLOSED, 500},
                            [LOCAL] = {"local", WEIR_FLEET_LOCAL, 500},
                            [OPEN] = {"open", WEIR_FLEET_OPEN, 500}};

static struct redis_world world;
static struct fault_proxy *proxy;

/* ---- faults ---- */

static void set(const struct faults *faults)
{
    fault_proxy_set(proxy, faults);
}

#define FAULT(name, ...)                                                                           \
    static void name(void)                                                                         \
    {                                                                                              \
        set(&(struct faults){__VA_ARGS__});                                                        \
    }
FAULT(be_slow, .delay_us = 450000)
FAULT(be_late_now_and_then, .delay_us = 500, .jitter_us = 4000)
FAULT(send_in_pieces, .slice = 61)
FAULT(hold_requests, .to_server = FAULT_HOLD)
FAULT(hold_replies, .to_client = FAULT_HOLD)
FAULT(lose_requests, .to_server = FAULT_DROP)
FAULT(lose_replies, .to_client = FAULT_DROP)
FAULT(be_half_open, .half_open = true)
FAULT(be_a_black_hole, .black_hole = true)

static void heal(void)
{
    set(NULL);
}

static void reset_and_refuse(void)
{
    set(&(struct faults){.refuse = true});
    fault_proxy_reset(proxy);
}

static void reset_once(void)
{
    fault_proxy_reset(proxy);
}

static void lose_and_reset(void)
{
    heal();
    fault_proxy_reset(proxy);
}

static void pause_redis(void)
{
    redis_node_pause(&world.node[0]);
}

static void resume_redis(void)
{
    redis_node_resume(&world.node[0]);
}

static void kill_redis(void)
{
    redis_node_kill(&world.node[0]);
}

static void restart_redis(void)
{
    redis_node_restart_empty(&world.node[0]);
}

static void flush_scripts(void)
{
    assert_string_equal(redis_node_run(&world.node[0], "SCRIPT FLUSH"), "OK");
}

static void flush_all(void)
{
    assert_string_equal(redis_node_run(&world.node[0], "FLUSHALL"), "OK");
}

static void be_out_of_memory(void)
{
    assert_string_equal(redis_node_run(&world.node[0], "CONFIG SET maxmemory 1"), "OK");
}

static void have_memory(void)
{
    assert_string_equal(redis_node_run(&world.node[0], "CONFIG SET maxmemory 0"), "OK");
}

static void want_replicas(void)
{
    assert_string_equal(redis_node_run(&world.node[0], "CONFIG SET min-replicas-to-write 1"), "OK");
}

static void want_none(void)
{
    assert_string_equal(redis_node_run(&world.node[0], "CONFIG SET min-replicas-to-write 0"), "OK");
}

static void be_a_replica(void)
{
    assert_string_equal(redis_node_run(&world.node[0], "REPLICAOF 127.0.0.1 1"), "OK");
}

static void be_a_master(void)
{
    assert_string_equal(redis_node_run(&world.node[0], "REPLICAOF NO ONE"), "OK");
}

static int busy;

/* Its reply comes only when the script is killed, so the test does not wait for it. */
static void be_busy(void)
{
    static const char loop[] = "*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n";
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)world.node[0].port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    assert_string_equal(redis_node_run(&world.node[0], "CONFIG SET busy-reply-threshold 20"), "OK");
    busy = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(busy, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(busy, loop, sizeof loop - 1, 0), sizeof loop - 1);
}

static void kill_script(void)
{
    assert_string_equal(redis_node_run(&world.node[0], "SCRIPT KILL"), "OK");
    (void)close(busy);
}

static void nothing(void)
{
}

/* Whether answers become degraded. After a reset the connection may be back before the next
 * question. */
enum harm { NONE, PERHAPS, SOME };

static const struct fault {
    const char *name;
    void (*begin)(void);
    void (*end)(void);
    enum harm harm;
    unsigned lost; /* how many full limits more may be admitted, because the store has forgotten */
} faults[] = {
    {"late now and then", be_late_now_and_then, heal, NONE, 0},
    {"in small pieces", send_in_pieces, heal, NONE, 0},
    {"connections reset once", reset_once, nothing, PERHAPS, 0},
    {"connections reset and refused", reset_and_refuse, heal, SOME, 0},
    {"replies far too late", be_slow, heal, SOME, 0},
    {"requests held up", hold_requests, heal, SOME, 0},
    {"replies held up", hold_replies, heal, SOME, 0},
    {"requests lost", lose_requests, lose_and_reset, SOME, 0},
    {"replies lost", lose_replies, lose_and_reset, SOME, 0},
    {"half open", be_half_open, lose_and_reset, SOME, 0},
    {"black hole", be_a_black_hole, heal, SOME, 0},
    {"stopped and continued", pause_redis, resume_redis, SOME, 0},
    {"killed, and started empty", kill_redis, restart_redis, SOME, 1},
    {"scripts flushed", flush_scripts, nothing, NONE, 0},
    {"data flushed", flush_all, nothing, NONE, 1},
    {"out of memory", be_out_of_memory, have_memory, SOME, 0},
    {"not enough replicas", want_replicas, want_none, SOME, 0},
    {"read only", be_a_replica, be_a_master, SOME, 1},
    {"busy with a script", be_busy, kill_script, SOME, 0},
};

/* ---- a world ---- */

static void open_traffic(struct traffic *t, const char *key)
{
    char url[64];
    *t = (struct traffic){.limits = TRAFFIC_LIMITS, .key = key};
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%u", fault_proxy_port(proxy));
    struct weir_fleet_options o = WEIR_FLEET_OPTIONS_INIT;
    struct weir_error error;
    o.url = url;
    o.flags = WEIR_FLEET_CALLERS_LOOP;
    o.deadline_ns = DEADLINE_NS;
    o.fleet_size = NODES;
    if (weir_fleet_open(&t->fleet, &o, &error) != 0) {
        fail_msg("%s", error.text);
    }
    for (unsigned i = 0; i < TRAFFIC_LIMITS; i++) {
        struct weir_fleet_limit_options l = fleet_hourly(limits[i].name, limits[i].quota);
        l.limit.period_ns = 1000 * WEIR_DAY; /* nothing refills */
        l.on_store_failure = limits[i].policy;
        t->limit[i] = fleet_limit_of(t->fleet, &l);
    }
}

static void close_traffic(struct traffic *t)
{
    for (unsigned i = 0; i < TRAFFIC_LIMITS; i++) {
        weir_fleet_limit_close(t->limit[i]);
    }
    weir_fleet_close(t->fleet);
}

static uint64_t degraded(const struct traffic *t)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < TRAFFIC_LIMITS; i++) {
        n += t->count[i].degraded + t->count[i].refused;
    }
    return n;
}

/* Checks that no more was admitted than the bounds allow. */
static void check_admitted(const struct traffic *t, const struct fault *f)
{
    for (unsigned i = CLOSED; i <= OPEN; i++) {
        uint64_t most = limits[i].quota * (1 + f->lost);
        assert_in_range(t->count[i].plain, 1, most);
    }
    assert_int_equal(t->count[WIDE].degraded + t->count[CLOSED].degraded, 0);
    assert_in_range(t->count[LOCAL].degraded, 0, limits[LOCAL].quota / NODES);
}

/* Checks that each question was charged at most once: the units that the store counted were asked
 * for, and were admitted or their replies lost. */
static void check_charged(struct traffic *t, const struct fault *f)
{
    int64_t charged = traffic_charged(t, WIDE, limits[WIDE].quota);
    assert_in_range(charged, f->lost > 0 ? 0 : t->count[WIDE].plain, t->count[WIDE].asked);
    if (f->lost == 0 && fleet_stats_of(t->fleet).unknown == 0) {
        assert_int_equal(charged, t->count[WIDE].plain);
    }
}

/* Runs one fault. Returns how many answers were degraded while it lasted. */
static uint64_t suffer(const struct fault *f)
{
    static unsigned number;
    struct traffic t;
    char key[32];
    (void)snprintf(key, sizeof key, "key%u", number++);
    open_traffic(&t, key);
    assert_true(traffic_until_good(&t) >= 0);
    traffic_run(&t, 150);
    uint64_t before = degraded(&t);
    t.longest_ns = 0;
    f->begin();
    traffic_run(&t, FAULT_MS);
    uint64_t during = degraded(&t) - before;
    f->end();
    int recovered_ms = traffic_until_good(&t);
    traffic_run(&t, 100);
    assert_true(traffic_drain(&t));
    printf("%-32s %5llu asked, %5llu degraded, longest %3llu ms, good after %4d ms\n", f->name,
           (unsigned long long)t.count[WIDE].asked, (unsigned long long)during,
           (unsigned long long)(t.longest_ns / WEIR_MILLISECOND), recovered_ms);
    assert_true(recovered_ms >= 0);
    assert_true(t.longest_ns < 10 * DEADLINE_NS);
    assert_int_equal(t.twice, 0);
    check_admitted(&t, f);
    check_charged(&t, f);
    close_traffic(&t);
    return during;
}

/* A busy machine may delay answers by itself, so a harmless fault is tried several times. */
static void suffer_as_told(const struct fault *f)
{
    uint64_t during = suffer(f);
    for (unsigned again = 0; f->harm == NONE && during > 0 && again < 4; again++) {
        during = suffer(f);
    }
    assert_true(f->harm == PERHAPS || (during > 0) == (f->harm == SOME));
}

static int open_world(void **state)
{
    redis_world_alone(&world, NULL);
    proxy = fault_proxy_start(world.node[0].port);
    return 0;
}

static int close_world(void **state)
{
    fault_proxy_stop(proxy);
    redis_world_stop(&world);
    return 0;
}

static void whatever_happens_every_question_is_answered_and_the_store_comes_back(void **state)
{
    for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        suffer_as_told(&faults[i]);
    }
}

/* Returns the heap bytes in use after one more fault, when everything is answered again. */
static size_t used_after_fault(struct traffic *t)
{
    reset_and_refuse();
    traffic_run(t, 300);
    heal();
    assert_true(traffic_until_good(t) >= 0);
    assert_true(traffic_drain(t));
    return mallinfo2().uordblks;
}

#define FIRST_LAPS 4 /* in these, buffers reach their size */
#define CALM_LAPS 6
#define LAPS_MOST 40

/*
 * When the machine has delayed the test, a burst of questions makes buffers larger for good. So
 * memory may grow now and then; but a leak would grow within any six faults in a row.
 */
static void faults_that_come_again_and_again_cost_no_memory(void **state)
{
    struct traffic t;
    open_traffic(&t, "again");
    assert_true(traffic_until_good(&t) >= 0);
    size_t used = 0;
    unsigned calm = 0;
    for (unsigned lap = 0; calm < CALM_LAPS; lap++) {
        size_t now = used_after_fault(&t);
        bool grown = lap < FIRST_LAPS || now >= used + 65536;
        assert_true(lap < LAPS_MOST);
        used = grown ? now : used;
        calm = grown ? 0 : calm + 1;
    }
    close_traffic(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_happens_every_question_is_answered_and_the_store_comes_back),
        cmocka_unit_test(faults_that_come_again_and_again_cost_no_memory),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
