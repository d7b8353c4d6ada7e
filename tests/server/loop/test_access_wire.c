/* Who may do what, over RESP and HTTP. Listening without secrets: test_access_listen.c. */
#include <unistd.h>

#include "base/atomic.h"
#include "server/loop/access_story.h"

#define CHECK "{\"limit\":\"api\",\"key\":\"alice\"}"

static char file[] = "/tmp/weir-secrets-XXXXXX";

static void write_secrets(const char *text)
{
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int make_file(void **state)
{
    int fd = mkstemp(file);
    return fd >= 0 ? close(fd) : -1;
}

static int remove_file(void **state)
{
    return unlink(file);
}

static uint64_t refused(const struct server *server)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < server->workers_count; i++) {
        n += load_relaxed(&server->workers[i].counts.refused_access);
    }
    return n;
}

/* ---- RESP ---- */

static void start(struct server_world *w, struct access *access)
{
    struct server_options o = server_world_options();
    o.access = access;
    server_world_start(w, rules, &o);
}

static void stop(struct server_world *w)
{
    struct access *access = w->server.options.access;
    server_world_stop(w);
    access_close(access);
}

static void nothing_but_four_commands_before_a_secret(void **state)
{
    static const char *const closed[] = {"PING",
                                         "ECHO x",
                                         "SELECT 0",
                                         "CLIENT ID",
                                         "COMMAND",
                                         "INFO",
                                         "CONFIG GET save",
                                         "WEIR.CHECK api a",
                                         "WEIR.PEEK api a",
                                         "WEIR.ASK user a",
                                         "CL.THROTTLE k 1 1 1"};
    struct server_world w;
    struct server_client c;
    start(&w, secrets("check-1\ncheck-2", "admin-1"));
    server_connect(&c, w.address);
    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++) {
        assert_string_equal(server_ask(&c, closed[i]), "-NOAUTH Authentication required.");
    }
    assert_true(starts(server_ask(&c, "HELLO 3"),
                       "-NOAUTH HELLO must be called with the client already authenticated"));
    assert_string_equal(server_ask(&c, "CLIENT GETNAME"), "-NOAUTH Authentication required.");
    assert_int_equal(refused(&w.server), sizeof closed / sizeof closed[0] + 2);
    assert_true(starts(server_ask(&c, "NOSUCH"), "-ERR unknown command"));
    assert_string_equal(server_ask(&c, "RESET"), "+RESET");
    assert_string_equal(server_ask(&c, "AUTH check-2"), "+OK");
    assert_string_equal(server_ask(&c, "PING"), "+PONG");
    assert_true(starts(server_ask(&c, "WEIR.CHECK api a"), "['allow' 'api' 1000 999"));
    assert_string_equal(server_ask(&c, "RESET"), "+RESET");
    assert_string_equal(server_ask(&c, "PING"), "-NOAUTH Authentication required.");
    assert_string_equal(server_ask(&c, "QUIT"), "+OK");
    server_disconnect(&c);
    stop(&w);
}

static void users_and_secrets_are_taken_as_redis_takes_them(void **state)
{
    static const struct {
        const char *words;
        const char *reply;
    } rows[] = {
        {"AUTH check-1", "+OK"},
        {"AUTH admin-1", "+OK"},
        {"AUTH default check-1", "+OK"},
        {"AUTH check check-1", "+OK"},
        {"AUTH check admin-1", "+OK"},
        {"AUTH admin admin-1", "+OK"},
        {"AUTH admin check-1", "-WRONGPASS invalid username-password pair or user is disabled."},
        {"AUTH root admin-1", "-WRONGPASS invalid username-password pair or user is disabled."},
        {"AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
        {"AUTH ''", "-WRONGPASS invalid username-password pair or user is disabled."},
        {"AUTH a b c", "-ERR wrong number of arguments for 'auth' command"},
        {"HELLO 3 AUTH default wrong",
         "-WRONGPASS invalid username-password pair or user is disabled."},
        {"HELLO 9 AUTH default check-1", "-NOPROTO unsupported protocol version"},
        {"HELLO 3 AUTH default", "-ERR Syntax error in HELLO option 'AUTH'"},
    };
    struct server_world w;
    start(&w, secrets("check-1", "admin-1"));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct server_client c;
        server_connect(&c, w.address);
        assert_string_equal(server_ask(&c, rows[i].words), rows[i].reply);
        assert_string_equal(server_ask(&c, "PING"),
                            rows[i].reply[0] == '+' ? "+PONG" : "-NOAUTH Authentication required.");
        server_disconnect(&c);
    }
    stop(&w);
}

