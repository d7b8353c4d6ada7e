/* Which role each command needs, alone and after MULTI: every row of the commands is tried. */
#include "server/loop/access_story.h"
#include "server/resp/resp_commands.h"

#define ABORTED "-EXECABORT Transaction discarded because of previous errors."

static void wrong_secrets_in_a_queue_end_the_connection_as_others_do(void **state)
{
    struct server_options o = server_world_options();
    struct server_world w;
    struct server_client c;
    o.access = secrets("check-1", "admin-1");
    server_world_start(&w, rules, &o);
    server_connect(&c, w.address);
    SERVER_TALK(&c, {"MULTI", "-NOAUTH Authentication required."}, {"AUTH check-1", "+OK"},
                {"MULTI", "+OK"});
    for (unsigned i = 0; i < 20; i++) {
        SERVER_TALK(&c, {"AUTH wrong", "+QUEUED"});
    }
    SERVER_TALK(&c, {"AUTH admin-1", "+QUEUED"}, {"WEIR.CHECK api al", "+QUEUED"});
    const char *reply = server_ask(&c, "EXEC");
    unsigned wrong = 0;
    unsigned not_run = 0;
    for (const char *at = reply; (at = strstr(at, "-WRONGPASS")) != NULL; at++) {
        wrong++;
    }
    for (const char *at = reply; (at = strstr(at, "-ERR not run: the connection")) != NULL; at++) {
        not_run++;
    }
    assert_int_equal(wrong, CONNECTION_WRONG_MAX);
    assert_int_equal(not_run, 22 - CONNECTION_WRONG_MAX);
    assert_string_equal(server_reply(&c), "end");
    server_disconnect(&c);
    server_world_stop(&w);
    access_close(o.access);
}

/* Arguments with which the command is well formed. */
static const char *example(const char *name)
{
    static const struct {
        const char *name;
        const char *words;
    } rows[] = {
        {"CL.THROTTLE", "CL.THROTTLE k 1 1 1"},
        {"EVALSHA", "EVALSHA x 0"},
        {"DEL", "DEL k"},
        {"WEIR.CHECK", "WEIR.CHECK api a"},
        {"WEIR.PEEK", "WEIR.PEEK api a"},
        {"WEIR.ASK", "WEIR.ASK user a"},
        {"WEIR.RESERVE", "WEIR.RESERVE api a"},
        {"WEIR.SETTLE", "WEIR.SETTLE x 1"},
        {"WEIR.CANCEL", "WEIR.CANCEL x"},
        {"WEIR.REFUND", "WEIR.REFUND api a UNITS 1"},
        {"WEIR.PENALIZE", "WEIR.PENALIZE api a UNITS 1"},
        {"WEIR.BLOCK", "WEIR.BLOCK api a FOR 1"},
        {"WEIR.UNBLOCK", "WEIR.UNBLOCK api a"},
        {"WEIR.RESET", "WEIR.RESET api a"},
        {"ECHO", "ECHO x"},
        {"AUTH", "AUTH wrong"},
        {"SELECT", "SELECT 0"},
        {"CLIENT", "CLIENT ID"},
        {"CONFIG", "CONFIG GET x"},
        {"MODULE", "MODULE LIST"},
        {"CLUSTER", "CLUSTER INFO"},
        {"WATCH", "WATCH x"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return rows[i].words;
        }
    }
    return name;
}

static const char *ask_row(struct server_client *c, const struct command_row *row)
{
    return strcmp(row->name, "EVAL") == 0
               ? SERVER_ASK(c, "EVAL", "return redis.call('CL.THROTTLE','k',1,1,1)", "0")
               : server_ask(c, example(row->name));
}

/* Asks the command, alone or after MULTI, as a client that has shown this secret. Returns whether
 * it was refused because of its role. */
static bool is_refused(const struct server_world *w, const char *auth,
                       const struct command_row *row, bool multi)
{
    struct server_client c;
    server_connect(&c, w->address);
    if (auth != NULL) {
        SERVER_TALK(&c, {auth, "+OK"});
    }
    if (multi) {
        SERVER_TALK(&c, {"MULTI", "+OK"}, {"PING", "+QUEUED"});
    }
    const char *reply = ask_row(&c, row);
    assert_null(strstr(reply, "wrong number of arguments"));
    bool refused = starts(reply, "-NOAUTH") || starts(reply, "-NOPERM");
    if (multi && !row->at_once) {
        assert_true(refused || strcmp(reply, "+QUEUED") == 0);
        assert_string_equal(refused ? server_ask(&c, "EXEC") : ABORTED, ABORTED);
    }
    server_disconnect(&c);
    return refused;
}

static void each_command_needs_its_role_alone_and_after_multi(void **state)
{
    struct server_options o = server_world_options();
    struct server_world w;
    unsigned rows = 0;
    o.access = secrets("check-1", "admin-1");
    server_world_start(&w, rules, &o);
    for (const struct command_row *const *table = resp_commands(); *table != NULL; table++) {
        for (const struct command_row *row = *table; row->name != NULL; row++, rows++) {
            bool nobody = is_refused(&w, NULL, row, false);
            bool hello = strcmp(row->name, "HELLO") == 0; /* without AUTH it needs a role */
            if (nobody != (row->role > ROLE_NONE || hello) ||
                is_refused(&w, "AUTH check-1", row, false) != (row->role > ROLE_CHECK) ||
                is_refused(&w, "AUTH check-1", row, true) != (row->role > ROLE_CHECK) ||
                is_refused(&w, "AUTH admin-1", row, false) ||
                is_refused(&w, "AUTH admin-1", row, true)) {
                fail_msg("%s is not for the role %s alone", row->name, role_names[row->role]);
            }
        }
    }
    assert_true(rows > 30);
    server_world_stop(&w);
    access_close(o.access);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_command_needs_its_role_alone_and_after_multi),
        cmocka_unit_test(wrong_secrets_in_a_queue_end_the_connection_as_others_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
