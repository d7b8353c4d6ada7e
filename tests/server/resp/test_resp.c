/*
 * RESP as clients speak it: what each command answers, over TCP and a unix
 * socket, however the bytes are cut.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/server_client.h"
#include "support/engine/threads_run.h"
#include "support/engine/unit_limiter.h"

static const char rules[] =
    "limits:\n"
    "  - {name: api, when: {path: /api/**}, key: [user], rate: 1000/day}\n"
    "  - {name: pair, when: {path: /pair}, key: [user, ip], rate: 2/min, burst: 2}\n"
    "  - name: search\n"
    "    when: {path: /search}\n"
    "    key: [user]\n"
    "    rate: 10/min\n"
    "    tiers: {by: tier, default: free, free: {}, pro: {rate: 100/min, burst: 200}}\n"
    "  - {name: quiet, when: {path: /quiet}, key: [user], rate: 1/min, shadow: true}\n"
    "  - {name: queue, when: {path: /queue}, key: [user], algorithm: leaky_bucket, rate: 10/s,"
    " queue: 5}\n";

struct scene {
    struct server_world world;
    struct server_client client;
};

static int begin(void **state)
{
    static struct scene s;
    struct server_options o = server_world_options();
    server_world_start(&s.world, rules, &o);
    server_connect(&s.client, s.world.address);
    *state = &s;
    return 0;
}

static int end(void **state)
{
    struct scene *s = *state;
    server_disconnect(&s->client);
    server_world_stop(&s->world);
    return 0;
}

/* ---- what clients say first ---- */

static void a_client_is_greeted(void **state)
{
    struct scene *s = *state;
    struct server_client *c = &s->client;
    SERVER_TALK(c, {"PING", "+PONG"}, {"ping hello", "'hello'"}, {"ECHO ''", "''"},
                {"SELECT 0", "+OK"}, {"SELECT 1", "-ERR DB index is out of range"},
                {"SELECT x", "-ERR value is not an integer or out of range"},
                {"CLIENT GETNAME", "null"}, {"CLIENT SETNAME me", "+OK"},
                {"CLIENT GETNAME", "'me'"},
                {"CLIENT SETNAME a\nb",
                 "-ERR Client names cannot contain spaces, newlines or special characters."},
                {"CLIENT SETINFO lib-name x", "+OK"}, {"CONFIG GET save", "['save' '']"},
                {"HELLO 4", "-NOPROTO unsupported protocol version"},
                {"PING a b", "-ERR wrong number of arguments for 'ping' command"},
                {"CL.THROTTLE k 1", "-ERR wrong number of arguments for 'cl.throttle' command"},
                {"GET x", "-ERR unknown command 'GET', with args beginning with: 'x' "});
    assert_non_null(strstr(server_ask(c, "INFO"), "weir_version:"));
    assert_non_null(strstr(server_ask(c, "CLIENT INFO"), "addr=127.0.0.1 name=me resp=2"));
}

static void hello_chooses_the_protocol_and_reset_takes_it_back(void **state)
{
    struct scene *s = *state;
    struct server_client *c = &s->client;
    assert_memory_equal(server_ask(c, "HELLO"), "['server' 'weir' 'version'", 26);
    assert_memory_equal(server_ask(c, "HELLO 3"), "{'server' 'weir', 'version'", 27);
    assert_non_null(strstr(server_ask(c, "HELLO 3 SETNAME x"), "'proto' 3, 'id' "));
    SERVER_TALK(c, {"CLIENT GETNAME", "'x'"}, {"RESET", "+RESET"}, {"CLIENT GETNAME", "null"});
    assert_non_null(strstr(server_ask(c, "HELLO 2"), "'proto' 2 'id' "));
}

static void quit_is_answered_and_ends(void **state)
{
    struct scene *s = *state;
    assert_true(server_say(&s->client, "QUIT"));
    assert_true(server_say(&s->client, "PING"));
    assert_string_equal(server_reply(&s->client), "+OK");
    assert_string_equal(server_reply(&s->client), "end");
}

/* ---- CL.THROTTLE ---- */

