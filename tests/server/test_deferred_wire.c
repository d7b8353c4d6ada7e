/* Answers that come later, over HTTP; and what they say: without the store, of operators' verbs, of reservations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server_fleet.h"
#include "support/threads_run.h"

static const char rules[] =
    "attributes: {user: ['header:X-User']}\n"
    "limits:\n"
    "  - {name: api, when: {path: /api}, key: [user], rate: 100/day, consistency: exact}\n"
    "  - {name: here, key: [user], when: {path: /here}, rate: 1000000/day, consistency: local}\n"
    "  - {name: quiet, key: [user], when: {path: /quiet}, rate: 1/day, consistency: exact,\n"
    "     shadow: true}\n";

static struct slow_scene *scene;
static struct http_answer a;

static int start(void **state)
{
    scene = calloc(1, sizeof *scene);
    slow_start(scene, rules, NULL);
    return 0;
}

static int stop(void **state)
{
    slow_stop(scene);
    free(scene);
    return 0;
}

static void sleep_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    (void)nanosleep(&t, NULL);
}

/* ---- RESP ---- */

static void say_check(struct server_client *c, unsigned cost)
{
    char words[64];
    (void)snprintf(words, sizeof words, "WEIR.CHECK api alice COST %u", cost);
    assert_true(server_say(c, words));
}

static void get_check(struct server_client *c, unsigned cost)
{
    char expected[128];
    (void)snprintf(expected, sizeof expected, "['allow' 'api' 1000000 %u 0 0 0 '']", cost);
    assert_string_equal(server_reply(c), expected);
}

/* ---- HTTP ---- */

static void send_post(int fd, const char *path, const char *fields, const char *body)
{
    char text[4096];
    int n = snprintf(text, sizeof text,
                     "POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n%s", path,
                     fields, strlen(body), body);
    http_send(fd, text, (size_t)n);
}

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
                           "]}]}"};
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
    int len = snprintf(head, sizeof head,
                       "POST /v1/check/batch HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
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
    static const char ask[] = "GET /v1/auth HTTP/1.1\r\nHost: x\r\nX-Original-URI: /api\r\n"
                              "X-User: carol\r\n\r\n";
    int fd = http_connect(&scene->http);
    http_send(fd, ask, sizeof ask - 1);
    slow_await(scene, 1);
    slow_answer(scene, 1);
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "");
    slow_plan(scene, (struct slow_plan){.verdict = WEIR_DENY,
                                        .flags = REMOTE_DEGRADED | REMOTE_CLOSED,
                                        .retry_ns = WEIR_SECOND});
    http_send(fd, ask, sizeof ask - 1);
    slow_await(scene, 1);
    slow_answer(scene, 1);
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 503);
    assert_int_equal(http_retry_after(&a), 1);
    (void)close(fd);
}

/* ---- what the answers say ---- */

static void answers_without_the_store_say_so(void **state)
{
    struct server_client c;
    int fd = http_connect(&scene->http);
    server_connect(&c, scene->resp);
    slow_plan(scene, (struct slow_plan){.flags = REMOTE_DEGRADED});
    say_check(&c, 1);
    send_check(fd, 1);
    slow_await(scene, 2);
    slow_answer(scene, 2);
    assert_string_equal(server_reply(&c), "['allow' 'api' 1000000 1 0 0 0 'degraded']");
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, "\"flags\":[\"degraded\"]"));
    server_disconnect(&c);
    (void)close(fd);
}

