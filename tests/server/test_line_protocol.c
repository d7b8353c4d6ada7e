/* Tests a third protocol (support/server/line_protocol.h), which uses nothing but what src/server
 * offers to every protocol: operations, roles, answers that come at once and later, pipelines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/line_protocol.h"
#include "support/server/server_fleet.h"

static const char rules[] =
    "limits:\n"
    "  - {name: shared, when: {path: /shared}, key: [user], rate: 100/day, consistency: exact}\n"
    "  - {name: here, key: [user], when: {path: /here}, rate: 2/day, consistency: local}\n";

static struct slow_scene *scene;
static struct server_client client;

static int start(void **state)
{
    struct server_options options = server_world_options();
    options.speaks[PROTOCOL_RESP] = &protocol_line;
    scene = calloc(1, sizeof *scene);
    slow_start(scene, rules, &options);
    server_connect(&client, scene->resp);
    return 0;
}

static int stop(void **state)
{
    server_disconnect(&client);
    slow_stop(scene);
    free(scene);
    return 0;
}

/* Returns the next line that the server has sent. */
static const char *get_line(void)
{
    size_t n = 0;
    while (n + 1 < sizeof client.reply && read(client.fd, client.reply + n, 1) == 1 &&
           client.reply[n] != '\n') {
        n++;
    }
    client.reply[n] = 0;
    return client.reply;
}

static void say(const char *lines)
{
    assert_true(server_send(&client, lines, strlen(lines)));
}

static void a_check_and_an_ask_are_answered(void **state)
{
    say("check limit=here key=alice\nask path=/here user=alice\ncheck limit=here key=alice\n");
    assert_string_equal(get_line(), "allow here 1 0");
    assert_string_equal(get_line(), "allow here 0 0");
    assert_int_equal(strncmp(get_line(), "deny here 0 ", 12), 0);
    say("ask path=/nothing\n");
    assert_string_equal(get_line(), "allow - -1 0");
}

static void every_operation_is_there(void **state)
{
    char settle[80];
    say("reserve limit=here key=bob cost=2\n");
    const char *id = strrchr(get_line(), ' ') + 1;
    assert_int_equal(strlen(id), 32);
    (void)snprintf(settle, sizeof settle, "settle reservation=%s actual=1\n", id);
    say(settle);
    assert_string_equal(get_line(), "allow here 1 0");
    say("block limit=here key=bob for_ms=5000\npeek limit=here key=bob\n");
    assert_string_equal(get_line(), "deny here 0 5000");
    assert_string_equal(get_line(), "deny here 0 5000");
    say("throttle key=x count=1 period_ms=1000\n");
    assert_string_equal(get_line(), "allow adhoc 0 0");
}

static void what_is_wrong_is_told_and_the_connection_stays(void **state)
{
    say("check limit=nowhere key=a\nchekc limit=here\ncheck limit=here key=a cost=0\nsettle\n");
    assert_string_equal(get_line(), "error no limit named 'nowhere'");
    for (int i = 0; i < 3; i++) {
        assert_string_equal(get_line(), "error found no operation, or a member it has not");
    }
}

static void answers_of_a_fleet_keep_the_order_of_requests(void **state)
{
    say("check limit=shared key=a cost=7\ncheck limit=here key=c\nask path=/shared user=b "
        "cost=8\n");
    slow_await(scene, 2);
    slow_answer(scene, 2);
    assert_string_equal(get_line(), "allow shared 7 0");
    assert_string_equal(get_line(), "allow here 1 0");
    assert_string_equal(get_line(), "allow shared 8 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_check_and_an_ask_are_answered, start, stop),
        cmocka_unit_test_setup_teardown(every_operation_is_there, start, stop),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_told_and_the_connection_stays, start,
                                        stop),
        cmocka_unit_test_setup_teardown(answers_of_a_fleet_keep_the_order_of_requests, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
