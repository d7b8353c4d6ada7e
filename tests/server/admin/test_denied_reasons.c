/*
 * Why requests were denied: as rows of the keys denied most, in the samples and in the metrics,
 * whatever protocol they came by. (Of the store: tests/page/test_outage.py.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/server_admin.h"
#include "support/server/server_client.h"

static const char rules[] =
    "block: [{ip: [192.0.2.66]}]\n"
    "limits:\n"
    "  - {name: login, when: {path: /login}, key: [user], rate: 1/day, max_blocks: 1k,\n"
    "     ban: {denials: 2, within: 365day, for: 365day}}\n"
    "  - {name: api, when: {path: /api}, key: [user], rate: 1/day, on_missing: deny}\n"
    "  - {name: full, when: {path: /full}, key: [user], rate: 1/day, max_keys: 16, on_full: deny}\n"
    "  - {name: quiet, when: {path: /quiet}, key: [user], rate: 1/day, shadow: true}\n";

static struct admin_world *world;
static struct http_answer a;

static int start(void **state)
{
    struct server_options o = {.sample_ms = 200};
    world = calloc(1, sizeof *world);
    admin_world_start(world, rules, &o);
    return 0;
}

static int stop(void **state)
{
    admin_world_stop(world);
    free(world);
    return 0;
}

static void ask(const char *line, const char *body)
{
    admin_ask(world, line, "", body, &a);
}

static void check(const char *body, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        admin_check(world, body, &a);
    }
}

#define OF(path, more) "{\"attributes\":{\"path\":\"" path "\"" more "}}"

/* A row of /v1/top. Keys that came seldom are counted exactly. */
static void assert_row(const char *limit, const char *key, const char *reason, unsigned count)
{
    char row[256];
    ask("GET /v1/top?n=100&minutes=1", "");
    (void)snprintf(row, sizeof row,
                   "{\"limit\":\"%s\",\"key\":\"%s\",\"reason\":\"%s\",\"count\":%u,\"error\":0}",
                   limit, key, reason, count);
    if (strstr(a.body, row) == NULL) {
        fail_msg("expected %s\nfound: %s", row, a.body);
    }
}

static double denied(const char *reason)
{
    char series[64];
    (void)snprintf(series, sizeof series, "weir_denied_total{reason=\"%s\"}", reason);
    return admin_metric(world, series);
}

static void assert_denied(const char *reason, unsigned expected)
{
    double found = denied(reason);
    if (found != expected) {
        fail_msg("%s: found %.0f, expected %u", reason, found, expected);
    }
}

static void a_row_names_the_limit_the_key_and_the_reason(void **state)
{
    check(OF("/login", ",\"user\":\"ann\""), 6); /* denied, denied and banned, then three times */
    ask("POST /v1/keys/block", "{\"limit\":\"api\",\"key\":\"bob\"}");
    check(OF("/api", ",\"user\":\"bob\""), 2);
    check(OF("/api", ",\"user\":\"carl\""), 3);
    check(OF("/api", ""), 5);
    check(OF("/quiet", ",\"user\":\"dora\""), 5);
    assert_row("login", "ann", "limit", 1);
    assert_row("login", "ann", "ban", 4);
    assert_row("api", "bob", "blocked", 2);
    assert_row("api", "carl", "limit", 2);
    assert_row("api", "", "missing", 5);
    assert_null(strstr(a.body, "dora"));
    assert_null(strstr(a.body, "quiet"));
}

static void a_full_table_is_not_the_fault_of_the_key(void **state)
{
    char body[128];
    for (unsigned i = 0; i < 400; i++) {
        (void)snprintf(body, sizeof body, "{\"limit\":\"full\",\"key\":\"k%u\"}", i);
        check(body, 1);
    }
    ask("GET /v1/top?n=100", "");
    assert_non_null(strstr(a.body, "\"reason\":\"overload\""));
    assert_null(strstr(a.body, "\"reason\":\"limit\""));
    assert_true(denied("overload") > 200);
    assert_denied("limit", 0);
}

static void requests_are_counted_by_reason_over_every_protocol(void **state)
{
    struct server_client c;
    check(OF("/api", ",\"ip\":\"192.0.2.66\",\"user\":\"ann\""), 3);
    check(OF("/api", ""), 2);
    check(OF("/api", ",\"user\":\"ann\""), 4);
    admin_check_batch(
        world, "{\"requests\":[" OF("/api", "") "," OF("/api", ",\"user\":\"ann\"") "]}", &a);
    server_connect(&c, world->address[PROTOCOL_RESP]);
    (void)server_ask(&c, "WEIR.ASK path /api");
    (void)server_ask(&c, "WEIR.ASK path /api ip 192.0.2.66");
    (void)server_ask(&c, "WEIR.CHECK api ann");
    (void)server_ask(&c, "WEIR.PEEK api ann"); /* asks for no decision */
    for (unsigned i = 0; i < 3; i++) {
        (void)server_ask(&c, "CL.THROTTLE eve 0 1 86400");
    }
    server_disconnect(&c);
    assert_denied("block_list", 4);
    assert_denied("missing", 4);
    assert_denied("limit", 3 + 1 + 1 + 2);
    assert_denied("ban", 0);
    assert_denied("store", 0);
    assert_denied("other", 0);
    assert_true(admin_metric(world, "weir_requests_total{listener=\"http\",result=\"deny\"}") +
                    admin_metric(world, "weir_requests_total{listener=\"resp\",result=\"deny\"}") ==
                4 + 4 + 7);
    assert_row("adhoc", "eve", "limit", 2);
    assert_row("api", "", "missing", 4);
}

/* The operators' own requests are no requests of clients. */
static void those_of_operators_do_not_count(void **state)
{
    ask("POST /v1/explain", "{\"attributes\":{\"path\":\"/api\"}}");
    assert_int_equal(a.status, 200);
    assert_denied("missing", 0);
}

/* Waits until the history has the text. */
static void await(const char *text)
{
    do {
        (void)usleep(10000);
        ask("GET /v1/history", "");
        assert_int_equal(a.status, 200);
    } while (strstr(a.body, text) == NULL);
}

/* Each denial is in one of the samples. */
static void samples_tell_the_reasons(void **state)
{
    await(",\"denied\":{}");
    check(OF("/api", ""), 1);
    check(OF("/api", ",\"ip\":\"192.0.2.66\""), 1);
    await("\"missing\":1");
    await("\"block_list\":1");
    await(",\"limits_denied\":{},"); /* no limit has denied more than by its units */
    assert_null(strstr(a.body, "\"limits_denied\":{\""));
}

static void samples_tell_the_reasons_of_each_limit(void **state)
{
    await(",\"denied\":{}");
    check(OF("/login", ",\"user\":\"ann\""), 3); /* the last one bans */
    await("\"limits_denied\":{\"login\":{\"ban\":1}}");
    ask("POST /v1/keys/block", "{\"limit\":\"api\",\"key\":\"bob\"}");
    check("{\"limit\":\"api\",\"key\":\"bob\"}", 1);
    await("\"limits_denied\":{\"api\":{\"blocked\":1}}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_row_names_the_limit_the_key_and_the_reason),
        TEST(a_full_table_is_not_the_fault_of_the_key),
        TEST(requests_are_counted_by_reason_over_every_protocol),
        TEST(those_of_operators_do_not_count),
        TEST(samples_tell_the_reasons),
        TEST(samples_tell_the_reasons_of_each_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