static void throttle_answers_as_redis_cell(void **state)
{
    struct scene *s = *state;
    SERVER_TALK(
        &s->client, {"CL.THROTTLE k 4 6 60 6", "[1 5 5 -1 0]"},
        {"CL.THROTTLE k 4 6 60", "[0 5 4 -1 10]"}, {"CL.THROTTLE k 4 6 60 1", "[0 5 3 -1 20]"},
        {"cl.throttle k 4 6 60", "[0 5 2 -1 30]"}, {"CL.THROTTLE k 4 6 60", "[0 5 1 -1 40]"},
        {"CL.THROTTLE k 4 6 60", "[0 5 0 -1 50]"}, {"CL.THROTTLE k 4 6 60", "[1 5 0 10 50]"},
        {"CL.THROTTLE k 4 6 60 0", "[0 5 0 -1 50]"}, {"CL.THROTTLE k2 15 30 60", "[0 16 15 -1 2]"},
        {"CL.THROTTLE k x 30 60", "-Cell error: Store error: Couldn't parse as integer: x"},
        {"CL.THROTTLE k 1 0 60", "-Cell error: Store error: Zero rates are not supported"},
        {"CL.THROTTLE k 1 1 0", "-Cell error: Store error: Zero rates are not supported"});
    assert_memory_equal(server_ask(&s->client, "CL.THROTTLE k 1 1 60 -1"), "-Cell error", 11);
}

/* What the page about redis-cell says of forms that redis-cell takes. */
static void throttle_takes_plain_numbers_and_keys_of_4096_bytes(void **state)
{
    static const char error[] = "-BADKEY a key must have 1 to 4096 bytes";
    struct scene *s = *state;
    char key[4098];
    SERVER_TALK(
        &s->client,
        {"CL.THROTTLE k +4 6 60", "-Cell error: Store error: Couldn't parse as integer: +4"},
        {"CL.THROTTLE k 4 06 60", "-Cell error: Store error: Couldn't parse as integer: 06"},
        {"CL.THROTTLE k 4 6 60 01", "-Cell error: Store error: Couldn't parse as integer: 01"});
    (void)snprintf(key, sizeof key, "%04096d", 7);
    assert_string_equal(SERVER_ASK(&s->client, "CL.THROTTLE", key, "4", "6", "60"),
                        "[0 5 4 -1 10]");
    (void)snprintf(key, sizeof key, "%04097d", 7);
    assert_string_equal(SERVER_ASK(&s->client, "CL.THROTTLE", key, "4", "6", "60"), error);
}

static void throttle_keeps_a_key_when_its_numbers_change(void **state)
{
    struct scene *s = *state;
    SERVER_TALK(&s->client, {"CL.THROTTLE k 4 6 60 5", "[0 5 0 -1 50]"},
                {"CL.THROTTLE k 9 6 60", "[0 10 4 -1 60]"});
    (void)threads_add(&s->world.now_ns, 60 * WEIR_SECOND);
    SERVER_TALK(&s->client, {"CL.THROTTLE k 4 6 60 0", "[0 5 5 -1 0]"});
}

/* ---- WEIR.* ---- */

static void one_answer_has_eight_values(void **state)
{
    struct scene *s = *state;
    struct server_client *c = &s->client;
    SERVER_TALK(
        c, {"WEIR.CHECK api alice", "['allow' 'api' 1000 999 0 86400 0 '' 'limit']"},
        {"WEIR.PEEK api alice", "['allow' 'api' 1000 999 0 86400 0 '' 'limit']"},
        {"WEIR.ASK path /api/x user alice COST 9",
         "['allow' 'api' 1000 990 0 864000 0 '' 'limit']"},
        {"WEIR.CHECK api alice COST 1001", "['never' 'api' 1000 990 -1 864000 0 '' 'limit']"},
        {"WEIR.CHECK api alice COST 991", "['deny' 'api' 1000 990 86400 864000 0 '' 'limit']"},
        {"WEIR.ASK path /else", "['allow' null 0 -1 0 0 0 '' 'unmatched']"});
    (void)server_ask(c, "HELLO 3");
    SERVER_TALK(
        c,
        {"WEIR.CHECK api bob",
         "{'verdict' 'allow', 'limit' 'api', 'quota' 1000, 'remaining' 999, 'retry_after_ms' 0, "
         "'reset_after_ms' 86400, 'delay_ms' 0, 'flags' '', 'reason' 'limit'}"},
        {"WEIR.ASK path /else",
         "{'verdict' 'allow', 'limit' null, 'quota' 0, 'remaining' -1, 'retry_after_ms' 0, "
         "'reset_after_ms' 0, 'delay_ms' 0, 'flags' '', 'reason' 'unmatched'}"});
}

