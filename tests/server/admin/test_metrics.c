/* /metrics: well formed, complete, exact, and of bounded size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/admin/metrics.h"
#include "support/server/exposition.h"
#include "support/server/server_admin.h"
#include "support/server/server_client.h"

static const char rules[] =
    "allow: [{path: /free}]\n"
    "block: [{user: [mallory]}]\n"
    "limits:\n"
    "  - {name: api, when: {path: /api}, key: [user], rate: 3/day}\n"
    "  - {name: quiet, when: {path: /quiet}, key: [user], rate: 1/day, shadow: true}\n"
    "  - {name: tiers, key: [user], rate: 2/day, when: {path: /tiers},\n"
    "     tiers: {by: tier, default: free, free: {}, pro: {rate: 50/day}}}\n"
    "  - {name: small, key: [user], rate: 1/day, max_keys: 10, when: {path: /small},\n"
    "     on_full: deny}\n"
    "  - {name: one, when: {path: /both}, key: [user], rate: 1/day}\n"
    "  - {name: two, when: {path: /both}, key: [user], rate: 5/day}\n";

static struct admin_world *world;
static struct exposition *seen;
static struct http_answer a;

static int start(void **state)
{
    world = calloc(1, sizeof *world);
    seen = calloc(1, sizeof *seen);
    admin_world_start(world, rules, NULL);
    return 0;
}

static int stop(void **state)
{
    admin_world_stop(world);
    free(world);
    free(seen);
    return 0;
}

static void scrape(void)
{
    admin_ask(world, "GET /metrics", "", "", &a);
    assert_int_equal(a.status, 200);
    assert_true(http_has_line(&a, "Content-Type: text/plain; version=0.0.4; charset=utf-8"));
    if (!exposition_read(seen, a.body)) {
        fail_msg("%s\n%s", seen->complaint, a.body);
    }
}

static double value(const char *series)
{
    const struct exposition_sample *s = exposition_find(seen, series);
    if (s == NULL) {
        fail_msg("no %s in:\n%s", series, a.body);
    }
    return s->value;
}

static void assert_value(const char *series, double expected)
{
    if (value(series) != expected) {
        fail_msg("%s is %g, expected %g", series, value(series), expected);
    }
}

/* n checks; a '#' in the body becomes a number below `keys`. */
static void ask(unsigned n, const char *template, unsigned keys)
{
    const char *mark = strchr(template, '#');
    for (unsigned i = 0; i < n; i++) {
        char body[256];
        if (mark != NULL) {
            (void)snprintf(body, sizeof body, "%.*s%u%s", (int)(mark - template), template,
                           i % keys, mark + 1);
        } else {
            (void)snprintf(body, sizeof body, "%s", template);
        }
        admin_check(world, body, &a);
    }
}

static void a_new_server_shows_every_metric_well_formed(void **state)
{
    static const char *const families[] = {
        "weir_decisions_total{limit=\"api\",verdict=\"allow\"}",
        "weir_decisions_total{limit=\"adhoc\",verdict=\"never\"}",
        "weir_decision_duration_seconds_bucket{listener=\"resp\",le=\"+Inf\"}",
        "weir_table_keys{limit=\"api\"}",
        "weir_table_capacity{limit=\"adhoc\"}",
        "weir_evictions_total{limit=\"small\",kind=\"full_denied\"}",
        "weir_missing_key_total{limit=\"tiers\"}",
        "weir_connections{listener=\"http\"}",
        "weir_config_reloads_total{result=\"success\"}",
        "weir_config_last_success_timestamp_seconds",
        "weir_requests_total{listener=\"admin\",result=\"other\"}",
        "weir_requests_total{listener=\"resp\",result=\"error\"}",
        "weir_connections_refused_total{reason=\"address\"}",
        "weir_connections_timed_out_total",
        "weir_requests_total{listener=\"http\",result=\"overload\"}",
        "weir_forwarded_ignored_total",
        "weir_decisions_total{limit=\"quiet\",verdict=\"shadow_deny\"}",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_open_fds",
        "process_max_fds",
        "process_start_time_seconds",
    };
    scrape();
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        (void)value(families[i]);
    }
    char build[128];
    (void)snprintf(build, sizeof build, "weir_build_info{version=\"%s\"}", weir_version());
    assert_value(build, 1);
    assert_true(value("weir_config_last_success_timestamp_seconds") > 1.7e9);
    assert_true(value("process_resident_memory_bytes") > 1e5);
    assert_true(value("process_open_fds") > 5);
    assert_value("weir_connections{listener=\"admin\"}", 1);
}

