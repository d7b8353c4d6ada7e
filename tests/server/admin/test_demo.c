/* The demo: what clients without a secret may try out, and what it never takes from operators. */
#include <pthread.h>

#include "server/admin/sandbox_story.h"

#define ROLE_ADMIN_FIELD "Authorization: Bearer a-secret-of-operators\r\n"
#define PLAY(cost)                                                                                 \
    "{\"at_ms\":0,\"attributes\":{\"user\":\"ann\",\"path\":\"/token_bucket\"},\"cost\":" #cost "}"

static const char *const scenarios[] = {"token_bucket",   "leaky_bucket", "fixed_window",
                                        "sliding_window", "sliding_log",  "all"};

static struct access *access_made;

static void start_demo(bool demo)
{
    struct server_options options = {.demo = demo, .access = access_made};
    world = calloc(1, sizeof *world);
    admin_world_start(world, rules, &options);
}

static int start_with_demo(void **state)
{
    (void)state;
    access_made = secrets(NULL, "a-secret-of-operators");
    start_demo(true);
    return 0;
}

static int stop_with_demo(void **state)
{
    (void)stop(state);
    access_close(access_made);
    return 0;
}

/* Sends a request from 127.0.0.`from`, and leaves its reply. Returns the socket. */
static int send_from(unsigned from, const char *line, const char *fields, const char *body)
{
    char *text = malloc(strlen(body) + 512);
    assert_non_null(text);
    int n = sprintf(text,
                    "%s HTTP/1.1\r\n%s%sContent-Type: application/json\r\nContent-Length: "
                    "%zu\r\n\r\n%s",
                    line, strstr(fields, "Host: ") == NULL ? "Host: localhost\r\n" : "", fields,
                    strlen(body), body);
    int fd = admin_connect(world, from);
    http_send(fd, text, (size_t)n);
    free(text);
    return fd;
}

static void receive(int fd)
{
    assert_true(http_receive(fd, &a));
    (void)close(fd);
}

static void ask_from(unsigned from, const char *line, const char *body)
{
    receive(send_from(from, line, "", body));
}

/* Returns the id in the last reply, which lasts until the next call but one. */
static const char *id_made(void)
{
    static char ids[2][33];
    static unsigned n;
    char *id = ids[n++ % 2];
    assert_status(201);
    const char *at = strstr(a.body, "\"sandbox\":\"");
    assert_non_null(at);
    memcpy(id, at + 11, 32);
    return id;
}

static const char *play_from(unsigned from, const char *scenario)
{
    char body[64];
    (void)snprintf(body, sizeof body, "{\"scenario\":\"%s\"}", scenario);
    ask_from(from, "POST /v1/demo", body);
    return id_made();
}

static void demo_step(unsigned from, const char *id, const char *asks)
{
    char line[64];
    char *body = step_body(asks);
    (void)snprintf(line, sizeof line, "POST /v1/demo/%.32s", id);
    ask_from(from, line, body);
    free(body);
}

/* ---- what it is ---- */

static void each_scenario_decides_by_its_own_rules(void **state)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        const char *id = play_from(1, scenarios[i]);
        char expected[64];
        (void)snprintf(expected, sizeof expected, "\"name\":\"%s\"",
                       strcmp(scenarios[i], "all") == 0 ? "sliding_log" : scenarios[i]);
        assert_body_has(expected);
        assert_body_has("\"rate\":\"10/10s\",\"count\":10,\"period_ms\":10000,");
        demo_step(1, id, PLAY(10) "," PLAY(1));
        assert_status(200);
        assert_string_equal(verdicts(), "allow deny ");
    }
}

static void without_demo_there_is_none_whatever_the_secret(void **state)
{
    static const char *const lines[] = {"POST /v1/demo",
                                        "POST /v1/demo/0123456789abcdef0123456789abcdef",
                                        "DELETE /v1/demo/0123456789abcdef0123456789abcdef"};
    (void)stop(state);
    start_demo(false);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        receive(send_from(1, lines[i], "", "{\"scenario\":\"all\"}"));
        assert_status(404);
        assert_body_has("weir serve --demo turns it on");
        receive(send_from(1, lines[i], ROLE_ADMIN_FIELD, "{\"scenario\":\"all\"}"));
        assert_status(404);
    }
    admin_ask(world, "GET /v1/history", "", "", &a);
    assert_body_has("\"role\":\"check\",\"demo\":false,");
    (void)stop(state);
    start_demo(true);
    admin_ask(world, "GET /v1/history", "", "", &a);
    assert_body_has("\"role\":\"check\",\"demo\":true,");
}

