/* A store that goes away is an event, and in the samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"
#include "support/server/server_fleet.h"

static struct slow_scene scene;
static struct http_answer a;

/* Waits until the history contains the text. */
static void await(const char *text)
{
    do {
        (void)usleep(1000);
        http_ask(&scene.admin, "GET /v1/history", "", "", &a);
        assert_int_equal(a.status, 200);
    } while (strstr(a.body, text) == NULL);
}

static void a_store_that_goes_away_and_comes_back_is_told(void **state)
{
    struct server_options o = server_world_options();
    o.write_ms = 40; /* the store is looked at in a quarter of this time */
    o.sample_ms = 10;
    slow_start(&scene, "limits: [{name: a, key: [user], rate: 5/min, consistency: exact}]\n", &o);
    await("\"kind\":\"store\",\"text\":\"the store is there\"");
    await("\"store\":{\"up\":true,\"nodes\":3,\"connections\":0,\"breakers_open\":1}");
    threads_set(&scene.away, 1);
    await("\"kind\":\"store\",\"text\":\"the store is away: no reply in time\"");
    await("\"store\":{\"up\":false,");
    http_ask(&scene.admin, "GET /v1/status", "", "", &a);
    assert_non_null(strstr(a.body, "\"title\":\"Store away\""));
    assert_non_null(strstr(a.body, "\"text\":\"a is divided by 3 nodes\""));
    threads_set(&scene.away, 0);
    await("no reply in time\",\"messages\":[]},{");
    http_ask(&scene.admin, "GET /v1/status", "", "", &a);
    assert_non_null(strstr(a.body, "\"notices\":[]"));
    slow_stop(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_that_goes_away_and_comes_back_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
