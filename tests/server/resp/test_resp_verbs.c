/* The operators' commands of RESP: roles, options, answers. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/log.h"
#include "server/access/access.h"
#include "support/server/access_secrets.h"
#include "support/server/server_client.h"
#include "support/engine/threads_run.h"

static const char rules[] = "limits:\n"
                            "  - {name: api, key: [user], rate: 10/min}\n"
                            "  - {name: pair, key: [tenant, user], rate: 10/min}\n"
                            "  - {name: either, key: [user|ip], rate: 10/min}\n"
                            "  - {name: all, key: [], rate: 10/min}\n"
                            "  - {name: shop, key: [user], rate: 10/min, tiers: {by: tier,"
                            " default: free, free: {}, pro: {rate: 100/min}}}\n";

static struct server_world world;
static struct server_client client;
static int log_ends[2];

static int set_up(void **state)
{
    struct server_options o = server_world_options();
    assert_int_equal(pipe2(log_ends, O_NONBLOCK | O_CLOEXEC), 0);
    log_init(log_ends[1], LOG_AS_TEXT, LOG_KEYS_CUT);
    o.access = secrets("c", "a");
    server_world_start(&world, rules, &o);
    server_connect(&client, world.address);
    return 0;
}

static int tear_down(void **state)
{
    struct access *access = world.server.options.access;
    server_disconnect(&client);
    server_world_stop(&world);
    access_close(access);
    log_init(2, LOG_AS_TEXT, LOG_KEYS_CUT);
    (void)close(log_ends[0]);
    (void)close(log_ends[1]);
    return 0;
}

static const char *logged(void)
{
    static char text[4096];
    ssize_t n = read(log_ends[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    return text;
}

struct row {
    const char *words;
    const char *reply;
};

static void expect(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *reply = server_ask(&client, rows[i].words);
        if (strncmp(reply, rows[i].reply, strlen(rows[i].reply)) != 0) {
            fail_msg("%s:\n  got      %s\n  expected %s", rows[i].words, reply, rows[i].reply);
        }
    }
}

#define EXPECT(rows) expect(rows, sizeof(rows) / sizeof(rows)[0])

static void the_verbs_need_the_role_admin(void **state)
{
    static const struct row none[] = {{"WEIR.RESET api al", "-NOAUTH Authentication required."},
                                      {"AUTH c", "+OK"}};
    static const char *const verbs[] = {"REFUND", "PENALIZE", "BLOCK", "UNBLOCK", "RESET"};
    EXPECT(none);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        char words[64];
        char reply[128];
        (void)snprintf(words, sizeof words, "weir.%s api al", verbs[i]);
        (void)snprintf(reply, sizeof reply,
                       "-NOPERM this user has no permissions to run the 'WEIR.%s' command: it "
                       "needs the role admin",
                       verbs[i]);
        assert_string_equal(server_ask(&client, words), reply);
    }
    assert_string_equal(server_ask(&client, "AUTH check a"), "+OK"); /* no more than asked for */
    assert_memory_equal(server_ask(&client, "WEIR.RESET api al"), "-NOPERM", 7);
    assert_string_equal(server_ask(&client, "AUTH admin a"), "+OK");
    assert_memory_equal(server_ask(&client, "WEIR.RESET api al"), "['allow'", 8);
}

