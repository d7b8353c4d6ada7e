/* Where a server listens without secrets, and where not. */
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/loop/access_story.h"

/* What server_start() says; "" if it starts. */
static const char *try_start(enum server_protocol p, const char *address, struct access *access,
                             bool insecure)
{
    static struct weir_error error;
    struct server server = {.options = {.listen = {"off", "off", "off"},
                                        .threads = 1,
                                        .connections = 10,
                                        .access = access,
                                        .insecure = insecure}};
    server.options.listen[p] = address;
    error.text[0] = 0;
    assert_int_equal(
        weir_rules_open_text(&server.rules, "test", rules, sizeof rules - 1, NULL, NULL), 0);
    if (server_start(&server, &error) == 0) {
        server_stop(&server);
    } else {
        assert_int_equal(error.code, WEIR_EINVAL);
    }
    weir_rules_close(server.rules);
    return error.text;
}

/* The smallest of systems do not know the name. */
static bool has_localhost(void)
{
    struct addrinfo *found = NULL;
    bool has = getaddrinfo("localhost", NULL, NULL, &found) == 0;
    if (has) {
        freeaddrinfo(found);
    }
    return has;
}

static void beyond_this_machine_a_secret_is_needed(void **state)
{
    struct access *check = secrets("c", NULL);
    struct access *admin = secrets(NULL, "a");
    const char *why = try_start(PROTOCOL_RESP, "0.0.0.0:0", NULL, false);
    assert_true(starts(why, "resp would listen on 0.0.0.0:"));
    assert_non_null(strstr(why, "which other machines can reach, without check secrets: give "
                                "--check-secrets FILE or set WEIR_CHECK_SECRETS, listen on "
                                "127.0.0.1, or use --insecure"));
    assert_true(starts(try_start(PROTOCOL_HTTP, "0.0.0.0:0", admin, false), "http would listen"));
    assert_string_equal(try_start(PROTOCOL_RESP, "0.0.0.0:0", check, false), "");
    assert_string_equal(try_start(PROTOCOL_HTTP, "0.0.0.0:0", check, false), "");
    assert_string_equal(try_start(PROTOCOL_HTTP, "0.0.0.0:0", NULL, true), "");
    assert_string_equal(try_start(PROTOCOL_RESP, "127.7.7.7:0", NULL, false), "");
    if (has_localhost()) {
        assert_string_equal(try_start(PROTOCOL_RESP, "localhost:0", NULL, false), "");
    }
    char local[64];
    (void)snprintf(local, sizeof local, "unix:/tmp/weir-access-%d.sock", (int)getpid());
    assert_string_equal(try_start(PROTOCOL_RESP, local, NULL, false), "");
    access_close(check);
    access_close(admin);
}

/* Who may only look there sees rules, and keys of clients. */
static void operators_beyond_this_machine_need_secrets_of_both_roles(void **state)
{
    struct access *check = secrets("c", NULL);
    struct access *admin = secrets(NULL, "a");
    struct access *both = secrets("c", "a");
    const char *why = try_start(PROTOCOL_ADMIN, "0.0.0.0:0", admin, false);
    assert_non_null(strstr(why, "without check secrets: give --check-secrets FILE"));
    why = try_start(PROTOCOL_ADMIN, "0.0.0.0:0", check, false);
    assert_non_null(strstr(why, "without admin secrets: give --admin-secrets FILE"));
    assert_string_equal(try_start(PROTOCOL_ADMIN, "0.0.0.0:0", both, false), "");
    assert_string_equal(try_start(PROTOCOL_ADMIN, "127.0.0.1:0", admin, false), "");
    access_close(check);
    access_close(admin);
    access_close(both);
}

static void the_same_holds_for_ipv6(void **state)
{
    struct weir_error error;
    int fd;
    if (listener_open("[::1]:0", LISTENER_ALONE, &fd, &error) != 0) {
        skip(); /* this machine has none */
    }
    (void)close(fd);
    assert_true(
        starts(try_start(PROTOCOL_HTTP, "[::]:0", NULL, false), "http would listen on [::]:"));
    assert_string_equal(try_start(PROTOCOL_RESP, "[::1]:0", NULL, false), "");
    assert_string_equal(try_start(PROTOCOL_RESP, "[::ffff:127.0.0.1]:0", NULL, false), "");
}

static void a_socket_that_was_handed_over_is_judged_by_its_address(void **state)
{
    struct access *check = secrets("c", NULL);
    struct access *admin = secrets("c", "a");
    struct server_options o = {.access = check};
    struct weir_error error = {0};
    int fd;
    assert_int_equal(listener_open("0.0.0.0:0", LISTENER_ALONE, &fd, &error), 0);
    int sockets[PROTOCOLS] = {[0 ... PROTOCOLS - 1] = -1};
    assert_int_equal(exposure_check(&o, sockets, &error), 0);
    sockets[PROTOCOL_RESP] = fd;
    assert_int_equal(exposure_check(&o, sockets, &error), 0);
    sockets[PROTOCOL_ADMIN] = fd;
    assert_int_equal(exposure_check(&o, sockets, &error), WEIR_EINVAL);
    assert_true(starts(error.text, "admin would listen on 0.0.0.0:"));
    assert_non_null(strstr(error.text, "--admin-secrets FILE"));
    o.access = admin;
    assert_int_equal(exposure_check(&o, sockets, &error), 0);
    o = (struct server_options){.insecure = true};
    assert_int_equal(exposure_check(&o, sockets, &error), 0);
    (void)close(fd);
    access_close(check);
    access_close(admin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beyond_this_machine_a_secret_is_needed),
        cmocka_unit_test(operators_beyond_this_machine_need_secrets_of_both_roles),
        cmocka_unit_test(the_same_holds_for_ipv6),
        cmocka_unit_test(a_socket_that_was_handed_over_is_judged_by_its_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
