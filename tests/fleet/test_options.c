/* Tests the options of a fleet and its limits, and their secrets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/fleet/fleet_open.h"
#include "support/store/redis_world.h"

static struct redis_world world;

/* ---- what is refused ---- */

static void assert_refused(const struct weir_fleet_options *o, int code, const char *why)
{
    struct weir_fleet *fleet = (struct weir_fleet *)&world;
    struct weir_error error = {0};
    assert_int_equal(weir_fleet_open(&fleet, o, &error), code);
    assert_null(fleet);
    assert_int_equal(error.code, code);
    if (strstr(error.text, why) == NULL) {
        fail_msg("'%s' lacks '%s'", error.text, why);
    }
}

static void options_that_make_no_sense_are_refused_with_what_was_found(void **state)
{
    static char longest[1025];
    memset(longest, 'x', sizeof longest - 1);
    const struct weir_fleet_options good = {.size = sizeof good, .url = "redis://127.0.0.1:1"};
    const struct {
        struct weir_fleet_options o;
        int code;
        const char *why;
    } bad[] = {
        {{.size = 8, .url = good.url}, WEIR_EINVAL, "options.size is 8, expected "},
        {{.size = sizeof good}, WEIR_EINVAL, "url is NULL, expected for example redis://"},
        {{.size = sizeof good, .url = "http://x"}, WEIR_EINVAL, "http://x"},
        {{.size = sizeof good, .url = good.url, .flags = 6}, WEIR_EINVAL, "flags 0x6"},
        {{.size = sizeof good, .url = good.url, .reserved = 1}, WEIR_EINVAL, "reserved 1"},
        {{.size = sizeof good, .url = good.url, .deadline_ns = 1},
         WEIR_EINVAL,
         "deadline_ns is 1,"},
        {{.size = sizeof good, .url = good.url, .deadline_ns = 11 * WEIR_SECOND},
         WEIR_EINVAL,
         "expected 100 us to 10 s"},
        {{.size = sizeof good, .url = good.url, .fleet_size = 1000001}, WEIR_EINVAL, "fleet_size"},
        {{.size = sizeof good, .url = good.url, .user = "u"},
         WEIR_EINVAL,
         "user, but neither password nor a file"},
        {{.size = sizeof good, .url = good.url, .password = "p", .password_file = "/f"},
         WEIR_EINVAL,
         "password and password_file, expected one"},
        {{.size = sizeof good, .url = good.url, .password = longest},
         WEIR_EINVAL,
         "bytes, expected at most 1023"},
        {{.size = sizeof good, .url = good.url, .password_file = "/no/such/file"},
         WEIR_EIO,
         "password_file /no/such/file: No such file"},
        {{.size = sizeof good, .url = good.url, .password_file = "/dev/null"},
         WEIR_EIO,
         "/dev/null: the first line is empty"},
        {{.size = sizeof good, .url = good.url, .password_file = "/dev/zero"},
         WEIR_EIO,
         "/dev/zero: the first line is longer than 1023 bytes"},
        {{.size = sizeof good, .url = good.url, .prefix = longest}, WEIR_EINVAL, "prefix"},
        {{.size = sizeof good, .url = good.url, .sentinel_password = "p"},
         WEIR_EINVAL,
         "a password for Sentinels, expected a URL with redis-sentinel://"},
        {{.size = sizeof good, .url = good.url, .sentinel_user = "u"},
         WEIR_EINVAL,
         "sentinel_user, but neither sentinel_password nor"},
        {{.size = sizeof good,
          .url = "redis-sentinel://127.0.0.1:1/m",
          .sentinel_password_file = "/no/such/file"},
         WEIR_EIO,
         "sentinel_password_file /no/such/file: No such file"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_refused(&bad[i].o, bad[i].code, bad[i].why);
    }
    assert_refused(NULL, WEIR_EINVAL, "options is NULL");
    assert_int_equal(weir_fleet_open(NULL, &good, NULL), WEIR_EINVAL);
    weir_fleet_close(NULL);
    weir_fleet_limit_close(NULL);
}

static void assert_limit_refused(struct weir_fleet *fleet, const struct weir_fleet_limit_options *o,
                                 int code, const char *why)
{
    struct weir_fleet_limit *limit = (struct weir_fleet_limit *)&world;
    struct weir_error error = {0};
    assert_int_equal(weir_fleet_limit_open(&limit, fleet, o, &error), code);
    assert_null(limit);
    if (strstr(error.text, why) == NULL) {
        fail_msg("'%s' lacks '%s'", error.text, why);
    }
}

static void limits_that_cannot_be_are_refused_with_what_was_found(void **state)
{
    struct weir_fleet *fleet = fleet_open_at("redis://127.0.0.1:1", 0, 0);
    const struct weir_fleet_limit_options good = fleet_hourly("good", 10);
    struct weir_fleet_limit_options o = good;
    o.size = 3;
    assert_limit_refused(fleet, &o, WEIR_EINVAL, "options.size is 3, expected ");
    o = good;
    o.name = "";
    assert_limit_refused(fleet, &o, WEIR_EINVAL, "no name");
    o.name = NULL;
    assert_limit_refused(fleet, &o, WEIR_EINVAL, "no name");
    o = good;
    o.consistency = 4;
    assert_limit_refused(fleet, &o, WEIR_EINVAL, "consistency is 4");
    o = good;
    o.on_store_failure = 3;
    assert_limit_refused(fleet, &o, WEIR_EINVAL, "on_store_failure is 3");
    o = good;
    o.limit.count = 0;
    assert_limit_refused(fleet, &o, WEIR_ERATE, "count is 0");
    o = good;
    o.limit.algorithm = WEIR_SLIDING_LOG;
    o.consistency = WEIR_FLEET_LEASED;
    assert_limit_refused(fleet, &o, WEIR_EINVAL, "sliding_log");
    o.limit.algorithm = WEIR_LEAKY_BUCKET;
    o.consistency = WEIR_FLEET_SYNCED;
    assert_limit_refused(fleet, &o, WEIR_EINVAL, "leaky_bucket");
    o.limit.algorithm = 77;
    assert_limit_refused(fleet, &o, WEIR_EINVAL, "77");
    o = good;
    o.limit.algorithm = WEIR_FIXED_WINDOW;
    o.limit.period_ns = WEIR_MICROSECOND + 1;
    assert_limit_refused(fleet, &o, WEIR_ERATE, "");
    assert_limit_refused(fleet, NULL, WEIR_EINVAL, "the options are NULL");
    assert_limit_refused(NULL, &good, WEIR_EINVAL, "NULL");
    weir_fleet_close(fleet);
}

static void a_limit_too_small_for_leases_says_that_it_is_exact(void **state)
{
    struct weir_fleet *fleet = fleet_open_at("redis://127.0.0.1:1", 0, 0);
    struct weir_fleet_limit_options o = fleet_hourly("small", 1);
    o.consistency = WEIR_FLEET_LEASED;
    struct weir_fleet_limit *small = fleet_limit_of(fleet, &o);
    o = fleet_hourly("large", 1000000);
    o.limit.period_ns = WEIR_SECOND;
    o.consistency = WEIR_FLEET_LEASED;
    struct weir_fleet_limit *large = fleet_limit_of(fleet, &o);
    assert_int_equal(weir_fleet_limit_consistency(small), WEIR_FLEET_EXACT);
    assert_int_equal(weir_fleet_limit_consistency(large), WEIR_FLEET_LEASED);
    assert_int_equal(weir_fleet_limit_consistency(NULL), WEIR_EINVAL);
    weir_fleet_limit_close(small);
    weir_fleet_limit_close(large);
    weir_fleet_close(fleet);
}

/* ---- secrets ---- */

static const char *as_admin(const char *command)
{
    const char *words[16];
    char copy[200];
    size_t n = 0;
    char *rest = copy;
    (void)snprintf(copy, sizeof copy, "%s", command);
    for (char *w; (w = strsep(&rest, "|")) != NULL && n < 16;) {
        words[n++] = w;
    }
    return redis_node_do(&world.node[0], words, n);
}

/* Returns whether the store lets such a fleet in. */
static bool gets_in(struct weir_fleet_options o)
{
    o.deadline_ns = FLEET_PATIENT_NS;
    struct weir_fleet *fleet = fleet_open_with(world.url, o);
    struct weir_fleet_limit_options l = fleet_hourly("secret", 1000000);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &l);
    struct weir_answer a;
    assert_int_equal(weir_fleet_check(limit, "k", 1, 1, &a), 0);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
    return (a.flags & WEIR_FLAG_DEGRADED) == 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
}

