/* The HTTP listener of a server in this process: answers, statuses, fields. Its connections:
 * test_http_connections.c. */
#include <pthread.h>
#include <unistd.h>

#include "base/atomic.h"
#include "server/http/http_story.h"

/* ---- one question ---- */

static void the_first_of_a_thousand_a_day_is_allowed(void **state)
{
    check("{\"limit\":\"api\",\"key\":\"alice\"}");
    assert_status(200);
    assert_true(http_has_line(&a, "Content-Type: application/json"));
    assert_string_equal(a.body,
                        "{\"verdict\":\"allow\",\"limit\":\"api\",\"quota\":1000,\"remaining\":999,"
                        "\"retry_after_ms\":0,\"reset_after_ms\":86400,\"delay_ms\":0,\"flags\":[],"
                        "\"reason\":\"limit\"}");
}

static void attributes_and_a_name_count_in_the_same_bucket(void **state)
{
    check("{\"attributes\":{\"path\":\"/api\",\"user\":\"bob\"},\"cost\":10}");
    assert_status(200);
    assert_body_has("\"remaining\":990");
    check("{\"limit\":\"api\",\"key\":\"bob\",\"cost\":5}");
    assert_body_has("\"remaining\":985");
}

static void a_key_of_two_parts_is_a_list(void **state)
{
    check("{\"limit\":\"pair\",\"key\":[\"ann\",\"192.0.2.1\"]}");
    assert_status(200);
    check("{\"attributes\":{\"path\":\"/pair\",\"user\":\"ann\",\"ip\":\"::ffff:192.0.2.1\"}}");
    assert_body_has("\"remaining\":8");
    check("{\"limit\":\"pair\",\"key\":\"ann\"}");
    assert_status(400);
}

static void where_no_limit_applies_nothing_is_left_to_tell(void **state)
{
    check("{\"attributes\":{\"path\":\"/elsewhere\"}}");
    assert_status(200);
    assert_body_has("\"limit\":null,\"quota\":0,\"remaining\":-1");
    assert_null(strstr(a.text, "RateLimit"));
}

static void a_tier_has_its_own_quota(void **state)
{
    check("{\"limit\":\"tiers\",\"key\":\"t\",\"tier\":\"pro\"}");
    assert_body_has("\"quota\":50,\"remaining\":49");
    check("{\"limit\":\"tiers\",\"key\":\"t\"}");
    assert_body_has("\"quota\":5,\"remaining\":4");
}

static void who_may_wait_is_told_how_long(void **state)
{
    check("{\"limit\":\"queue\",\"key\":\"w\",\"max_wait_ms\":4000000}");
    check("{\"limit\":\"queue\",\"key\":\"w\",\"max_wait_ms\":4000000}");
    assert_status(200);
    assert_null(strstr(a.body, "\"delay_ms\":0"));
}

/* A key may hold any byte; none of them reaches the head of the answer. */
static void keys_hold_any_byte_and_inject_nothing(void **state)
{
    check("{\"limit\":\"api\",\"key\":\"a\\u0000b\\r\\nX-Evil: 1\"}");
    assert_status(200);
    check("{\"limit\":\"no\\r\\nX-Evil: 1\\u0000\",\"key\":\"a\"}");
    assert_status(404);
    assert_null(strstr(a.text, "\nX-Evil"));
}

/* ---- no ---- */

static void a_denial_is_a_429_that_says_when_to_come_again(void **state)
{
    check("{\"limit\":\"one\",\"key\":\"192.0.2.9\"}");
    assert_status(200);
    check("{\"limit\":\"one\",\"key\":\"192.0.2.9\"}");
    assert_status(429);
    assert_in_range(http_retry_after(&a), 86000, 86400);
    assert_true(http_has_line(&a, "Content-Type: application/problem+json"));
    assert_body_has("\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\"");
    assert_body_has("\"status\":429,\"violated-policies\":[\"one\"]");
    assert_body_has("\"verdict\":\"deny\",\"limit\":\"one\",\"quota\":1,\"remaining\":0,");
}

static void what_can_never_pass_is_a_422_without_a_time(void **state)
{
    check("{\"limit\":\"one\",\"key\":\"192.0.2.8\",\"cost\":2}");
    assert_status(422);
    assert_null(strstr(a.text, "Retry-After"));
    assert_body_has("\"verdict\":\"never\"");
    assert_body_has("\"retry_after_ms\":null");
}

