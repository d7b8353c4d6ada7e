/*
 * TLS to a store that changes while it is used: another master by Sentinels, another primary of a
 * Cluster, other certificates on both sides.
 */
// test-timeout: 300
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "fleet/fleet.h"
#include "support/fleet/fleet_open.h"
#include "support/store/fault_proxy.h"
#include "support/store/redis_world.h"

static struct certificates certs;
static struct redis_world world;
static struct redis_world_options secured;
static struct redis_tls tls;

static const char *path(const char *file)
{
    return certificates_path(&certs, file);
}

static int start_certificates(void **state)
{
    certificates_make(&certs);
    tls = (struct redis_tls){&certs, NULL, true};
    secured = (struct redis_world_options){.tls = &tls};
    return 0;
}

static int stop_certificates(void **state)
{
    certificates_remove(&certs);
    return 0;
}

static int stop(void **state)
{
    redis_world_stop(&world);
    return 0;
}

static struct weir_fleet_options with_certificate(const char *ca, const char *cert, const char *key)
{
    return (struct weir_fleet_options){
        .tls_ca = path(ca), .tls_cert = path(cert), .tls_key = path(key)};
}

static struct weir_fleet *open_client(const char *url)
{
    return fleet_open_with(url, with_certificate("ca.crt", "client.crt", "client.key"));
}

/* ---- Sentinel and Cluster ---- */

static void the_master_that_sentinels_name_is_reached_by_tls(void **state)
{
    redis_world_sentinel(&world, &secured);
    assert_memory_equal(world.url, "rediss-sentinel://", 18);
    struct weir_fleet *fleet = open_client(world.url);
    struct weir_fleet_limit_options l = fleet_hourly("sentinel", 100000);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &l);
    assert_true(fleet_await_store(limit));
    assert_int_not_equal(redis_world_failover(&world), -1);
    assert_true(fleet_await_store(limit));
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

static void ask_all_slots(struct weir_fleet_limit *limit)
{
    for (unsigned i = 0; i < 300; i++) {
        char key[16];
        struct weir_answer a;
        int len = snprintf(key, sizeof key, "key-%u", i);
        assert_int_equal(weir_fleet_check(limit, key, (size_t)len, 1, &a), 0);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        assert_int_equal(a.flags & WEIR_FLAG_DEGRADED, 0);
    }
}

static void all_nodes_of_a_cluster_are_reached_by_tls(void **state)
{
    redis_world_cluster(&world, &secured);
    assert_memory_equal(world.url, "rediss-cluster://", 17);
    struct weir_fleet *fleet = open_client(world.url);
    struct weir_fleet_limit_options l = fleet_hourly("cluster", 100000);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &l);
    assert_true(fleet_await_store(limit));
    ask_all_slots(limit);
    assert_true(fleet_stats_of(fleet).up >= REDIS_PRIMARIES);
    (void)redis_world_promote(&world, 0);
    assert_true(fleet_await_store(limit));
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

static void nodes_of_a_cluster_need_the_server_name_that_is_given(void **state)
{
    struct weir_error error = {.text = ""};
    redis_world_cluster(&world, &secured);
    struct weir_fleet_options o = with_certificate("ca.crt", "client.crt", "client.key");
    o.tls_server_name = "localhost"; /* the nodes are announced as 127.0.0.1 */
    struct weir_fleet *fleet = fleet_open_with(world.url, o);
    struct weir_fleet_limit_options l = fleet_hourly("name", 100000);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &l);
    assert_true(fleet_await_store(limit));
    ask_all_slots(limit);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
    o.tls_server_name = "cluster.test";
    fleet = fleet_open_with(world.url, o);
    uint64_t end = redis_now_ms() + 20000;
    while (weir_fleet_trouble(fleet, &error) == 0 && redis_now_ms() < end) {
        redis_look_again_soon();
    }
    assert_non_null(strstr(error.text, "TLS: the certificate is not for cluster.test"));
    weir_fleet_close(fleet);
}

/* ---- renewal ---- */

static struct weir_fleet_limit *asked;
static uint64_t asking, answers, degraded;

static void *ask_on(void *arg)
{
    while (load_acquire(&asking) == 1) {
        struct weir_answer a;
        int e = weir_fleet_check(asked, "k", 1, 1, &a);
        count_shared(&answers, e == 0);
        count_shared(&degraded, e != 0 || (a.flags & WEIR_FLAG_DEGRADED) != 0);
    }
    return arg;
}

