/* Replies that /v1/auth holds back for the delay of a leaky bucket: pace, order, bounds, ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "server/loop/worker.h"
#include "support/server/server_http.h"

static const char rules[] =
    "server: {hold_max: 1min}\n"
    "limits:\n"
    "  - {name: paced, when: {path: /paced}, key: [], algorithm: leaky_bucket, rate: 20/s,\n"
    "     queue: 5}\n"
    "  - {name: wide, when: {path: /both}, key: [], rate: 100/s}\n"
    "  - {name: narrow, when: {path: /both}, key: [], algorithm: leaky_bucket, rate: 20/s,\n"
    "     queue: 5}\n"
    "  - {name: slow, when: {path: /slow}, key: [], algorithm: leaky_bucket, rate: 10/min,\n"
    "     queue: 20k}\n";

static struct http_server *server;
static struct http_answer *a;

static void begin(const char *text)
{
    static const struct server_options options = {.max_age_ms = 0};
    server = calloc(1, sizeof *server);
    a = calloc(1, sizeof *a);
    assert_true(server != NULL && a != NULL);
    http_server_start(server, text, &options);
}

static void end(void)
{
    http_server_stop(server);
    free(server);
    free(a);
}

static uint64_t now_ms(void)
{
    return clock_monotonic_ns() / WEIR_MILLISECOND;
}

static void say(int fd, const char *path)
{
    char text[128];
    int n =
        snprintf(text, sizeof text,
                 "GET /v1/auth HTTP/1.1\r\nHost: localhost\r\nX-Original-URI: %s\r\n\r\n", path);
    http_send(fd, text, (size_t)n);
}

static void hear(int fd, int status)
{
    assert_true(http_receive(fd, a));
    if (a->status != status) {
        fail_msg("expected %d, found: %s", status, a->text);
    }
}

/* Returns a count of all threads. */
#define COUNT(member) count_of(offsetof(struct worker_counts, member))

static uint64_t count_of(size_t offset)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < server->server.workers_count; i++) {
        const void *at = (const char *)&server->server.workers[i].counts + offset;
        sum += load_relaxed((const uint64_t *)at);
    }
    return sum;
}

static void until_count(size_t offset, uint64_t expected)
{
    while (count_of(offset) != expected) { /* the test's own time limit ends this */
        (void)usleep(1000);
    }
}

#define UNTIL(member, expected) until_count(offsetof(struct worker_counts, member), expected)

static void assert_paced(const char *path)
{
    int fd = http_connect(server);
    uint64_t before = now_ms();
    for (unsigned i = 0; i < 3; i++) {
        say(fd, path);
    }
    for (unsigned i = 0; i < 3; i++) {
        hear(fd, 200);
        assert_true(now_ms() - before + 1 >= i * 50); /* a timer's millisecond may have begun */
    }
    (void)close(fd);
}

static void requests_pass_at_the_rate_of_the_bucket(void **state)
{
    begin(rules);
    assert_paced("/paced");
    assert_int_equal(COUNT(held), 2);
    assert_int_equal(COUNT(holding), 0);
    end();
}

static void the_slowest_of_several_limits_paces(void **state)
{
    begin(rules);
    assert_paced("/both");
    end();
}

static void replies_leave_in_the_order_of_their_requests(void **state)
{
    begin(rules);
    int fd = http_connect(server);
    uint64_t before = now_ms();
    say(fd, "/paced");
    say(fd, "/paced");
    say(fd, "/free"); /* no limit: its reply waits for the one before it */
    hear(fd, 200);
    hear(fd, 200);
    assert_true(now_ms() - before + 1 >= 50);
    hear(fd, 200);
    (void)close(fd);
    end();
}

static void a_delay_beyond_hold_max_is_denied_and_charges_nothing(void **state)
{
    begin("limits: [{name: slow, when: {path: /slow}, key: [], algorithm: leaky_bucket,\n"
          "          rate: 1/min, queue: 5}]");
    int fd = http_connect(server);
    say(fd, "/slow");
    hear(fd, 200);
    for (unsigned i = 0; i < 3; i++) {
        say(fd, "/slow");
        hear(fd, 429);
        assert_in_range(http_retry_after(a), 59, 60);
        assert_non_null(strstr(a->body, "\"reason\":\"limit\""));
    }
    http_ask(server, "POST /v1/peek", "", "{\"limit\":\"slow\",\"key\":[]}", a);
    assert_non_null(strstr(a->body, "\"remaining\":5")); /* other clients may use the whole queue */
    assert_int_equal(COUNT(held), 0);
    (void)close(fd);
    end();
}

static void a_client_that_leaves_frees_its_place_and_is_refunded_nothing(void **state)
{
    begin(rules);
    int fd = http_connect(server);
    say(fd, "/slow");
    hear(fd, 200);
    say(fd, "/slow");
    say(fd, "/slow");
    UNTIL(holding, 2);
    (void)close(fd);
    UNTIL(holding, 0);
    assert_int_equal(COUNT(held_abandoned), 2);
    http_ask(server, "POST /v1/peek", "", "{\"limit\":\"slow\",\"key\":[]}", a);
    assert_non_null(strstr(a->body, "\"remaining\":19998"));
    end();
}

static void the_server_ends_without_waiting_for_long_delays(void **state)
{
    begin(rules);
    int fd = http_connect(server);
    say(fd, "/slow");
    hear(fd, 200);
    say(fd, "/slow"); /* six seconds */
    UNTIL(holding, 1);
    uint64_t before = now_ms();
    server_stop(&server->server);
    assert_true(now_ms() - before < SERVER_DRAIN_MS + 1000);
    hear(fd, 200);
    (void)close(fd);
    weir_rules_close(server->server.rules);
    free(server);
    free(a);
}

#define CONNECTIONS 18 /* each may have SERVER_PENDING replies to wait for; two threads */

static void the_number_of_held_replies_is_bounded(void **state)
{
    int fds[CONNECTIONS];
    begin("server: {hold_max: 1min}\n"
          "limits: [{name: l, key: [], algorithm: leaky_bucket, rate: 1k/s, queue: 50k}]");
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        fds[i] = http_connect(server);
        for (unsigned n = 0; n < 1000; n++) {
            say(fds[i], "/");
        }
    }
    while (COUNT(unheld) == 0) { /* one of the threads is full */
        (void)usleep(1000);
    }
    assert_true(COUNT(holding) <= 2 * DELAYS_HELD);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        (void)close(fds[i]);
    }
    UNTIL(holding, 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_pass_at_the_rate_of_the_bucket),
        cmocka_unit_test(the_slowest_of_several_limits_paces),
        cmocka_unit_test(replies_leave_in_the_order_of_their_requests),
        cmocka_unit_test(a_delay_beyond_hold_max_is_denied_and_charges_nothing),
        cmocka_unit_test(a_client_that_leaves_frees_its_place_and_is_refunded_nothing),
        cmocka_unit_test(the_server_ends_without_waiting_for_long_delays),
        cmocka_unit_test(the_number_of_held_replies_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