static void a_no_by_closed_is_503_and_one_for_want_of_units_is_429(void **state)
{
    int fd = http_connect(&scene->http);
    struct slow_plan no = {
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
    slow_plan(scene, (struct slow_plan){.verdict = WEIR_DENY, .retry_ns = WEIR_SECOND});
    threads_require(server_say(&c, "WEIR.CHECK quiet alice"));
    slow_await(scene, 1);
    slow_answer(scene, 1);
    assert_string_equal(server_reply(&c), "['allow' 'quiet' 1000000 1 0 0 0 'shadow']");
    server_disconnect(&c);
    scrape();
    assert_non_null(strstr(a.body, "weir_shadow_denied_total{limit=\"quiet\"} 1\n"));
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
    scrape();
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (strstr(a.body, lines[i]) == NULL) {
            fail_msg("no %s in %s", lines[i], a.body);
        }
    }
    assert_null(strstr(a.body, "weir_degraded_total{limit=\"api\",policy=\"open\"}"));
    assert_null(strstr(a.body, "weir_degraded_total{limit=\"here\""));
}

/* ---- operators ---- */

/* What was asked of the fleet: "block 0 alice". */
static void assert_asked(size_t i, int verb, uint64_t cost, uint64_t time_ns)
{
    assert_true(i < slow_logged(scene));
    assert_int_equal(scene->fleet.log[i].verb, verb);
    assert_int_equal(scene->fleet.log[i].cost, cost);
    assert_int_equal(scene->fleet.log[i].time_ns, time_ns);
    assert_non_null(strstr(scene->fleet.log[i].key, "alice"));
}

/* Answers one question after the other. */
static void answer_in_turn(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        slow_await(scene, 1);
        slow_answer(scene, 1);
        while (slow_logged(scene) == i + 1 && i + 1 < n) {
            sleep_ms(1);
        }
    }
}

static void verbs_go_to_the_store_and_then_the_key_is_looked_at(void **state)
{
    static const struct {
        const char *words;
        int verb;
        uint64_t cost;
        uint64_t time_ns;
    } verbs[] = {
        {"WEIR.REFUND api alice UNITS 4", REMOTE_REFUND, 4, 0},
        {"WEIR.PENALIZE api alice UNITS 5", REMOTE_PENALISE, 5, 0},
        {"WEIR.BLOCK api alice FOR 7", REMOTE_BLOCK, 0, 7 * WEIR_MILLISECOND},
        {"WEIR.BLOCK api alice FOR forever", REMOTE_BLOCK, 0, WEIR_FOREVER},
        {"WEIR.UNBLOCK api alice", REMOTE_UNBLOCK, 0, 0},
        {"WEIR.RESET api alice", REMOTE_RESET, 0, 0},
    };
    struct server_client c;
    server_connect(&c, scene->resp);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        slow_forget(scene);
        threads_require(server_say(&c, verbs[i].words));
        answer_in_turn(2);
        get_check(&c, 1);
        assert_int_equal(slow_logged(scene), 2);
        assert_asked(0, verbs[i].verb, verbs[i].cost, verbs[i].time_ns);
        assert_asked(1, REMOTE_PEEK, 1, 0);
    }
    server_disconnect(&c);
}

static void a_blocked_key_is_asked_for_how_long(void **state)
{
    slow_plan(scene, (struct slow_plan){.verdict = WEIR_DENY,
                                        .flags = WEIR_FLAG_BLOCKED,
                                        .retry_ns = 1500 * WEIR_MICROSECOND});
    slow_forget(scene);
    int fd = http_connect(&scene->admin);
    static const char look[] =
        "GET /v1/keys?limit=api&key=alice HTTP/1.1\r\nHost: localhost\r\n\r\n";
    http_send(fd, look, sizeof look - 1);
    answer_in_turn(2);
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, "\"blocked_ms\":2}"));
    assert_asked(0, REMOTE_PEEK, 1, 0);
    assert_asked(1, REMOTE_PEEK, 0, 0);
    slow_forget(scene);
    send_post(fd, "/v1/keys/block", "Content-Type: application/json\r\n",
              "{\"limit\":\"api\",\"key\":\"alice\",\"for_ms\":2}");
    answer_in_turn(3);
    assert_true(http_receive(fd, &a));
    assert_non_null(strstr(a.body, "\"blocked_ms\":2}"));
    assert_asked(0, REMOTE_BLOCK, 0, 2 * WEIR_MILLISECOND);
    (void)close(fd);
}

