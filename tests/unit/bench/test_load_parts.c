/* The load generator in parts: its requests, what it makes of replies, its histogram. */
#include "load/load.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>

static struct load_latency latency;

static int clear_latency(void **state)
{
    memset(&latency, 0, sizeof latency);
    return 0;
}

/* ---- latency ---- */

static void no_time_is_told_more_than_a_128th_too_large(void **state)
{
    for (uint64_t ns = 1; ns < UINT64_C(1) << 40; ns += ns / 50 + 1) {
        memset(&latency, 0, sizeof latency);
        load_latency_add(&latency, ns);
        load_latency_add(&latency, ns * 2); /* so that the largest does not cut it */
        uint64_t told = load_latency_at(&latency, 0.5);
        assert_true(told >= ns && told - ns <= ns / 128);
    }
}

static void a_percentile_is_the_least_time_that_so_many_needed(void **state)
{
    for (uint64_t i = 1; i <= 100; i++) {
        load_latency_add(&latency, i);
    }
    assert_int_equal(load_latency_at(&latency, 0.5), 50);
    assert_int_equal(load_latency_at(&latency, 0.9), 90);
    assert_int_equal(load_latency_at(&latency, 0.99), 99);
    assert_int_equal(load_latency_at(&latency, 0.999), 100);
    assert_int_equal(load_latency_at(&latency, 1), 100);
}

static void an_hour_and_nothing_at_all_have_a_bucket(void **state)
{
    assert_int_equal(load_latency_at(&latency, 0.5), 0);
    load_latency_add(&latency, 0);
    load_latency_add(&latency, UINT64_MAX);
    assert_int_equal(load_latency_at(&latency, 0.5), 0);
    assert_true(load_latency_at(&latency, 1) >= UINT64_C(3600000000000));
}

/* ---- requests ---- */

static void keys_are_written_into_every_place(void **state)
{
    static const char *const words[] = {"EVALSHA", "abc", "1", "{key}", "x{key}y"};
    struct load_request r;
    struct weir_error error;
    assert_int_equal(load_request_make(&r, LOAD_RESP, words, 5, NULL, &error), 0);
    load_request_set_key(&r, r.bytes, 42);
    static const char expected[] = "*5\r\n$7\r\nEVALSHA\r\n$3\r\nabc\r\n$1\r\n1\r\n"
                                   "$16\r\nkey:000000000042\r\n$18\r\nxkey:000000000042y\r\n";
    assert_int_equal(r.len, sizeof expected - 1);
    assert_memory_equal(r.bytes, expected, r.len);
    load_request_finish(&r);
}

static void a_body_is_announced_with_its_length(void **state)
{
    static const char *const words[] = {"POST", "/v1/check", "X-A: {key}"};
    static const char expected[] =
        "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nX-A: key:000000000007\r\n"
        "Content-Type: application/json\r\nContent-Length: 26\r\n\r\n"
        "{\"key\":\"key:000000000007\"}";
    struct load_request r;
    struct weir_error error;
    assert_int_equal(load_request_make(&r, LOAD_HTTP, words, 3, "{\"key\":\"{key}\"}", &error), 0);
    load_request_set_key(&r, r.bytes, 7);
    assert_int_equal(r.len, sizeof expected - 1);
    assert_memory_equal(r.bytes, expected, r.len);
    load_request_finish(&r);
}

static void assert_no_request(enum load_wire wire, const char *const *words, unsigned n,
                              const char *body)
{
    struct load_request r;
    struct weir_error error = {0};
    assert_int_equal(load_request_make(&r, wire, words, n, body, &error), WEIR_EINVAL);
    assert_true(error.text[0] != 0);
}

static void what_is_not_a_request_is_refused(void **state)
{
    static const char *const alone[] = {"GET"};
    static const char *const no_path[] = {"GET", "v1"};
    static const char *const no_field[] = {"GET", "/", "X-A"};
    static const char *const keys[] = {"MGET", "{key}{key}{key}{key}{key}{key}{key}{key}{key}"};
    assert_no_request(LOAD_HTTP, alone, 1, NULL);
    assert_no_request(LOAD_HTTP, no_path, 2, NULL);
    assert_no_request(LOAD_HTTP, no_field, 3, NULL);
    assert_no_request(LOAD_RESP, keys, 2, NULL);
    assert_no_request(LOAD_RESP, alone, 1, "a body");
}

/* ---- replies ---- */

struct reply_row {
    enum load_wire wire;
    enum load_verdict verdict;
    const char *bytes;
};

