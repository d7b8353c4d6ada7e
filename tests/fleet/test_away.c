/* Tests a fleet whose store is absent, appears, disappears, hangs, or cannot be found. */
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <semaphore.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "support/fleet/fleet_open.h"
#include "support/store/redis_world.h"

#define SHORT_NS (5 * WEIR_MILLISECOND)

static struct redis_world world;

static struct weir_answer check(struct weir_fleet_limit *limit, const char *key)
{
    struct weir_answer a;
    assert_int_equal(weir_fleet_check(limit, key, strlen(key), 1, &a), 0);
    return a;
}

/* One limit for each policy, all at one store. */
struct policies {
    struct weir_fleet *fleet;
    struct weir_fleet_limit *limit[3];
};

static void open_policies(struct policies *p, const char *url, const char *name, uint64_t deadline)
{
    p->fleet = fleet_open_at(url, 0, deadline);
    for (int i = 0; i < 3; i++) {
        char full[64];
        (void)snprintf(full, sizeof full, "%s%d", name, i);
        struct weir_fleet_limit_options o = fleet_hourly(full, 1000);
        o.on_store_failure = i;
        p->limit[i] = fleet_limit_of(p->fleet, &o);
    }
}

static void close_policies(struct policies *p)
{
    for (int i = 0; i < 3; i++) {
        weir_fleet_limit_close(p->limit[i]);
    }
    weir_fleet_close(p->fleet);
}

static void assert_degraded(const struct policies *p, const char *key)
{
    struct weir_answer local = check(p->limit[WEIR_FLEET_LOCAL], key);
    struct weir_answer open = check(p->limit[WEIR_FLEET_OPEN], key);
    struct weir_answer closed = check(p->limit[WEIR_FLEET_CLOSED], key);
    assert_int_equal(local.flags, WEIR_FLAG_DEGRADED);
    assert_int_equal(open.verdict, WEIR_ALLOW);
    assert_int_equal(open.flags, WEIR_FLAG_DEGRADED);
    assert_int_equal(closed.verdict, WEIR_DENY);
    assert_int_equal(closed.flags, WEIR_FLAG_DEGRADED | WEIR_FLAG_CLOSED);
}

static void a_store_that_comes_later_is_found(void **state)
{
    struct policies p;
    redis_node_kill(&world.node[0]);
    open_policies(&p, world.url, "absent", SHORT_NS);
    for (int i = 0; i < 20; i++) {
        assert_degraded(&p, "k");
    }
    assert_int_equal(fleet_stats_of(p.fleet).up, 0);
    assert_in_range(fleet_stats_of(p.fleet).degraded, 60, 60);
    redis_node_start(&world.node[0]);
    uint64_t begun = clock_monotonic_ns();
    assert_true(fleet_await_store(p.limit[WEIR_FLEET_CLOSED]));
    print_message("found %.1f ms after its start\n", (double)(clock_monotonic_ns() - begun) / 1e6);
    close_policies(&p);
    redis_node_await(&world.node[0]);
}

struct stream {
    struct weir_fleet_limit *limit;
    uint64_t stop;
    uint64_t asked, degraded, slowest_ns;
};

static void *keep_asking(void *arg)
{
    struct stream *s = arg;
    while (load_acquire(&s->stop) == 0) {
        uint64_t begun = clock_monotonic_ns();
        struct weir_answer a;
        assert_int_equal(weir_fleet_check(s->limit, "k", 1, 1, &a), 0);
        uint64_t took = clock_monotonic_ns() - begun;
        s->slowest_ns = took > s->slowest_ns ? took : s->slowest_ns;
        (void)fetch_add(&s->degraded, (a.flags & WEIR_FLAG_DEGRADED) != 0);
        s->asked++;
    }
    return NULL;
}

/* Keeps asking while something happens to the store. Returns what was counted. */
static struct stream stream_through(struct policies *p, void (*happens)(const struct stream *))
{
    struct stream s = {.limit = p->limit[WEIR_FLEET_OPEN]};
    pthread_t thread;
    assert_true(fleet_await_store(s.limit));
    assert_int_equal(pthread_create(&thread, NULL, keep_asking, &s), 0);
    happens(&s);
    assert_true(fleet_await_store(p->limit[WEIR_FLEET_CLOSED]));
    store_release(&s.stop, 1);
    (void)pthread_join(thread, NULL);
    print_message("%llu asked, %llu of them degraded, the slowest after %.1f ms\n",
                  (unsigned long long)s.asked, (unsigned long long)s.degraded,
                  (double)s.slowest_ns / 1e6);
    return s;
}

static void until_degraded(const struct stream *s)
{
    while (load_acquire(&s->degraded) == 0) {
        redis_look_again_soon();
    }
}

static void kill_and_restart(const struct stream *s)
{
    redis_node_kill(&world.node[0]);
    until_degraded(s);
    redis_node_start(&world.node[0]);
    redis_node_await(&world.node[0]);
}

