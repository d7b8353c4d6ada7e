/*
 * Answers that come later: replies keep their order, whatever the order of the answers; clients
 * that leave, servers that end, and pipelines without an end do no harm.
 */
#include <sys/socket.h>

#include "server/pending/pending_story.h"

/* ---- RESP ---- */

static void a_reply_waits_for_its_answer(void **state)
{
    struct server_client c;
    server_connect(&c, scene->resp);
    say_check(&c, 3);
    slow_await(scene, 1);
    slow_answer(scene, 1);
    get_check(&c, 3);
    server_disconnect(&c);
    assert_int_equal(slow_pending(scene), 1);
    assert_int_equal(slow_abandoned(scene), 0);
}

static void a_pipeline_of_64_has_64_questions_out(void **state)
{
    struct server_client c;
    server_connect(&c, scene->resp);
    for (unsigned i = 1; i <= 64; i++) {
        say_check(&c, i);
    }
    slow_await(scene, 64);
    slow_answer(scene, 64);
    for (unsigned i = 1; i <= 64; i++) {
        get_check(&c, i);
    }
    server_disconnect(&c);
}

/* What a pipeline may hold; each knows its reply. */
static void say_something(struct server_client *c, uint64_t kind, unsigned i)
{
    char words[64];
    switch (kind) {
    case 0:
        (void)snprintf(words, sizeof words, "ECHO %u", i);
        break;
    case 1:
        (void)snprintf(words, sizeof words, "WEIR.PEEK here %u", i);
        break;
    case 2:
        (void)snprintf(words, sizeof words, "WEIR.ASK path /api user bob COST %u", i + 1);
        break;
    default:
        (void)snprintf(words, sizeof words, "WEIR.CHECK api alice COST %u", i + 1);
        break;
    }
    threads_require(server_say(c, words));
}

static void get_something(struct server_client *c, uint64_t kind, unsigned i)
{
    char expected[128];
    const char *reply = server_reply(c);
    if (kind == 0) {
        (void)snprintf(expected, sizeof expected, "'%u'", i);
        assert_string_equal(reply, expected);
    } else if (kind == 1) {
        assert_non_null(strstr(reply, "['allow' 'here' 1000000 1000000 0"));
    } else {
        (void)snprintf(expected, sizeof expected, "['allow' 'api' 1000000 %u 0 0 0 '' 'limit']",
                       i + 1);
        assert_string_equal(reply, expected);
    }
}

/* Somebody who answers a few questions every now and then. */
struct store {
    struct slow_scene *scene;
    pthread_t thread;
    uint64_t ends;
};

static void *answer_some_all_the_time(void *arg)
{
    struct store *store = arg;
    uint64_t random = 3;
    while (threads_get(&store->ends) == 0) {
        struct timespec moment = {0, 50000};
        slow_answer(store->scene, 1 + threads_random(&random) % 30);
        (void)nanosleep(&moment, NULL);
    }
    return NULL;
}

static void store_begin(struct store *store, struct slow_scene *s)
{
    *store = (struct store){.scene = s};
    assert_int_equal(pthread_create(&store->thread, NULL, answer_some_all_the_time, store), 0);
}

static void store_end(struct store *store)
{
    threads_set(&store->ends, 1);
    assert_int_equal(pthread_join(store->thread, NULL), 0);
}

static void replies_keep_their_order_whatever_the_order_of_the_answers(void **state)
{
    uint64_t random = 7;
    struct server_client c;
    struct store store;
    server_connect(&c, scene->resp);
    store_begin(&store, scene);
    for (unsigned round = 0; round < THREADS_ROUNDS(200, 60, 40); round++) {
        uint64_t kinds[100];
        unsigned n = 1 + (unsigned)(threads_random(&random) % 100);
        slow_plan(scene, (struct fake_plan){.at_once = (unsigned)(threads_random(&random) % 4)});
        for (unsigned i = 0; i < n; i++) {
            kinds[i] = threads_random(&random) % 6;
            say_something(&c, kinds[i], i);
        }
        threads_require(server_say(&c, "PING"));
        for (unsigned i = 0; i < n; i++) {
            get_something(&c, kinds[i], i);
        }
        assert_string_equal(server_reply(&c), "+PONG");
    }
    store_end(&store);
    server_disconnect(&c);
    assert_true(slow_pending(scene) > 500);
}

