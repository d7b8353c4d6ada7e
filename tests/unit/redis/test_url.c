/* Tests the parsing of a store's URL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "redis/url.h"

static struct store_url url;
static struct weir_error error;

static void read_well(const char *text)
{
    if (store_url_read(text_of(text), &url, &error) != 0) {
        fail_msg("%s: %s", text, error.text);
    }
}

static void assert_refused(const char *text, const char *because)
{
    assert_int_equal(store_url_read(text_of(text), &url, &error), WEIR_EINVAL);
    if (strstr(error.text, because) == NULL) {
        fail_msg("%s: %s", text, error.text);
    }
}

static void assert_host(size_t i, const char *host, unsigned port)
{
    assert_true(i < url.count);
    assert_string_equal(url.hosts[i].host, host);
    assert_int_equal(url.hosts[i].port, port);
}

static void one_host(void **state)
{
    read_well("redis://localhost");
    assert_int_equal(url.kind, STORE_ALONE);
    assert_int_equal(url.count, 1);
    assert_host(0, "localhost", 6379);
    assert_int_equal(url.db, 0);
    read_well("redis://10.0.0.1:7000/3");
    assert_host(0, "10.0.0.1", 7000);
    assert_int_equal(url.db, 3);
    read_well("redis://a_b-c.example/");
    assert_host(0, "a_b-c.example", 6379);
}

static void several_hosts(void **state)
{
    read_well("redis://a:1,[::1]:2,[fe80::1%eth0],d/15");
    assert_int_equal(url.count, 4);
    assert_host(0, "a", 1);
    assert_host(1, "::1", 2);
    assert_host(2, "fe80::1%eth0", 6379);
    assert_host(3, "d", 6379);
    assert_int_equal(url.db, 15);
}

static void a_unix_socket(void **state)
{
    read_well("redis:///run/redis.sock");
    assert_host(0, "/run/redis.sock", 0);
    assert_int_equal(url.db, 0);
    read_well("redis:///run/a,b:5/2");
    assert_host(0, "/run/a", 0);
    assert_host(1, "b", 5);
    assert_int_equal(url.db, 2);
}

static void sentinels_and_their_master(void **state)
{
    read_well("redis-sentinel://a,b:5,c/my.master-1_x");
    assert_int_equal(url.kind, STORE_SENTINEL);
    assert_host(0, "a", 26379);
    assert_host(1, "b", 5);
    assert_string_equal(url.master, "my.master-1_x");
    assert_refused("redis-sentinel://a,b", "the master's name is ''");
    assert_refused("redis-sentinel://a/", "the master's name is ''");
    assert_refused("redis-sentinel://a/my master", "the master's name is 'my master'");
    assert_refused("redis-sentinel:///run/x/m", "only redis:// supports unix sockets");
}

static void a_cluster(void **state)
{
    read_well("redis-cluster://a:1,b:2");
    assert_int_equal(url.kind, STORE_CLUSTER);
    assert_int_equal(url.count, 2);
    read_well("redis-cluster://a/0");
    assert_refused("redis-cluster://a/1", "the database is 1, expected 0");
}

static void rediss_is_the_same_with_tls(void **state)
{
    read_well("redis://a");
    assert_false(url.tls);
    read_well("rediss://a,b:7000/3");
    assert_true(url.tls);
    assert_int_equal(url.kind, STORE_ALONE);
    assert_host(0, "a", 6379);
    assert_host(1, "b", 7000);
    read_well("rediss-sentinel://a/m");
    assert_true(url.tls);
    assert_int_equal(url.kind, STORE_SENTINEL);
    assert_host(0, "a", 26379);
    read_well("rediss-cluster://a");
    assert_true(url.tls);
    assert_int_equal(url.kind, STORE_CLUSTER);
    assert_refused("rediss:///run/redis.sock", "only redis:// supports unix sockets");
}

static void errors_in_a_url_are_reported(void **state)
{
    assert_refused("", "the store's URL is ''");
    assert_refused("localhost:6379", "'localhost:6379', expected redis://");
    assert_refused("redisss://a", "(TLS: rediss)");
    assert_refused("redis://", "the host is ''");
    assert_refused("redis://a,", "the host is ''");
    assert_refused("redis://,a", "the host is ''");
    assert_refused("redis://:6379", "the host is ''");
    assert_refused("redis://a b", "the host is 'a b'");
    assert_refused("redis://a:0", "the port is '0'");
    assert_refused("redis://a:65536", "the port is '65536'");
    assert_refused("redis://a:", "the port is ''");
    assert_refused("redis://a:06", "the port is '06'");
    assert_refused("redis://[::1", "expected ']' after an IPv6 address");
    assert_refused("redis://[::1]x", "found 'x' after a host");
    assert_refused("redis://[]", "the host is ''");
    assert_refused("redis://a/x", "the database is 'x'");
    assert_refused("redis://a/65536", "the database is '65536'");
    assert_refused("redis://a/1/2", "the database is '1/2'");
}

static void the_number_of_hosts_and_their_length_are_bounded(void **state)
{
    char text[4096] = "redis://h";
    for (int i = 1; i < STORE_HOSTS_MAX; i++) {
        strcat(text, ",h");
    }
    read_well(text);
    assert_int_equal(url.count, STORE_HOSTS_MAX);
    strcat(text, ",h");
    assert_refused(text, "more than 32 hosts");
    memset(text + 8, 'x', 256);
    text[8 + 256] = 0;
    assert_refused(text, "a host has 256 bytes, expected 1 to 255");
    text[8 + 255] = 0;
    read_well(text);
}

static void a_secret_is_refused_and_never_shown(void **state)
{
    static const char *const urls[] = {
        "redis://user:hunter2@host:6379", "redis://:hunter2@host",
        "redis-cluster://a,b:hunter2@c",  "hunter2@host",
        "redis:///:hunter2@host",         "redis://host?password=hunter2",
        "rediss://u:hunter2@h",           "redis://host/0?password=hunter2",
    };
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        assert_refused(urls[i], "password_file");
        assert_null(strstr(error.text, "hunter2"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_host),
        cmocka_unit_test(several_hosts),
        cmocka_unit_test(a_unix_socket),
        cmocka_unit_test(sentinels_and_their_master),
        cmocka_unit_test(a_cluster),
        cmocka_unit_test(rediss_is_the_same_with_tls),
        cmocka_unit_test(errors_in_a_url_are_reported),
        cmocka_unit_test(the_number_of_hosts_and_their_length_are_bounded),
        cmocka_unit_test(a_secret_is_refused_and_never_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