static void check_and_ask_count_in_one_bucket(void **state)
{
    struct scene *s = *state;
    SERVER_TALK(
        &s->client, {"WEIR.CHECK pair bob 192.0.2.7", "['allow' 'pair' 2 1 0 30000 0 '' 'limit']"},
        {"WEIR.ASK path /pair user bob ip 192.0.2.7", "['allow' 'pair' 2 0 0 60000 0 '' 'limit']"},
        {"WEIR.CHECK pair bob 192.0.2.7", "['deny' 'pair' 2 0 30000 60000 0 '' 'limit']"},
        {"WEIR.CHECK pair bob ::ffff:192.0.2.7", "['deny' 'pair' 2 0 30000 60000 0 '' 'limit']"},
        {"WEIR.CHECK pair bob 192.0.2.8", "['allow' 'pair' 2 1 0 30000 0 '' 'limit']"});
}

static void options_choose_tier_and_patience(void **state)
{
    struct scene *s = *state;
    SERVER_TALK(
        &s->client, {"WEIR.CHECK search u", "['allow' 'search' 10 9 0 6000 0 '' 'limit']"},
        {"WEIR.CHECK search u TIER pro", "['allow' 'search' 200 199 0 600 0 '' 'limit']"},
        {"WEIR.CHECK search u tier pro cost 2", "['allow' 'search' 200 197 0 1800 0 '' 'limit']"},
        {"WEIR.CHECK quiet u", "['allow' 'quiet' 1 0 0 60000 0 '' 'limit']"},
        {"WEIR.CHECK quiet u", "['allow' 'quiet' 1 0 0 60000 0 'shadow' 'shadow']"});
    const char *first = server_ask(&s->client, "WEIR.CHECK queue u MAXWAIT 1000");
    assert_memory_equal(first, "['allow' 'queue'", 16);
    const char *second = server_ask(&s->client, "WEIR.CHECK queue u MAXWAIT 1000");
    assert_non_null(strstr(second, " 100 '' 'limit']"));
}

static void what_is_wrong_is_told(void **state)
{
    struct scene *s = *state;
    struct server_client *c = &s->client;
    SERVER_TALK(
        c, {"WEIR.CHECK nope x", "-NOLIMIT no limit named 'nope'"},
        {"WEIR.CHECK pair bob", "-BADKEY found 1 parts of a key, expected 2"},
        {"WEIR.CHECK api alice COST",
         "-ERR syntax error at 'COST', expected COST n, MAXWAIT ms or TIER t"},
        {"WEIR.CHECK api alice COST 0",
         "-ERR COST: found '0', expected a whole number from 1 to 18446744073709551615"},
        {"WEIR.BLOCK api alice FOR 1h",
         "-ERR FOR: found '1h', expected a whole number from 1 to 9223372036854, or FOREVER"},
        {"WEIR.CHECK api alice bob",
         "-ERR syntax error at 'bob', expected COST n, MAXWAIT ms or TIER t"},
        {"WEIR.ASK path", "-ERR attribute 'path': found no value, expected attribute value"},
        {"WEIR.CHECK", "-ERR wrong number of arguments for 'weir.check' command"});
    assert_memory_equal(server_ask(c, "WEIR.CHECK api ''"), "-BADKEY ", 8);
    assert_memory_equal(server_ask(c, "WEIR.CHECK pair bob nonsense"), "-BADKEY ", 8);
    assert_memory_equal(server_ask(c, "WEIR.ASK path /pair ip nonsense user u"), "-BADKEY ", 8);
    SERVER_TALK(c, {"WEIR.PEEK api alice", "['allow' 'api' 1000 1000 0 0 0 '' 'limit']"});
}

