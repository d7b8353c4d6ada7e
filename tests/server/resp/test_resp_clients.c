/* What client libraries and tools of Redis send besides questions: COMMAND, CLIENT, MODULE, lines,
 * DEL and EVAL, byte for byte where clients depend on it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "support/server/server_client.h"
#include "support/engine/threads_run.h"

static const char rules[] = "limits:\n"
                            "  - {name: api, key: [user], rate: 1000/day}\n"
                            "  - {name: all, key: [], rate: 1000/day}\n";

static struct server_world world;
static struct server_client client;

static int start(void **state)
{
    struct server_options o = server_world_options();
    server_world_start(&world, rules, &o);
    server_connect(&client, world.address);
    return 0;
}

static int stop(void **state)
{
    server_disconnect(&client);
    server_world_stop(&world);
    return 0;
}

#define TALK(...) SERVER_TALK(&client, __VA_ARGS__)

/* Sends bytes and expects exactly these back. */
static void expect_bytes(const char *say, const char *hear)
{
    char got[8192];
    size_t len = strlen(hear);
    assert_true(len < sizeof got);
    assert_true(server_send(&client, say, strlen(say)));
    assert_int_equal(len > 0 ? recv(client.fd, got, len, MSG_WAITALL) : 0, len);
    got[len] = 0;
    assert_string_equal(got, hear);
}

/* ---- what is set up ---- */

static void settings_of_clients_are_accepted(void **state)
{
    TALK({"CLIENT TRACKING ON OPTIN", "+OK"}, {"CLIENT TRACKING on BCAST PREFIX a NOLOOP", "+OK"},
         {"client tracking OFF", "+OK"},
         {"CLIENT TRACKING", "-ERR CLIENT TRACKING: expected ON or OFF"},
         {"CLIENT TRACKING maybe", "-ERR CLIENT TRACKING: expected ON or OFF"},
         {"CLIENT CACHING YES", "+OK"}, {"CLIENT NO-EVICT ON", "+OK"},
         {"CLIENT NO-TOUCH ON", "+OK"}, {"CLIENT CAPA redirect", "+OK"},
         {"CLIENT SETINFO LIB-NAME x", "+OK"},
         {"CLIENT KILL x", "-ERR unknown subcommand 'KILL'..."}, {"MODULE LIST", "[]"},
         {"MODULE LOAD x", "-ERR unknown subcommand. Try MODULE LIST."}, {"UNWATCH", "+OK"});
}

static void lines_of_hello_and_ping_are_answered(void **state)
{
    expect_bytes("PING\r\n", "+PONG\r\n");
    expect_bytes("ping a\nPING\r\n", "$1\r\na\r\n+PONG\r\n");
    expect_bytes("PI", "");
    expect_bytes("NG\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n+PONG\r\n");
    expect_bytes("HELLO 3\r\n", "%7\r\n$6\r\nserver\r\n$4\r\nweir\r\n");
    (void)server_reply(&client); /* the rest of it is no reply; a new connection */
}

static void lines_of_other_commands_end_the_connection(void **state)
{
    assert_true(server_send(&client, "CL.THROTTLE k 1 1 1\r\n", 21));
    assert_string_equal(server_reply(&client), "-ERR Protocol error: expected '*', got 'C'; inline "
                                               "commands other than HELLO and PING are off");
    assert_string_equal(server_reply(&client), "end");
}

/* ---- COMMAND ---- */