static void rules_of_a_client_are_refused(void **state)
{
    static const char *const bodies[] = {
        "",
        "{}",
        "[]",
        "{\"scenario\":7}",
        "{\"scenario\":\"\"}",
        "{\"scenario\":\"All\"}",
        "{\"scenario\":\"token_bucke\"}",
        "{\"scenario\":\"limits: [{name: a, key: [user], rate: 1/s}]\"}",
        "{\"rules\":\"limits: [{name: a, key: [user], rate: 1/s}]\"}",
        "{\"scenario\":\"all\",\"rules\":\"limits: []\"}",
        "{\"scenario\":\"all\",\"scenario\":\"all\"}",
        "{\"scenarix\":\"all\"}",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        ask_from(1, "POST /v1/demo", bodies[i]);
        assert_status(400);
    }
    ask_from(1, "POST /v1/demo", "{\"scenario\":\"x\"}");
    assert_body_has("scenario: found 'x', expected token_bucket, leaky_bucket,");
}

static void explanations_and_header_fields_stay_with_operators(void **state)
{
    const char *id = play_from(1, "token_bucket");
    demo_step(1, id, PLAY(1) "," ASK(0, "\"explain\":true"));
    assert_status(400);
    assert_body_has("asks[1]: found 'explain', which sandboxes of the demo do not have");
    demo_step(1, id, ASK(0, "\"headers\":true"));
    assert_status(400);
    demo_step(1, id, PLAY(10)); /* nothing was charged */
    assert_string_equal(verdicts(), "allow ");
}

/* ---- who else may not use it ---- */

static void pages_of_other_sites_are_refused(void **state)
{
    static const char *const fields[] = {
        "Host: evil.example\r\n", "Host: localhost\r\nOrigin: http://evil.example\r\n",
        "Host: localhost\r\nOrigin: null\r\n", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
        "Host: localhost\r\nSec-Fetch-Site: same-site\r\n"};
    char line[64];
    (void)snprintf(line, sizeof line, "POST /v1/demo/%.32s", play_from(1, "all"));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        receive(send_from(1, "POST /v1/demo", fields[i], "{\"scenario\":\"all\"}"));
        assert_status(403);
        receive(send_from(1, line, fields[i], "{\"asks\":[" PLAY(1) "]}"));
        assert_status(403);
    }
    admin_ask(world, "POST /v1/demo", "Content-Type: text/plain\r\n", "{\"scenario\":\"all\"}", &a);
    assert_status(415);
}

static void check_secrets_are_needed_where_there_are_some(void **state)
{
    struct server_options options = {.demo = true};
    (void)stop(state);
    options.access = secrets("for-check", "for-admin");
    world = calloc(1, sizeof *world);
    admin_world_start(world, rules, &options);
    ask_from(1, "POST /v1/demo", "{\"scenario\":\"all\"}");
    assert_status(401);
    receive(send_from(1, "POST /v1/demo", "Authorization: Bearer for-check\r\n",
                      "{\"scenario\":\"all\"}"));
    assert_status(201);
    restart(NULL);
    access_close(options.access);
}

/* ---- bounds ---- */

static void an_address_has_one_sandbox_and_the_fifth_address_none(void **state)
{
    char last[33];
    char before[33];
    for (unsigned from = 1; from <= 4; from++) {
        (void)snprintf(last, sizeof last, "%s", play_from(from, "all"));
    }
    ask_from(5, "POST /v1/demo", "{\"scenario\":\"all\"}");
    assert_status(503);
    assert_body_has("all 4 places of the demo are taken");
    memcpy(before, last, sizeof before);
    (void)snprintf(last, sizeof last, "%s", play_from(4, "fixed_window")); /* replaces its own */
    demo_step(4, before, PLAY(1));
    assert_status(404);
    assert_body_has("another page of this address has begun");
    demo_step(4, last, PLAY(1));
    assert_status(200);
    ask_from(5, "POST /v1/demo", "{\"scenario\":\"all\"}");
    assert_status(503);
    char line[64];
    (void)snprintf(line, sizeof line, "DELETE /v1/demo/%s", last);
    ask_from(4, line, "");
    assert_status(204);
    (void)play_from(5, "all");
}

static void create_as_operator(int status)
{
    admin_ask(world, "POST /v1/sandbox", ROLE_ADMIN_FIELD, "{\"rules\":\"limits: []\"}", &a);
    assert_status(status);
}

static void operators_and_the_demo_take_no_place_of_each_other(void **state)
{
    for (unsigned from = 1; from <= 4; from++) {
        (void)play_from(from, "all");
    }
    for (unsigned i = 0; i < 32; i++) {
        create_as_operator(201);
    }
    create_as_operator(503);
    (void)play_from(2, "all");
}

static void an_id_of_one_pool_is_unknown_in_the_other(void **state)
{
    char line[64];
    char id[33];
    memcpy(id, play_from(1, "all"), 33);
    (void)snprintf(line, sizeof line, "POST /v1/sandbox/%s", id);
    admin_ask(world, line, ROLE_ADMIN_FIELD, "{\"asks\":[]}", &a);
    assert_status(404);
    line[0] = 0;
    (void)snprintf(line, sizeof line, "DELETE /v1/sandbox/%s", id);
    admin_ask(world, line, ROLE_ADMIN_FIELD, "", &a);
    assert_status(404);
    create_as_operator(201);
    demo_step(1, id_made(), PLAY(1));
    assert_status(404);
}

