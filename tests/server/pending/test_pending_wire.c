/* Answers that come later, over HTTP; and what they say, also without the store. */
#include "base/clock.h"
#include "server/pending/pending_story.h"

static struct http_answer a;

static void send_check(int fd, unsigned cost)
{
    char body[128];
    (void)snprintf(body, sizeof body, "{\"limit\":\"api\",\"key\":\"alice\",\"cost\":%u}", cost);
    send_post(fd, "/v1/check", "", body);
}

static void get_cost(int fd, unsigned cost)
{
    char part[64];
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    (void)snprintf(part, sizeof part, "\"remaining\":%u,", cost);
    assert_non_null(strstr(a.body, part));
}

static void pipelines_of_http_keep_their_order(void **state)
{
    static const char health[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    int fd = http_connect(&scene->http);
    for (unsigned i = 1; i <= 30; i++) {
        send_check(fd, i);
        if (i % 3 == 0) {
            http_send(fd, health, sizeof health - 1);
        }
    }
    slow_await(scene, 30);
    slow_answer(scene, 30);
    for (unsigned i = 1; i <= 30; i++) {
        get_cost(fd, i);
        if (i % 3 == 0) {
            assert_true(http_receive(fd, &a));
            assert_string_equal(a.body, "ok\n");
        }
    }
    (void)close(fd);
}

static void an_http_connection_ends_behind_its_last_reply(void **state)
{
    int fd = http_connect(&scene->http);
    send_check(fd, 1);
    send_post(fd, "/v1/check", "Connection: close\r\n",
              "{\"limit\":\"api\",\"key\":\"bob\",\"cost\":2}");
    slow_await(scene, 2);
    slow_answer(scene, 2);
    get_cost(fd, 1);
    get_cost(fd, 2);
    assert_true(http_has_line(&a, "Connection: close"));
    assert_false(http_receive(fd, &a));
    (void)close(fd);
}

static void a_batch_asks_all_at_once_and_answers_in_order(void **state)
{
    int fd = http_connect(&scene->http);
    send_post(fd, "/v1/check/batch", "",
              "{\"requests\":[{\"limit\":\"api\",\"key\":\"a\",\"cost\":1},"
              "{\"limit\":\"none\",\"key\":\"a\"},"
              "{\"limit\":\"api\",\"key\":\"a\",\"cost\":2},"
              "{\"limit\":\"here\",\"key\":\"a\",\"cost\":1},"
              "{\"attributes\":{\"path\":\"/api\",\"user\":\"b\"},\"cost\":3}]}");
    send_check(fd, 4);
    slow_await(scene, 4);
    slow_answer(scene, 4);
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    const char *at = a.body;
    const char *parts[] = {"{\"results\":[{\"verdict\":\"allow\"",
                           "\"remaining\":1,",
                           "\"status\":404",
                           "\"remaining\":2,",
                           "\"remaining\":999999,",
                           "\"remaining\":3,",
                           "],\"reason\":\"limit\"}]}"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        at = strstr(at, parts[i]);
        assert_non_null(at);
        at += strlen(parts[i]);
    }
    assert_string_equal(at, "");
    get_cost(fd, 4);
    (void)close(fd);
}

static void batches_count_with_all_their_parts(void **state)
{
    static char body[1 << 16];
    int fd = http_connect(&scene->http);
    size_t n = (size_t)snprintf(body, sizeof body, "{\"requests\":[");
    for (unsigned i = 0; i < 600; i++) {
        n += (size_t)snprintf(body + n, sizeof body - n, "%s{\"limit\":\"api\",\"key\":\"a\"}",
                              i > 0 ? "," : "");
    }
    (void)snprintf(body + n, sizeof body - n, "]}");
    char head[128];
    int len =
        snprintf(head, sizeof head,
                 "POST /v1/check/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
                 strlen(body));
    for (unsigned i = 0; i < 3; i++) {
        http_send(fd, head, (size_t)len);
        http_send(fd, body, strlen(body));
    }
    slow_await(scene, 1200);
    sleep_ms(50);
    slow_await(scene, 1200);
    slow_answer(scene, 1200);
    slow_await(scene, 600);
    slow_answer(scene, 600);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(http_receive(fd, &a));
        assert_int_equal(a.status, 200);
    }
    (void)close(fd);
}

static void a_gateways_question_waits_too(void **state)
{
    static const char ask[] = "GET /v1/auth HTTP/1.1\r\nHost: localhost\r\nX-Original-URI: /api\r\n"
                              "X-User: carol\r\n\r\n";
    int fd = http_connect(&scene->http);
    http_send(fd, ask, sizeof ask - 1);
    slow_await(scene, 1);
    slow_answer(scene, 1);
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "");
    slow_plan(scene, (struct fake_plan){.verdict = WEIR_DENY,
                                        .flags = REMOTE_DEGRADED | REMOTE_CLOSED,
                                        .retry_ns = WEIR_SECOND});
    http_send(fd, ask, sizeof ask - 1);
    slow_await(scene, 1);
    slow_answer(scene, 1);
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 429); /* gateways that fail open let requests pass for a 503 */
    assert_int_equal(http_retry_after(&a), 1);
    assert_non_null(strstr(a.body, "\"reason\":\"store\""));
    (void)close(fd);
}

