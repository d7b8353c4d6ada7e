/* Tests Sentinels that have a password of their own, different from the store's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/fleet/fleet_open.h"
#include "support/store/redis_world.h"

static struct redis_world world;

static void say_ok(struct redis_node *n, const char *command)
{
    const char *said = redis_node_run(n, "%s", command);
    if (said == NULL || strcmp(said, "OK") != 0) {
        fail_msg("%s: %s", command, said != NULL ? said : "nothing");
    }
}

/* The last command for each Sentinel removes the test's own access. */
static int start(void **state)
{
    redis_world_sentinel(&world, NULL);
    for (unsigned i = REDIS_SENTINELS; i < world.count; i++) {
        struct redis_node *n = &world.node[i];
        say_ok(n, "SENTINEL CONFIG SET sentinel-pass sesame");
        say_ok(n, "ACL SETUSER watcher on >barley allchannels +@all");
        say_ok(n, "ACL SETUSER default resetpass >sesame");
    }
    return 0;
}

static int stop(void **state)
{
    redis_world_stop(&world);
    return 0;
}

static void assert_gets_in(struct weir_fleet_options o)
{
    struct weir_fleet *fleet = fleet_open_with(world.url, o);
    struct weir_fleet_limit_options l = fleet_hourly("in", 1000);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &l);
    assert_true(fleet_await_store(limit));
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

static void assert_stays_out(struct weir_fleet_options o, const char *why)
{
    struct weir_error error = {.text = ""};
    struct weir_fleet *fleet = fleet_open_with(world.url, o);
    uint64_t end = redis_now_ms() + 20000;
    while (weir_fleet_trouble(fleet, &error) == 0 || strstr(error.text, why) == NULL) {
        if (redis_now_ms() > end) {
            fail_msg("'%s' lacks '%s'", error.text, why);
        }
        redis_look_again_soon();
    }
    assert_null(strstr(error.text, "sesame"));
    assert_null(strstr(error.text, "barley"));
    assert_int_equal(fleet_stats_of(fleet).up, 0);
    weir_fleet_close(fleet);
}

static void sentinels_with_a_password_are_asked_with_it(void **state)
{
    char path[200];
    (void)snprintf(path, sizeof path, "%s/password", world.folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("sesame\n", f);
    (void)fclose(f);
    assert_gets_in((struct weir_fleet_options){.sentinel_password = "sesame"});
    assert_gets_in((struct weir_fleet_options){.sentinel_password_file = path});
    assert_gets_in(
        (struct weir_fleet_options){.sentinel_user = "watcher", .sentinel_password = "barley"});
    (void)unlink(path);
}

static void without_the_right_sentinel_password_the_error_names_the_option(void **state)
{
    assert_stays_out((struct weir_fleet_options){.size = 0},
                     ": the Sentinel requires a password in sentinel_password_file: PING: NOAUTH");
    assert_stays_out(
        (struct weir_fleet_options){.sentinel_password = "barley"},
        ": the Sentinel refuses the password of sentinel_password_file: AUTH: WRONGPASS");
    assert_stays_out(
        (struct weir_fleet_options){.sentinel_user = "watcher", .sentinel_password = "sesame"},
        ": the Sentinel refuses the password of sentinel_password_file: AUTH: WRONGPASS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentinels_with_a_password_are_asked_with_it),
        cmocka_unit_test(without_the_right_sentinel_password_the_error_names_the_option),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
