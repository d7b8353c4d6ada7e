/* Two samples become a report, and a report lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/top/top_command.h"

static json_t *read_json(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    return json;
}

static struct top_sample sample(uint64_t at_ms, const char *status, const char *limits,
                                const char *denied)
{
    return (struct top_sample){.at_ms = at_ms,
                               .status = read_json(status),
                               .limits = read_json(limits),
                               .denied = read_json(denied)};
}

static struct top_sample before(void)
{
    return sample(
        1000,
        "{\"version\":\"0.2.0\",\"state\":\"ready\",\"uptime_s\":60,\"generation\":1,"
        "\"mode\":\"enforce\",\"threads\":2,\"connections\":{\"resp\":1},\"requests\":{\"resp\":10}"
        ","
        "\"results\":{\"allow\":8,\"deny\":2},"
        "\"memory_bytes\":1000000,\"cpu_seconds\":1.0}",
        "[{\"name\":\"api\",\"tier\":\"\",\"rate\":\"5/s\",\"mode\":\"enforce\",\"allowed\":10,"
        "\"denied\":5,\"never\":0,\"keys\":1,\"capacity\":100,\"evicted\":0}]",
        "{\"minutes\":5,\"seconds\":60,\"others\":0,\"denied\":[]}");
}

static struct top_sample now(void)
{
    return sample(
        3000,
        "{\"version\":\"0.2.0\",\"state\":\"ready\",\"uptime_s\":62,\"generation\":2,"
        "\"mode\":\"enforce\",\"threads\":2,\"connections\":{\"resp\":3},"
        "\"requests\":{\"resp\":110,\"http\":4},"
        "\"results\":{\"allow\":100,\"deny\":14},\"memory_bytes\":38200000,\"cpu_seconds\":1.5,"
        "\"notices\":[{\"name\":\"store\",\"severity\":\"critical\",\"title\":\"Store away\","
        "\"since_ms\":1763585473000,\"text\":\"login denies all\",\"why\":\"refused\","
        "\"act\":\"look\"}]}",
        "[{\"name\":\"watched\",\"tier\":\"free\",\"rate\":\"1/s\",\"mode\":\"shadow\","
        "\"allowed\":2000,\"denied\":0,\"never\":0,\"shadow_denied\":8,\"keys\":0,"
        "\"capacity\":0,\"evicted\":0,\"denied_rate\":0,\"decided_rate\":1000},"
        "{\"name\":\"api\",\"tier\":\"\",\"rate\":\"5/s\",\"mode\":\"enforce\",\"allowed\":110,"
        "\"denied\":15,\"never\":2,\"keys\":25,\"capacity\":100,\"evicted\":8,"
        "\"denied_rate\":5.5,\"decided_rate\":60}]",
        "{\"minutes\":5,\"seconds\":62,\"others\":0,\"denied\":[{\"limit\":\"api\","
        "\"key\":\"mal\\u001b[31mlory\",\"reason\":\"ban\",\"count\":7,\"error\":0}]}");
}

static json_t *report(void)
{
    struct top_sample one = before();
    struct top_sample two = now();
    json_t *r = top_report(&one, &two);
    assert_non_null(r);
    top_sample_finish(&one);
    top_sample_finish(&two);
    return r;
}

static void assert_number(const json_t *object, const char *name, double expected)
{
    double found = json_number_value(json_object_get(object, name));
    if (found != expected) {
        fail_msg("%s is %f, expected %f", name, found, expected);
    }
}

static void counts_become_rates_of_the_time_between(void **state)
{
    json_t *r = report();
    assert_number(r, "seconds", 2);
    assert_number(json_object_get(r, "requests_per_second"), "resp", 50);
    assert_number(json_object_get(r, "requests_per_second"), "http", 2);
    assert_number(json_object_get(r, "results_per_second"), "allow", 46);
    assert_number(json_object_get(r, "results_per_second"), "deny", 6);
    assert_number(r, "cpu_percent", 25);
    const json_t *api = json_array_get(json_object_get(r, "limits"), 1);
    assert_number(api, "allow", 50);
    assert_number(api, "deny", 5);
    assert_number(api, "never", 1);
    assert_number(api, "evicted", 4);
    assert_number(api, "fill", 0.25);
    json_decref(r);
}

static void what_a_shadow_limit_would_have_denied_is_told_apart(void **state)
{
    json_t *r = report();
    const json_t *watched = json_array_get(json_object_get(r, "limits"), 0);
    assert_number(watched, "shadow", 4);
    assert_number(watched, "deny", 0);
    assert_number(watched, "never", 0);
    assert_number(watched, "fill", 0);
    assert_number(json_object_get(r, "decisions_per_second"), "shadow", 4);
    assert_number(json_object_get(r, "decisions_per_second"), "deny", 5);
    json_decref(r);
}

static void a_server_that_began_again_has_no_negative_rates(void **state)
{
    struct top_sample one = now();
    struct top_sample two = before();
    two.at_ms = 4000;
    json_t *r = top_report(&one, &two);
    assert_number(json_object_get(r, "requests_per_second"), "resp", 10);
    assert_number(r, "cpu_percent", 100);
    json_decref(r);
    top_sample_finish(&one);
    top_sample_finish(&two);
}

static void durations_come_from_the_metrics(void **state)
{
    static const char metrics[] =
        "weir_decision_duration_seconds_bucket{listener=\"resp\",le=\"0.001\"} 50\n"
        "weir_decision_duration_seconds_bucket{listener=\"resp\",le=\"0.002\"} 100\n"
        "weir_decision_duration_seconds_bucket{listener=\"resp\",le=\"+Inf\"} 100\n"
        "weir_decision_duration_seconds_bucket{listener=\"http\",le=\"+Inf\"} 0\n"
        "weir_other{listener=\"grpc\",le=\"1\"} 9\n";
    struct top_sample one = before();
    struct top_sample two = now();
    top_sample_read_metrics(&two, (struct weir_text){metrics, sizeof metrics - 1});
    json_t *r = top_report(&one, &two);
    const json_t *latency = json_object_get(r, "latency_seconds");
    assert_int_equal(json_object_size(latency), 2);
    assert_number(json_object_get(latency, "resp"), "p50", 0.001);
    assert_true(json_is_null(json_object_get(json_object_get(latency, "http"), "p99")));
    json_decref(r);
    top_sample_finish(&one);
    top_sample_finish(&two);
}

static char *view_of(json_t *r, unsigned width, unsigned rows)
{
    static char text[1 << 16];
    struct buffer out;
    buffer_init(&out, TOP_OUTPUT_MAX);
    top_view(r, "127.0.0.1:8082", width, rows, &out);
    assert_true(buffer_len(&out) < sizeof text);
    memcpy(text, buffer_text(&out).at, buffer_len(&out));
    text[buffer_len(&out)] = 0;
    buffer_finish(&out);
    json_decref(r);
    return text;
}

static char *view(unsigned width, unsigned rows)
{
    return view_of(report(), width, rows);
}

/* ---- a fleet ---- */