static void what_only_the_store_can_do_is_unavailable_without_it(void **state)
{
    struct server_client c;
    server_connect(&c, scene->resp);
    slow_plan(scene, (struct slow_plan){.error = WEIR_EIO}); /* asked, and no answer */
    threads_require(server_say(&c, "WEIR.RESET api alice"));
    slow_await(scene, 1);
    slow_answer(scene, 1);
    assert_int_equal(strncmp(server_reply(&c), "-UNAVAILABLE the store", 22), 0);
    slow_plan(scene, (struct slow_plan){.refuse = WEIR_EIO}); /* not even asked */
    assert_int_equal(strncmp(server_ask(&c, "WEIR.RESET api alice"), "-UNAVAILABLE the store", 22),
                     0);
    server_disconnect(&c);
    int fd = http_connect(&scene->admin);
    send_post(fd, "/v1/keys/reset", "Content-Type: application/json\r\n",
              "{\"limit\":\"api\",\"key\":\"alice\"}");
    assert_true(http_receive(fd, &a));
    (void)close(fd);
    assert_int_equal(a.status, 503);
    assert_int_equal(http_retry_after(&a), 1);
}

/* ---- reservations ---- */

static void reserve(struct server_client *c, char id[33])
{
    threads_require(server_say(c, "WEIR.RESERVE api alice COST 10"));
    slow_await(scene, 1);
    slow_answer(scene, 1);
    const char *reply = server_reply(c);
    const char *at = strstr(reply, "'' '");
    assert_non_null(at);
    (void)snprintf(id, 33, "%s", at + 4);
}

static const char *settle(struct server_client *c, const char *id, unsigned actual)
{
    char words[128];
    (void)snprintf(words, sizeof words, "WEIR.SETTLE %s %u", id, actual);
    threads_require(server_say(c, words));
    slow_await(scene, 1);
    slow_answer(scene, 1);
    return server_reply(c);
}

static const char *settle_at_once(struct server_client *c, const char *id)
{
    char words[128];
    (void)snprintf(words, sizeof words, "WEIR.SETTLE %s 4", id);
    return server_ask(c, words);
}

static void a_reservation_is_settled_by_the_difference_once(void **state)
{
    static const struct {
        unsigned actual;
        int verb;
        uint64_t cost;
        uint64_t time_ns;
    } ends[] = {{4, REMOTE_REFUND, 6, 12345},
                {0, REMOTE_REFUND, 10, 12345},
                {13, REMOTE_PENALISE, 3, 0},
                {10, REMOTE_PEEK, 1, 0}};
    struct server_client c;
    char id[33];
    server_connect(&c, scene->resp);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        slow_forget(scene);
        reserve(&c, id);
        assert_non_null(strstr(settle(&c, id, ends[i].actual), "'allow' 'api'"));
        assert_asked(0, REMOTE_CHECK, 10, 0);
        assert_asked(1, ends[i].verb, ends[i].cost, ends[i].time_ns);
        assert_int_equal(strncmp(settle_at_once(&c, id), "-NORESERVATION", 14), 0);
        assert_int_equal(slow_logged(scene), 2);
    }
    server_disconnect(&c);
}

static void what_may_have_been_given_back_is_not_given_back_again(void **state)
{
    struct server_client c;
    char id[33];
    server_connect(&c, scene->resp);
    reserve(&c, id);
    slow_plan(scene, (struct slow_plan){.refuse = WEIR_EIO}); /* nothing has happened: try again */
    assert_int_equal(strncmp(settle_at_once(&c, id), "-UNAVAILABLE", 12), 0);
    assert_int_equal(strncmp(settle_at_once(&c, id), "-UNAVAILABLE", 12), 0);
    slow_plan(scene, (struct slow_plan){.error = WEIR_EIO}); /* nobody knows: never again */
    assert_int_equal(strncmp(settle(&c, id, 4), "-UNAVAILABLE", 12), 0);
    slow_plan(scene, (struct slow_plan){0});
    assert_int_equal(strncmp(settle_at_once(&c, id), "-NORESERVATION", 14), 0);
    server_disconnect(&c);
}