static void keys_hold_any_byte(void **state)
{
    static const char first[] = "*3\r\n$10\r\nWEIR.CHECK\r\n$3\r\napi\r\n$5\r\na\0\r\nb\r\n";
    static const char other[] = "*3\r\n$10\r\nWEIR.CHECK\r\n$3\r\napi\r\n$5\r\na\0\r\nc\r\n";
    struct scene *s = *state;
    assert_true(server_send(&s->client, first, sizeof first - 1));
    assert_true(server_send(&s->client, other, sizeof other - 1));
    for (unsigned i = 0; i < 2; i++) {
        assert_string_equal(server_reply(&s->client),
                            "['allow' 'api' 1000 999 0 86400 0 '' 'limit']");
    }
}

/* ---- how bytes arrive ---- */

static void a_request_may_be_cut_anywhere(void **state)
{
    struct scene *s = *state;
    char bytes[256];
    size_t n = server_pack("CL.THROTTLE k 4 6 60 0", bytes, sizeof bytes);
    n += server_pack("PING x", bytes + n, sizeof bytes - n);
    for (size_t cut = 1; cut < n; cut++) {
        assert_true(server_send(&s->client, bytes, cut));
        /* Its answer comes behind everything that was sent before. */
        struct server_client other;
        server_connect(&other, s->world.address);
        assert_string_equal(server_ask(&other, "PING"), "+PONG");
        server_disconnect(&other);
        assert_true(server_send(&s->client, bytes + cut, n - cut));
        assert_string_equal(server_reply(&s->client), "[0 5 5 -1 0]");
        assert_string_equal(server_reply(&s->client), "'x'");
    }
    for (size_t i = 0; i < n; i++) {
        assert_true(server_send(&s->client, bytes + i, 1));
    }
    assert_string_equal(server_reply(&s->client), "[0 5 5 -1 0]");
    assert_string_equal(server_reply(&s->client), "'x'");
}

/* More than are read ahead, and those that are read alone in between: nothing overtakes. */
static void a_pipeline_of_all_kinds_is_answered_in_order(void **state)
{
    struct scene *s = *state;
    char bytes[16384];
    char expected[128];
    size_t n = 0;
    for (int i = 0; i < 50; i++) {
        snprintf(expected, sizeof expected, "ECHO %d", i);
        n += server_pack(expected, bytes + n, sizeof bytes - n);
        n += server_pack("CL.THROTTLE k 99 1 60", bytes + n, sizeof bytes - n);
        n += server_pack(i % 7 == 0 ? "ECHO 1 2 3 4 5 6 7 8" : "NOTHING", bytes + n,
                         sizeof bytes - n);
        n += server_pack("CL.THROTTLE '' 99 1 60", bytes + n, sizeof bytes - n);
    }
    n += server_pack("QUIT", bytes + n, sizeof bytes - n);
    n += server_pack("CL.THROTTLE k 99 1 60", bytes + n, sizeof bytes - n);
    assert_true(server_send(&s->client, bytes, n));
    for (int i = 0; i < 50; i++) {
        snprintf(expected, sizeof expected, "'%d'", i);
        assert_string_equal(server_reply(&s->client), expected);
        snprintf(expected, sizeof expected, "[0 100 %d -1 %d]", 99 - i, 60 * (i + 1));
        assert_string_equal(server_reply(&s->client), expected);
        assert_non_null(strstr(server_reply(&s->client), i % 7 == 0 ? "-ERR wrong" : "-ERR unk"));
        assert_non_null(strstr(server_reply(&s->client), "-BADKEY"));
    }
    assert_string_equal(server_reply(&s->client), "+OK");
    assert_string_equal(server_reply(&s->client), "end");
}

static void who_has_said_all_still_gets_the_answers(void **state)
{
    struct scene *s = *state;
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(server_say(&s->client, "WEIR.CHECK api alice"));
    }
    assert_int_equal(shutdown(s->client.fd, SHUT_WR), 0);
    for (unsigned i = 0; i < 1000; i++) {
        assert_memory_equal(server_reply(&s->client), "['allow'", 8);
    }
    assert_string_equal(server_reply(&s->client), "end");
}