static const char fleet_before[] = "# HELP weir_store_up ...\n"
                                   "weir_store_up 1\nweir_store_connections 3\nweir_fleet_nodes 2\n"
                                   "weir_breaker_open{endpoint=\"10.0.0.5:6379\"} 0\n"
                                   "weir_store_duration_seconds_bucket{le=\"0.001\"} 100\n"
                                   "weir_store_duration_seconds_bucket{le=\"+Inf\"} 100\n"
                                   "weir_store_calls_total 100\n";
static const char fleet_now[] = "weir_store_up 0\nweir_store_connections 1\nweir_fleet_nodes 4\n"
                                "weir_breaker_open{endpoint=\"10.0.0.5:6379\"} 1\n"
                                "weir_breaker_open{endpoint=\"10.0.0.6:6379\"} 0\n"
                                "weir_store_duration_seconds_bucket{le=\"0.001\"} 100\n"
                                "weir_store_duration_seconds_bucket{le=\"0.002\"} 104\n"
                                "weir_store_duration_seconds_bucket{le=\"+Inf\"} 104\n"
                                "weir_store_calls_total 140\n";

static void degrade(struct top_sample *s, size_t place, json_int_t count)
{
    json_t *limit = json_array_get(s->limits, place);
    (void)json_object_set_new(limit, "degraded", json_integer(count));
    (void)json_object_set_new(limit, "consistency", json_string("exact"));
    (void)json_object_set_new(limit, "keys", json_null());
    (void)json_object_set_new(limit, "capacity", json_null());
    (void)json_object_set_new(limit, "evicted", json_null());
}

static json_t *report_of_a_fleet(void)
{
    struct top_sample one = before();
    struct top_sample two = now();
    top_sample_read_metrics(&one, text_of(fleet_before));
    top_sample_read_metrics(&two, text_of(fleet_now));
    degrade(&one, 0, 6);
    degrade(&two, 1, 36);
    json_t *r = top_report(&one, &two);
    top_sample_finish(&one);
    top_sample_finish(&two);
    return r;
}

static void the_store_of_a_fleet_is_told_from_the_metrics(void **state)
{
    json_t *r = report_of_a_fleet();
    const json_t *store = json_object_get(r, "store");
    const json_t *breakers = json_object_get(store, "breakers_open");
    assert_true(json_is_false(json_object_get(store, "up")));
    assert_number(store, "connections", 1);
    assert_number(store, "nodes", 4);
    assert_number(store, "calls_per_second", 20);
    assert_number(store, "degraded_per_second", 15);
    assert_true(json_is_true(json_object_get(breakers, "10.0.0.5:6379")));
    assert_true(json_is_false(json_object_get(breakers, "10.0.0.6:6379")));
    assert_true(json_is_number(json_object_get(json_object_get(store, "latency_seconds"), "p99")));
    json_decref(r);
}