static void a_command_is_described_by_ten_values(void **state)
{
    expect_bytes(
        "*3\r\n$7\r\nCOMMAND\r\n$4\r\nINFO\r\n$11\r\nCL.THROTTLE\r\n",
        "*1\r\n*10\r\n$11\r\ncl.throttle\r\n:-5\r\n*1\r\n+write\r\n:1\r\n:1\r\n:1\r\n"
        "*1\r\n+@write\r\n*0\r\n*1\r\n*6\r\n$5\r\nflags\r\n*3\r\n+RW\r\n+access\r\n"
        "+update\r\n$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n"
        "*2\r\n$5\r\nindex\r\n:1\r\n$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n"
        "$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n"
        ":0\r\n*0\r\n");
    TALK({"COMMAND INFO ping NOPE auth",
          "[['ping' -1 [+noscript] 0 0 0 [+@connection] [] [] []] null "
          "['auth' -2 [+no_auth +noscript] 0 0 0 [+@connection] [] [] []]]"},
         {"COMMAND INFO weir.peek", "[['weir.peek' -2 [+readonly +noscript] 2 2 1 [+@read] [] ..."},
         {"COMMAND INFO weir.check", "[['weir.check' -2 [+write +noscript] 2 2 1 [+@write] [] ..."},
         {"COMMAND INFO weir.block",
          "[['weir.block' -2 [+write +admin +noscript] 2 2 1 [+@write +@admin] [] ..."},
         {"COMMAND INFO weir.settle",
          "[['weir.settle' 3 [+noscript] 0 0 0 [+@connection] [] [] []]]"},
         {"COMMAND INFO del",
          "[['del' -2 [+write +admin +noscript] 1 -1 1 [+@write +@admin] [] ..."},
         {"COMMAND INFO eval",
          "[['eval' -3 [+write +noscript +movablekeys] 0 0 0 [+@write] [] ..."});
    (void)server_ask(&client, "HELLO 3");
    expect_bytes("*3\r\n$7\r\nCOMMAND\r\n$4\r\nINFO\r\n$4\r\nPING\r\n",
                 "*1\r\n*10\r\n$4\r\nping\r\n:-1\r\n~1\r\n+noscript\r\n:0\r\n:0\r\n:0\r\n~1\r\n"
                 "+@connection\r\n~0\r\n~0\r\n~0\r\n");
}

static void every_list_of_commands_has_all_of_them(void **state)
{
    static const char *const some[] = {"cl.throttle", "weir.check", "multi", "exec", "ping", "del"};
    int count = atoi(server_ask(&client, "COMMAND COUNT"));
    assert_true(count > 30);
    const char *const lists[] = {"COMMAND LIST", "COMMAND DOCS"};
    for (size_t i = 0; i < 2; i++) {
        assert_true(server_say(&client, lists[i]));
    }
    for (size_t i = 0; i < 2; i++) {
        const char *list = server_reply(&client);
        for (size_t k = 0; i == 0 && k < sizeof some / sizeof some[0]; k++) {
            char word[32];
            (void)snprintf(word, sizeof word, "'%s'", some[k]);
            assert_non_null(strstr(list, word));
        }
    }
    char begin[16];
    (void)snprintf(begin, sizeof begin, "*%d\r\n", count);
    expect_bytes("*1\r\n$7\r\nCOMMAND\r\n", begin);
}

static void docs_are_of_the_commands_that_are_named(void **state)
{
    TALK({"COMMAND DOCS ping nope", "['ping' ['summary' 'Answers PONG' 'since' '..."},
         {"COMMAND DOCS nope", "[]"}, {"COMMAND LIST x", "-ERR COMMAND LIST..."},
         {"COMMAND NOPE", "-ERR unknown subcommand 'NOPE'. Try COMMAND DOCS."});
    (void)server_ask(&client, "HELLO 3");
    TALK({"COMMAND DOCS ping", "{'ping' {'summary' 'Answers PONG', 'since' '..."});
}

static void keys_of_a_command_are_found(void **state)
{
    TALK({"COMMAND GETKEYS CL.THROTTLE k 1 2 3", "['k']"},
         {"COMMAND GETKEYS DEL a b c", "['a' 'b' 'c']"},
         {"COMMAND GETKEYS WEIR.CHECK api alice COST 3", "['alice']"},
         {"COMMAND GETKEYS WEIR.CHECK all", "[]"},
         {"COMMAND GETKEYS EVAL script 2 a b c", "['a' 'b']"},
         {"COMMAND GETKEYS EVAL script 0", "[]"}, {"COMMAND GETKEYS EVAL script 9 a", "[]"},
         {"COMMAND GETKEYS EVAL script -1 a", "[]"},
         {"COMMAND GETKEYS PING x", "-ERR The command has no key arguments"},
         {"COMMAND GETKEYS WEIR.ASK user a", "-ERR The command has no key arguments"},
         {"COMMAND GETKEYS NOPE x", "-ERR Invalid command specified"},
         {"COMMAND GETKEYS", "-ERR Invalid command specified"},
         {"COMMAND GETKEYS CL.THROTTLE k",
          "-ERR Invalid number of arguments specified for command"});
}

/* ---- DEL ---- */

