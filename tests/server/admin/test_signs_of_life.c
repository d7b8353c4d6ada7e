/* The watchdog asks every thread, and a thread that hangs is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "server/loop/server.h"
#include "support/server/server_client.h"

static uint64_t held; /* whoever reads the clock waits while this is set */

static uint64_t clock_that_may_hang(void *arg)
{
    (void)arg;
    while (load_acquire(&held) != 0) {
        (void)usleep(1000);
    }
    return 1000 * WEIR_DAY;
}

static void await_answers(const struct server *server)
{
    for (int i = 0; i < 6000 && !server_answered(server); i++) {
        (void)usleep(10000);
    }
    assert_true(server_answered(server));
}

static void a_thread_that_hangs_gives_no_sign_and_gives_it_when_it_goes_on(void **state)
{
    static const char rules[] = "limits: [{name: a, key: [user], rate: 5/min}]";
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct server server = {.options = server_world_options()};
    struct server_client client;
    struct weir_error error;
    char address[128];
    o.clock = clock_that_may_hang;
    assert_int_equal(
        weir_rules_open_text(&server.rules, "test", rules, sizeof rules - 1, &o, &error), 0);
    server.options.threads = 2;
    assert_int_equal(server_start(&server, &error), 0);
    for (int i = 0; i < 5; i++) {
        server_ping(&server);
        await_answers(&server);
    }
    store_release(&held, 1);
    server_connect(&client, server_address(&server, PROTOCOL_RESP, address, sizeof address));
    assert_true(server_say(&client, "WEIR.CHECK a x"));
    int quiet = 0;
    for (int i = 0; i < 6000 && quiet < 3; i++) { /* until the request has reached its thread */
        server_ping(&server);
        (void)usleep(20000);
        quiet = server_answered(&server) ? 0 : quiet + 1;
    }
    assert_int_equal(quiet, 3);
    store_release(&held, 0);
    await_answers(&server);
    assert_string_equal(server_reply(&client), "['allow' 'a' 5 4 0 12000 0 '' 'limit']");
    server_disconnect(&client);
    server_stop(&server);
    weir_rules_close(server.rules);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_that_hangs_gives_no_sign_and_gives_it_when_it_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
