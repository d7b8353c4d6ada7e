/*
 * EXEC whose answers come later: its reply is whole and in order, whatever the order of the
 * answers, and clients that leave do no harm.
 */
#include <sys/socket.h>

#include "server/pending/pending_story.h"

/* Appends "['allow' 'api' 1000000 cost 0 0 0 '' 'limit']". */
static void add_check(char *to, size_t size, unsigned cost)
{
    size_t n = strlen(to);
    (void)snprintf(to + n, size - n, "%s['allow' 'api' 1000000 %u 0 0 0 '' 'limit']",
                   n > 1 ? " " : "", cost);
}

static void queue(struct server_client *c, const char *words)
{
    threads_require(server_say(c, words));
}

static void expect_queued(struct server_client *c, unsigned n)
{
    assert_string_equal(server_reply(c), "+OK");
    for (unsigned i = 0; i < n; i++) {
        assert_string_equal(server_reply(c), "+QUEUED");
    }
}

static void a_reply_of_exec_waits_for_all_its_answers(void **state)
{
    struct server_client c;
    char expected[256] = "[";
    server_connect(&c, scene->resp);
    queue(&c, "MULTI");
    queue(&c, "ECHO a");
    say_check(&c, 1);
    say_check(&c, 2);
    queue(&c, "ECHO b");
    say_check(&c, 3);
    queue(&c, "ECHO c");
    queue(&c, "EXEC");
    queue(&c, "PING");
    expect_queued(&c, 6);
    slow_await(scene, 3); /* all are at the store together */
    slow_answer(scene, 2);
    slow_await(scene, 1);
    slow_answer(scene, 1);
    (void)snprintf(expected, sizeof expected,
                   "['a' ['allow' 'api' 1000000 1 0 0 0 '' 'limit'] ['allow' 'api' 1000000 2 0 0 0 "
                   "'' 'limit'] 'b' "
                   "['allow' 'api' 1000000 3 0 0 0 '' 'limit'] 'c']");
    assert_string_equal(server_reply(&c), expected);
    assert_string_equal(server_reply(&c), "+PONG");
    server_disconnect(&c);
    assert_int_equal(slow_pending(scene), 1);
}