static void del_resets_keys_of_throttle_and_counts_them(void **state)
{
    TALK({"CL.THROTTLE k 0 1 60", "[0 1 0 -1 60]"}, {"CL.THROTTLE k 0 1 60", "[1 1 0 60 60]"},
         {"CL.THROTTLE j 0 1 60", "[0 1 0 -1 60]"}, {"DEL k", "1"},
         {"CL.THROTTLE k 0 1 60", "[0 1 0 -1 60]"}, {"DEL nope", "0"}, {"del k nope j k", "2"},
         {"DEL k j", "0"}, {"DEL", "-ERR wrong number of arguments for 'del' command"},
         {"CL.THROTTLE k 0 1 60", "[0 1 0 -1 60]"}, {"DEL k ''", "-BADKEY key 2: ..."},
         {"CL.THROTTLE k 0 1 60", "[1 1 0 60 60]"},
         {"WEIR.CHECK api k", "['allow' 'api' 1000 999..."}, {"DEL api", "0"},
         {"WEIR.PEEK api k", "['allow' 'api' 1000 999..."});
}

static void without_ad_hoc_keys_del_says_so(void **state)
{
    struct server_options o = server_world_options();
    struct server_world w;
    struct server_client c;
    o.adhoc_keys = 0;
    server_world_start(&w, rules, &o);
    server_connect(&c, w.address);
    SERVER_TALK(&c, {"DEL k", "-NOLIMIT DEL is for keys of CL.THROTTLE, which is switched off..."},
                {"CL.THROTTLE k 1 1 1", "-NOLIMIT CL.THROTTLE is switched off..."});
    server_disconnect(&c);
    server_world_stop(&w);
}

/* ---- EVAL ---- */

static void a_script_that_calls_throttle_is_a_call_of_throttle(void **state)
{
    static const char *const scripts[] = {
        "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])",
        "return redis.call(\"cl.throttle\",KEYS[1],ARGV[1],ARGV[2],ARGV[3])",
        "  return\tredis . call ( 'CL.THROTTLE' , KEYS [ 1 ] ,\r\n ARGV[1],ARGV[2],ARGV[3] ) ; \n",
        "return redis.call('CL.THROTTLE', KEYS[1], 4, '6', \"60\")",
        "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], 6, 60, 1);",
    };
    static const char *const replies[] = {"[0 5 4 -1 10]", "[0 5 3 -1 20]", "[0 5 2 -1 30]",
                                          "[0 5 1 -1 40]", "[0 5 0 -1 50]"};
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        assert_string_equal(SERVER_ASK(&client, "EVAL", scripts[i], "1", "k", "4", "6", "60"),
                            replies[i]);
    }
    assert_string_equal(
        SERVER_ASK(&client, "eval", "return redis.call('CL.THROTTLE', 'k', 4, 6, 60, 0)", "0"),
        "[0 5 0 -1 50]");
    TALK({"CL.THROTTLE k 4 6 60", "[1 5 0 10 50]"});
}

static void other_scripts_are_refused_and_charge_nothing(void **state)
{
    static const char *const scripts[] = {
        "",
        "return",
        "return 1",
        "redis.call('CL.THROTTLE', KEYS[1], 4, 6, 60)",
        "returnredis.call('CL.THROTTLE', KEYS[1], 4, 6, 60)",
        "return redis.pcall('CL.THROTTLE', KEYS[1], 4, 6, 60)",
        "return redis.call('WEIR.CHECK', 'api', KEYS[1])",
        "return redis.call('CL.THROTTLE', KEYS[1], 4, 6, 60) + 1",
        "return redis.call('CL.THROTTLE', KEYS[1], 4, 6, 60) return 1",
        "return redis.call('CL.THROTTLE', KEYS[1], 4, 6, 60",
        "return redis.call('CL.THROTTLE', KEYS[1], 4, 6, 60,)",
        "return redis.call('CL.THROTTLE', KEYS[1] 4, 6, 60)",
        "return redis.call('CL.THROTTLE', KEYS[0], 4, 6, 60)",
        "return redis.call('CL.THROTTLE', KEYS[2], 4, 6, 60)",
        "return redis.call('CL.THROTTLE', KEYS[01], 4, 6, 60)",
        "return redis.call('CL.THROTTLE', KEYS[18446744073709551617], 4, 6, 60)",
        "return redis.call('CL.THROTTLE', ARGV[2], 4, 6, 60)",
        "return redis.call('CL.THROTTLE', KEYS[1], 04, 6, 60)",
        "return redis.call('CL.THROTTLE', KEYS[1], 4.0, 6, 60)",
        "return redis.call('CL.THROTTLE', KEYS[1], -4, 6, 60)",
        "return redis.call('CL.THROTTLE', 'k\\n', 4, 6, 60)",
        "return redis.call('CL.THROTTLE', 'k, 4, 6, 60)",
        "return redis.call('CL.THROTTLE', 'k\", 4, 6, 60)",
        "return redis.call('CL.THROTTLE', unpack(ARGV))",
        "-- a comment\nreturn redis.call('CL.THROTTLE', KEYS[1], 4, 6, 60)",
    };
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        const char *reply = SERVER_ASK(&client, "EVAL", scripts[i], "1", "k", "a");
        if (strncmp(reply, "-ERR EVAL: found '", 18) != 0 ||
            strstr(reply, "expected return redis.call('CL.THROTTLE', ...)") == NULL) {
            fail_msg("%s: got %s", scripts[i], reply);
        }
    }
    assert_string_equal(SERVER_ASK(&client, "EVAL", "return 1", "0"),
                        "-ERR EVAL: found '1', expected return redis.call('CL.THROTTLE', ...) with "
                        "literals, KEYS[n] or ARGV[n]");
    TALK({"CL.THROTTLE k 4 6 60 0", "[0 5 5 -1 0]"});
}