static void keys_of_the_built_in_limit_are_reset_and_blocked(void **state)
{
    static const struct row rows[] = {
        {"AUTH a", "+OK"},
        {"CL.THROTTLE k 0 1 60", "[0 1 0 -1 60]"},
        {"CL.THROTTLE k 0 1 60", "[1 1 0 60 60]"},
        {"WEIR.RESET adhoc k", "['allow' 'adhoc' 0 -1 0 0 0 '' 'limit']"},
        {"CL.THROTTLE k 0 1 60", "[0 1 0 -1 60]"},
        {"WEIR.RESET adhoc k", "['allow' 'adhoc' 0 -1 0 0 0 '' 'limit']"},
        {"WEIR.BLOCK adhoc k FOR 5000", "['deny' 'adhoc' 0 -1 5000 5000 0 '' 'blocked']"},
        {"CL.THROTTLE k 9 1 60", "[1 10 "},
        {"WEIR.UNBLOCK adhoc k", "['allow' 'adhoc' 0 -1 0 0 0 '' 'limit']"},
        {"CL.THROTTLE k 9 1 60", "[0 10 9 -1 60]"},
        {"WEIR.BLOCK adhoc k FOR forever", "['never' 'adhoc' 0 -1 -1 "},
        {"WEIR.UNBLOCK adhoc k", "['allow' 'adhoc' 0 -1 0 60000 0 '' 'limit']"},
        {"WEIR.REFUND adhoc k UNITS 1",
         "-ERR refund: found limit 'adhoc', expected a limit of the rule file: a unit of 'adhoc' "
         "has no fixed size, because each call brings its own rate"},
        {"WEIR.CHECK adhoc k", "-NOLIMIT no limit named 'adhoc'"},
    };
    EXPECT(rows);
}

static void each_answers_as_a_peek_afterwards(void **state)
{
    static const struct row rows[] = {
        {"AUTH a", "+OK"},
        {"WEIR.CHECK api al COST 6", "['allow' 'api' 10 4 0 36000 0 '' 'limit']"},
        {"WEIR.REFUND api al UNITS 2", "['allow' 'api' 10 6 0 24000 0 '' 'limit']"},
        {"WEIR.PENALIZE api al UNITS 9", "['deny' 'api' 10 0 24000 78000 0 '' 'limit']"},
        {"WEIR.RESET api al", "['allow' 'api' 10 10 0 0 0 '' 'limit']"},
        {"WEIR.BLOCK api al FOR 1500", "['deny' 'api' 10 0 1500 1500 0 '' 'blocked']"},
        {"WEIR.CHECK api al", "['deny' 'api' 10 0 1500"},
        {"WEIR.BLOCK api al FOR forever", "['never' 'api' 10 0 -1"},
        {"WEIR.CHECK api al", "['never' 'api' 10 0 -1"},
        {"WEIR.UNBLOCK api al", "['allow' 'api' 10 10 0 0 0 '' 'limit']"},
        {"WEIR.PENALIZE pair acme al UNITS 1", "['allow' 'pair' 10 9 0 6000 0 '' 'limit']"},
        {"WEIR.PEEK pair acme al", "['allow' 'pair' 10 9"},
        {"WEIR.PENALIZE either 192.0.2.1 BY ip UNITS 1", "['allow' 'either' 10 9"},
        {"WEIR.ASK ip 192.0.2.1", "['allow' 'either' 10 8"},
        {"WEIR.PENALIZE all UNITS 1", "['allow' 'all' 10 8"},
        {"WEIR.PENALIZE shop al TIER pro UNITS 1", "['allow' 'shop' 100 99"},
        {"WEIR.PEEK shop al", "['allow' 'shop' 10 10"},
        {"HELLO 3", "{'server'"},
        {"WEIR.RESET api al", "{'verdict' 'allow', 'limit' 'api', 'quota' 10, 'remaining' 10"},
    };
    EXPECT(rows);
}