static void a_request_has_at_most_128_kb(void **state)
{
    const char *id = play_from(1, "all");
    char *asks = repeat(PLAY(1), 512);
    demo_step(1, id, asks); /* the longest step has room */
    assert_status(200);
    free(asks);
    asks = repeat("1234567", 16384);
    demo_step(1, id, asks);
    assert_status(413);
    free(asks);
}

/* Its request has been read: the sandbox of `from` is busy. */
static void await_busy(unsigned from)
{
    for (unsigned i = 0; i < 3; i++) { /* requests that came before are read before these */
        admin_ask(world, "GET /v1/status", "", "", &a);
    }
    ask_from(from, "POST /v1/demo", "{\"scenario\":\"all\"}");
    assert_status(409);
    assert_body_has("the sandbox of this address is at work");
}

/* All four wait, one of them at libuv's pool; each is answered, and operators have their eight. */
static void jobs_of_the_demo_wait_for_their_turn_and_take_none_of_the_operators(void **state)
{
    int fds[4];
    int checks[8];
    block_pool();
    for (unsigned i = 0; i < 4; i++) {
        fds[i] = send_from(i + 1, "POST /v1/demo", "", "{\"scenario\":\"all\"}");
        await_busy(i + 1);
    }
    ask_from(5, "POST /v1/demo", "{\"scenario\":\"all\"}");
    assert_status(503);
    for (unsigned i = 0; i < 8; i++) {
        checks[i] = send_from(1, "POST /v1/config/check?source=file", ROLE_ADMIN_FIELD, "");
    }
    free_pool();
    for (unsigned i = 0; i < 4; i++) {
        receive(fds[i]);
        assert_status(201);
    }
    for (unsigned i = 0; i < 8; i++) {
        receive(checks[i]);
        assert_status(200);
    }
    (void)play_from(4, "all");
}

/* Waits until all four places are free: four new addresses have room. */
static void await_no_sandbox(void)
{
    bool all = false;
    while (!all) {
        char ids[4][33];
        unsigned made = 0;
        for (unsigned from = 6; from <= 9; from++) {
            ask_from(from, "POST /v1/demo", "{\"scenario\":\"all\"}");
            if (a.status == 201) {
                memcpy(ids[made++], id_made(), 33);
            }
        }
        all = made == 4;
        for (unsigned i = 0; i < made; i++) {
            char line[64];
            (void)snprintf(line, sizeof line, "DELETE /v1/demo/%.32s", ids[i]);
            ask_from(1, line, "");
        }
    }
}

/* Viewers that leave while their jobs wait give their places back. */
static void places_of_viewers_who_left_are_free_again(void **state)
{
    int fds[4];
    struct server_options options = {.demo = true, .access = access_made, .sandbox_idle_ms = 300};
    restart(&options);
    for (unsigned round = 0; round < 5; round++) {
        block_pool();
        for (unsigned i = 0; i < 4; i++) {
            fds[i] = send_from(i + 1, "POST /v1/demo", "", "{\"scenario\":\"all\"}");
            await_busy(i + 1);
        }
        for (unsigned i = 0; i < 4; i++) {
            (void)close(fds[i]);
        }
        free_pool();
        await_no_sandbox();
    }
}

static void *free_pool_later(void *arg)
{
    free_pool();
    return arg;
}

static void a_server_that_stops_answers_those_that_wait(void **state)
{
    int fds[4];
    pthread_t thread;
    struct server_options options = {.demo = true, .access = access_made};
    block_pool();
    for (unsigned i = 0; i < 4; i++) {
        fds[i] = send_from(i + 1, "POST /v1/demo", "", "{\"scenario\":\"all\"}");
        await_busy(i + 1);
    }
    assert_int_equal(pthread_create(&thread, NULL, free_pool_later, NULL), 0);
    restart(&options);
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (unsigned i = 0; i < 4; i++) {
        receive(fds[i]);
        assert_status(201);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start_with_demo, stop_with_demo)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_scenario_decides_by_its_own_rules),
        TEST(without_demo_there_is_none_whatever_the_secret),
        TEST(rules_of_a_client_are_refused),
        TEST(explanations_and_header_fields_stay_with_operators),
        TEST(pages_of_other_sites_are_refused),
        TEST(check_secrets_are_needed_where_there_are_some),
        TEST(an_address_has_one_sandbox_and_the_fifth_address_none),
        TEST(operators_and_the_demo_take_no_place_of_each_other),
        TEST(an_id_of_one_pool_is_unknown_in_the_other),
        TEST(a_request_has_at_most_128_kb),
        TEST(jobs_of_the_demo_wait_for_their_turn_and_take_none_of_the_operators),
        TEST(places_of_viewers_who_left_are_free_again),
        TEST(a_server_that_stops_answers_those_that_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