static void decisions_are_counted_exactly_by_limit_and_verdict(void **state)
{
    ask(10, "{\"limit\":\"api\",\"key\":\"u#\"}", 2);
    ask(1, "{\"limit\":\"api\",\"key\":\"big#\",\"cost\":4}", 1);
    ask(4, "{\"limit\":\"tiers\",\"key\":\"u#\"}", 1);
    ask(4, "{\"limit\":\"tiers\",\"key\":\"u#\",\"tier\":\"pro\"}", 1);
    ask(3, "{\"attributes\":{\"path\":\"/quiet\",\"user\":\"u#\"}}", 1);
    ask(3, "{\"limit\":\"quiet\",\"key\":\"v#\"}", 1);
    ask(2, "{\"attributes\":{\"path\":\"/free\",\"user\":\"u#\"}}", 1);
    ask(1, "{\"attributes\":{\"path\":\"/api\",\"user\":\"mallory\"}}", 0);
    ask(5, "{\"attributes\":{\"path\":\"/nothing\",\"user\":\"u#\"}}", 1);
    ask(6, "{\"attributes\":{\"path\":\"/api\"}}", 0);
    ask(2, "{\"limit\":\"none\",\"key\":\"u#\"}", 1);
    scrape();
    assert_value("weir_decisions_total{limit=\"api\",verdict=\"allow\"}", 6);
    assert_value("weir_decisions_total{limit=\"api\",verdict=\"deny\"}", 4);
    assert_value("weir_decisions_total{limit=\"api\",verdict=\"never\"}", 1);
    assert_value("weir_decisions_total{limit=\"tiers\",verdict=\"allow\"}", 6);
    assert_value("weir_decisions_total{limit=\"tiers\",verdict=\"deny\"}", 2);
    assert_value("weir_decisions_total{limit=\"quiet\",verdict=\"allow\"}", 2);
    assert_value("weir_decisions_total{limit=\"quiet\",verdict=\"shadow_deny\"}", 4);
    assert_value("weir_decisions_total{limit=\"quiet\",verdict=\"deny\"}", 0);
    assert_value("weir_decisions_total{limit=\"quiet\",verdict=\"never\"}", 0);
    assert_value("weir_missing_key_total{limit=\"api\"}", 6);
    assert_value("weir_listed_total{list=\"allow\"}", 2);
    assert_value("weir_listed_total{list=\"block\"}", 1);
    assert_value("weir_table_keys{limit=\"api\"}", 2);
    assert_value("weir_table_keys{limit=\"tiers\"}", 2);
    assert_value("weir_requests_total{listener=\"http\",result=\"allow\"}", 31);
    assert_value("weir_requests_total{listener=\"http\",result=\"deny\"}", 8);
    assert_value("weir_requests_total{listener=\"http\",result=\"error\"}", 2);
    assert_value("weir_requests_total{listener=\"http\",result=\"other\"}", 0);
    assert_value("weir_decision_duration_seconds_count{listener=\"http\"}", 41);
    assert_value("weir_connections_accepted_total{listener=\"http\"}", 41);
    assert_true(value("weir_decision_duration_seconds_sum{listener=\"http\"}") > 0);
}

static void a_full_table_shows(void **state)
{
    ask(1000, "{\"limit\":\"small\",\"key\":\"u#\"}", 1000);
    scrape();
    double refused = value("weir_evictions_total{limit=\"small\",kind=\"full_denied\"}");
    assert_true(refused > 0);
    assert_value("weir_decisions_total{limit=\"small\",verdict=\"deny\"}", refused);
    assert_value("weir_decisions_total{limit=\"small\",verdict=\"allow\"}", 1000 - refused);
    assert_value("weir_table_keys{limit=\"small\"}", 1000 - refused);
}