static void what_is_wrong_is_told_and_changes_nothing(void **state)
{
    static const struct row rows[] = {
        {"AUTH a", "+OK"},
        {"WEIR.RESET", "-ERR wrong number of arguments for 'weir.reset' command"},
        {"WEIR.RESET x al", "-NOLIMIT no limit named 'x'"},
        {"WEIR.RESET api", "-BADKEY found 0 parts of a key, expected 1"},
        {"WEIR.RESET pair ''", "-BADKEY found 1 parts of a key, expected 2"},
        {"WEIR.RESET api al bo", "-ERR syntax error at 'bo', expected TIER t or BY attribute"},
        {"WEIR.RESET api al UNITS 1",
         "-ERR syntax error at 'UNITS', expected TIER t or BY attribute"},
        {"WEIR.REFUND api al", "-ERR expected UNITS n after the key"},
        {"WEIR.REFUND api al TIER x", "-ERR expected UNITS n after the key"},
        {"WEIR.REFUND api al UNITS 0", "-ERR UNITS: found '0', expected a whole number from 1 to "},
        {"WEIR.REFUND api al UNITS -1",
         "-ERR UNITS: found '-1', expected a whole number from 1 to "},
        {"WEIR.REFUND api al UNITS 9223372036854775808",
         "-ERR UNITS: found '9223372036854775808', expected a whole number from 1 to "},
        {"WEIR.PENALIZE api al COST 1",
         "-ERR syntax error at 'COST', expected TIER t, BY attribute or UNITS n"},
        {"WEIR.BLOCK api al", "-ERR expected FOR ms|forever after the key"},
        {"WEIR.BLOCK api al FOR",
         "-ERR syntax error at 'FOR', expected TIER t, BY attribute, FOR ms|forever or WHY text"},
        {"WEIR.BLOCK api al FOR 0", "-ERR FOR: found '0', expected a whole number from 1 to "},
        {"WEIR.BLOCK api al FOR ever",
         "-ERR FOR: found 'ever', expected a whole number from 1 to "},
        {"WEIR.BLOCK api al FOR 9223372036855",
         "-ERR FOR: found '9223372036855', expected a whole number from 1 to "},
        {"WEIR.PEEK api al", "['allow' 'api' 10 10 0 0 0 '' 'limit']"},
    };
    EXPECT(rows);
    assert_string_equal(logged(), "");
}

static void every_change_is_logged_with_who_did_it(void **state)
{
    static const struct row rows[] = {
        {"AUTH a", "+OK"},
        {"WEIR.PENALIZE pair acme al UNITS 3", "['allow'"},
        {"weir.penalize pair acme bo UNITS 2", "['allow'"},
        {"WEIR.BLOCK shop al TIER pro FOR forever", "['never'"},
        {"WEIR.RESET either 192.0.2.1 BY ip", "['allow'"},
    };
    EXPECT(rows);
    const char *log = logged();
    assert_non_null(strstr(log, " audit key changed verb=penalize address=127.0.0.1 role=admin "
                                "limit=pair key=acme,al units=3\n"));
    assert_non_null(strstr(log, " audit key changed verb=penalize address=127.0.0.1 role=admin "
                                "limit=pair key=acme,bo units=2\n"));
    assert_non_null(strstr(log, " audit key changed verb=block address=127.0.0.1 role=admin "
                                "limit=shop key=al tier=pro for_ms=forever\n"));
    assert_non_null(strstr(log, " limit=either key=192.0.2.1 by=ip\n"));
    assert_null(strstr(log, "secret"));
}

/* Penalties of several connections on one key, and refunds of as much: nothing is lost. */
#define TIMES 500

static void take_and_give(unsigned index, void *arg)
{
    struct server_client c;
    server_connect(&c, world.address);
    threads_require(strcmp(server_ask(&c, "AUTH a"), "+OK") == 0);
    for (unsigned i = 0; i < TIMES; i++) {
        threads_require(server_say(&c, "WEIR.PENALIZE all UNITS 1"));
        threads_require(server_say(&c, "WEIR.REFUND all UNITS 1"));
        threads_require(server_reply(&c)[0] == '[');
        threads_require(server_reply(&c)[0] == '[');
    }
    server_disconnect(&c);
    (void)index;
    (void)arg;
}

static void verbs_of_four_connections_add_up(void **state)
{
    log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_AS_TEXT, LOG_KEYS_CUT);
    threads_run(4, take_and_give, NULL);
    assert_string_equal(server_ask(&client, "AUTH a"), "+OK");
    assert_string_equal(server_ask(&client, "WEIR.PEEK all"),
                        "['allow' 'all' 10 10 0 0 0 '' 'limit']");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_verbs_need_the_role_admin, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keys_of_the_built_in_limit_are_reset_and_blocked, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(each_answers_as_a_peek_afterwards, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_told_and_changes_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(every_change_is_logged_with_who_did_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(verbs_of_four_connections_add_up, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
