/* Tests max_wait and undelayed over RESP: with several limits, a call waits for the slowest, or is
 * charged by none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/server/server_client.h"

static const char rules[] =
    "limits:\n"
    "  - {name: slow, when: {path: /a}, key: [user], algorithm: leaky_bucket, rate: 1/s, queue: "
    "9}\n"
    "  - {name: fast, when: {path: /a}, key: [user], rate: 2/s, burst: 1}\n"
    "  - {name: day, when: {path: [/a, /w]}, key: [user], algorithm: fixed_window, rate: 3/day}\n"
    "  - {name: free, when: {path: /b}, key: [user], algorithm: leaky_bucket, rate: 1/s, queue: 3,"
    " undelayed: 2}\n";

static struct server_world world;
static struct server_client client;

static int begin(void **state)
{
    struct server_options options = server_world_options();
    server_world_start(&world, rules, &options);
    server_connect(&client, world.address);
    return 0;
}

static int end(void **state)
{
    server_disconnect(&client);
    server_world_stop(&world);
    return 0;
}

static void a_call_waits_for_the_slowest_of_its_limits_or_is_charged_by_none(void **state)
{
    static const char ask[] = "WEIR.ASK path /a user alice MAXWAIT 1500";
    SERVER_TALK(&client, {ask, "['allow' 'fast' 1 0 0 500 0 '' 'limit']"},
                {ask, "['allow' 'fast' 1 0 0 1000 1000 '' 'limit']"},
                {ask, "['deny' 'slow' 10 8 500 2000 0 '' 'limit']"},
                {"WEIR.PEEK day alice", "['allow' 'day' 3 1 0 86400000 0 '' 'limit']"},
                {"WEIR.PEEK fast alice COST 1", "['deny' 'fast' 1 0 1000 1000 0 '' 'limit']"});
}

static void limits_that_cannot_wait_alone_are_an_error(void **state)
{
    SERVER_TALK(&client,
                {"WEIR.ASK path /w user bob MAXWAIT 1500",
                 "-ERR found max_wait, but no limit that applies is a token_bucket or "
                 "leaky_bucket: others cannot wait"},
                {"WEIR.CHECK day bob MAXWAIT 1500",
                 "-ERR this limit does not support it: only a token_bucket or leaky_bucket can "
                 "wait (MAXWAIT, max_wait_ms)"});
}

static void the_first_units_of_a_queue_need_not_wait(void **state)
{
    static const char ask[] = "WEIR.ASK path /b user alice";
    SERVER_TALK(&client, {ask, "['allow' 'free' 4 3 0 1000 0 '' 'limit']"},
                {ask, "['allow' 'free' 4 2 0 2000 0 '' 'limit']"},
                {ask, "['allow' 'free' 4 1 0 3000 0 '' 'limit']"},
                {ask, "['allow' 'free' 4 0 0 4000 1000 '' 'limit']"},
                {ask, "['deny' 'free' 4 0 1000 4000 0 '' 'limit']"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_waits_for_the_slowest_of_its_limits_or_is_charged_by_none),
        cmocka_unit_test(limits_that_cannot_wait_alone_are_an_error),
        cmocka_unit_test(the_first_units_of_a_queue_need_not_wait),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
