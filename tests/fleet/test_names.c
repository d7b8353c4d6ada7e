// test-labels: notsan
// notsan: descriptors that an abandoned loop has used are reused, which tsan takes for a race.
/* Tests host names of stores. The test replaces the resolver, which may hang, and which knows
 * several addresses, and which may lead to another store later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <dlfcn.h>
#include <netdb.h>
#include <semaphore.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "support/fleet/fleet_open.h"
#include "support/store/redis_world.h"

static struct redis_world world;
static struct redis_world other; /* the store that moved.test leads to later */
static uint64_t moved;           /* whether it does */
static sem_t go_on;
static uint64_t asked; /* how often slow.test was looked up */

typedef int (*resolve_fn)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static resolve_fn real(void)
{
    resolve_fn fn;
    void *found = dlsym(RTLD_NEXT, "getaddrinfo");
    memcpy(&fn, &found, sizeof fn);
    return fn;
}

/* Replaces the C library's function, for libuv too: slow.test hangs; two.test has two addresses,
 * and there is no listener at the first; moved.test is one store first, and another one later. */
__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **found)
{
    if (node != NULL && strcmp(node, "slow.test") == 0) {
        (void)fetch_add(&asked, 1);
        (void)sem_wait(&go_on);
        return EAI_FAIL;
    }
    if (node != NULL && strcmp(node, "two.test") == 0) {
        int e = real()("127.0.0.2", service, hints, found);
        return e != 0 ? e : real()("127.0.0.1", service, hints, &(*found)->ai_next);
    }
    if (node != NULL && strcmp(node, "moved.test") == 0) {
        char port[16];
        const struct redis_world *to = load_acquire(&moved) != 0 ? &other : &world;
        (void)snprintf(port, sizeof port, "%u", to->node[0].port);
        return real()("127.0.0.1", port, hints, found);
    }
    return real()(node, service, hints, found);
}

static struct weir_answer check(struct weir_fleet_limit *limit)
{
    struct weir_answer a;
    assert_int_equal(weir_fleet_check(limit, "k", 1, 1, &a), 0);
    return a;
}