static void hello_with_auth_is_all_or_nothing(void **state)
{
    struct server_world w;
    struct server_client c;
    start(&w, secrets("check-1", NULL));
    server_connect(&c, w.address);
    assert_true(starts(server_ask(&c, "HELLO 3 AUTH default check-1 SETNAME b\x01z"),
                       "-ERR Client names cannot"));
    assert_string_equal(server_ask(&c, "PING"), "-NOAUTH Authentication required.");
    assert_true(starts(server_ask(&c, "HELLO 3 SETNAME joe AUTH default check-1"), "{'server'"));
    assert_string_equal(server_ask(&c, "CLIENT GETNAME"), "'joe'");
    assert_true(starts(server_ask(&c, "HELLO"), "{'server'")); /* it has shown it before */
    server_disconnect(&c);
    stop(&w);
}

static void without_secrets_auth_is_answered_as_by_redis(void **state)
{
    struct server_world w;
    struct server_client c;
    start(&w, NULL);
    server_connect(&c, w.address);
    assert_true(starts(server_ask(&c, "AUTH x"), "-ERR AUTH <password> called without any"));
    assert_string_equal(server_ask(&c, "AUTH default x"), "+OK");
    assert_true(starts(server_ask(&c, "AUTH nobody x"), "-WRONGPASS"));
    assert_true(starts(server_ask(&c, "HELLO 3 AUTH default x"), "{'server'"));
    server_disconnect(&c);
    stop(&w);
}

static void what_changes_keys_needs_the_admin_secret_where_clients_need_none(void **state)
{
    static const char *const changes[] = {"WEIR.BLOCK api a", "WEIR.UNBLOCK api a",
                                          "WEIR.RESET api a", "WEIR.REFUND api a",
                                          "WEIR.PENALIZE api a"};
    struct access *none = secrets(NULL, NULL);
    struct access *admin = secrets(NULL, "admin-1");
    struct server_world w;
    struct server_client c;
    for (unsigned given = 0; given < 2; given++) {
        start(&w, given == 1 ? admin : none);
        server_connect(&c, w.address);
        assert_true(starts(server_ask(&c, "WEIR.CHECK api a"), "['allow'"));
        for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
            assert_true(starts(server_ask(&c, changes[i]), "-NOPERM this user has no permissions"));
        }
        assert_true(starts(server_ask(&c, "WEIR.PEEK api a"), "['allow' 'api' 1000 999"));
        assert_string_equal(server_ask(&c, "AUTH admin-1"),
                            given == 1 ? "+OK"
                                       : "-WRONGPASS invalid username-password pair or user is "
                                         "disabled.");
        assert_true(
            starts(server_ask(&c, "WEIR.RESET api a"), given == 1 ? "['allow'" : "-NOPERM"));
        server_disconnect(&c);
        stop(&w);
    }
}

static void ten_wrong_secrets_end_the_connection(void **state)
{
    char line[64];
    size_t len = server_pack("AUTH wrong", line, sizeof line);
    struct server_world w;
    struct server_client c;
    start(&w, secrets("check-1", NULL));
    server_connect(&c, w.address);
    for (unsigned i = 0; i < 30; i++) { /* in one go: what is behind the tenth is not looked at */
        (void)server_send(&c, line, len);
    }
    for (unsigned i = 0; i < CONNECTION_WRONG_MAX; i++) {
        assert_true(starts(server_reply(&c), "-WRONGPASS"));
    }
    assert_string_equal(server_reply(&c), "end");
    assert_int_equal(refused(&w.server), CONNECTION_WRONG_MAX);
    server_disconnect(&c);
    stop(&w);
}

static void a_secret_that_is_taken_away_ends_the_role_of_open_connections(void **state)
{
    struct access_sources from = {.file = {[ROLE_CHECK] = file}};
    struct weir_error error = {0};
    struct access *access = NULL;
    struct server_world w;
    struct server_client gone;
    struct server_client stays;
    write_secrets("one\ntwo\n");
    assert_int_equal(access_open(&access, &from, &error), 0);
    start(&w, access);
    server_connect(&gone, w.address);
    server_connect(&stays, w.address);
    assert_string_equal(server_ask(&gone, "AUTH one"), "+OK");
    assert_string_equal(server_ask(&stays, "AUTH two"), "+OK");
    write_secrets("two\nthree\n");
    assert_int_equal(access_reload(access, &error), 0);
    assert_string_equal(server_ask(&gone, "PING"), "-NOAUTH Authentication required.");
    assert_string_equal(server_ask(&stays, "PING"), "+PONG");
    assert_string_equal(server_ask(&gone, "AUTH three"), "+OK");
    assert_string_equal(server_ask(&gone, "PING"), "+PONG");
    server_disconnect(&gone);
    server_disconnect(&stays);
    stop(&w);
}