static void a_reply_is_of_the_protocol_that_was_spoken_when_it_was_asked_for(void **state)
{
    struct server_client c;
    server_connect(&c, scene->resp);
    say_check(&c, 1);
    threads_require(server_say(&c, "HELLO 3"));
    say_check(&c, 2);
    slow_await(scene, 2);
    slow_answer(scene, 2);
    get_check(&c, 1);
    assert_non_null(strstr(server_reply(&c), "'proto' 3"));
    assert_non_null(strstr(server_reply(&c), "{'verdict' 'allow', 'limit' 'api'"));
    server_disconnect(&c);
}

/* ---- bounds ---- */

static void a_pipeline_without_an_end_is_read_as_far_as_the_bound(void **state)
{
    enum { ALL = 3 * SERVER_PENDING + 7 };
    struct server_client c;
    struct store store;
    server_connect(&c, scene->resp);
    slow_forget(scene);
    for (unsigned i = 1; i <= ALL; i++) {
        say_check(&c, i);
    }
    slow_await(scene, SERVER_PENDING);
    sleep_ms(50);
    slow_await(scene, SERVER_PENDING);
    store_begin(&store, scene);
    for (unsigned i = 1; i <= ALL; i++) {
        get_check(&c, i);
    }
    store_end(&store);
    assert_int_equal(scene->fleet.out_most, SERVER_PENDING);
    server_disconnect(&c);
}

static void what_waits_behind_a_question_is_bounded(void **state)
{
    enum { SIZE = 15000, ALL = 3000 }; /* 45 MB */
    static char big[SIZE + 64];
    struct server_client c;
    int n = snprintf(big, sizeof big, "*2\r\n$4\r\nECHO\r\n$%d\r\n", SIZE);
    memset(big + n, 'x', SIZE);
    memcpy(big + n + SIZE, "\r\n", 2);
    server_connect(&c, scene->resp);
    say_check(&c, 1);
    slow_await(scene, 1);
    struct timeval moment = {.tv_usec = 300000};
    assert_int_equal(setsockopt(c.fd, SOL_SOCKET, SO_SNDTIMEO, &moment, sizeof moment), 0);
    size_t sent = 0;
    size_t one = (size_t)n + SIZE + 2;
    for (ssize_t got = 0; sent < one * ALL && got >= 0;) {
        size_t at = sent % one;
        got = send(c.fd, big + at, one - at, MSG_NOSIGNAL);
        sent += got > 0 ? (size_t)got : 0;
    }
    assert_in_range(sent, SERVER_OUTPUT_BYTES, SERVER_OUTPUT_BYTES + (16u << 20));
    slow_answer(scene, 1);
    get_check(&c, 1);
    for (size_t i = 0; i < sent / one; i++) {
        assert_int_equal(server_reply(&c)[1], 'x');
    }
    server_disconnect(&c);
}

/* ---- clients that leave ---- */

static void clients_may_leave_at_any_time(void **state)
{
    uint64_t random = 11;
    for (unsigned round = 0; round < THREADS_ROUNDS(200, 60, 40); round++) {
        struct server_client c;
        unsigned n = 1 + (unsigned)(threads_random(&random) % 20);
        bool some = threads_random(&random) % 2 == 0;
        struct linger reset = {.l_onoff = 1, .l_linger = 0};
        server_connect(&c, scene->resp);
        for (unsigned i = 0; i < n; i++) {
            say_something(&c, threads_random(&random) % 6, i);
        }
        if (some) {
            slow_answer(scene, threads_random(&random) % n);
        }
        if (threads_random(&random) % 2 == 0) {
            (void)setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        }
        server_disconnect(&c);
        if (threads_random(&random) % 4 == 0) {
            slow_answer(scene, 1000);
        }
    }
    struct server_client c; /* and everything is as before */
    struct store store;
    server_connect(&c, scene->resp);
    store_begin(&store, scene);
    say_check(&c, 9);
    get_check(&c, 9);
    slow_await(scene, 0);
    store_end(&store);
    server_disconnect(&c);
}

static void answers_that_nobody_waits_for_are_counted(void **state)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    struct server_client c;
    server_connect(&c, scene->resp);
    say_check(&c, 1);
    say_check(&c, 2);
    say_check(&c, 3);
    slow_await(scene, 3);
    assert_int_equal(setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    server_disconnect(&c);
    while (slow_abandoned(scene) < 3) {
        sleep_ms(1);
    }
    slow_answer(scene, 3);
    slow_await(scene, 0);
    assert_int_equal(slow_abandoned(scene), 3);
}

