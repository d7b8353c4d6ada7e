/*
 * The shared decision vectors, through HTTP: what the oracle says, in milliseconds rounded up in
 * the body and in seconds rounded up in the fields, with the status that goes with it.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/server_http.h"
#include "support/server/server_vectors.h"

static struct http_answer answer;

static uint64_t seconds(uint64_t ms)
{
    return (ms + 999) / 1000;
}

static void ask(int fd, const char *route, const char *body)
{
    char text[512];
    int n = snprintf(text, sizeof text,
                     "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s", route,
                     strlen(body), body);
    http_send(fd, text, (size_t)n);
    assert_true(http_receive(fd, &answer));
}

/* All of a 200, and the end of a problem. */
static void compare_body(const struct oracle_vector *v, size_t i, const char *limit)
{
    const struct oracle_expected *e = &v->expected[i];
    char retry[32] = "null";
    char expected[512];
    if (e->verdict != WEIR_NEVER) {
        (void)snprintf(retry, sizeof retry, "%" PRIu64, server_vector_ms(v, e->retry));
    }
    int n = snprintf(expected, sizeof expected,
                     "\"verdict\":\"%s\",\"limit\":\"%s\",\"quota\":%" PRIu64
                     ",\"remaining\":%" PRIu64 ",\"retry_after_ms\":%s,\"reset_after_ms\":%" PRIu64
                     ",\"delay_ms\":%" PRIu64 ",\"flags\":[],\"reason\":\"limit\"}",
                     server_vector_verdicts[e->verdict], limit, v->trace.rule.quota, e->remaining,
                     retry, server_vector_ms(v, e->reset), server_vector_ms(v, e->delay));
    size_t length = strlen(answer.body);
    size_t before = length - (size_t)n;
    if (length < (size_t)n + 1 || strcmp(answer.body + before, expected) != 0 ||
        (answer.status == 200 && before != 1)) {
        fail_msg("%s, call %zu:\n  got      %s\n  expected %s", limit, i + 1, answer.body,
                 expected);
    }
}

static void compare_fields(const struct oracle_vector *v, size_t i, const char *limit)
{
    const struct oracle_expected *e = &v->expected[i];
    bool later = e->verdict == WEIR_DENY;
    uint64_t retry_s = later ? seconds(server_vector_ms(v, e->retry)) : 0;
    uint64_t wait_s = later ? retry_s : seconds(server_vector_ms(v, e->reset));
    char line[128];
    (void)snprintf(line, sizeof line, "RateLimit: \"%s\";r=%" PRIu64 ";t=%" PRIu64, limit,
                   e->remaining, wait_s);
    assert_true(http_has_line(&answer, line));
    assert_int_equal(http_retry_after(&answer), answer.status == 429 ? retry_s : 0);
}

static void send_one(void *arg, const struct oracle_vector *v, size_t i, const char *limit)
{
    static const int statuses[] = {[WEIR_ALLOW] = 200, [WEIR_DENY] = 429, [WEIR_NEVER] = 422};
    const struct oracle_op *op = &v->trace.ops[i];
    bool peek = op->verb == ORACLE_PEEK;
    char body[256];
    (void)snprintf(body, sizeof body,
                   "{\"limit\":\"%s\",\"key\":\"%s\",\"cost\":%" PRIu64 ",\"max_wait_ms\":%" PRIu64
                   "}",
                   limit, v->keys[op->key], op->cost, op->wait_ns / WEIR_MILLISECOND);
    ask(*(int *)arg, peek ? "/v1/peek" : "/v1/check", body);
    compare_body(v, i, limit);
    compare_fields(v, i, limit);
    assert_int_equal(answer.status, peek ? 200 : statuses[v->expected[i].verdict]);
}

static void the_vectors_hold_on_the_wire(void **state)
{
    struct server_options o = server_world_options();
    struct server_world w;
    struct http_server as; /* for its address */
    o.adhoc_keys = 0;
    o.listen[PROTOCOL_RESP] = "off";
    o.listen[PROTOCOL_HTTP] = "127.0.0.1:0";
    server_world_start(&w, "limits: [{name: v, key: [user], rate: 1/s}]", &o);
    (void)server_address(&w.server, PROTOCOL_HTTP, as.address, sizeof as.address);
    int fd = http_connect(&as);
    server_vectors_send(&w, send_one, &fd);
    (void)close(fd);
    server_world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_hold_on_the_wire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