static void pause_and_resume(const struct stream *s)
{
    redis_node_pause(&world.node[0]);
    until_degraded(s);
    redis_node_resume(&world.node[0]);
}

static void a_store_that_is_killed_and_comes_back_leaves_nobody_waiting(void **state)
{
    struct policies p;
    open_policies(&p, world.url, "killed", 50 * WEIR_MILLISECOND);
    struct stream s = stream_through(&p, kill_and_restart);
    assert_true(s.degraded > 0);
    assert_true(s.asked > s.degraded);
    assert_in_range(s.slowest_ns, 0, 10 * 50 * WEIR_MILLISECOND);
    close_policies(&p);
}

static void a_store_that_hangs_leaves_nobody_waiting(void **state)
{
    struct policies p;
    open_policies(&p, world.url, "hangs", 50 * WEIR_MILLISECOND);
    struct stream s = stream_through(&p, pause_and_resume);
    assert_true(s.degraded > 0);
    assert_in_range(s.slowest_ns, 50 * WEIR_MILLISECOND, 10 * 50 * WEIR_MILLISECOND);
    close_policies(&p);
}

/* ---- the state with which local continues ---- */

static struct weir_answer check_until(struct weir_fleet_limit *limit, unsigned flags)
{
    uint64_t end = clock_monotonic_ns() + 10 * WEIR_SECOND;
    struct weir_answer a = check(limit, "k");
    while (a.flags != flags && clock_monotonic_ns() < end) {
        redis_look_again_soon();
        a = check(limit, "k");
    }
    assert_int_equal(a.flags, flags);
    return a;
}

/* Nearly all of the 100,000 units are left, and this node's part of them is thousands. A key that
 * began with nothing would only have what refills, 28 a second. */
static void local_goes_on_with_what_remained_in_every_mode(void **state)
{
    static const char *const name[] = {[WEIR_FLEET_EXACT] = "exactly",
                                       [WEIR_FLEET_LEASED] = "leased",
                                       [WEIR_FLEET_SYNCED] = "synced"};
    struct weir_fleet *fleet = fleet_open_at(world.url, 0, 50 * WEIR_MILLISECOND);
    struct weir_fleet_limit *limit[4];
    for (int mode = WEIR_FLEET_EXACT; mode <= WEIR_FLEET_SYNCED; mode++) {
        struct weir_fleet_limit_options o = fleet_hourly(name[mode], 100000);
        o.consistency = mode;
        limit[mode] = fleet_limit_of(fleet, &o);
        assert_true(fleet_await_store(limit[mode]));
        (void)check_until(limit[mode], 0);
    }
    uint64_t calls = fleet_stats_of(fleet).calls;
    while (fleet_stats_of(fleet).calls <
           calls + 3) { /* one of them is an exchange of the synced limit */
        (void)check(limit[WEIR_FLEET_SYNCED], "k");
        redis_look_again_soon();
    }
    redis_node_kill(&world.node[0]);
    for (int mode = WEIR_FLEET_EXACT; mode <= WEIR_FLEET_SYNCED; mode++) {
        struct weir_answer a = check_until(limit[mode], WEIR_FLAG_DEGRADED);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        assert_in_range(a.remaining, 2000,
                        100000); /* this node's part: few nodes were seen lately */
        weir_fleet_limit_close(limit[mode]);
    }
    weir_fleet_close(fleet);
    redis_node_start(&world.node[0]);
    redis_node_await(&world.node[0]);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void deadlines_are_kept_to_a_fraction_of_a_millisecond(void **state)
{
    enum { N = 4 }; /* the fifth failure opens the breaker */
    static const uint64_t deadlines[] = {WEIR_MILLISECOND, 3 * WEIR_MILLISECOND,
                                         5 * WEIR_MILLISECOND};
    for (size_t d = 0; d < sizeof deadlines / sizeof deadlines[0]; d++) {
        struct policies p;
        uint64_t took[N];
        open_policies(&p, world.url, "exactly", deadlines[d]);
        assert_true(fleet_await_store(p.limit[WEIR_FLEET_CLOSED]));
        redis_node_pause(&world.node[0]);
        for (int i = 0; i < N; i++) {
            uint64_t begun = clock_monotonic_ns();
            (void)check(p.limit[WEIR_FLEET_CLOSED], "k");
            took[i] = clock_monotonic_ns() - begun;
        }
        redis_node_resume(&world.node[0]);
        qsort(took, N, sizeof took[0], by_size);
        print_message("deadline %llu ms: %.2f, %.2f, %.2f, %.2f ms\n",
                      (unsigned long long)(deadlines[d] / WEIR_MILLISECOND), (double)took[0] / 1e6,
                      (double)took[1] / 1e6, (double)took[2] / 1e6, (double)took[3] / 1e6);
        assert_true(took[0] < deadlines[d] + 50 * WEIR_MILLISECOND);
        close_policies(&p);
    }
}

/* ---- closing ---- */

struct inbox {
    uint64_t answered, degraded;
};

static void note(void *arg, int error, const struct weir_answer *answer)
{
    struct inbox *in = arg;
    (void)fetch_add(&in->answered, 1);
    (void)fetch_add(&in->degraded, error == 0 && (answer->flags & WEIR_FLAG_DEGRADED) != 0);
}

static void closing_answers_each_question_that_is_out_once(void **state)
{
    static struct inbox in[500];
    struct policies p;
    open_policies(&p, world.url, "closing", 10 * WEIR_SECOND);
    assert_true(fleet_await_store(p.limit[WEIR_FLEET_OPEN]));
    redis_node_pause(&world.node[0]);
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        struct weir_question q = {.key = "k", .key_len = 1, .cost = 1};
        struct weir_answer a;
        assert_int_equal(weir_fleet_ask(p.limit[i % 3], &q, &a, note, &in[i]), 0);
    }
    uint64_t begun = clock_monotonic_ns();
    close_policies(&p);
    uint64_t took = clock_monotonic_ns() - begun;
    redis_node_resume(&world.node[0]);
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        assert_int_equal(load_acquire(&in[i].answered), 1);
        assert_int_equal(load_acquire(&in[i].degraded), 1);
    }
    assert_in_range(took, 0, 5 * WEIR_SECOND); /* half of the deadline */
}