static void what_the_store_has_not_charged_is_not_given_back(void **state)
{
    struct server_client c;
    char words[128];
    char id[33];
    server_connect(&c, scene->resp);
    slow_plan(scene, (struct slow_plan){.flags = REMOTE_DEGRADED});
    threads_require(server_say(&c, "WEIR.RESERVE api alice COST 10"));
    slow_await(scene, 1);
    slow_answer(scene, 1);
    const char *at = strstr(server_reply(&c), "'degraded' '");
    assert_non_null(at);
    (void)snprintf(id, sizeof id, "%s", at + 12);
    slow_forget(scene);
    (void)snprintf(words, sizeof words, "WEIR.CANCEL %s", id);
    threads_require(server_say(&c, words));
    slow_await(scene, 1);
    slow_answer(scene, 1);
    assert_non_null(strstr(server_reply(&c), "'allow'"));
    assert_asked(0, REMOTE_PEEK, 1, 0);
    server_disconnect(&c);
}

static void a_reservation_over_http_is_settled_over_resp_on_any_rules(void **state)
{
    struct server_client c;
    char id[33];
    struct weir_error error;
    int fd = http_connect(&scene->http);
    send_post(fd, "/v1/reserve", "", "{\"limit\":\"api\",\"key\":\"alice\",\"cost\":10}");
    slow_await(scene, 1);
    slow_answer(scene, 1);
    assert_true(http_receive(fd, &a));
    const char *at = strstr(a.body, "\"reservation\":\"");
    assert_non_null(at);
    (void)snprintf(id, sizeof id, "%s", at + 15);
    assert_int_equal(weir_rules_remove(scene->server.rules, "api", &error), 0);
    slow_forget(scene);
    server_connect(&c, scene->resp);
    assert_non_null(strstr(settle(&c, id, 4), "'allow' 'api'"));
    assert_asked(0, REMOTE_REFUND, 6, 12345);
    server_disconnect(&c);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pipelines_of_http_keep_their_order, start, stop),
        cmocka_unit_test_setup_teardown(an_http_connection_ends_behind_its_last_reply, start, stop),
        cmocka_unit_test_setup_teardown(a_batch_asks_all_at_once_and_answers_in_order, start, stop),
        cmocka_unit_test_setup_teardown(batches_count_with_all_their_parts, start, stop),
        cmocka_unit_test_setup_teardown(a_gateways_question_waits_too, start, stop),
        cmocka_unit_test_setup_teardown(answers_without_the_store_say_so, start, stop),
        cmocka_unit_test_setup_teardown(a_no_by_closed_is_503_and_one_for_want_of_units_is_429,
                                        start, stop),
        cmocka_unit_test_setup_teardown(a_shadow_limit_that_a_fleet_decides_denies_nobody, start,
                                        stop),
        cmocka_unit_test_setup_teardown(metrics_tell_of_the_store, start, stop),
        cmocka_unit_test_setup_teardown(verbs_go_to_the_store_and_then_the_key_is_looked_at, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_blocked_key_is_asked_for_how_long, start, stop),
        cmocka_unit_test_setup_teardown(what_only_the_store_can_do_is_unavailable_without_it, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_reservation_is_settled_by_the_difference_once, start,
                                        stop),
        cmocka_unit_test_setup_teardown(what_may_have_been_given_back_is_not_given_back_again,
                                        start, stop),
        cmocka_unit_test_setup_teardown(what_the_store_has_not_charged_is_not_given_back, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_reservation_over_http_is_settled_over_resp_on_any_rules,
                                        start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