/* Waits until so many more questions were answered. */
static void await_answers(uint64_t more)
{
    uint64_t end = redis_now_ms() + 60000;
    uint64_t until = load_acquire(&answers) + more;
    while (load_acquire(&answers) < until) {
        assert_true(redis_now_ms() < end);
        redis_look_again_soon();
    }
}

static void make_mine(const char *issuer)
{
    certificates_add(&certs, &(struct certificate){"mine", issuer, "mine", NULL, -60, 3600});
}

/* Lets mine-ca.crt, a symbolic link, lead to another file, as Kubernetes does for a secret. */
static void link_ca(const char *to)
{
    assert_int_equal(symlink(path(to), path("mine-ca.new")), 0);
    assert_int_equal(rename(path("mine-ca.new"), path("mine-ca.crt")), 0);
}

/* Makes the store use certificates of another CA, and refuse those of the first one. */
static void move_store_to_other_ca(void)
{
    char cert[160];
    const char *reply;
    (void)snprintf(cert, sizeof cert, "%s", path("other.crt"));
    reply = redis_node_run(&world.node[0],
                           "CONFIG SET tls-cert-file %s tls-key-file %s tls-ca-cert-file %s", cert,
                           path("other.key"), path("other-ca.crt"));
    assert_non_null(reply);
    assert_string_equal(reply, "OK");
}

static void assert_trouble(struct weir_fleet *fleet, const char *text)
{
    struct weir_error error;
    fleet_tls_trouble(fleet, &error);
    if (text[0] == 0 ? error.text[0] != 0 : strstr(error.text, text) == NULL) {
        fail_msg("'%s' is not '%s'", error.text, text);
    }
}

/* Ends all connections, and waits until the store answers on a new one. */
static void reconnect(struct fault_proxy *proxy)
{
    uint64_t before = fault_proxy_counts(proxy).accepted;
    fault_proxy_reset(proxy);
    assert_true(fleet_await_store(asked));
    await_answers(100);
    assert_true(fault_proxy_counts(proxy).accepted > before);
}

static void new_certificates_are_used_by_new_connections_and_end_no_old_one(void **state)
{
    char url[64];
    pthread_t thread;
    make_mine("ca");
    link_ca("ca.crt");
    redis_world_alone(&world, &secured);
    struct fault_proxy *proxy = fault_proxy_start(world.node[0].public_port);
    (void)snprintf(url, sizeof url, "rediss://127.0.0.1:%u", fault_proxy_port(proxy));
    struct weir_fleet *fleet =
        fleet_open_with(url, with_certificate("mine-ca.crt", "mine.crt", "mine.key"));
    struct weir_fleet_limit_options l = fleet_hourly("renewed", 100000000);
    asked = fleet_limit_of(fleet, &l);
    assert_true(fleet_await_store(asked));
    store_release(&asking, 1);
    assert_int_equal(pthread_create(&thread, NULL, ask_on, NULL), 0);
    await_answers(100);

    move_store_to_other_ca();
    make_mine("other-ca");
    link_ca("other-ca.crt");
    await_answers(500);
    assert_int_equal(load_acquire(&degraded), 0);
    assert_int_equal(fault_proxy_counts(proxy).accepted, 1);
    reconnect(proxy);
    assert_trouble(fleet, "");

    FILE *bad = fopen(path("mine.crt"), "w");
    assert_non_null(bad);
    assert_true(fputs("not a certificate\n", bad) >= 0 && fclose(bad) == 0);
    reconnect(proxy);
    assert_trouble(fleet, "mine.crt: expected a certificate in PEM form");
    make_mine("other-ca");
    reconnect(proxy);
    assert_trouble(fleet, "");

    store_release(&asking, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    weir_fleet_limit_close(asked);
    weir_fleet_close(fleet);
    fault_proxy_stop(proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_master_that_sentinels_name_is_reached_by_tls, stop),
        cmocka_unit_test_teardown(all_nodes_of_a_cluster_are_reached_by_tls, stop),
        cmocka_unit_test_teardown(nodes_of_a_cluster_need_the_server_name_that_is_given, stop),
        cmocka_unit_test_teardown(new_certificates_are_used_by_new_connections_and_end_no_old_one,
                                  stop),
    };
    return cmocka_run_group_tests(tests, start_certificates, stop_certificates);
}