/* ---- HTTP ---- */

struct http_row {
    const char *line;
    const char *fields;
    int status;
};

static void expect_rows(struct http_server *s, const struct http_row *rows, size_t n)
{
    static struct http_answer a;
    for (size_t i = 0; i < n; i++) {
        http_ask(s, rows[i].line, rows[i].fields, rows[i].line[0] == 'P' ? CHECK : "", &a);
        if (a.status != rows[i].status) {
            fail_msg("%s %s: found %d, expected %d", rows[i].line, rows[i].fields, a.status,
                     rows[i].status);
        }
        assert_int_equal(http_has_line(&a, "WWW-Authenticate: Bearer realm=\"weir\""),
                         a.status == 401);
        assert_int_equal(http_has_line(&a, "WWW-Authenticate: Basic realm=\"weir\""),
                         a.status == 401);
        assert_int_equal(http_has_line(&a, "Content-Type: application/problem+json"),
                         a.status >= 400);
    }
}

static void http_takes_bearers_and_passwords(void **state)
{
    static const struct http_row rows[] = {
        {"POST /v1/check", "", 401},
        {"POST /v1/check/batch", "", 401},
        {"POST /v1/peek", "Authorization: Bearer wrong\r\n", 401},
        {"GET /v1/auth", "", 401},
        {"GET /healthz", "", 200},
        {"GET /readyz", "Authorization: Bearer wrong\r\n", 200},
        {"POST /v1/check", "Authorization: Bearer check-1\r\n", 200},
        {"POST /v1/check", "authorization:   bEARER   check-1 \r\n", 200},
        {"POST /v1/check", "Authorization: Bearer admin-1\r\n", 200},
        {"POST /v1/check", "Authorization: Bearer\r\n", 401},
        {"POST /v1/check", "Authorization: Bearer \r\n", 401},
        {"POST /v1/check", "Authorization: check-1\r\n", 401},
        {"POST /v1/check", "Authorization: Bearercheck-1\r\n", 401},
        {"POST /v1/check", "Authorization: Digest check-1\r\n", 401},
        {"POST /v1/check", "Authorization: Basic ZGVmYXVsdDpjaGVjay0x\r\n", 200}, /* default: */
        {"POST /v1/check", "Authorization: Basic OmNoZWNrLTE=\r\n", 200},         /* : */
        {"POST /v1/check", "Authorization: Basic Y2hlY2s6Y2hlY2stMQ==\r\n", 200}, /* check: */
        {"POST /v1/check", "Authorization: Basic YWRtaW46Y2hlY2stMQ==\r\n", 401}, /* admin: */
        {"POST /v1/check", "Authorization: Basic cm9vdDpjaGVjay0x\r\n", 401},     /* root: */
        {"POST /v1/check", "Authorization: Basic Y2hlY2stMQ==\r\n", 401},         /* no colon */
        {"POST /v1/check", "Authorization: Basic !!!!\r\n", 401},
        {"POST /v1/check", "Weir-Secret: check-1\r\n", 200},
        {"POST /v1/check", "Weir-Secret: check-1\r\nAuthorization: Bearer client's\r\n", 200},
        {"POST /v1/check", "Weir-Secret: wrong\r\nAuthorization: Bearer check-1\r\n", 401},
        {"GET /v1/auth", "Weir-Secret: check-1\r\nAuthorization: Bearer client's\r\n", 200},
    };
    struct http_server s;
    struct server_options o = {.access = secrets("check-1", "admin-1")};
    uint64_t wrong = 0;
    http_server_start(&s, rules, &o);
    expect_rows(&s, rows, sizeof rows / sizeof rows[0]);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wrong += rows[i].status == 401;
    }
    assert_int_equal(refused(&s.server), wrong);
    http_server_stop(&s);
    access_close(o.access);
}