static void who_is_on_the_block_list_gets_a_403(void **state)
{
    check("{\"attributes\":{\"path\":\"/api\",\"user\":\"mallory\"}}");
    assert_status(403);
    assert_body_has("\"verdict\":\"never\",\"limit\":null");
}

static void a_look_is_always_a_200_and_takes_nothing(void **state)
{
    const char *body = "{\"limit\":\"one\",\"key\":\"192.0.2.7\"}";
    for (int i = 0; i < 3; i++) {
        http_ask(server, "POST /v1/peek", "", body, &a);
        assert_status(200);
        assert_body_has("\"verdict\":\"allow\"");
    }
    check(body);
    http_ask(server, "POST /v1/peek", "", body, &a);
    assert_status(200);
    assert_body_has("\"verdict\":\"deny\"");
    assert_null(strstr(a.text, "Retry-After"));
}

static void what_is_not_a_question_is_a_400_and_charges_nothing(void **state)
{
    static const char *const bodies[] = {
        "",
        "{",
        "[]",
        "null",
        "{}",
        "{\"limit\":\"api\",\"key\":\"x\"} extra",
        "{\"limit\":\"api\",\"limit\":\"api\",\"key\":\"x\"}",
        "{\"limit\":\"api\",\"key\":\"x\",\"unknown\":1}",
        "{\"limit\":\"api\",\"key\":1}",
        "{\"limit\":\"api\",\"key\":[\"x\",1]}",
        "{\"limit\":\"api\",\"key\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]}",
        "{\"limit\":\"api\",\"key\":\"\"}",
        "{\"limit\":\"api\"}",
        "{\"limit\":1,\"key\":\"x\"}",
        "{\"limit\":\"api\",\"key\":\"x\",\"cost\":0}",
        "{\"limit\":\"api\",\"key\":\"x\",\"cost\":-1}",
        "{\"limit\":\"api\",\"key\":\"x\",\"cost\":1.5}",
        "{\"limit\":\"api\",\"key\":\"x\",\"cost\":\"1\"}",
        "{\"limit\":\"api\",\"key\":\"x\",\"cost\":99999999999999999999}",
        "{\"limit\":\"api\",\"key\":\"x\",\"max_wait_ms\":-1}",
        "{\"limit\":\"api\",\"key\":\"x\",\"attributes\":{}}",
        "{\"attributes\":[]}",
        "{\"attributes\":{\"path\":true}}",
        "{\"attributes\":{\"path\":\"/api\"},\"key\":\"x\"}",
        "{\"attributes\":{\"path\":\"/api\"},\"tier\":\"x\"}",
        "{\"attributes\":{\"path\":\"/one\",\"ip\":\"not an address\"}}",
        "\xff\xfe",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        check(bodies[i]);
        if (a.status != 400) {
            fail_msg("expected 400 for %s, found %s", bodies[i], a.text);
        }
        assert_true(http_has_line(&a, "Content-Type: application/problem+json"));
    }
    http_ask(server, "POST /v1/peek", "", "{\"limit\":\"api\",\"key\":\"x\"}", &a);
    assert_body_has("\"remaining\":1000");
}

static void unknown_limits_and_paths_are_404s_and_wrong_methods_405s(void **state)
{
    check("{\"limit\":\"nope\",\"key\":\"x\"}");
    assert_status(404);
    assert_body_has("no limit named 'nope'");
    http_ask(server, "POST /v1/checks", "", "{}", &a);
    assert_status(404);
    http_ask(server, "GET /v1/check", "", "", &a);
    assert_status(405);
    assert_true(http_has_line(&a, "Allow: POST"));
}

/* ---- several ---- */

static void a_batch_answers_each_for_itself(void **state)
{
    http_ask(server, "POST /v1/check/batch", "",
             "{\"requests\":[{\"limit\":\"one\",\"key\":\"192.0.2.20\"},"
             "{\"limit\":\"one\",\"key\":\"192.0.2.20\"},{\"limit\":\"nope\"},{}]}",
             &a);
    assert_status(200);
    assert_body_has("{\"results\":[{\"verdict\":\"allow\",\"limit\":\"one\"");
    assert_body_has(",{\"verdict\":\"deny\",\"limit\":\"one\"");
    assert_body_has("\"status\":404,\"detail\":\"no limit named 'nope'\"}");
    assert_body_has("\"status\":400,\"detail\":\"found neither limit nor attributes, expected one "
                    "of them\"}]}");
    http_ask(server, "POST /v1/check/batch", "", "{\"requests\":[]}", &a);
    assert_string_equal(a.body, "{\"results\":[]}");
    http_ask(server, "POST /v1/check/batch", "", "[]", &a);
    assert_status(400);
}