/* This must be the last test: from here on the test itself has no access. */
static void a_password_or_the_first_line_of_its_file_opens_the_store(void **state)
{
    char path[200];
    (void)snprintf(path, sizeof path, "%s/password", world.folder);
    assert_string_equal(as_admin("ACL|SETUSER|ali|resetpass|>forty"), "OK");
    assert_string_equal(as_admin("CONFIG|SET|requirepass|open sesame"), "OK");
    assert_true(gets_in((struct weir_fleet_options){.password = "open sesame"}));
    assert_false(gets_in((struct weir_fleet_options){.password = "open barley"}));
    assert_false(gets_in((struct weir_fleet_options){.password = NULL}));
    write_file(path, "open sesame\nand a second line\n");
    assert_true(gets_in((struct weir_fleet_options){.password_file = path}));
    write_file(path, "open sesame");
    assert_true(gets_in((struct weir_fleet_options){.password_file = path}));
    write_file(path, "open sesame\r\n");
    assert_true(gets_in((struct weir_fleet_options){.password_file = path}));
    write_file(path, " open sesame\n");
    assert_false(gets_in((struct weir_fleet_options){.password_file = path}));
    assert_true(gets_in((struct weir_fleet_options){.user = "ali", .password = "forty"}));
    assert_false(gets_in((struct weir_fleet_options){.user = "ali", .password = "open sesame"}));
    (void)unlink(path);
}