static void operators_need_the_role_for_what_changes_things(void **state)
{
    static const struct {
        const char *line;
        const char *fields;
        int status;
    } cases[] = {
        {"GET /v1/log-level", "", 401},
        {"GET /v1/log-level", "Authorization: Bearer check-1\r\n", 403},
        {"GET /v1/status", "Authorization: Bearer check-1\r\n", 200},
        {"PUT /v1/log-level", "", 401},
        {"PUT /v1/log-level", "Authorization: Bearer check-1\r\n", 403},
        {"PUT /v1/log-level", "Authorization: Basic Y2hlY2s6YWRtaW4tMQ==\r\n", 403}, /* check: */
        {"PUT /v1/log-level", "Authorization: Basic YWRtaW46YWRtaW4tMQ==\r\n", 200}, /* admin: */
        {"PUT /v1/log-level", "Authorization: Bearer admin-1\r\n", 200},
    };
    static struct http_answer a;
    struct server_world w;
    struct http_server s;
    struct server_options o = server_world_options();
    o.listen[PROTOCOL_ADMIN] = "127.0.0.1:0";
    o.access = secrets("check-1", "admin-1");
    server_world_start(&w, rules, &o);
    (void)server_address(&w.server, PROTOCOL_ADMIN, s.address, sizeof s.address);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *body = cases[i].line[0] == 'P' ? "{\"level\":\"info\"}" : "";
        http_ask(&s, cases[i].line, cases[i].fields, body, &a);
        assert_int_equal(a.status, cases[i].status);
    }
    assert_int_equal(refused(&w.server), 5);
    stop(&w);
}

static void a_field_that_is_too_long_to_be_a_secret_is_wrong(void **state)
{
    static char fields[8192] = "Authorization: Basic ";
    struct http_server s;
    struct server_options o = {.access = secrets("check-1", "admin-1")};
    struct http_row row = {"POST /v1/check", fields, 401};
    memset(fields + strlen(fields), 'A', 6000);
    memcpy(fields + strlen(fields), "\r\n", 2);
    http_server_start(&s, rules, &o);
    expect_rows(&s, &row, 1);
    memcpy(fields, "Authorization: Bearer", 21);
    expect_rows(&s, &row, 1);
    http_server_stop(&s);
    access_close(o.access);
}

static void open_routes_need_no_secret_and_ignore_a_wrong_one(void **state)
{
    static const struct http_row rows[] = {
        {"POST /v1/check", "", 200},
        {"GET /v1/auth", "Authorization: Bearer of-the-client\r\n", 200},
    };
    struct http_server s;
    struct server_options o = {.access = secrets(NULL, "admin-1")};
    http_server_start(&s, rules, &o);
    expect_rows(&s, rows, 2);
    assert_int_equal(refused(&s.server), 0);
    http_server_stop(&s);
    access_close(o.access);
}

static void ten_wrong_secrets_end_an_http_connection_too(void **state)
{
    static const char wrong[] =
        "GET /v1/auth HTTP/1.1\r\nHost: localhost\r\nWeir-Secret: no\r\n\r\n";
    static struct http_answer a;
    struct http_server s;
    struct server_options o = {.access = secrets("check-1", NULL)};
    http_server_start(&s, rules, &o);
    int fd = http_connect(&s);
    for (unsigned i = 1; i <= CONNECTION_WRONG_MAX; i++) {
        http_send(fd, wrong, sizeof wrong - 1);
        assert_true(http_receive(fd, &a));
        assert_int_equal(a.status, 401);
        assert_int_equal(http_has_line(&a, "Connection: close"), i == CONNECTION_WRONG_MAX);
    }
    assert_false(http_receive(fd, &a));
    (void)close(fd);
    http_server_stop(&s);
    access_close(o.access);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_but_four_commands_before_a_secret),
        cmocka_unit_test(users_and_secrets_are_taken_as_redis_takes_them),
        cmocka_unit_test(hello_with_auth_is_all_or_nothing),
        cmocka_unit_test(without_secrets_auth_is_answered_as_by_redis),
        cmocka_unit_test(what_changes_keys_needs_the_admin_secret_where_clients_need_none),
        cmocka_unit_test(ten_wrong_secrets_end_the_connection),
        cmocka_unit_test(a_secret_that_is_taken_away_ends_the_role_of_open_connections),
        cmocka_unit_test(http_takes_bearers_and_passwords),
        cmocka_unit_test(operators_need_the_role_for_what_changes_things),
        cmocka_unit_test(a_field_that_is_too_long_to_be_a_secret_is_wrong),
        cmocka_unit_test(open_routes_need_no_secret_and_ignore_a_wrong_one),
        cmocka_unit_test(ten_wrong_secrets_end_an_http_connection_too),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
