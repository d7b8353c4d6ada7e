/*
 * MULTI, EXEC and DISCARD: what is queued, what is refused before anything is charged, and that a
 * queue takes no more memory than it may. Answers that come later: test_pending_multi.c.
 *
 * test-labels: notsan (it reads a number of the threads while they run)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/loop/worker.h"
#include "support/server/server_client.h"
#include "support/engine/threads_run.h"

static const char limits[] = "limits:\n"
                             "  - {name: api, key: [user], rate: 1000/day}\n"
                             "  - {name: pair, key: [user, ip], rate: 2/min, burst: 2}\n"
                             "  - {name: one, key: [user], rate: 1/day}\n";

#define ABORTED "-EXECABORT Transaction discarded because of previous errors."
#define UNTOUCHED "['allow' 'api' 1000 1000 0 0 0 '' 'limit']"

static struct server_world world;
static struct server_client client;

static int begin(void **state)
{
    struct server_options o = server_world_options();
    server_world_start(&world, limits, &o);
    server_connect(&client, world.address);
    return 0;
}

static int end(void **state)
{
    server_disconnect(&client);
    server_world_stop(&world);
    return 0;
}

#define TALK(...) SERVER_TALK(&client, __VA_ARGS__)

/* ---- what EXEC answers ---- */

static void exec_decides_what_was_queued_in_order(void **state)
{
    TALK({"MULTI", "+OK"}, {"WEIR.CHECK one al", "+QUEUED"}, {"WEIR.CHECK one al", "+QUEUED"},
         {"CL.THROTTLE k 4 6 60", "+QUEUED"}, {"ping", "+QUEUED"},
         {"EXEC", "[['allow' 'one' 1 0 0 86400000 0 '' 'limit'] ['deny' 'one' 1 0 86400000 "
                  "86400000 0 '' 'limit'] "
                  "[0 5 4 -1 10] +PONG]"},
         {"PING", "+PONG"}, {"EXEC", "-ERR EXEC without MULTI"}, {"MULTI", "+OK"}, {"EXEC", "[]"},
         {"MULTI", "+OK"});
    for (unsigned i = 0; i < 2; i++) {
        assert_string_equal(SERVER_ASK(&client, "EVAL",
                                       "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], 6, 60)",
                                       "1", "k", "4"),
                            "+QUEUED");
    }
    TALK({"DEL k j", "+QUEUED"}, {"EXEC", "[[0 5 3 -1 20] [0 5 2 -1 30] 1]"});
}

/* What redis-py sends: all of it at once. */
static void a_transaction_may_come_as_one_pipeline(void **state)
{
    static const char bytes[] =
        "*1\r\n$5\r\nMULTI\r\n"
        "*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n$1\r\n4\r\n$1\r\n6\r\n$2\r\n60\r\n"
        "*2\r\n$4\r\nECHO\r\n$4\r\na\0\r\n\r\n"
        "PING\r\n" /* a line is queued too */
        "*1\r\n$4\r\nEXEC\r\n*1\r\n$4\r\nPING\r\n";
    static const char replies[] =
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n"
        "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:10\r\n$4\r\na\0\r\n\r\n+PONG\r\n+PONG\r\n";
    for (size_t cut = 1; cut < sizeof bytes - 1; cut += 7) {
        char got[sizeof replies];
        assert_true(server_send(&client, bytes, cut));
        struct server_client other; /* its answer comes after what was sent before */
        server_connect(&other, world.address);
        assert_string_equal(server_ask(&other, "PING"), "+PONG");
        server_disconnect(&other);
        assert_true(server_send(&client, bytes + cut, sizeof bytes - 1 - cut));
        assert_int_equal(recv(client.fd, got, sizeof replies - 1, MSG_WAITALL), sizeof replies - 1);
        assert_memory_equal(got, replies, sizeof replies - 1);
        TALK({"DEL k", "1"});
    }
}

static void errors_of_decisions_are_elements_of_the_array(void **state)
{
    TALK({"MULTI", "+OK"}, {"WEIR.CHECK pair al nonsense", "+QUEUED"},
         {"WEIR.CHECK api al", "+QUEUED"}, {"SELECT 7", "+QUEUED"},
         {"WEIR.SETTLE 0123 1", "+QUEUED"});
    const char *reply = server_ask(&client, "EXEC");
    assert_memory_equal(reply, "[-BADKEY ", 9);
    assert_non_null(strstr(reply,
                           " ['allow' 'api' 1000 999 0 86400 0 '' 'limit'] -ERR DB index is out of "
                           "range -NORESERVATION "));
}