static void who_has_a_fleet_sees_its_store_and_who_is_degraded(void **state)
{
    const char *text = view_of(report_of_a_fleet(), 0, 0);
    assert_non_null(strstr(text, "\nstore        AWAY  nodes 4  calls/s 20  degraded/s 15  p50 "));
    assert_non_null(strstr(text, "    breakers open 1 of 2: 10.0.0.5:6379\n"));
    assert_non_null(strstr(text, "DEGRADED/S"));
    assert_non_null(strstr(text, "  -     -        -          15\n")); /* keys, fill, evictions */
    text = view(0, 0);
    assert_null(strstr(text, "store"));
    assert_null(strstr(text, "DEGRADED"));
}

static void the_limit_that_denies_most_is_first_and_nothing_drives_the_terminal(void **state)
{
    const char *text = view(0, 0);
    const char *api = strstr(text, "\napi ");
    const char *watched = strstr(text, "\nwatched ");
    assert_non_null(api);
    assert_non_null(watched);
    assert_true(api < watched);
    assert_non_null(strstr(text, "DENIED/5MIN  REASON  LIMIT  KEY\n"));
    assert_non_null(strstr(text, "          7  ban     api    mal\\x1b[31mlory\n"));
    assert_null(strchr(text, '\33'));
    assert_non_null(strstr(text, "memory 38.2 MB"));
    assert_non_null(strstr(text, "25.0%"));
}

static void notices_come_before_the_numbers(void **state)
{
    json_t *r = report();
    assert_non_null(strstr(
        view_of(r, 0, 0), "mode enforce\ncritical     Store away since 2025-11-19T20:51:13Z: login "
                          "denies all\nrequests/s"));
}

static void more_notices_than_fit_are_counted(void **state)
{
    json_t *r = report();
    json_t *notices = json_object_get(r, "notices");
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(json_array_append(notices, json_array_get(notices, 0)), 0);
    }
    const char *text = view_of(r, 0, 0);
    assert_non_null(strstr(text, "denies all\nand 2 more, which `weir ctl status` prints\nreq"));
}

static void assert_fits(const char *text, unsigned rows, unsigned least)
{
    unsigned lines = 0;
    for (; *text != 0; text += strcspn(text, "\n") + 1) {
        assert_true(strcspn(text, "\n") <= 20);
        lines++;
    }
    assert_true(lines <= (rows > least ? rows : least));
}

static void lines_fit_the_terminal_however_small_it_is(void **state)
{
    for (unsigned rows = 1; rows < 30; rows++) {
        assert_fits(view(20, rows), rows, 11);
        assert_fits(view_of(report_of_a_fleet(), 20, rows), rows, 12);
    }
}

static void large_numbers_are_shown_in_the_unit_that_suits_them(void **state)
{
    static const struct {
        double number;
        const char *shown;
    } cases[] = {
        {0, "0"},
        {0.25, "0.25"},
        {12.5, "12"},
        {99999, "99999"},
        {100000, "100k"},
        {999499, "999k"},
        {999500, "1.0M"},
        {1200000, "1.2M"},
        {12345678, "12.3M"},
        {123456789, "123M"},
        {2.5e9, "2.5G"},
        {7e12, "7.0T"},
        {7e15, "7000T"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char expected[64];
        json_t *r = json_pack("{s:{sf}}", "requests_per_second", "resp", cases[i].number);
        (void)snprintf(expected, sizeof expected, "\nby listener  resp %s    connections\n",
                       cases[i].shown);
        assert_non_null(strstr(view_of(r, 0, 0), expected));
    }
}

static void samples_without_anything_make_a_report_too(void **state)
{
    struct top_sample none = {.at_ms = 0};
    struct top_sample empty = sample(1, "{}", "[]", "{}");
    struct buffer out;
    json_t *r = top_report(&none, &empty);
    buffer_init(&out, TOP_OUTPUT_MAX);
    top_view(r, "x", 80, 24, &out);
    assert_true(buffer_len(&out) > 0);
    buffer_finish(&out);
    json_decref(r);
    top_sample_finish(&empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_become_rates_of_the_time_between),
        cmocka_unit_test(what_a_shadow_limit_would_have_denied_is_told_apart),
        cmocka_unit_test(a_server_that_began_again_has_no_negative_rates),
        cmocka_unit_test(durations_come_from_the_metrics),
        cmocka_unit_test(the_store_of_a_fleet_is_told_from_the_metrics),
        cmocka_unit_test(who_has_a_fleet_sees_its_store_and_who_is_degraded),
        cmocka_unit_test(the_limit_that_denies_most_is_first_and_nothing_drives_the_terminal),
        cmocka_unit_test(notices_come_before_the_numbers),
        cmocka_unit_test(more_notices_than_fit_are_counted),
        cmocka_unit_test(lines_fit_the_terminal_however_small_it_is),
        cmocka_unit_test(large_numbers_are_shown_in_the_unit_that_suits_them),
        cmocka_unit_test(samples_without_anything_make_a_report_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