/* ---- where there is no store ---- */

static void an_address_where_nobody_answers_costs_a_deadline_at_most(void **state)
{
    static const char *const urls[] = {
        "redis://192.0.2.1:6379",            /* reserved for documentation: a black hole, or
                                              * unreachable */
        "redis://no-such-host.invalid:6379", /* no such name */
        "redis://127.0.0.1:1",               /* refused */
        "redis:///no/such/socket",           /* no such file */
        "redis://no-such-host.invalid,127.0.0.1:1",
        "redis-sentinel://127.0.0.1:1/master", /* no Sentinel to ask */
        "redis-cluster://127.0.0.1:1",
    };
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct policies p;
        open_policies(&p, urls[i], "nowhere", SHORT_NS);
        uint64_t begun = clock_monotonic_ns();
        for (int j = 0; j < 5; j++) {
            assert_degraded(&p, "k");
        }
        uint64_t took = clock_monotonic_ns() - begun;
        close_policies(&p);
        print_message("%s: 15 answers in %.1f ms, closed in %.1f ms\n", urls[i], (double)took / 1e6,
                      (double)(clock_monotonic_ns() - begun - took) / 1e6);
        assert_in_range(took, 0, 15 * 10 * SHORT_NS);
    }
}

/* Returns false on very small systems, which do not know the name. */
static bool has_localhost(void)
{
    struct addrinfo *found = NULL;
    bool has = getaddrinfo("localhost", NULL, NULL, &found) == 0;
    if (has) {
        freeaddrinfo(found);
    }
    return has;
}

static void names_and_both_kinds_of_addresses_and_sockets_are_understood(void **state)
{
    char urls[4][300];
    (void)snprintf(urls[0], sizeof urls[0], "redis://localhost:%u", world.node[0].port);
    (void)snprintf(urls[1], sizeof urls[1], "redis://127.0.0.1:%u/3", world.node[0].port);
    (void)snprintf(urls[2], sizeof urls[2], "redis://%s/socket", world.node[0].folder);
    (void)snprintf(urls[3], sizeof urls[3], "redis://127.0.0.1:1,localhost:%u", world.node[0].port);
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct policies p;
        if (strstr(urls[i], "localhost") != NULL && !has_localhost()) {
            continue;
        }
        open_policies(&p, urls[i], "found", 0);
        assert_true(fleet_await_store(p.limit[WEIR_FLEET_CLOSED]));
        close_policies(&p);
    }
}

static int start_redis(void **state)
{
    const char *const extra[] = {"--unixsocket", "socket", NULL};
    const struct redis_world_options o = {.extra = extra};
    redis_world_alone(&world, &o);
    return 0;
}

static int stop_redis(void **state)
{
    redis_world_stop(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_that_comes_later_is_found),
        cmocka_unit_test(a_store_that_is_killed_and_comes_back_leaves_nobody_waiting),
        cmocka_unit_test(a_store_that_hangs_leaves_nobody_waiting),
        cmocka_unit_test(local_goes_on_with_what_remained_in_every_mode),
        cmocka_unit_test(deadlines_are_kept_to_a_fraction_of_a_millisecond),
        cmocka_unit_test(closing_answers_each_question_that_is_out_once),
        cmocka_unit_test(an_address_where_nobody_answers_costs_a_deadline_at_most),
        cmocka_unit_test(names_and_both_kinds_of_addresses_and_sockets_are_understood),
    };
    return cmocka_run_group_tests(tests, start_redis, stop_redis);
}