static void hello_within_multi_changes_the_replies_after_it(void **state)
{
    TALK({"MULTI", "+OK"}, {"WEIR.PEEK api al", "+QUEUED"}, {"HELLO 3", "+QUEUED"},
         {"WEIR.PEEK api al", "+QUEUED"});
    const char *reply = server_ask(&client, "EXEC");
    assert_memory_equal(reply, "[" UNTOUCHED " {'server' 'weir'", 50);
    assert_non_null(strstr(reply, "} {'verdict' 'allow', 'limit' 'api'"));
    TALK({"MULTI", "+OK"}, {"RESET", "+RESET"}, {"EXEC", "-ERR EXEC without MULTI"},
         {"WEIR.PEEK api al", UNTOUCHED});
}

static void discard_forgets_and_quit_ends(void **state)
{
    TALK({"DISCARD", "-ERR DISCARD without MULTI"}, {"MULTI", "+OK"},
         {"WEIR.CHECK api al", "+QUEUED"}, {"DISCARD", "+OK"}, {"WEIR.PEEK api al", UNTOUCHED},
         {"MULTI", "+OK"}, {"WEIR.CHECK api al", "+QUEUED"},
         {"MULTI", "-ERR MULTI calls can not be nested"},
         {"WATCH x", "-ERR WATCH inside MULTI is not allowed"}, {"UNWATCH", "+QUEUED"},
         {"EXEC", "[['allow' 'api' 1000 999 0 86400 0 '' 'limit'] +OK]"},
         {"WATCH x", "-ERR WATCH is not..."}, {"MULTI", "+OK"}, {"WEIR.CHECK api al", "+QUEUED"},
         {"QUIT", "+OK"});
    assert_string_equal(server_reply(&client), "end");
}

/* ---- what is refused ---- */

