/* TLS to the store: real Redis servers with certificates that the test makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/fleet/fleet_open.h"
#include "support/store/fault_proxy.h"
#include "support/store/redis_world.h"

#define PATIENCE_MS 20000

static struct certificates certs;
static struct redis_world world;

static const char *path(const char *file)
{
    return certificates_path(&certs, file);
}

static void start_with(const struct redis_tls *tls)
{
    redis_world_alone(&world, &(struct redis_world_options){.tls = tls});
}

static int start(void **state)
{
    start_with(&(struct redis_tls){&certs, NULL, false});
    return 0;
}

static int start_asking(void **state)
{
    start_with(&(struct redis_tls){&certs, NULL, true});
    return 0;
}

static int start_expired(void **state)
{
    start_with(&(struct redis_tls){&certs, "expired", false});
    return 0;
}

static int stop(void **state)
{
    redis_world_stop(&world);
    return 0;
}

/* ---- in and out ---- */

static void assert_gets_in_at(const char *url, struct weir_fleet_options o)
{
    struct weir_fleet *fleet = fleet_open_with(url, o);
    struct weir_fleet_limit_options l = fleet_hourly("in", 1000);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &l);
    struct weir_error error = {0};
    if (!fleet_await_store(limit)) {
        (void)weir_fleet_trouble(fleet, &error);
        fail_msg("%s", error.text);
    }
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

static void assert_gets_in(struct weir_fleet_options o)
{
    assert_gets_in_at(world.url, o);
}

static void await_trouble(struct weir_fleet *fleet, const char *why)
{
    struct weir_error error = {.text = ""};
    uint64_t end = redis_now_ms() + PATIENCE_MS;
    while (weir_fleet_trouble(fleet, &error) == 0 || strstr(error.text, why) == NULL) {
        if (redis_now_ms() > end) {
            fail_msg("'%s' lacks '%s'", error.text, why);
        }
        redis_look_again_soon();
    }
}

static void assert_stays_out_at(const char *url, struct weir_fleet_options o, const char *why)
{
    struct weir_fleet *fleet = fleet_open_with(url, o);
    await_trouble(fleet, why);
    assert_int_equal(fleet_stats_of(fleet).up, 0);
    weir_fleet_close(fleet);
}

static void assert_stays_out(struct weir_fleet_options o, const char *why)
{
    assert_stays_out_at(world.url, o, why);
}

static void a_store_with_a_good_certificate_is_used(void **state)
{
    char url[64];
    assert_gets_in((struct weir_fleet_options){.tls_ca = path("ca.crt")});
    assert_gets_in((struct weir_fleet_options){
        .tls_ca = path("ca.crt"), .tls_cert = path("client.crt"), .tls_key = path("client.key")});
    (void)snprintf(url, sizeof url, "rediss://localhost:%u", world.node[0].public_port);
    assert_gets_in_at(url, (struct weir_fleet_options){.tls_ca = path("ca.crt")});
}

static void a_server_name_is_verified_instead_of_the_host(void **state)
{
    assert_gets_in(
        (struct weir_fleet_options){.tls_ca = path("ca.crt"), .tls_server_name = "localhost"});
    assert_stays_out(
        (struct weir_fleet_options){.tls_ca = path("ca.crt"), .tls_server_name = "store.test"},
        "no connection (TLS: the certificate is not for store.test)");
}

static void a_store_of_another_ca_is_refused(void **state)
{
    assert_stays_out((struct weir_fleet_options){.tls_ca = path("other-ca.crt")},
                     "TLS: the peer's certificate is refused: self-signed certificate in");
    assert_stays_out((struct weir_fleet_options){0},
                     "TLS: the peer's certificate is refused: self-signed certificate in");
}

static void an_expired_store_is_refused(void **state)
{
    assert_stays_out((struct weir_fleet_options){.tls_ca = path("ca.crt")},
                     "TLS: the peer's certificate is refused: certificate has expired");
}

static void a_store_that_asks_for_a_certificate_gets_it(void **state)
{
    assert_gets_in((struct weir_fleet_options){
        .tls_ca = path("ca.crt"), .tls_cert = path("client.crt"), .tls_key = path("client.key")});
    assert_stays_out((struct weir_fleet_options){.tls_ca = path("ca.crt")},
                     "TLS: the peer refuses: tlsv13 alert certificate required");
    assert_stays_out((struct weir_fleet_options){.tls_ca = path("ca.crt"),
                                                 .tls_cert = path("other.crt"),
                                                 .tls_key = path("other.key")},
                     "TLS: the peer refuses: tlsv1 alert unknown ca");
}

/* ---- the wrong protocol ---- */