static void a_unix_socket_is_as_good(void **state)
{
    struct server_options o = server_world_options();
    struct server_world w;
    struct server_client c;
    char *folder = unit_folder();
    char address[256];
    (void)snprintf(address, sizeof address, "unix:%s/socket", folder);
    o.listen[PROTOCOL_RESP] = address;
    server_world_start(&w, rules, &o);
    assert_string_equal(w.address, address);
    server_connect(&c, address);
    SERVER_TALK(&c, {"PING", "+PONG"},
                {"WEIR.CHECK api alice", "['allow' 'api' 1000 999 0 86400 0 '' 'limit']"});
    server_disconnect(&c);
    server_world_stop(&w);
    assert_int_equal(access(address + 5, F_OK), -1);
    unit_folder_remove(folder);
}

static void *stop_world(void *arg)
{
    server_world_stop(arg);
    return NULL;
}

static bool try_start(struct server *server)
{
    struct weir_error error;
    return server_start(server, &error) == 0;
}

/* The first one waits for a client that has not said anything yet, the second one for nobody. */
static void the_next_server_takes_the_path_while_the_last_one_ends(void **state)
{
    struct scene *s = *state;
    struct server_options o = server_world_options();
    struct server_world first;
    struct server_client silent;
    struct server_client c;
    pthread_t ending;
    char *folder = unit_folder();
    char address[256];
    (void)snprintf(address, sizeof address, "unix:%s/socket", folder);
    o.listen[PROTOCOL_RESP] = address;
    server_world_start(&first, rules, &o);
    server_connect(&silent, address);
    struct server second = {.options = o, .rules = s->world.server.rules};
    assert_int_equal(pthread_create(&ending, NULL, stop_world, &first), 0);
    while (!try_start(&second)) {
        (void)usleep(1000);
    }
    assert_int_equal(pthread_join(ending, NULL), 0);
    server_disconnect(&silent);
    assert_int_equal(access(address + 5, F_OK), 0);
    server_connect(&c, address);
    assert_string_equal(server_ask(&c, "PING"), "+PONG");
    server_disconnect(&c);
    server_stop(&second);
    unit_folder_remove(folder);
}

static void an_address_belongs_to_one_server(void **state)
{
    struct scene *s = *state;
    struct server second = {.options = server_world_options(), .rules = s->world.server.rules};
    struct weir_error error = {0};
    second.options.listen[PROTOCOL_RESP] = s->world.address;
    assert_int_equal(server_start(&second, &error), WEIR_EIO);
    assert_non_null(strstr(error.text, "cannot be listened on: Address already in use"));
    assert_string_equal(server_ask(&s->client, "PING"), "+PONG");
    static const char *const bad[] = {"6380", "127.0.0.1:", ":6380", "127.0.0.1:65536",
                                      "127.0.0.1:-1"};
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        second.options.listen[PROTOCOL_RESP] = bad[i];
        assert_int_equal(server_start(&second, &error), WEIR_EINVAL);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_client_is_greeted),
        TEST(hello_chooses_the_protocol_and_reset_takes_it_back),
        TEST(quit_is_answered_and_ends),
        TEST(throttle_answers_as_redis_cell),
        TEST(throttle_takes_plain_numbers_and_keys_of_4096_bytes),
        TEST(throttle_keeps_a_key_when_its_numbers_change),
        TEST(one_answer_has_eight_values),
        TEST(check_and_ask_count_in_one_bucket),
        TEST(options_choose_tier_and_patience),
        TEST(what_is_wrong_is_told),
        TEST(keys_hold_any_byte),
        TEST(a_request_may_be_cut_anywhere),
        TEST(a_pipeline_of_all_kinds_is_answered_in_order),
        TEST(who_has_said_all_still_gets_the_answers),
        cmocka_unit_test(a_unix_socket_is_as_good),
        TEST(an_address_belongs_to_one_server),
        TEST(the_next_server_takes_the_path_while_the_last_one_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