static const struct reply_row replies[] = {
    {LOAD_RESP, LOAD_ALLOWED, "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"},
    {LOAD_RESP, LOAD_DENIED, "*5\r\n:1\r\n:16\r\n:0\r\n:2\r\n:32\r\n"},
    {LOAD_RESP, LOAD_ALLOWED,
     "*8\r\n$5\r\nallow\r\n$3\r\napi\r\n:9\r\n:8\r\n:0\r\n:6\r\n:0\r\n$0\r\n\r\n"},
    {LOAD_RESP, LOAD_DENIED, "*2\r\n$4\r\ndeny\r\n$-1\r\n"},
    {LOAD_RESP, LOAD_DENIED, "*1\r\n$5\r\nnever\r\n"},
    {LOAD_RESP, LOAD_OTHER, "+PONG\r\n"},
    {LOAD_RESP, LOAD_OTHER, ":1\r\n"},
    {LOAD_RESP, LOAD_OTHER, "$3\r\nabc\r\n"},
    {LOAD_RESP, LOAD_OTHER, "$-1\r\n"},
    {LOAD_RESP, LOAD_OTHER, "*0\r\n"},
    {LOAD_RESP, LOAD_OTHER, "*2\r\n*1\r\n$1\r\nx\r\n:4\r\n"},
    {LOAD_RESP, LOAD_ERROR, "-ERR no\r\n"},
    {LOAD_RESP, LOAD_REFUSED, "-OVERLOAD later\r\n"},
    {LOAD_HTTP, LOAD_ALLOWED, "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 2\r\n\r\nok"},
    {LOAD_HTTP, LOAD_DENIED, "HTTP/1.1 429 No\r\ncontent-length:0\r\nB: c\r\n\r\n"},
    {LOAD_HTTP, LOAD_DENIED, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"},
    {LOAD_HTTP, LOAD_REFUSED, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"},
    {LOAD_HTTP, LOAD_ERROR, "HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n"},
};

static void a_reply_is_known_when_all_of_it_is_there(void **state)
{
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        const struct reply_row *row = &replies[i];
        char bytes[512];
        enum load_verdict verdict;
        int64_t len = snprintf(bytes, sizeof bytes, "%s%s", row->bytes, row->bytes) / 2;
        for (int64_t n = 0; n < len; n++) {
            struct weir_text part = {bytes, (size_t)n};
            assert_int_equal(load_read_reply(row->wire, part, &verdict), 0);
        }
        assert_int_equal(load_read_reply(row->wire, text_of(bytes), &verdict), len);
        assert_int_equal(verdict, row->verdict);
    }
}

static void what_is_not_a_reply_is_not_counted_as_one(void **state)
{
    enum load_verdict v;
    assert_int_equal(load_read_reply(LOAD_RESP, TEXT("HTTP/1.1 400\r\n"), &v), LOAD_BROKEN);
    assert_int_equal(load_read_reply(LOAD_HTTP, TEXT("-ERR wrong\r\n"), &v), LOAD_BROKEN);
    assert_int_equal(load_read_reply(LOAD_HTTP, TEXT("HTTP/1.1 200 OK\r\n\r\n"), &v), LOAD_BROKEN);
}

/* ---- keys ---- */

static void keys_in_sequence_are_all_of_them(void **state)
{
    struct load_keys keys = {.order = LOAD_SEQUENTIAL, .count = 3, .next = 1};
    assert_int_equal(load_next_key(&keys), 1);
    assert_int_equal(load_next_key(&keys), 2);
    assert_int_equal(load_next_key(&keys), 0);
}

static void uniform_keys_come_alike(void **state)
{
    struct load_keys keys = {.order = LOAD_UNIFORM, .count = 10, .random = 1};
    unsigned seen[10] = {0};
    for (unsigned i = 0; i < 10000; i++) {
        seen[load_next_key(&keys)]++;
    }
    for (unsigned i = 0; i < 10; i++) {
        assert_in_range(seen[i], 850, 1150);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(no_time_is_told_more_than_a_128th_too_large, clear_latency),
        cmocka_unit_test_setup(a_percentile_is_the_least_time_that_so_many_needed, clear_latency),
        cmocka_unit_test_setup(an_hour_and_nothing_at_all_have_a_bucket, clear_latency),
        cmocka_unit_test(keys_are_written_into_every_place),
        cmocka_unit_test(a_body_is_announced_with_its_length),
        cmocka_unit_test(what_is_not_a_request_is_refused),
        cmocka_unit_test(a_reply_is_known_when_all_of_it_is_there),
        cmocka_unit_test(what_is_not_a_reply_is_not_counted_as_one),
        cmocka_unit_test(keys_in_sequence_are_all_of_them),
        cmocka_unit_test(uniform_keys_come_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
