/* A sample has exactly what the server has done since the last one, and its state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "rules/live/live.h"
#include "server/admin/sample.h"
#include "support/server/server_admin.h"

#define TIMER_MS 20

static struct admin_world *world;
static struct sampler sampler;
static struct http_answer a;
static uint64_t now_ns = UINT64_C(1800000000) * WEIR_SECOND;

/* Returns the sample of the second that ends now; NULL for the first. */
static json_t *take(void)
{
    struct buffer out;
    buffer_init(&out, 1 << 20);
    now_ns += WEIR_SECOND;
    sample_put(&sampler, &world->server, now_ns, &out);
    json_t *sample = json_loadb(buffer_text(&out).at, buffer_len(&out), 0, NULL);
    assert_true(sample != NULL || buffer_len(&out) == 0);
    buffer_finish(&out);
    return sample;
}

/* Starts a server that takes samples of its own at these intervals. The first one has been taken
 * when a request is answered. */
static void begin_with(const char *rules, uint64_t sample_ms)
{
    struct server_options o = {.sample_ms = sample_ms};
    world = calloc(1, sizeof *world);
    admin_world_start(world, rules, &o);
    admin_ask(world, "GET /healthz", "", "", &a);
    assert_null(take());
}

/* Starts a server whose samples do not meet ours: no sample is taken during another. */
static void begin(const char *rules)
{
    begin_with(rules, 3600 * 1000);
}

static int end(void **state)
{
    sampler_finish(&sampler);
    admin_world_stop(world);
    free(world);
    return 0;
}

/* Returns the number at a path of one or two names. */
static double number(const json_t *sample, const char *name, const char *inner)
{
    const json_t *at = json_object_get(sample, name);
    at = inner != NULL ? json_object_get(at, inner) : at;
    assert_true(json_is_number(at));
    return json_number_value(at);
}

static void expect_limit(const json_t *sample, const char *name, int allow, int deny, int shadow)
{
    const json_t *l = json_object_get(json_object_get(sample, "limits"), name);
    assert_int_equal(json_array_size(l), 3);
    assert_int_equal(json_integer_value(json_array_get(l, 0)), allow);
    assert_int_equal(json_integer_value(json_array_get(l, 1)), deny);
    assert_int_equal(json_integer_value(json_array_get(l, 2)), shadow);
}

static void check(const char *limit, const char *key)
{
    char body[128];
    (void)snprintf(body, sizeof body, "{\"limit\":\"%s\",\"key\":\"%s\"}", limit, key);
    admin_check(world, body, &a);
}

static void counts_are_those_since_the_last_sample(void **state)
{
    begin("limits: [{name: api, key: [user], rate: 2/day, max_keys: 100},\n"
          "  {name: seen, key: [user], rate: 1/day, shadow: true}]\n");
    for (int i = 0; i < 3; i++) {
        check("api", "alice");
    }
    check("seen", "alice");
    check("seen", "alice");
    check("none", "alice");
    json_t *sample = take();
    assert_int_equal(number(sample, "at_ms", NULL), (double)(now_ns / WEIR_MILLISECOND));
    assert_int_equal(number(sample, "requests", "allow"), 4);
    assert_int_equal(number(sample, "requests", "deny"), 1);
    assert_int_equal(number(sample, "requests", "error"), 1);
    assert_int_equal(number(sample, "requests", "other"), 0);
    expect_limit(sample, "api", 2, 1, 0);
    expect_limit(sample, "seen", 1, 0, 1);
    assert_int_equal(json_object_size(json_object_get(sample, "limits")), 2);
    assert_true(number(sample, "latency_us", "p50") > 0);
    assert_true(number(sample, "latency_us", "p999") >= number(sample, "latency_us", "p50"));
    assert_int_equal(number(sample, "keys", NULL), 2);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(sample, "fullest"), "limit")), "api");
    assert_true(number(sample, "fullest", "percent") > 0);
    assert_true(number(sample, "memory_bytes", NULL) > 0);
    assert_true(json_is_null(json_object_get(sample, "store")));
    json_decref(sample);
    admin_ask(world, "PUT /v1/mode", "", "{\"mode\":\"shadow\"}", &a);
    check("api", "alice");
    sample = take();
    assert_int_equal(number(sample, "requests", "allow"), 1);
    expect_limit(sample, "api", 0, 0, 1);
    assert_string_equal(json_string_value(json_object_get(sample, "mode")), "shadow");
    json_decref(sample);
    sample = take();
    assert_int_equal(number(sample, "requests", "allow"), 0);
    assert_int_equal(json_object_size(json_object_get(sample, "limits")), 0);
    assert_true(json_is_null(json_object_get(sample, "latency_us")));
    json_decref(sample);
}

/* Questions of operators are not the clients' requests. */
static void the_operators_requests_do_not_count(void **state)
{
    begin("limits: [{name: api, key: [user], rate: 2/day}]\n");
    admin_ask(world, "GET /v1/status", "", "", &a);
    json_t *sample = take();
    assert_int_equal(number(sample, "requests", "other"), 0);
    json_decref(sample);
}

static void a_limit_that_was_made_again_starts_at_nothing(void **state)
{
    begin("limits: [{name: api, key: [user], rate: 9/day, max_keys: 10}]\n");
    check("api", "alice");
    check("api", "alice");
    json_decref(take());
    admin_world_write(world, "limits: [{name: api, key: [user], rate: 9/day, max_keys: 20},\n"
                             "  {name: aaa, key: [user], rate: 9/day}]\n");
    assert_int_equal(server_reload(&world->server, NULL, NULL), 0);
    check("api", "alice");
    check("aaa", "alice");
    json_t *sample = take();
    expect_limit(sample, "api", 1, 0, 0);
    expect_limit(sample, "aaa", 1, 0, 0);
    assert_int_equal(number(sample, "generation", NULL), 2);
    json_decref(sample);
}

