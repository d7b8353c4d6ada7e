/* Tests the parsing of what a Cluster says about where its slots are: CLUSTER SLOTS, MOVED, ASK. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "redis/slots.h"

#define ONE_NODE(host, port) "*4\r\n" host ":" port "\r\n$2\r\nid\r\n*0\r\n"
#define HOST "$9\r\n10.0.0.71\r\n"

static void assert_range(const struct slots_range *r, unsigned first, unsigned last,
                         const char *host, unsigned port)
{
    assert_int_equal(r->first, first);
    assert_int_equal(r->last, last);
    assert_int_equal(r->port, port);
    assert_int_equal(r->host.len, strlen(host));
    assert_memory_equal(r->host.at, host, strlen(host));
}

/* There are two ranges. The first has a primary and a replica; the second has metadata as Redis 7
 * sends it. */
static void each_range_names_its_primary(void **state)
{
    static const char reply[] =
        "*2\r\n"
        "*4\r\n:0\r\n:8191\r\n" ONE_NODE(HOST, "7001") ONE_NODE(
            HOST, "7004") "*3\r\n:8192\r\n:16383\r\n*4\r\n$3\r\n::1\r\n:7002\r\n$2\r\nid\r\n"
                          "*2\r\n$8\r\nhostname\r\n$1\r\nx\r\n";
    struct slots_reader r;
    struct slots_range range;
    assert_true(slots_begin(&r, text_of(reply)));
    assert_int_equal(slots_next(&r, &range), 1);
    assert_range(&range, 0, 8191, "10.0.0.71", 7001);
    assert_int_equal(slots_next(&r, &range), 1);
    assert_range(&range, 8192, 16383, "::1", 7002);
    assert_int_equal(slots_next(&r, &range), 0);
}

static struct slots_range only(const char *node)
{
    static char reply[256];
    struct slots_reader r;
    struct slots_range range;
    (void)snprintf(reply, sizeof reply, "*1\r\n*3\r\n:5\r\n:5\r\n%s", node);
    assert_true(slots_begin(&r, text_of(reply)));
    assert_int_equal(slots_next(&r, &range), 1);
    return range;
}

static void a_host_may_be_missing_in_three_ways(void **state)
{
    struct slots_range empty = only(ONE_NODE("$0\r\n\r\n", "7001"));
    struct slots_range null = only(ONE_NODE("$-1\r\n", "7001"));
    struct slots_range unknown = only(ONE_NODE("$1\r\n?\r\n", "7001"));
    assert_range(&empty, 5, 5, "", 7001);
    assert_range(&null, 5, 5, "", 7001);
    assert_null(unknown.host.at);
}

static int first_of(const char *reply)
{
    struct slots_reader r;
    struct slots_range range;
    return slots_begin(&r, text_of(reply)) ? slots_next(&r, &range) : -2;
}

static void invalid_maps_are_refused(void **state)
{
    assert_int_equal(first_of("-ERR This instance has cluster support disabled\r\n"), -2);
    assert_int_equal(first_of("*0\r\n"), 0);
    assert_int_equal(first_of("*1\r\n:1\r\n"), -1);
    assert_int_equal(first_of("*1\r\n*2\r\n:0\r\n:1\r\n"), -1);
    assert_int_equal(first_of("*1\r\n*3\r\n:0\r\n:1\r\n*0\r\n"), -1);
    assert_int_equal(first_of("*1\r\n*3\r\n:2\r\n:1\r\n" ONE_NODE(HOST, "1")), -1);
    assert_int_equal(first_of("*1\r\n*3\r\n:0\r\n:16384\r\n" ONE_NODE(HOST, "1")), -1);
    assert_int_equal(first_of("*1\r\n*3\r\n:-1\r\n:1\r\n" ONE_NODE(HOST, "1")), -1);
    assert_int_equal(first_of("*1\r\n*3\r\n:0\r\n:1\r\n" ONE_NODE(HOST, "0")), -1);
    assert_int_equal(first_of("*1\r\n*3\r\n:0\r\n:1\r\n" ONE_NODE(HOST, "65536")), -1);
    assert_int_equal(first_of("*1\r\n*3\r\n:0\r\n:1\r\n" ONE_NODE("$4\r\n/run\r\n", "1")), -1);
    assert_int_equal(first_of("*1\r\n*3\r\n:0\r\n:1\r\n" ONE_NODE("$3\r\na b\r\n", "1")), -1);
    assert_int_equal(first_of("*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n:7\r\n:7001\r\n"), -1);
}

static void assert_redirect(const char *error, unsigned slot, const char *host, unsigned port)
{
    struct redirect r;
    assert_true(redirect_read(text_of(error), &r));
    assert_int_equal(r.slot, slot);
    assert_int_equal(r.port, port);
    assert_int_equal(r.host.len, strlen(host));
    assert_memory_equal(r.host.at, host, strlen(host));
}

static void a_redirection_has_a_slot_a_host_and_a_port(void **state)
{
    assert_redirect("MOVED 3999 127.0.0.1:6381", 3999, "127.0.0.1", 6381);
    assert_redirect("ASK 0 db-1.example:1", 0, "db-1.example", 1);
    assert_redirect("MOVED 16383 :6381", 16383, "", 6381);
    assert_redirect("MOVED 1 ::1:6381", 1, "::1", 6381);
    assert_redirect("MOVED 1 fe80::1:6381 and more", 1, "fe80::1", 6381);
}

static void invalid_redirections_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "MOVED",
                                      "MOVED 1",
                                      "MOVED 16384 a:1",
                                      "MOVED -1 a:1",
                                      "MOVED 01 a:1",
                                      "MOVED 1 a",
                                      "MOVED 1 a:",
                                      "MOVED 1 a:0",
                                      "MOVED 1 a:65536",
                                      "MOVED 1 a:99999999999999999999",
                                      "MOVED 1 a:18446744073709551615",
                                      "MOVED 1 /run/x:1",
                                      "MOVED  1 a:1"};
    struct redirect r;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(redirect_read(text_of(bad[i]), &r));
    }
}

static bool is_read_with_host_of(int len)
{
    static char error[300];
    struct redirect r;
    (void)snprintf(error, sizeof error, "MOVED 1 %0*d:1", len, 0);
    return redirect_read(text_of(error), &r);
}

static void a_host_is_at_most_255_bytes_long(void **state)
{
    assert_true(is_read_with_host_of(SLOTS_HOST_MAX));
    assert_false(is_read_with_host_of(SLOTS_HOST_MAX + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_range_names_its_primary),
        cmocka_unit_test(a_host_may_be_missing_in_three_ways),
        cmocka_unit_test(invalid_maps_are_refused),
        cmocka_unit_test(a_redirection_has_a_slot_a_host_and_a_port),
        cmocka_unit_test(invalid_redirections_are_refused),
        cmocka_unit_test(a_host_is_at_most_255_bytes_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
