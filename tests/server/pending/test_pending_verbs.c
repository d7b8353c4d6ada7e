/* What operators' verbs and reservations ask of a fleet whose answers come later. */
#include "server/pending/pending_story.h"

static struct http_answer a;

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
        {"WEIR.PENALIZE api alice UNITS 5", REMOTE_PENALIZE, 5, 0},
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
    slow_plan(scene, (struct fake_plan){.verdict = WEIR_DENY,
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
    assert_non_null(strstr(a.body, "\"blocked_ms\":2,\"reason\":\"blocked\"}"));
    assert_asked(0, REMOTE_PEEK, 1, 0);
    assert_asked(1, REMOTE_PEEK, 0, 0);
    slow_forget(scene);
    send_post(fd, "/v1/keys/block", "Content-Type: application/json\r\n",
              "{\"limit\":\"api\",\"key\":\"alice\",\"for_ms\":2}");
    answer_in_turn(3);
    assert_true(http_receive(fd, &a));
    assert_non_null(strstr(a.body, "\"blocked_ms\":2,\"reason\":\"blocked\"}"));
    assert_asked(0, REMOTE_BLOCK, 0, 2 * WEIR_MILLISECOND);
    (void)close(fd);
}

static void what_only_the_store_can_do_is_unavailable_without_it(void **state)
{
    struct server_client c;
    server_connect(&c, scene->resp);
    slow_plan(scene, (struct fake_plan){.error = WEIR_EIO}); /* asked, and no answer */
    threads_require(server_say(&c, "WEIR.RESET api alice"));
    slow_await(scene, 1);
    slow_answer(scene, 1);
    assert_int_equal(strncmp(server_reply(&c), "-UNAVAILABLE the store", 22), 0);
    slow_plan(scene, (struct fake_plan){.refuse = WEIR_EIO}); /* not even asked */
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
                {13, REMOTE_PENALIZE, 3, 0},
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
    slow_plan(scene, (struct fake_plan){.refuse = WEIR_EIO}); /* nothing has happened: try again */
    assert_int_equal(strncmp(settle_at_once(&c, id), "-UNAVAILABLE", 12), 0);
    assert_int_equal(strncmp(settle_at_once(&c, id), "-UNAVAILABLE", 12), 0);
    slow_plan(scene, (struct fake_plan){.error = WEIR_EIO}); /* nobody knows: never again */
    assert_int_equal(strncmp(settle(&c, id, 4), "-UNAVAILABLE", 12), 0);
    slow_plan(scene, (struct fake_plan){0});
    assert_int_equal(strncmp(settle_at_once(&c, id), "-NORESERVATION", 14), 0);
    server_disconnect(&c);
}

static void what_the_store_has_not_charged_is_not_given_back(void **state)
{
    struct server_client c;
    char words[128];
    char id[33];
    server_connect(&c, scene->resp);
    slow_plan(scene, (struct fake_plan){.flags = REMOTE_DEGRADED});
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
        TEST(verbs_go_to_the_store_and_then_the_key_is_looked_at),
        TEST(a_blocked_key_is_asked_for_how_long),
        TEST(what_only_the_store_can_do_is_unavailable_without_it),
        TEST(a_reservation_is_settled_by_the_difference_once),
        TEST(what_may_have_been_given_back_is_not_given_back_again),
        TEST(what_the_store_has_not_charged_is_not_given_back),
        TEST(a_reservation_over_http_is_settled_over_resp_on_any_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