/* Another thread may read large rules for seconds; health checks must be answered meanwhile. */
static void no_sample_waits_for_a_reload(void **state)
{
    begin_with("limits: [{name: api, key: [user], rate: 9/day}]\n", TIMER_MS);
    check("api", "alice");
    assert_int_equal(pthread_mutex_lock(&world->server.rules->reload), 0);
    assert_null(take());
    (void)usleep(3 * TIMER_MS * 1000); /* the server's own timer */
    admin_ask(world, "GET /healthz", "", "", &a);
    assert_int_equal(a.status, 200);
    check("api", "alice");
    assert_int_equal(pthread_mutex_unlock(&world->server.rules->reload), 0);
    json_t *sample = take();
    expect_limit(sample, "api", 2, 0, 0);
    json_decref(sample);
}

#define MANY 80

static void beyond_the_64_busiest_limits_are_added_up(void **state)
{
    static char rules[1 << 14];
    static char body[1 << 14];
    size_t n = (size_t)sprintf(rules, "limits:\n");
    for (int i = 0; i < MANY; i++) {
        n += (size_t)sprintf(rules + n, "  - {name: l%02d, key: [user], rate: 9/day}\n", i);
    }
    begin(rules);
    n = (size_t)sprintf(body, "{\"requests\":[");
    for (int i = 0; i < MANY; i++) { /* the last limits decide twice, the others once */
        for (int k = 0; k < (i >= MANY - 10 ? 2 : 1); k++) {
            n += (size_t)sprintf(body + n, "%s{\"limit\":\"l%02d\",\"key\":\"x\"}",
                                 i > 0 || k > 0 ? "," : "", i);
        }
    }
    (void)sprintf(body + n, "]}");
    admin_check_batch(world, body, &a);
    assert_int_equal(a.status, 200);
    json_t *sample = take();
    assert_int_equal(json_object_size(json_object_get(sample, "limits")), SAMPLE_LIMITS + 1);
    expect_limit(sample, "l79", 2, 0, 0);
    expect_limit(sample, "(others)", MANY - SAMPLE_LIMITS, 0, 0);
    json_decref(sample);
}

/* It was added up with the others as long as these decided more. */
static void a_limit_that_denies_is_named_among_busier_ones(void **state)
{
    static char rules[1 << 14];
    static char body[1 << 15];
    size_t n = (size_t)sprintf(rules, "limits:\n");
    for (int i = 0; i < MANY; i++) {
        n += (size_t)sprintf(rules + n, "  - {name: l%02d, key: [user], rate: %d/day}\n", i,
                             i == MANY - 1 ? 1 : 9);
    }
    begin(rules);
    n = (size_t)sprintf(body, "{\"requests\":[");
    for (int i = 0; i < MANY; i++) { /* the last limit decides twice, the others thrice */
        for (int k = 0; k < (i == MANY - 1 ? 2 : 3); k++) {
            n += (size_t)sprintf(body + n, "%s{\"limit\":\"l%02d\",\"key\":\"x\"}",
                                 i > 0 || k > 0 ? "," : "", i);
        }
    }
    (void)sprintf(body + n, "]}");
    admin_check_batch(world, body, &a);
    assert_int_equal(a.status, 200);
    json_t *sample = take();
    expect_limit(sample, "l79", 1, 1, 0);
    expect_limit(sample, "(others)", 3 * (MANY - SAMPLE_LIMITS), 0, 0);
    json_decref(sample);
}

static void rates_are_of_about_the_last_ten_seconds(void **state)
{
    begin(
        "limits: [{name: api, key: [user], rate: 1/day}, {name: calm, key: [user], rate: 9/h}]\n");
    assert_null(limits_counted_find(&sampler.limits, "none"));
    assert_true(limits_counted_find(&sampler.limits, "api")->decided_rate == 0);
    for (int second = 0; second < 60; second++) { /* one is allowed, all others are denied */
        check("api", "alice");
        check("api", "alice");
        json_decref(take());
    }
    const struct limit_counts *l = limits_counted_find(&sampler.limits, "api");
    assert_true(l->denied_rate > 1.9 && l->denied_rate < 2);
    assert_true(l->decided_rate >= l->denied_rate && l->decided_rate < 2.01);
    assert_true(limits_counted_find(&sampler.limits, "calm")->decided_rate == 0);
    double before = l->denied_rate;
    for (int second = 0; second < 7; second++) {
        json_decref(take());
    }
    l = limits_counted_find(&sampler.limits, "api");
    assert_true(l->denied_rate > 0.45 * before && l->denied_rate < 0.55 * before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(counts_are_those_since_the_last_sample, end),
        cmocka_unit_test_teardown(the_operators_requests_do_not_count, end),
        cmocka_unit_test_teardown(a_limit_that_was_made_again_starts_at_nothing, end),
        cmocka_unit_test_teardown(no_sample_waits_for_a_reload, end),
        cmocka_unit_test_teardown(beyond_the_64_busiest_limits_are_added_up, end),
        cmocka_unit_test_teardown(a_limit_that_denies_is_named_among_busier_ones, end),
        cmocka_unit_test_teardown(rates_are_of_about_the_last_ten_seconds, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