static void what_cannot_be_decided_aborts_and_charges_nothing(void **state)
{
    static const struct server_line bad[] = {
        {"NOSUCH x", "-ERR unknown command..."},
        {"WEIR.CHECK", "-ERR wrong number of arguments for 'weir.check' command"},
        {"WEIR.CHECK nope al", "-NOLIMIT no limit named 'nope'"},
        {"WEIR.CHECK pair al", "-BADKEY found 1 parts..."},
        {"WEIR.CHECK api al COST x", "-ERR COST: found 'x'..."},
        {"WEIR.CHECK api al al", "-ERR syntax error at 'al'..."},
        {"WEIR.BLOCK api al", "-ERR expected FOR ms|forever after the key"},
        {"WEIR.SETTLE x y", "-ERR found 'y'..."},
        {"WEIR.ASK path", "-ERR attribute 'path'..."},
        {"CL.THROTTLE k x 1 1", "-Cell error: Store error: Couldn't parse..."},
        {"CL.THROTTLE k 1 0 1", "-Cell error: Store error: Zero rates..."},
        {"CL.THROTTLE k 99999 1 86400", "-Cell error: Store error: the burst takes..."},
        {"CL.THROTTLE '' 1 1 1", "-BADKEY ..."},
        {"DEL k ''", "-BADKEY ..."},
        {"EVAL x 0", "-ERR EVAL: found..."},
        {"DISCARD x", "-ERR wrong number of arguments for 'discard' command"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        TALK({"MULTI", "+OK"}, {"WEIR.CHECK api al", "+QUEUED"},
             {"CL.THROTTLE k 4 6 60", "+QUEUED"}, bad[i], {"WEIR.CHECK api al", "+QUEUED"},
             {"EXEC", ABORTED}, {"EXEC", "-ERR EXEC without MULTI"},
             {"WEIR.PEEK api al", UNTOUCHED}, {"CL.THROTTLE k 4 6 60 0", "[0 5 5 -1 0]"});
    }
    TALK({"MULTI", "+OK"}, {"WEIR.CHECK api al", "+QUEUED"},
         {"EXEC x", "-ERR wrong number of arguments for 'exec' command"},
         {"WEIR.PEEK api al", UNTOUCHED}); /* as in Redis, this has ended it */
}

static void the_queue_has_a_largest_number_of_commands(void **state)
{
    TALK({"MULTI", "+OK"});
    for (unsigned i = 0; i < 1024; i++) {
        assert_string_equal(server_ask(&client, "WEIR.CHECK api al"), "+QUEUED");
    }
    TALK({"PING", "-ERR MULTI: found more than 1024 commands..."}, {"PING", "+QUEUED"},
         {"EXEC", ABORTED}, {"WEIR.PEEK api al", UNTOUCHED}, {"MULTI", "+OK"});
    for (unsigned i = 0; i < 1024; i++) {
        assert_string_equal(server_ask(&client, "WEIR.CHECK api al"), "+QUEUED");
    }
    assert_memory_equal(server_ask(&client, "EXEC"), "[['allow' 'api' 1000 999", 23);
    TALK({"WEIR.PEEK api al", "['deny' 'api' 1000 0..."});
}

/* Says ECHO of so many bytes. Returns false if the server has closed the connection. */
static bool say_echo(struct server_client *c, size_t size)
{
    static char bytes[16384 + 64];
    int n = snprintf(bytes, sizeof bytes, "*2\r\n$4\r\nECHO\r\n$%zu\r\n", size);
    memset(bytes + n, 'x', size);
    memcpy(bytes + n + size, "\r\n", 2);
    return server_send(c, bytes, (size_t)n + size + 2);
}

/* The bytes of requests that the server's threads keep. */
static size_t kept(void)
{
    size_t n = 0;
    for (unsigned i = 0; i < world.server.workers_count; i++) {
        n += __atomic_load_n(&world.server.workers[i].crowds[CROWD_KEPT].units, __ATOMIC_RELAXED);
    }
    return n;
}

static void assert_kept(size_t low, size_t high)
{
    for (int i = 0; i < 10000 && (kept() < low || kept() > high); i++) {
        (void)usleep(1000);
    }
    assert_in_range(kept(), low, high);
}

static void the_queue_has_a_largest_size_and_is_counted(void **state)
{
    TALK({"MULTI", "+OK"});
    for (unsigned i = 0; i < 63; i++) {
        assert_true(say_echo(&client, 16384));
        assert_string_equal(server_reply(&client), "+QUEUED");
    }
    assert_kept(63 * 16384, 2 << 20);
    assert_true(say_echo(&client, 16384));
    assert_memory_equal(server_reply(&client), "-ERR MULTI: found commands of more than 1048576",
                        47);
    assert_kept(0, 1024); /* it will not be needed */
    TALK({"EXEC", ABORTED}, {"PING", "+PONG"});
    assert_kept(0, 0);
}

static void the_memory_of_a_queue_is_freed_however_it_ends(void **state)
{
    static const struct server_line ends[] = {{"EXEC", "['xxx..."},
                                              {"DISCARD", "+OK"},
                                              {"RESET", "+RESET"},
                                              {"QUIT", "+OK"},
                                              {NULL, NULL}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct server_client c;
        server_connect(&c, world.address);
        SERVER_TALK(&c, {"MULTI", "+OK"});
        assert_true(say_echo(&c, 10000));
        assert_string_equal(server_reply(&c), "+QUEUED");
        assert_kept(10000, 1 << 20);
        if (ends[i].say != NULL) {
            SERVER_TALK(&c, ends[i]);
            assert_kept(0, 0);
        }
        server_disconnect(&c);
        assert_kept(0, 0);
    }
}

/* 200 connections with 1 MB each are more than the threads may keep. */
static void queues_of_many_connections_are_bounded_together(void **state)
{
    enum { MANY = 200 };
    static struct server_client c[MANY];
    unsigned closed = 0;
    for (unsigned i = 0; i < MANY; i++) {
        server_connect(&c[i], world.address);
        bool open = server_say(&c[i], "MULTI");
        for (unsigned k = 0; k < 62 && open; k++) {
            open = say_echo(&c[i], 16384);
        }
        for (unsigned k = 0; k < 63 && open; k++) {
            open = server_reply(&c[i])[0] == '+';
        }
        assert_in_range(kept(), 0, 2 * (size_t)SERVER_THREAD_INPUT_BYTES + (2 << 20));
    }
    for (unsigned i = 0; i < MANY; i++) {
        const char *reply = server_say(&c[i], "DISCARD") ? server_reply(&c[i]) : "reset";
        closed += strcmp(reply, "+OK") != 0;
        server_disconnect(&c[i]);
    }
    assert_in_range(closed, MANY - 140, MANY - 60);
    assert_kept(0, 0);
}

/* Replies that do not fit are not begun: what was decided is told. */
static void a_reply_of_exec_has_a_largest_size(void **state)
{
    TALK({"MULTI", "+OK"});
    for (unsigned i = 0; i < 60; i++) {
        assert_true(say_echo(&client, 16384));
        assert_string_equal(server_reply(&client), "+QUEUED");
    }
    TALK({"WEIR.CHECK api al", "+QUEUED"}, {"EXEC", "['xxx..."}, {"WEIR.PEEK api al", UNTOUCHED},
         {"MULTI", "+OK"});
    for (unsigned i = 0; i < 1023; i++) {
        assert_string_equal(server_ask(&client, "COMMAND"), "+QUEUED");
    }
    TALK({"WEIR.CHECK api al", "+QUEUED"}, {"EXEC", "[[['cl.throttle'..."},
         {"WEIR.PEEK api al", UNTOUCHED});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(exec_decides_what_was_queued_in_order),
        TEST(a_transaction_may_come_as_one_pipeline),
        TEST(errors_of_decisions_are_elements_of_the_array),
        TEST(hello_within_multi_changes_the_replies_after_it),
        TEST(discard_forgets_and_quit_ends),
        TEST(what_cannot_be_decided_aborts_and_charges_nothing),
        TEST(the_queue_has_a_largest_number_of_commands),
        TEST(the_queue_has_a_largest_size_and_is_counted),
        TEST(the_memory_of_a_queue_is_freed_however_it_ends),
        TEST(queues_of_many_connections_are_bounded_together),
        TEST(a_reply_of_exec_has_a_largest_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