/* Requests that came together count with the time of all of them, one by one. */
static void every_request_of_a_pipeline_is_in_the_histogram(void **state)
{
    struct server_client c;
    server_connect(&c, world->address[PROTOCOL_RESP]);
    for (unsigned i = 0; i < 64; i++) {
        assert_true(server_say(&c, "CL.THROTTLE k 9 10 3600"));
    }
    for (unsigned i = 0; i < 64; i++) {
        (void)server_reply(&c);
    }
    scrape();
    assert_value("weir_decision_duration_seconds_count{listener=\"resp\"}", 64);
    assert_value("weir_decisions_total{limit=\"adhoc\",verdict=\"allow\"}", 10);
    assert_value("weir_decisions_total{limit=\"adhoc\",verdict=\"deny\"}", 54);
    assert_value("weir_connections{listener=\"resp\"}", 1);
    server_disconnect(&c);
}

/* A request counts once: however many limits apply, in a batch, and in a transaction. */
static void a_request_counts_once(void **state)
{
    static const char *const story[] = {"WEIR.ASK path /both user ann",
                                        "WEIR.ASK path /both user ann",
                                        "WEIR.PEEK api ann",
                                        "WEIR.CHECK nowhere ann",
                                        "NOSUCH",
                                        "PING",
                                        "CL.THROTTLE k 0 1 3600",
                                        "CL.THROTTLE k 0 1 3600",
                                        "CL.THROTTLE k 0 1 3600 0",
                                        "MULTI",
                                        "WEIR.CHECK quiet bob",
                                        "CL.THROTTLE k 0 1 3600",
                                        "EXEC"};
    struct server_client c;
    server_connect(&c, world->address[PROTOCOL_RESP]);
    for (size_t i = 0; i < sizeof story / sizeof story[0]; i++) {
        (void)server_ask(&c, story[i]);
    }
    server_disconnect(&c);
    admin_check_batch(
        world,
        "{\"requests\":[{\"limit\":\"api\",\"key\":\"a\"},{\"limit\":\"api\",\"key\":\"a\","
        "\"cost\":9},{\"limit\":\"none\",\"key\":\"a\"}]}",
        &a);
    assert_int_equal(a.status, 200);
    scrape();
    assert_value("weir_requests_total{listener=\"resp\",result=\"allow\"}", 3);
    assert_value("weir_requests_total{listener=\"resp\",result=\"deny\"}", 3);
    assert_value("weir_requests_total{listener=\"resp\",result=\"error\"}", 2);
    assert_value("weir_requests_total{listener=\"resp\",result=\"other\"}", 5);
    assert_value("weir_decisions_total{limit=\"one\",verdict=\"allow\"}", 1);
    assert_value("weir_decisions_total{limit=\"two\",verdict=\"allow\"}", 1);
    assert_value("weir_requests_total{listener=\"http\",result=\"allow\"}", 1);
    assert_value("weir_requests_total{listener=\"http\",result=\"deny\"}", 1);
    assert_value("weir_requests_total{listener=\"http\",result=\"error\"}", 1);
    assert_value("weir_requests_total{listener=\"http\",result=\"other\"}", 0);
}

static void reservations_are_counted_by_how_they_end(void **state)
{
    struct server_client c;
    char words[128];
    char id[64];
    server_connect(&c, world->address[PROTOCOL_RESP]);
    for (unsigned i = 0; i < 4; i++) {
        const char *reply = server_ask(&c, "WEIR.RESERVE api ann COST 1");
        if (i == 0) { /* the id follows the flags */
            (void)snprintf(id, sizeof id, "%.32s", strstr(reply, "'' '") + 4);
        }
    }
    (void)snprintf(words, sizeof words, "WEIR.SETTLE %s 1", id);
    assert_int_equal(server_ask(&c, words)[0], '[');
    server_disconnect(&c);
    scrape();
    assert_value("weir_reservations_made_total", 3);
    assert_value("weir_reservations", 2);
    assert_value("weir_reservations_ended_total{result=\"settled\"}", 1);
    assert_value("weir_reservations_refused_total{reason=\"client\"}", 0);
}