/* Asks until the fleet reports this reason. */
static void assert_says(struct weir_fleet *fleet, struct weir_fleet_limit *limit, const char *why)
{
    struct weir_error error = {0};
    for (int i = 0; i < 2000; i++) {
        struct weir_answer a;
        assert_int_equal(weir_fleet_check(limit, "k", 1, 1, &a), 0);
        if (weir_fleet_trouble(fleet, &error) == WEIR_EIO && strstr(error.text, why) != NULL) {
            assert_null(strstr(error.text, "sesame"));
            return;
        }
        redis_look_again_soon();
    }
    fail_msg("'%s' lacks '%s'", error.text, why);
}

static void the_reason_for_a_missing_store_is_reported_without_secrets(void **state)
{
    char path[200];
    struct weir_error error;
    struct weir_fleet_limit_options l = fleet_hourly("why", 10);
    (void)snprintf(path, sizeof path, "%s/password", world.folder);
    write_file(path, "forty\n");
    struct weir_fleet *fleet = fleet_open_with(
        world.url, (struct weir_fleet_options){.user = "ali", .password_file = path});
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &l);
    assert_true(fleet_await_store(limit));
    assert_int_equal(weir_fleet_trouble(fleet, &error), 0);
    assert_int_equal(weir_fleet_trouble(fleet, NULL), WEIR_EINVAL);
    write_file(path, "wrong sesame\n");
    (void)as_admin("CLIENT|KILL|USER|ali");
    assert_says(fleet, limit, "WRONGPASS");
    (void)unlink(path);
    assert_says(fleet, limit, "password: No such file");
    redis_node_kill(&world.node[0]);
    assert_says(fleet, limit, "no connection (Connection refused)");
    redis_node_start(&world.node[0]);
    redis_node_await(&world.node[0]);
    assert_string_equal(as_admin("ACL|SETUSER|ali|on|>forty|~*|+@all"), "OK");
    write_file(path, "forty\n");
    assert_true(fleet_await_store(limit));
    while (weir_fleet_trouble(fleet, &error) != 0) {
        redis_look_again_soon();
    }
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
    (void)unlink(path);
}

static void a_changed_password_file_is_read_for_the_next_connection(void **state)
{
    char path[200];
    (void)snprintf(path, sizeof path, "%s/password", world.folder);
    write_file(path, "forty\n");
    struct weir_fleet *fleet = fleet_open_with(
        world.url, (struct weir_fleet_options){.user = "ali", .password_file = path});
    struct weir_fleet_limit_options l = fleet_hourly("rotated", 1000000);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &l);
    struct weir_answer a;
    assert_int_equal(weir_fleet_check(limit, "k", 1, 1, &a), 0);
    assert_int_equal(a.flags, 0);
    write_file(path, "one and forty\n");
    (void)as_admin("ACL|SETUSER|ali|resetpass|>one and forty");
    (void)as_admin("CLIENT|KILL|USER|ali");
    assert_true(fleet_await_store(limit));
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
    (void)unlink(path);
}

static int start_redis(void **state)
{
    redis_world_alone(&world, NULL);
    assert_string_equal(as_admin("ACL|SETUSER|ali|on|>forty|~*|+@all"), "OK");
    return 0;
}

static int stop_redis(void **state)
{
    redis_world_stop(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_make_no_sense_are_refused_with_what_was_found),
        cmocka_unit_test(limits_that_cannot_be_are_refused_with_what_was_found),
        cmocka_unit_test(a_limit_too_small_for_leases_says_that_it_is_exact),
        cmocka_unit_test(the_reason_for_a_missing_store_is_reported_without_secrets),
        cmocka_unit_test(a_changed_password_file_is_read_for_the_next_connection),
        cmocka_unit_test(a_password_or_the_first_line_of_its_file_opens_the_store),
    };
    return cmocka_run_group_tests(tests, start_redis, stop_redis);
}