static void the_next_address_of_a_name_is_tried(void **state)
{
    char url[100];
    (void)snprintf(url, sizeof url, "redis://two.test:%u", world.node[0].port);
    struct weir_fleet *fleet = fleet_open_at(url, 0, 0);
    struct weir_fleet_limit_options o = fleet_hourly("two", 10);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    assert_int_equal(check(limit).flags, 0);
    assert_int_equal(fleet_stats_of(fleet).breakers_open, 0);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

/* ---- a name that leads to another master, while the old one keeps its connections ---- */

#define MOVED_MOST_NS (2 * WEIR_SECOND)

static void demote(void)
{
    const char *said = redis_node_run(&world.node[0], "REPLICAOF 127.0.0.1 %u", other.node[0].port);
    assert_string_equal(said, "OK");
}

static void promote(void)
{
    assert_string_equal(redis_node_run(&world.node[0], "REPLICAOF NO ONE"), "OK");
    store_release(&moved, 0);
}

static void ask_in_vain_for(struct weir_fleet_limit *limit, uint64_t ns)
{
    uint64_t end = clock_monotonic_ns() + ns;
    while (clock_monotonic_ns() < end) {
        assert_int_equal(check(limit).flags & WEIR_FLAG_DEGRADED, WEIR_FLAG_DEGRADED);
        redis_look_again_soon();
    }
}

/* Makes the store of the name a replica, lets the name lead to the new master `later_ns` after
 * that, and checks that the new master answers soon. */
static void follow_the_name(const char *name, uint64_t later_ns)
{
    char url[100];
    (void)snprintf(url, sizeof url, "redis://moved.test:%u", world.node[0].port);
    struct weir_fleet *fleet = fleet_open_at(url, 0, 50 * WEIR_MILLISECOND);
    struct weir_fleet_limit_options o = fleet_hourly(name, 1000000);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    assert_true(fleet_await_store(limit));
    demote();
    ask_in_vain_for(limit, later_ns);
    store_release(&moved, 1);
    uint64_t begun = clock_monotonic_ns();
    assert_true(fleet_await_store(limit));
    uint64_t took = clock_monotonic_ns() - begun;
    print_message("%s: answered by the new master after %.0f ms\n", name, (double)took / 1e6);
    assert_in_range(took, 0, MOVED_MOST_NS);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
    promote();
}

static void a_name_that_leads_to_another_master_is_followed(void **state)
{
    follow_the_name("at once", 0);
    follow_the_name("later", 4 * WEIR_SECOND);
}

/* ROLE is forbidden, so only READONLY shows that this is not the master. */
static void it_is_followed_without_the_permission_to_ask_for_the_role(void **state)
{
    assert_string_equal(redis_node_run(&world.node[0], "ACL SETUSER default -role"), "OK");
    follow_the_name("without ROLE, at once", 0);
    follow_the_name("without ROLE, later", 4 * WEIR_SECOND);
    assert_string_equal(redis_node_run(&world.node[0], "ACL SETUSER default +role"), "OK");
}

static unsigned threads_now(void)
{
    DIR *d = opendir("/proc/self/task");
    unsigned n = 0;
    assert_non_null(d);
    while (readdir(d) != NULL) {
        n++;
    }
    (void)closedir(d);
    return n - 2;
}

static void until_asked(uint64_t least)
{
    while (load_acquire(&asked) < least) {
        redis_look_again_soon();
    }
}

static void a_resolver_that_hangs_holds_up_neither_answers_nor_the_end(void **state)
{
    struct weir_fleet *fleet = fleet_open_at("redis://slow.test", 0, 5 * WEIR_MILLISECOND);
    struct weir_fleet_limit_options o = fleet_hourly("slow", 10);
    o.on_store_failure = WEIR_FLEET_OPEN;
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    uint64_t begun = clock_monotonic_ns();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(check(limit).flags, WEIR_FLAG_DEGRADED);
    }
    until_asked(1);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
    uint64_t took = clock_monotonic_ns() - begun;
    print_message("asked and closed in %.1f ms\n", (double)took / 1e6);
    assert_in_range(took, 0, 2 * WEIR_SECOND);
}

static void the_callers_loop_does_not_wait_for_it_either(void **state)
{
    struct weir_fleet *fleet = fleet_open_at("redis://slow.test", WEIR_FLEET_CALLERS_LOOP, 0);
    struct weir_fleet_limit_options o = fleet_hourly("slow", 10);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    uint64_t before = load_acquire(&asked);
    while (load_acquire(&asked) == before) {
        (void)weir_fleet_run(fleet);
    }
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

/* The threads left behind by the two tests above end with the resolver's answers. */
static void threads_that_wait_for_the_resolver_end_with_its_answer(void **state)
{
    uint64_t end = clock_monotonic_ns() + 20 * WEIR_SECOND;
    unsigned before = threads_now();
    for (uint64_t i = 0; i < load_acquire(&asked); i++) {
        (void)sem_post(&go_on);
    }
    while (threads_now() > before - 2 && clock_monotonic_ns() < end) {
        redis_look_again_soon();
    }
    assert_int_equal(threads_now(), before - 2);
}

static int start_redis(void **state)
{
    (void)sem_init(&go_on, 0, 0);
    redis_world_alone(&other, NULL);
    redis_world_alone(&world, NULL);
    return 0;
}

static int stop_redis(void **state)
{
    redis_world_stop(&world);
    redis_world_stop(&other);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_address_of_a_name_is_tried),
        cmocka_unit_test(a_name_that_leads_to_another_master_is_followed),
        cmocka_unit_test(it_is_followed_without_the_permission_to_ask_for_the_role),
        cmocka_unit_test(a_resolver_that_hangs_holds_up_neither_answers_nor_the_end),
        cmocka_unit_test(the_callers_loop_does_not_wait_for_it_either),
        cmocka_unit_test(threads_that_wait_for_the_resolver_end_with_its_answer),
    };
    return cmocka_run_group_tests(tests, start_redis, stop_redis);
}