static void keys_make_no_series(void **state)
{
    scrape();
    size_t before = seen->count;
    ask(300, "{\"limit\":\"api\",\"key\":\"user-#\"}", 300);
    scrape();
    assert_int_equal(seen->count, before);
    assert_null(strstr(a.body, "user-"));
}

static void limits_of_a_changed_rule_set_are_those_that_are_shown(void **state)
{
    admin_world_write(world, "limits:\n  - {name: other, key: [user], rate: 3/day}\n");
    admin_ask(world, "POST /v1/reload", "", "", &a);
    assert_int_equal(a.status, 200);
    scrape();
    assert_null(strstr(a.body, "\"api\""));
    assert_value("weir_decisions_total{limit=\"other\",verdict=\"allow\"}", 0);
    assert_value("weir_config_reloads_total{result=\"success\"}", 1);
    assert_value("weir_config_generation", 2);
}

/* Whatever a name holds, it ends where it should. */
static void hostile_names_are_escaped(void **state)
{
    struct limit_numbers limits[2] = {{.name = "a\"} 1\nforged{x=\"\\", .stats.allowed = 7},
                                      {.name = "plain"}};
    struct numbers n = {.server = &world->server, .limits = limits, .limits_count = 2};
    struct buffer out;
    buffer_init(&out, 1 << 20);
    metrics_put(&out, &n);
    buffer_put_char(&out, 0);
    assert_false(out.full);
    if (!exposition_read(seen, buffer_text(&out).at)) {
        fail_msg("%s", seen->complaint);
    }
    assert_value("weir_decisions_total{limit=\"a\\\"} 1\\nforged{x=\\\"\\\\\",verdict=\"allow\"}",
                 7);
    buffer_finish(&out);
}

static void the_reader_of_these_tests_is_strict(void **state)
{
    static const char *const bad[] = {
        "a_total 1\n",
        "# HELP a_total x\na_total 1\n",
        "# TYPE a_total counter\na_total 1\n",
        "# HELP a_total x\n# TYPE a_total counter\na_total 1",
        "# HELP a_total x\n# TYPE a_total counter\na_total 1\na_total 1\n",
        "# HELP a_total x\n# TYPE a_total counter\na_total -1\n",
        "# HELP a_total x\n# TYPE a_total counter\na_total 1x\n",
        "# HELP a_total x\n# TYPE a_total counter\na_total{b=\"c} 1\n",
        "# HELP a_total x\n# TYPE a_total counter\na_total{b=\"\\x\"} 1\n",
        "# HELP a_total x\n# TYPE a_total counter\na_total{1=\"c\"} 1\n",
        "# HELP a x\n# TYPE a counter\na 1\n",
        "# HELP a x\n# TYPE a gauge\n\na 1\n",
        "# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\n",
        "# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_sum 1\n",
        "# HELP h x\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_sum 1\nh_count 3\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (exposition_read(seen, bad[i])) {
            fail_msg("accepted: %s", bad[i]);
        }
    }
    assert_true(exposition_read(seen, "# HELP h x\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\n"
                                      "h_bucket{le=\"+Inf\"} 3\nh_sum 1\nh_count 3\n"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_reader_of_these_tests_is_strict),
        TEST(a_new_server_shows_every_metric_well_formed),
        TEST(decisions_are_counted_exactly_by_limit_and_verdict),
        TEST(a_full_table_shows),
        TEST(every_request_of_a_pipeline_is_in_the_histogram),
        TEST(a_request_counts_once),
        TEST(reservations_are_counted_by_how_they_end),
        TEST(keys_make_no_series),
        TEST(limits_of_a_changed_rule_set_are_those_that_are_shown),
        TEST(hostile_names_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