static void nothing_is_asked_before_exec(void **state)
{
    struct server_client c;
    server_connect(&c, scene->resp);
    SERVER_TALK(&c, {"MULTI", "+OK"}, {"WEIR.CHECK api alice", "+QUEUED"},
                {"WEIR.CHECK api alice COST 0", "-ERR COST: found '0'..."},
                {"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
                {"MULTI", "+OK"}, {"WEIR.CHECK api alice", "+QUEUED"}, {"DISCARD", "+OK"});
    slow_await(scene, 0);
    assert_int_equal(slow_logged(scene), 0);
    server_disconnect(&c);
}

static void answers_that_come_at_once_need_not_wait(void **state)
{
    struct server_client c;
    server_connect(&c, scene->resp);
    slow_plan(scene, (struct fake_plan){.at_once = 1});
    SERVER_TALK(
        &c, {"MULTI", "+OK"}, {"WEIR.CHECK api alice COST 4", "+QUEUED"},
        {"WEIR.CHECK here alice", "+QUEUED"},
        {"EXEC", "[['allow' 'api' 1000000 4 0 0 0 '' 'limit'] ['allow' 'here' 1000000 999999 ..."});
    assert_int_equal(slow_pending(scene), 0);
    server_disconnect(&c);
}

/* Says a transaction of random length; *expected is the reply of its EXEC. Returns how
 * many commands it has. */
static unsigned say_transaction(struct server_client *c, uint64_t *random, char *expected,
                                size_t size)
{
    unsigned n = (unsigned)(threads_random(random) % 12);
    (void)snprintf(expected, size, "[");
    queue(c, "MULTI");
    for (unsigned i = 0; i < n; i++) {
        if (threads_random(random) % 3 == 0) {
            char words[32];
            size_t len = strlen(expected);
            (void)snprintf(words, sizeof words, "ECHO %u", i);
            (void)snprintf(expected + len, size - len, "%s'%u'", len > 1 ? " " : "", i);
            queue(c, words);
        } else {
            say_check(c, i + 1);
            add_check(expected, size, i + 1);
        }
    }
    (void)strncat(expected, "]", size - strlen(expected) - 1);
    queue(c, "EXEC");
    return n;
}

static void *answer_all_the_time(void *arg)
{
    uint64_t *ends = arg;
    uint64_t random = 5;
    while (threads_get(ends) == 0) {
        struct timespec moment = {0, 50000};
        slow_answer(scene, 1 + threads_random(&random) % 10);
        (void)nanosleep(&moment, NULL);
    }
    return NULL;
}

static void replies_keep_their_order_whatever_the_order_of_the_answers(void **state)
{
    enum { DEEP = 8 };
    uint64_t random = 7;
    uint64_t ends = 0;
    pthread_t store;
    struct server_client c;
    server_connect(&c, scene->resp);
    assert_int_equal(pthread_create(&store, NULL, answer_all_the_time, &ends), 0);
    for (unsigned round = 0; round < THREADS_ROUNDS(200, 60, 40); round++) {
        char expected[DEEP][1024];
        unsigned n[DEEP];
        for (unsigned i = 0; i < DEEP; i++) {
            n[i] = say_transaction(&c, &random, expected[i], sizeof expected[i]);
            say_check(&c, 100 + i);
        }
        for (unsigned i = 0; i < DEEP; i++) {
            expect_queued(&c, n[i]);
            assert_string_equal(server_reply(&c), expected[i]);
            get_check(&c, 100 + i);
        }
    }
    threads_set(&ends, 1);
    assert_int_equal(pthread_join(store, NULL), 0);
    server_disconnect(&c);
}

static void a_full_queue_of_questions_is_at_the_store_at_once(void **state)
{
    enum { ALL = 1024 };
    struct server_client c;
    server_connect(&c, scene->resp);
    queue(&c, "MULTI");
    for (unsigned i = 0; i < ALL; i++) {
        say_check(&c, 7);
    }
    queue(&c, "EXEC");
    queue(&c, "MULTI"); /* it is not read before there is room again */
    queue(&c, "PING");
    queue(&c, "EXEC");
    expect_queued(&c, ALL);
    slow_await(scene, ALL);
    slow_answer(scene, ALL);
    assert_memory_equal(server_reply(&c), "[['allow' 'api' 1000000 7 0 0 0 '' 'limit'] ['allow' ",
                        45);
    expect_queued(&c, 1);
    assert_string_equal(server_reply(&c), "[+PONG]");
    server_disconnect(&c);
}

/* Text that waits with a transaction counts as a reply that waits. */
static void what_waits_with_transactions_is_bounded(void **state)
{
    enum { SIZE = 16000, ECHOES = 20, ALL = 300 }; /* 96 MB of text, 300 questions */
    static char big[SIZE + 64];
    struct server_client c;
    int n = snprintf(big, sizeof big, "*2\r\n$4\r\nECHO\r\n$%d\r\n", SIZE);
    memset(big + n, 'x', SIZE);
    memcpy(big + n + SIZE, "\r\n", 2);
    struct buffer one;
    char words[128];
    buffer_init(&one, 1 << 20);
    buffer_put(&one, (struct weir_text){words, server_pack("MULTI", words, sizeof words)});
    buffer_put(&one, (struct weir_text){
                         words, server_pack("WEIR.CHECK api a COST 1", words, sizeof words)});
    for (unsigned i = 0; i < ECHOES; i++) {
        buffer_put(&one, (struct weir_text){big, (size_t)n + SIZE + 2});
    }
    buffer_put(&one, (struct weir_text){words, server_pack("EXEC", words, sizeof words)});
    server_connect(&c, scene->resp);
    struct timeval moment = {.tv_usec = 300000};
    assert_int_equal(setsockopt(c.fd, SOL_SOCKET, SO_SNDTIMEO, &moment, sizeof moment), 0);
    struct weir_text text = buffer_text(&one);
    size_t sent = 0;
    for (ssize_t got = 0; sent < text.len * ALL && got >= 0;) {
        size_t at = sent % text.len;
        got = send(c.fd, text.at + at, text.len - at, MSG_NOSIGNAL);
        sent += got > 0 ? (size_t)got : 0;
    }
    assert_in_range(sent, SERVER_OUTPUT_BYTES, SERVER_OUTPUT_BYTES + (16u << 20));
    uint64_t ends = 0;
    pthread_t store;
    assert_int_equal(pthread_create(&store, NULL, answer_all_the_time, &ends), 0);
    for (size_t i = 0; i < sent / text.len; i++) {
        expect_queued(&c, ECHOES + 1);
        assert_memory_equal(server_reply(&c), "[['allow' 'api' 1000000 1 0 0 0 '' 'limit'] 'xxx",
                            40);
    }
    threads_set(&ends, 1);
    assert_int_equal(pthread_join(store, NULL), 0);
    buffer_finish(&one);
    server_disconnect(&c);
}

static void clients_may_leave_while_answers_are_out(void **state)
{
    uint64_t random = 11;
    for (unsigned round = 0; round < THREADS_ROUNDS(200, 60, 40); round++) {
        char expected[1024];
        struct server_client c;
        struct linger reset = {.l_onoff = 1, .l_linger = 0};
        server_connect(&c, scene->resp);
        for (unsigned i = 0; i < 3; i++) {
            (void)say_transaction(&c, &random, expected, sizeof expected);
        }
        queue(&c, "MULTI");
        say_check(&c, 1);
        slow_answer(scene, threads_random(&random) % 10);
        if (threads_random(&random) % 2 == 0) {
            (void)setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        }
        server_disconnect(&c);
        if (threads_random(&random) % 4 == 0) {
            slow_answer(scene, 1000);
        }
    }
    uint64_t ends = 0; /* and everything is as before */
    pthread_t store;
    struct server_client c;
    assert_int_equal(pthread_create(&store, NULL, answer_all_the_time, &ends), 0);
    server_connect(&c, scene->resp);
    SERVER_TALK(&c, {"MULTI", "+OK"}, {"WEIR.CHECK api alice COST 9", "+QUEUED"},
                {"EXEC", "[['allow' 'api' 1000000 9 0 0 0 '' 'limit']]"});
    slow_await(scene, 0);
    threads_set(&ends, 1);
    assert_int_equal(pthread_join(store, NULL), 0);
    server_disconnect(&c);
}

static void who_has_said_all_still_gets_the_reply_of_exec(void **state)
{
    struct server_client c;
    server_connect(&c, scene->resp);
    queue(&c, "MULTI");
    say_check(&c, 2);
    queue(&c, "WEIR.BLOCK api bob FOR 1000");
    queue(&c, "WEIR.RESERVE api carol");
    queue(&c, "EXEC");
    expect_queued(&c, 3);
    slow_await(scene, 3);
    assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
    slow_answer(scene, 3);
    slow_await(scene, 1); /* the block is looked at once more */
    slow_answer(scene, 1);
    assert_memory_equal(server_reply(&c), "[['allow' 'api' 1000000 2 0 0 0 '' 'limit'] [", 37);
    assert_string_equal(server_reply(&c), "end");
    server_disconnect(&c);
}

static void a_server_may_end_with_a_transaction_out(void **state)
{
    struct slow_scene *own = calloc(1, sizeof *own);
    struct server_client c;
    slow_start(own, rules, NULL);
    server_connect(&c, own->resp);
    queue(&c, "MULTI");
    say_check(&c, 1);
    queue(&c, "WEIR.BLOCK api alice FOR 1000");
    queue(&c, "WEIR.RESERVE api alice");
    queue(&c, "EXEC");
    queue(&c, "MULTI");
    say_check(&c, 1);
    slow_await(own, 3);
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    assert_int_equal(setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    server_disconnect(&c);
    slow_stop(own); /* sees that all are answered, and let go */
    free(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_reply_of_exec_waits_for_all_its_answers),
        TEST(nothing_is_asked_before_exec),
        TEST(answers_that_come_at_once_need_not_wait),
        TEST(replies_keep_their_order_whatever_the_order_of_the_answers),
        TEST(a_full_queue_of_questions_is_at_the_store_at_once),
        TEST(what_waits_with_transactions_is_bounded),
        TEST(clients_may_leave_while_answers_are_out),
        TEST(who_has_said_all_still_gets_the_reply_of_exec),
        cmocka_unit_test(a_server_may_end_with_a_transaction_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
