/* Tests that a limit is counted by its rule, over RESP. An example to copy: the smallest test of a
 * server in this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/server/server_client.h"

static void the_third_of_two_is_denied(void **state)
{
    struct server_options options = server_world_options();
    struct server_world world;
    struct server_client client;
    server_world_start(&world, "limits: [{name: api, key: [user], rate: 2/h}]", &options);
    server_connect(&client, world.address);
    assert_string_equal(server_ask(&client, "WEIR.CHECK api alice"),
                        "['allow' 'api' 2 1 0 1800000 0 '' 'limit']");
    (void)server_ask(&client, "WEIR.CHECK api alice");
    assert_string_equal(server_ask(&client, "WEIR.CHECK api alice"),
                        "['deny' 'api' 2 0 1800000 3600000 0 '' 'limit']");
    server_disconnect(&client);
    server_world_stop(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_third_of_two_is_denied)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