static void a_script_is_judged_as_the_command_that_it_calls(void **state)
{
    assert_string_equal(SERVER_ASK(&client, "EVAL", "return redis.call('CL.THROTTLE')", "0"),
                        "-ERR wrong number of arguments for 'cl.throttle' command");
    assert_string_equal(
        SERVER_ASK(&client, "EVAL", "return redis.call('CL.THROTTLE',1,2,3,4,5,6,7,8,9,10)", "0"),
        "-ERR wrong number of arguments for 'cl.throttle' command");
    assert_string_equal(
        SERVER_ASK(&client, "EVAL", "return redis.call('CL.THROTTLE','k','x',3,4)", "0"),
        "-Cell error: Store error: Couldn't parse as integer: x");
    TALK({"EVAL x y", "-ERR value is not an integer or out of range"},
         {"EVAL x -1", "-ERR Number of keys can't be negative"},
         {"EVAL x 1", "-ERR Number of keys can't be greater than number of args"},
         {"EVAL x", "-ERR wrong number of arguments for 'eval' command"},
         {"EVALSHA 0123456789abcdef 1 k", "-NOSCRIPT No matching script. Please use EVAL."},
         {"EVALSHA x", "-ERR wrong number of arguments for 'evalsha' command"});
}

/* ---- CL.THROTTLE ---- */

static void a_burst_may_take_36_years_to_refill(void **state)
{
    TALK({"CL.THROTTLE k 999 1 86400", "[0 1000 999 -1 86400]"},
         {"CL.THROTTLE k 999 1 86400 999", "[0 1000 0 -1 86400000]"},
         {"CL.THROTTLE k 999 1 86400", "[1 1000 0 86400 86400000]"},
         {"CL.THROTTLE j 13139 1 86400 13140", "[0 13140 0 -1 1135296000]"},
         {"CL.THROTTLE j 13139 1 86400", "[1 13140 0 86400 1135296000]"},
         {"CL.THROTTLE i 0 1 1135296000", "[0 1 0 -1 1135296000]"},
         {"CL.THROTTLE h 13140 1 86400",
          "-Cell error: Store error: the burst takes longer than 36 years to refill"},
         {"CL.THROTTLE h 9223372036854775807 1 1", "-Cell error: Store error: the burst takes..."},
         {"CL.THROTTLE h 1 1 9223372036854775807", "-Cell error: Store error: the burst takes..."},
         {"CL.THROTTLE h 0 1 60", "[0 1 0 -1 60]"});
    (void)threads_add(&world.now_ns, 500 * WEIR_DAY);
    TALK({"CL.THROTTLE k 999 1 86400 0", "[0 1000 500 -1 43200000]"});
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(settings_of_clients_are_accepted),
        TEST(lines_of_hello_and_ping_are_answered),
        TEST(lines_of_other_commands_end_the_connection),
        TEST(a_command_is_described_by_ten_values),
        TEST(every_list_of_commands_has_all_of_them),
        TEST(docs_are_of_the_commands_that_are_named),
        TEST(keys_of_a_command_are_found),
        TEST(del_resets_keys_of_throttle_and_counts_them),
        cmocka_unit_test(without_ad_hoc_keys_del_says_so),
        TEST(a_script_that_calls_throttle_is_a_call_of_throttle),
        TEST(other_scripts_are_refused_and_charge_nothing),
        TEST(a_script_is_judged_as_the_command_that_it_calls),
        TEST(a_burst_may_take_36_years_to_refill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