static void a_gateways_reply_is_held_for_the_delay_that_the_store_tells(void **state)
{
    static const char ask[] = "GET /v1/auth HTTP/1.1\r\nHost: localhost\r\nX-Original-URI: /api\r\n"
                              "X-User: carol\r\n\r\n";
    int fd = http_connect(&scene->http);
    slow_plan(scene, (struct fake_plan){.delay_ns = 50 * WEIR_MILLISECOND});
    http_send(fd, ask, sizeof ask - 1);
    http_send(fd, ask, sizeof ask - 1);
    slow_await(scene, 2);
    uint64_t before = clock_monotonic_ns();
    slow_answer(scene, 2);
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    assert_true(clock_monotonic_ns() - before >= 49 * WEIR_MILLISECOND);
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    http_send(fd, ask, sizeof ask - 1);
    slow_await(scene, 1);
    (void)close(fd); /* before the answer: its place is freed with it */
    slow_answer(scene, 1);
}

/* ---- what the answers say ---- */

static void answers_without_the_store_say_so(void **state)
{
    struct server_client c;
    int fd = http_connect(&scene->http);
    server_connect(&c, scene->resp);
    slow_plan(scene, (struct fake_plan){.flags = REMOTE_DEGRADED});
    say_check(&c, 1);
    send_check(fd, 1);
    slow_await(scene, 2);
    slow_answer(scene, 2);
    assert_string_equal(server_reply(&c), "['allow' 'api' 1000000 1 0 0 0 'degraded' 'degraded']");
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, "\"flags\":[\"degraded\"]"));
    server_disconnect(&c);
    (void)close(fd);
}

static void a_no_by_closed_is_503_and_one_for_want_of_units_is_429(void **state)
{
    int fd = http_connect(&scene->http);
    struct fake_plan no = {
        .verdict = WEIR_DENY, .flags = REMOTE_DEGRADED | REMOTE_CLOSED, .retry_ns = WEIR_SECOND};
    slow_plan(scene, no);
    send_check(fd, 1);
    slow_await(scene, 1);
    slow_answer(scene, 1);
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 503);
    assert_int_equal(http_retry_after(&a), 1);
    assert_non_null(strstr(a.body, "temporary-reduced-capacity"));
    assert_non_null(strstr(a.body, "\"flags\":[\"degraded\"]"));
    no.flags = REMOTE_DEGRADED;
    slow_plan(scene, no);
    send_check(fd, 1);
    slow_await(scene, 1);
    slow_answer(scene, 1);
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 429);
    (void)close(fd);
}

static void scrape(void)
{
    static const char ask[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int fd = http_connect(&scene->admin);
    http_send(fd, ask, sizeof ask - 1);
    assert_true(http_receive(fd, &a));
    (void)close(fd);
}

static void a_shadow_limit_that_a_fleet_decides_denies_nobody(void **state)
{
    struct server_client c;
    server_connect(&c, scene->resp);
    slow_plan(scene, (struct fake_plan){.verdict = WEIR_DENY, .retry_ns = WEIR_SECOND});
    threads_require(server_say(&c, "WEIR.CHECK quiet alice"));
    slow_await(scene, 1);
    slow_answer(scene, 1);
    assert_string_equal(server_reply(&c), "['allow' 'quiet' 1000000 1 0 0 0 'shadow' 'shadow']");
    server_disconnect(&c);
    scrape();
    assert_non_null(
        strstr(a.body, "weir_decisions_total{limit=\"quiet\",verdict=\"shadow_deny\"} 1\n"));
}

static void metrics_tell_of_the_store(void **state)
{
    static const char *const lines[] = {
        "weir_degraded_total{limit=\"api\",policy=\"local\"} 1\n",
        "weir_denials_remembered_total{limit=\"api\"} 4\n",
        "weir_decisions_total{limit=\"api\",verdict=\"deny\"} 7\n",
        "weir_store_up 1\n",
        "weir_fleet_nodes 3\n",
        "weir_breaker_open{endpoint=\"here:1\"} 1\n",
        "weir_store_duration_seconds_count 0\n",
    };
    struct fake_limit *api = fake_find(&scene->fleet, "api");
    (void)pthread_mutex_lock(&scene->fleet.lock); /* the operators' thread takes samples */
    api->counts = (struct remote_counts){.denied = 7, .degraded = {1, 2, 3}, .remembered = 4};
    (void)pthread_mutex_unlock(&scene->fleet.lock);
    scrape();
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strstr(a.body, lines[i]) == NULL) {
            fail_msg("no %s in %s", lines[i], a.body);
        }
    }
    assert_null(strstr(a.body, "weir_degraded_total{limit=\"api\",policy=\"open\"}"));
    assert_null(strstr(a.body, "weir_degraded_total{limit=\"here\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pipelines_of_http_keep_their_order),
        TEST(an_http_connection_ends_behind_its_last_reply),
        TEST(a_batch_asks_all_at_once_and_answers_in_order),
        TEST(batches_count_with_all_their_parts),
        TEST(a_gateways_question_waits_too),
        TEST(a_gateways_reply_is_held_for_the_delay_that_the_store_tells),
        TEST(answers_without_the_store_say_so),
        TEST(a_no_by_closed_is_503_and_one_for_want_of_units_is_429),
        TEST(a_shadow_limit_that_a_fleet_decides_denies_nobody),
        TEST(metrics_tell_of_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