static void a_batch_has_a_thousand_requests_and_no_more(void **state)
{
    char *body = malloc(8192);
    for (unsigned n = 1000; n <= 1001; n++) {
        size_t at = (size_t)sprintf(body, "{\"requests\":[{}");
        for (unsigned i = 1; i < n; i++) {
            at += (size_t)sprintf(body + at, ",{}");
        }
        (void)sprintf(body + at, "]}");
        http_ask(server, "POST /v1/check/batch", "", body, &a);
        assert_status(n == 1000 ? 200 : 400);
    }
    free(body);
}

static void a_thousand_requests_may_have_many_attributes(void **state)
{
    static char body[200000];
    size_t n = (size_t)sprintf(body, "{\"requests\":[");
    for (int i = 0; i < 1000; i++) {
        n += (size_t)sprintf(
            body + n,
            "%s{\"attributes\":{\"method\":\"GET\",\"path\":\"/api/of/some/length\","
            "\"host\":\"www.example.com\",\"ip\":\"192.0.2.7\","
            "\"user\":\"somebody-%04d\",\"agent\":\"a browser of today\"}}",
            i > 0 ? "," : "", i);
    }
    (void)sprintf(body + n, "]}");
    http_ask(server, "POST /v1/check/batch", "", body, &a);
    assert_status(200);
    size_t verdicts = 0;
    for (const char *at = a.body; (at = strstr(at, "\"verdict\":\"allow\"")) != NULL; at++) {
        verdicts++;
    }
    assert_int_equal(verdicts, 1000);
}

/* ---- all together ---- */

static uint64_t admitted;

static void *hammer(void *arg)
{
    static const char text[] =
        "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 34\r\n\r\n"
        "{\"limit\":\"hundred\",\"key\":\"shared\"}";
    struct http_answer *answer = malloc(sizeof *answer);
    int fd = *(const int *)arg;
    for (int i = 0; i < 100; i++) {
        http_send(fd, text, sizeof text - 1);
        assert_true(http_receive(fd, answer));
        (void)fetch_add(&admitted, answer->status == 200);
    }
    (void)close(fd);
    free(answer);
    return arg;
}

static void four_connections_on_one_key_are_let_in_a_hundred_times(void **state)
{
    pthread_t threads[4];
    int sockets[4];
    for (int i = 0; i < 4; i++) {
        sockets[i] = http_connect(server);
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &sockets[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(admitted, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_of_a_thousand_a_day_is_allowed),
        cmocka_unit_test(attributes_and_a_name_count_in_the_same_bucket),
        cmocka_unit_test(a_key_of_two_parts_is_a_list),
        cmocka_unit_test(where_no_limit_applies_nothing_is_left_to_tell),
        cmocka_unit_test(a_tier_has_its_own_quota),
        cmocka_unit_test(who_may_wait_is_told_how_long),
        cmocka_unit_test(keys_hold_any_byte_and_inject_nothing),
        cmocka_unit_test(a_denial_is_a_429_that_says_when_to_come_again),
        cmocka_unit_test(what_can_never_pass_is_a_422_without_a_time),
        cmocka_unit_test(who_is_on_the_block_list_gets_a_403),
        cmocka_unit_test(a_look_is_always_a_200_and_takes_nothing),
        cmocka_unit_test(what_is_not_a_question_is_a_400_and_charges_nothing),
        cmocka_unit_test(unknown_limits_and_paths_are_404s_and_wrong_methods_405s),
        cmocka_unit_test(a_batch_answers_each_for_itself),
        cmocka_unit_test(a_batch_has_a_thousand_requests_and_no_more),
        cmocka_unit_test(a_thousand_requests_may_have_many_attributes),
        cmocka_unit_test(four_connections_on_one_key_are_let_in_a_hundred_times),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