static void who_has_said_all_still_gets_the_replies(void **state)
{
    struct server_client c;
    server_connect(&c, scene->resp);
    say_check(&c, 1);
    say_check(&c, 2);
    slow_await(scene, 2);
    assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
    sleep_ms(20);
    slow_answer(scene, 2);
    get_check(&c, 1);
    get_check(&c, 2);
    assert_string_equal(server_reply(&c), "end");
    server_disconnect(&c);
}

static void an_end_waits_for_the_replies_before_it(void **state)
{
    struct server_client c;
    server_connect(&c, scene->resp);
    say_check(&c, 1);
    threads_require(server_say(&c, "QUIT"));
    say_check(&c, 2);
    slow_await(scene, 1);
    slow_answer(scene, 1);
    get_check(&c, 1);
    assert_string_equal(server_reply(&c), "+OK");
    assert_string_equal(server_reply(&c), "end");
    server_disconnect(&c);
}

/* ---- times ---- */

static void who_waits_for_the_store_is_not_idle(void **state)
{
    struct server_options o = server_world_options();
    struct slow_scene *own = calloc(1, sizeof *own);
    struct server_client c;
    o.idle_ms = 40;
    o.request_ms = 40;
    slow_start(own, rules, &o);
    server_connect(&c, own->resp);
    say_check(&c, 1);
    slow_await(own, 1);
    sleep_ms(300);
    slow_answer(own, 1);
    get_check(&c, 1);
    assert_string_equal(server_reply(&c), "end"); /* and now it is */
    server_disconnect(&c);
    slow_stop(own);
    free(own);
}

static void *stop_server(void *arg)
{
    struct slow_scene *s = arg;
    server_stop(&s->server);
    return NULL;
}

static void a_server_that_ends_answers_what_is_out(void **state)
{
    struct slow_scene *own = calloc(1, sizeof *own);
    struct server_client c;
    struct server_client other;
    pthread_t thread;
    slow_start(own, rules, NULL);
    server_connect(&c, own->resp);
    server_connect(&other, own->resp);
    say_check(&c, 1);
    say_check(&c, 2);
    slow_await(own, 2);
    assert_int_equal(pthread_create(&thread, NULL, stop_server, own), 0);
    sleep_ms(100);
    slow_answer(own, 2);
    get_check(&c, 1);
    get_check(&c, 2);
    assert_string_equal(server_reply(&c), "end");
    assert_string_equal(server_reply(&other), "end");
    assert_int_equal(pthread_join(thread, NULL), 0);
    server_disconnect(&c);
    server_disconnect(&other);
    slow_stop(own);
    free(own);
}

static void a_server_may_end_with_questions_that_nobody_waits_for(void **state)
{
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    struct slow_scene *own = calloc(1, sizeof *own);
    struct server_client c;
    slow_start(own, rules, NULL);
    server_connect(&c, own->resp);
    say_check(&c, 1);
    threads_require(server_say(&c, "WEIR.BLOCK api alice FOR 1000"));
    threads_require(server_say(&c, "WEIR.RESERVE api alice"));
    slow_await(own, 3);
    assert_int_equal(setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    server_disconnect(&c);
    slow_stop(own); /* sees that all are answered, and let go */
    free(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_reply_waits_for_its_answer),
        TEST(a_pipeline_of_64_has_64_questions_out),
        TEST(replies_keep_their_order_whatever_the_order_of_the_answers),
        TEST(a_reply_is_of_the_protocol_that_was_spoken_when_it_was_asked_for),
        TEST(a_pipeline_without_an_end_is_read_as_far_as_the_bound),
        TEST(what_waits_behind_a_question_is_bounded),
        TEST(clients_may_leave_at_any_time),
        TEST(answers_that_nobody_waits_for_are_counted),
        TEST(who_has_said_all_still_gets_the_replies),
        TEST(an_end_waits_for_the_replies_before_it),
        cmocka_unit_test(who_waits_for_the_store_is_not_idle),
        cmocka_unit_test(a_server_that_ends_answers_what_is_out),
        cmocka_unit_test(a_server_may_end_with_questions_that_nobody_waits_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