static void a_store_without_tls_is_told_apart(void **state)
{
    char url[64];
    (void)snprintf(url, sizeof url, "rediss://127.0.0.1:%u", world.node[0].port);
    assert_stays_out_at(url, (struct weir_fleet_options){.tls_ca = path("ca.crt")}, "TLS");
}

static void a_tls_port_without_tls_is_no_store(void **state)
{
    char url[64];
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%u", world.node[0].public_port);
    assert_stays_out_at(url, (struct weir_fleet_options){0}, "no connection");
}

/* ---- a network with faults ---- */

static void faults_between_node_and_store_are_survived(void **state)
{
    static const struct faults faults[] = {
        {.slice = 1}, {.slice = 7, .delay_us = 200}, {.delay_us = 3000, .jitter_us = 3000}};
    char url[64];
    struct weir_answer a;
    struct fault_proxy *proxy = fault_proxy_start(world.node[0].public_port);
    (void)snprintf(url, sizeof url, "rediss://127.0.0.1:%u", fault_proxy_port(proxy));
    struct weir_fleet *fleet =
        fleet_open_with(url, (struct weir_fleet_options){.tls_ca = path("ca.crt")});
    struct weir_fleet_limit_options l = fleet_hourly("faults", 100000);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &l);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        fault_proxy_set(proxy, &faults[i]);
        fault_proxy_reset(proxy);
        assert_true(fleet_await_store(limit));
        for (int n = 0; n < 20; n++) {
            assert_int_equal(weir_fleet_check(limit, "k", 1, 1, &a), 0);
            assert_int_equal(a.verdict, WEIR_ALLOW);
        }
    }
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
    fault_proxy_stop(proxy);
}

static void a_handshake_that_never_ends_is_given_up(void **state)
{
    char url[64];
    struct fault_proxy *proxy = fault_proxy_start(world.node[0].public_port);
    (void)snprintf(url, sizeof url, "rediss://127.0.0.1:%u", fault_proxy_port(proxy));
    fault_proxy_set(proxy, &(struct faults){.to_client = FAULT_HOLD});
    struct weir_fleet *fleet =
        fleet_open_with(url, (struct weir_fleet_options){.tls_ca = path("ca.crt")});
    struct weir_fleet_limit_options l = fleet_hourly("silent", 1000);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &l);
    await_trouble(fleet, "no connection (no TLS handshake in time)");
    fault_proxy_set(proxy, NULL);
    assert_true(fleet_await_store(limit));
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
    fault_proxy_stop(proxy);
}

/* ---- options ---- */

static void assert_refused(struct weir_fleet_options o, int code, const char *why)
{
    struct weir_fleet *fleet;
    struct weir_error error = {0};
    o.size = sizeof o;
    assert_int_equal(weir_fleet_open(&fleet, &o, &error), code);
    if (strstr(error.text, why) == NULL) {
        fail_msg("'%s' lacks '%s'", error.text, why);
    }
}

static void options_that_make_no_sense_are_refused(void **state)
{
    assert_refused((struct weir_fleet_options){.url = "redis://127.0.0.1:1", .tls_ca = "/x"},
                   WEIR_EINVAL, "found options for TLS, expected a URL with rediss://");
    assert_refused((struct weir_fleet_options){.url = "rediss://127.0.0.1:1", .tls_cert = "/x"},
                   WEIR_EINVAL, "found a certificate without its key");
    assert_refused((struct weir_fleet_options){.url = "rediss://127.0.0.1:1", .tls_ca = "/x/y"},
                   WEIR_EIO, "/x/y: cannot be read: No such file or directory");
    assert_refused((struct weir_fleet_options){.url = "rediss:///run/redis.sock"}, WEIR_EINVAL,
                   "only redis:// supports unix sockets");
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(a_store_with_a_good_certificate_is_used),
        cmocka_unit_test(a_server_name_is_verified_instead_of_the_host),
        cmocka_unit_test(a_store_of_another_ca_is_refused),
        cmocka_unit_test(a_store_without_tls_is_told_apart),
        cmocka_unit_test(a_tls_port_without_tls_is_no_store),
        cmocka_unit_test(faults_between_node_and_store_are_survived),
        cmocka_unit_test(a_handshake_that_never_ends_is_given_up),
    };
    const struct CMUnitTest expired[] = {cmocka_unit_test(an_expired_store_is_refused)};
    const struct CMUnitTest asking[] = {
        cmocka_unit_test(a_store_that_asks_for_a_certificate_gets_it)};
    certificates_make(&certs);
    int failed = cmocka_run_group_tests(plain, start, stop);
    failed += cmocka_run_group_tests(expired, start_expired, stop);
    failed += cmocka_run_group_tests(asking, start_asking, stop);
    certificates_remove(&certs);
    return failed;
}
