/* Calls of Envoy's rate limit service whose answers come later, in several stages, over HTTP. */
#include <sys/socket.h>

#include "server/operations/rls.h"
#include "server/pending/pending_story.h"

static struct http_answer a;

#define DESCRIPTOR(user)                                                                           \
    "{\"entries\":[{\"key\":\"path\",\"value\":\"/api\"},{\"key\":\"user\",\"value\":\"" user      \
    "\"}]}"
#define CALL(descriptors) "{\"domain\":\"d\",\"descriptors\":[" descriptors "]}"

static void send_call(int fd)
{
    send_post(fd, "/json", "", CALL(DESCRIPTOR("a") "," DESCRIPTOR("b")));
}

/* Lets the question of the group be answered, and then the peek at the limit that did not bind. */
static void answer_call(void)
{
    for (unsigned stage = 0; stage < 2; stage++) {
        slow_await(scene, 1);
        slow_answer(scene, 1);
    }
}

static void a_call_is_answered_after_its_last_stage(void **state)
{
    int fd = http_connect(&scene->http);
    send_call(fd);
    answer_call();
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, "{\"overallCode\":\"OK\",\"statuses\":[{\"code\":\"OK\""));
    assert_int_equal(slow_logged(scene), 2);
    assert_int_equal(scene->fleet.log[0].verb, REMOTE_CHECK);
    assert_int_equal(scene->fleet.log[1].verb, REMOTE_PEEK);
    (void)close(fd);
}

static void a_call_may_have_as_many_descriptors_and_entries_as_are_allowed(void **state)
{
    char *body = NULL;
    size_t size = 0;
    char head[200];
    FILE *out = open_memstream(&body, &size);
    assert_non_null(out);
    (void)fputs("{\"domain\":\"d\",\"hitsAddend\":1,\"descriptors\":[", out);
    for (unsigned i = 0; i < CALL_MAX; i++) {
        (void)fputs(i > 0 ? ",{\"entries\":[" : "{\"entries\":[", out);
        for (unsigned j = 0; j < RLS_ENTRIES_MAX; j++) {
            (void)fprintf(out, "%s{\"key\":\"k%u\",\"value\":\"v\"}", j > 0 ? "," : "", j);
        }
        (void)fputs("],\"hitsAddend\":1,\"isNegativeHits\":false,"
                    "\"limit\":{\"requestsPerUnit\":100,\"unit\":\"DAY\"}}",
                    out);
    }
    (void)fputs("]}", out);
    (void)fclose(out);
    int fd = http_connect(&scene->http);
    int n = snprintf(head, sizeof head,
                     "POST /json HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n", size);
    http_send(fd, head, (size_t)n);
    http_send(fd, body, size);
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    (void)close(fd);
    free(body);
}

static void a_denied_call_is_told_so(void **state)
{
    int fd = http_connect(&scene->http);
    slow_plan(scene, (struct fake_plan){.verdict = WEIR_DENY, .retry_ns = WEIR_SECOND});
    send_call(fd);
    answer_call();
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 429);
    assert_non_null(strstr(a.body, "{\"overallCode\":\"OVER_LIMIT\""));
    (void)close(fd);
}

static void calls_and_other_requests_keep_their_order(void **state)
{
    enum { CALLS = 20 };
    int fd = http_connect(&scene->http);
    for (unsigned i = 0; i < CALLS; i++) {
        send_call(fd);
        http_send(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 34);
    }
    slow_await(scene, CALLS);
    slow_answer(scene, 2 * CALLS); /* in a random order: some calls end before others go on */
    for (unsigned i = 0; i < CALLS; i++) {
        assert_true(http_receive(fd, &a));
        assert_non_null(strstr(a.body, "overallCode"));
        assert_true(http_receive(fd, &a));
        assert_string_equal(a.body, "ok\n");
    }
    (void)close(fd);
}

static void a_failed_store_is_an_error_before_the_decision_only(void **state)
{
    int fd = http_connect(&scene->http);
    slow_plan(scene, (struct fake_plan){.error = WEIR_EIO});
    send_call(fd);
    slow_await(scene, 1);
    slow_answer(scene, 1);
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 503);
    slow_plan(scene, (struct fake_plan){0});
    send_call(fd);
    slow_await(scene, 1);
    slow_plan(scene, (struct fake_plan){.error = WEIR_EIO}); /* of questions that come now */
    answer_call();
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    (void)close(fd);
}

static void clients_may_leave_between_the_stages(void **state)
{
    for (unsigned round = 0; round < 20; round++) {
        struct linger reset = {.l_onoff = 1, .l_linger = 0};
        int fd = http_connect(&scene->http);
        send_call(fd);
        slow_await(scene, 1);
        if (round % 2 == 0) {
            slow_answer(scene, 1);
            slow_await(scene, 1);
        }
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        (void)close(fd);
        while (slow_abandoned(scene) <= round) {
            sleep_ms(1);
        }
        for (unsigned stage = round % 2 == 0; stage < 2; stage++) {
            slow_await(scene, 1);
            slow_answer(scene, 1);
        }
        slow_await(scene, 0);
    }
}

static void rules_may_be_reloaded_between_the_stages(void **state)
{
    static const char other[] = "limits: [{name: other, key: [], rate: 1/h}]";
    struct weir_error error;
    int fd = http_connect(&scene->http);
    send_call(fd);
    slow_await(scene, 1);
    assert_int_equal(weir_rules_reload_text(scene->server.rules, "t", other, strlen(other), &error),
                     0);
    answer_call();
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, "\"requestsPerUnit\":100,\"unit\":\"DAY\""));
    (void)close(fd);
}

static void a_server_may_end_while_calls_are_pending(void **state)
{
    int fd = http_connect(&scene->http);
    send_call(fd);
    send_call(fd);
    slow_await(scene, 2);
    slow_answer(scene, 1);
    while (slow_logged(scene) < 3) { /* one is in the next stage */
        sleep_ms(1);
    }
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_call_is_answered_after_its_last_stage),
        TEST(a_call_may_have_as_many_descriptors_and_entries_as_are_allowed),
        TEST(a_denied_call_is_told_so),
        TEST(calls_and_other_requests_keep_their_order),
        TEST(a_failed_store_is_an_error_before_the_decision_only),
        TEST(clients_may_leave_between_the_stages),
        TEST(rules_may_be_reloaded_between_the_stages),
        TEST(a_server_may_end_while_calls_are_pending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
