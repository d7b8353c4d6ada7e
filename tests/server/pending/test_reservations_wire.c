/* Reservations over RESP and HTTP: one table behind both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/operations/reservations.h"
#include "support/server/server_admin.h"
#include "support/server/server_client.h"
#include "support/server/server_http.h"
#include "support/engine/threads_run.h"

static const char rules[] =
    "limits:\n"
    "  - {name: api, key: [user], rate: 10/min}\n"
    "  - {name: day, key: [user], rate: 1M/day, algorithm: fixed_window}\n"
    "  - {name: pair, key: [tenant, user], rate: 10/min, tiers: {by: tier, default: free,"
    " free: {}, pro: {rate: 100/min}}}\n";

static struct server_world world;
static struct server_client client;
static struct http_server http; /* the same server, by its other address */
static struct http_answer answer;

static int start(void **state)
{
    struct server_options o = server_world_options();
    o.listen[PROTOCOL_HTTP] = "127.0.0.1:0";
    o.listen[PROTOCOL_ADMIN] = "127.0.0.1:0";
    server_world_start(&world, rules, &o);
    server_connect(&client, world.address);
    (void)server_address(&world.server, PROTOCOL_HTTP, http.address, sizeof http.address);
    return 0;
}

static int stop(void **state)
{
    server_disconnect(&client);
    server_world_stop(&world);
    return 0;
}

/* The last quoted word of a reply that must begin so; what is at the end of it. */
static const char *reserve(const char *words, const char *begins)
{
    static char id[RESERVATION_ID];
    const char *reply = server_ask(&client, words);
    size_t n = strlen(begins);
    if (strncmp(reply, begins, n) != 0 || strspn(reply + n, "0123456789abcdef") != 32) {
        fail_msg("%s:\n  got      %s\n  expected %s and an id", words, reply, begins);
    }
    memcpy(id, reply + n, 32);
    return id;
}

static const char *ask(const char *command, const char *id, const char *rest)
{
    char words[128];
    (void)snprintf(words, sizeof words, "%s %s %s", command, id, rest);
    return server_ask(&client, words);
}

static void resp2_answers_nine_values_then_eight(void **state)
{
    const char *id =
        reserve("WEIR.RESERVE api al COST 6 TTL 5000", "['allow' 'api' 10 4 0 36000 0 '' '");
    assert_string_equal(ask("WEIR.SETTLE", id, "2"), "['allow' 'api' 10 8 0 12000 0 '' 'limit']");
    id = reserve("WEIR.RESERVE api al", "['allow' 'api' 10 7 0 18000 0 '' '");
    assert_string_equal(ask("WEIR.CANCEL", id, ""), "['allow' 'api' 10 8 0 12000 0 '' 'limit']");
    id = reserve("weir.reserve pair acme al tier pro cost 10",
                 "['allow' 'pair' 100 90 0 6000 0 '' '");
    assert_string_equal(ask("weir.settle", id, "1"), "['allow' 'pair' 100 99 0 600 0 '' 'limit']");
    assert_string_equal(server_ask(&client, "WEIR.RESERVE api al COST 9"),
                        "['deny' 'api' 10 8 6000 12000 0 '' null 'limit']");
    assert_string_equal(server_ask(&client, "WEIR.RESERVE api al COST 11"),
                        "['never' 'api' 10 8 -1 12000 0 '' null 'limit']");
}

static void resp3_names_the_reservation_before_the_reason(void **state)
{
    assert_memory_equal(server_ask(&client, "HELLO 3"), "{'server'", 9);
    const char *id = reserve("WEIR.RESERVE api al COST 6",
                             "{'verdict' 'allow', 'limit' 'api', 'quota' 10, 'remaining' 4, "
                             "'retry_after_ms' 0, 'reset_after_ms' 36000, 'delay_ms' 0, 'flags' "
                             "'', 'reservation' '");
    assert_string_equal(ask("WEIR.SETTLE", id, "10"),
                        "{'verdict' 'deny', 'limit' 'api', 'quota' 10, 'remaining' 0, "
                        "'retry_after_ms' 6000, 'reset_after_ms' 60000, 'delay_ms' 0, 'flags' '', "
                        "'reason' 'limit'}");
    assert_string_equal(server_ask(&client, "WEIR.RESERVE api al"),
                        "{'verdict' 'deny', 'limit' 'api', 'quota' 10, 'remaining' 0, "
                        "'retry_after_ms' 6000, 'reset_after_ms' 60000, 'delay_ms' 0, 'flags' '', "
                        "'reservation' null, 'reason' 'limit'}");
}

static void what_is_wrong_is_told(void **state)
{
    static const struct {
        const char *words;
        const char *reply;
    } rows[] = {
        {"WEIR.RESERVE", "-ERR wrong number of arguments for 'weir.reserve' command"},
        {"WEIR.RESERVE x al", "-NOLIMIT no limit named 'x'"},
        {"WEIR.RESERVE api", "-BADKEY found 0 parts of a key, expected 1"},
        {"WEIR.RESERVE api ''", "-BADKEY part 1 of the key is empty"},
        {"WEIR.RESERVE api al MAXWAIT 1",
         "-ERR syntax error at 'MAXWAIT', expected COST n, TIER t or TTL ms"},
        {"WEIR.RESERVE api al TTL 0",
         "-ERR TTL: found '0', expected a whole number from 1 to 86400000"},
        {"WEIR.RESERVE api al TTL 86400001",
         "-ERR TTL: found '86400001', expected a whole number from 1 to 86400000"},
        {"WEIR.SETTLE abc 1",
         "-NORESERVATION no such reservation: unknown, expired, settled or cancelled"},
        {"WEIR.CANCEL 00000000000000000000000000000000",
         "-NORESERVATION no such reservation: unknown, expired, settled or cancelled"},
        {"WEIR.SETTLE abc", "-ERR wrong number of arguments for 'weir.settle' command"},
        {"WEIR.SETTLE abc -1", "-ERR found '-1', expected how many units were used"},
        {"WEIR.SETTLE abc many", "-ERR found 'many', expected how many units were used"},
        {"WEIR.CANCEL abc 1", "-ERR wrong number of arguments for 'weir.cancel' command"},
        {"WEIR.PEEK api al", "['allow' 'api' 10 10 0 0 0 '' 'limit']"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(server_ask(&client, rows[i].words), rows[i].reply);
    }
}

static void a_bad_settlement_leaves_the_reservation(void **state)
{
    const char *id = reserve("WEIR.RESERVE api al COST 6", "['allow' 'api' 10 4 0 36000 0 '' '");
    assert_memory_equal(ask("WEIR.SETTLE", id, "x"), "-ERR", 4);
    assert_memory_equal(ask("WEIR.SETTLE", id, "0"), "['allow' 'api' 10 10", 20);
}

static void the_time_to_live_is_a_minute_or_as_asked(void **state)
{
    char one[RESERVATION_ID];
    char two[RESERVATION_ID];
    (void)snprintf(
        one, sizeof one, "%s",
        reserve("WEIR.RESERVE day al", "['allow' 'day' 1000000 999999 0 86400000 0 '' '"));
    (void)snprintf(two, sizeof two, "%s",
                   reserve("WEIR.RESERVE day al TTL 61000",
                           "['allow' 'day' 1000000 999998 0 86400000 0 '' '"));
    (void)threads_add(&world.now_ns, 60 * WEIR_SECOND);
    assert_string_equal(ask("WEIR.CANCEL", one, ""), "-NORESERVATION the reservation has expired");
    assert_string_equal(ask("WEIR.CANCEL", two, ""),
                        "['allow' 'day' 1000000 999999 0 86340000 0 '' 'limit']");
}

static void what_a_reload_took_away_is_told(void **state)
{
    static const char other[] = "limits: [{name: day, key: [user], rate: 10/h}]\n";
    struct weir_error error;
    const char *id = reserve("WEIR.RESERVE api al", "['allow' 'api' 10 9 0 6000 0 '' '");
    assert_int_equal(
        weir_rules_reload_text(world.server.rules, "test", other, sizeof other - 1, &error), 0);
    assert_string_equal(ask("WEIR.SETTLE", id, "1"),
                        "-NORESERVATION the limit of this reservation is gone or has changed");
}

/* ---- HTTP ---- */

static void post(const char *path, const char *body)
{
    char line[64];
    (void)snprintf(line, sizeof line, "POST %s", path);
    http_ask(&http, line, "", body, &answer);
}

static void http_speaks_of_the_same_table(void **state)
{
    char body[128];
    post("/v1/reserve", "{\"limit\":\"api\",\"key\":\"al\",\"cost\":6,\"ttl_ms\":5000}");
    assert_int_equal(answer.status, 200);
    assert_true(http_has_line(&answer, "Content-Type: application/json"));
    const char *id = strstr(answer.body, ",\"flags\":[],\"reservation\":\"");
    assert_non_null(id);
    assert_string_equal(id + 27 + 32, "\",\"reason\":\"limit\"}");
    (void)snprintf(body, sizeof body, "{\"reservation\":\"%.32s\",\"actual\":2}", id + 27);
    post("/v1/settle", body);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body,
                        "{\"verdict\":\"allow\",\"limit\":\"api\",\"quota\":10,\"remaining\":8,"
                        "\"retry_after_ms\":0,\"reset_after_ms\":12000,\"delay_ms\":0,"
                        "\"flags\":[],\"reason\":\"limit\"}");
    post("/v1/settle", body);
    assert_int_equal(answer.status, 404);
    assert_true(http_has_line(&answer, "Content-Type: application/problem+json"));
    assert_non_null(strstr(answer.body, "no such reservation"));
    const char *of_resp =
        reserve("WEIR.RESERVE api al COST 3", "['allow' 'api' 10 5 0 30000 0 '' '");
    (void)snprintf(body, sizeof body, "{\"reservation\":\"%s\"}", of_resp);
    post("/v1/cancel", body);
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.body, "\"remaining\":8"));
}

static void http_says_no_as_check_does_with_no_reservation(void **state)
{
    post("/v1/reserve", "{\"limit\":\"pair\",\"key\":[\"a\",\"b\"],\"cost\":10}");
    assert_int_equal(answer.status, 200);
    post("/v1/reserve", "{\"limit\":\"pair\",\"key\":[\"a\",\"b\"]}");
    assert_int_equal(answer.status, 429);
    assert_int_equal(http_retry_after(&answer), 6);
    assert_non_null(strstr(answer.body, "\"verdict\":\"deny\""));
    assert_non_null(strstr(answer.body, ",\"reservation\":null,\"reason\":\"limit\"}"));
    post("/v1/reserve", "{\"limit\":\"pair\",\"key\":[\"a\",\"b\"],\"tier\":\"pro\"}");
    assert_int_equal(answer.status, 200);
    post("/v1/reserve", "{\"limit\":\"api\",\"key\":\"al\",\"cost\":11}");
    assert_int_equal(answer.status, 422);
}

static void http_says_what_is_wrong(void **state)
{
    static const struct {
        const char *path;
        const char *body;
        int status;
        const char *detail;
    } rows[] = {
        {"/v1/reserve", "[]", 400, "found a list, expected an object"},
        {"/v1/reserve", "{\"key\":\"al\"}", 400, "found no member 'limit', which is required"},
        {"/v1/reserve", "{\"attributes\":{}}", 400,
         "found 'attributes', expected limit, key, tier, cost or ttl_ms"},
        {"/v1/reserve", "{\"limit\":\"api\",\"key\":\"al\",\"ttl_ms\":0}", 400,
         "ttl_ms: found 0, expected a whole number from 1 to 86400000"},
        {"/v1/reserve", "{\"limit\":\"api\",\"key\":\"al\",\"ttl_ms\":600001}", 400,
         "ttl_ms: found 600001, expected at most 600000"},
        {"/v1/reserve", "{\"limit\":\"none\",\"key\":\"al\"}", 404, "no limit named 'none'"},
        {"/v1/reserve", "{\"limit\":\"api\"}", 400, "found 0 parts of a key, expected 1"},
        {"/v1/settle", "{\"reservation\":\"x\"}", 400,
         "found no member 'actual', which is required"},
        {"/v1/settle", "{\"actual\":1}", 400, "found no member 'reservation', which is required"},
        {"/v1/settle", "{\"reservation\":\"x\",\"actual\":-1}", 400,
         "actual: found -1, expected a whole number from 0"},
        {"/v1/settle", "{\"reservation\":1,\"actual\":1}", 400,
         "reservation: found 1, expected a string"},
        {"/v1/settle", "{\"reservation\":\"\",\"actual\":1}", 400,
         "reservation: found an empty string, expected at least one character"},
        {"/v1/settle", "{\"reservation\":\"x\",\"actual\":1}", 404, "no such reservation"},
        {"/v1/cancel", "{\"reservation\":\"x\",\"actual\":1}", 400,
         "found 'actual', expected reservation"},
        {"/v1/cancel", "{\"reservation\":\"x\"}", 404, "no such reservation"},
        {"/v1/check", "{\"limit\":\"api\",\"key\":\"al\",\"ttl_ms\":1}", 400,
         "found 'ttl_ms', expected limit, key, tier, cost, max_wait_ms or attributes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        post(rows[i].path, rows[i].body);
        if (answer.status != rows[i].status || strstr(answer.body, rows[i].detail) == NULL) {
            fail_msg("%s %s: found %d %s", rows[i].path, rows[i].body, answer.status, answer.body);
        }
    }
    assert_string_equal(server_ask(&client, "WEIR.PEEK api al"),
                        "['allow' 'api' 10 10 0 0 0 '' 'limit']");
}

/* ---- a table that is full ---- */

/* Sends the request 1024 times at a time until one of them is refused. Returns how many were
 * not. */
static unsigned make_all(struct server_client *c, const char *words)
{
    char one[128];
    size_t len = server_pack(words, one, sizeof one);
    char *many = malloc(len * 1024);
    unsigned made = 0;
    unsigned refused = 0;
    assert_non_null(many);
    for (unsigned i = 0; i < 1024; i++) {
        memcpy(many + i * len, one, len);
    }
    while (refused == 0) {
        assert_true(server_send(c, many, len * 1024));
        for (unsigned i = 0; i < 1024; i++) {
            bool allowed = strncmp(server_reply(c), "['allow'", 8) == 0;
            made += allowed;
            refused += !allowed;
        }
    }
    free(many);
    return made;
}

static void a_part_that_no_key_may_have_is_refused(void **state)
{
    char body[64 + WEIR_RULES_VALUE_MAX + 1];
    (void)snprintf(body, sizeof body, "{\"limit\":\"day\",\"key\":[\"%0*d\"]}",
                   WEIR_RULES_VALUE_MAX + 1, 0);
    post("/v1/reserve", body);
    assert_int_equal(answer.status, 400);
    assert_non_null(strstr(answer.text, "expected at most 8 parts of at most 4096 bytes"));
}

static void a_client_that_takes_all_it_can_gets_half_and_says_overload(void **state)
{
    struct server_client other;
    assert_int_equal(make_all(&client, "WEIR.RESERVE day al TTL 600000"), RESERVATIONS_MAX / 2);
    assert_string_equal(server_ask(&client, "WEIR.RESERVE day al"),
                        "-OVERLOAD the reservations of this client take 32768 places of 65536; "
                        "more than half are taken, so one client may have 1024: settle or cancel "
                        "some");
    post("/v1/reserve", "{\"limit\":\"day\",\"key\":\"al\"}"); /* the same client */
    assert_int_equal(answer.status, 503);
    assert_true(http_retry_after(&answer) >= 1);
    server_connect_from(&other, world.address, 2);
    assert_true(make_all(&other, "WEIR.RESERVE day bob") > 900);
    server_disconnect(&other);
    struct admin_world admin;
    (void)server_address(&world.server, PROTOCOL_ADMIN, admin.address[PROTOCOL_ADMIN],
                         sizeof admin.address[PROTOCOL_ADMIN]);
    assert_true(admin_metric(&admin, "weir_reservations") > RESERVATIONS_MAX / 2 + 900);
    assert_true(admin_metric(&admin, "weir_reservations_refused_total{reason=\"client\"}") > 2);
    assert_true(admin_metric(&admin, "weir_reservations_refused_total{reason=\"total\"}") == 0);
    assert_memory_equal(server_ask(&client, "WEIR.PEEK day al"), "['allow' 'day' 1000000 967232 ",
                        30);
    (void)threads_add(&world.now_ns, 600 * WEIR_SECOND);
    assert_memory_equal(server_ask(&client, "WEIR.RESERVE day al"), "['allow'", 8);
}

/* ---- races ---- */

#define THREADS 4
#define MANY 300

struct race {
    char ids[MANY][RESERVATION_ID];
    uint64_t won[THREADS];
};

/* Two connections of RESP settle 3 of 10, two cancel. */
static void settle_all(unsigned index, void *arg)
{
    struct race *race = arg;
    struct server_client c;
    char words[128];
    server_connect(&c, world.address);
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(words, sizeof words, index % 2 == 0 ? "WEIR.SETTLE %s 3" : "WEIR.CANCEL %s",
                       race->ids[i]);
        const char *reply = server_ask(&c, words);
        threads_require(strncmp(reply, "['allow'", 8) == 0 ||
                        strncmp(reply, "-NORESERVATION", 14) == 0);
        race->won[index] += reply[0] == '[';
    }
    server_disconnect(&c);
}

static void of_four_connections_one_settles(void **state)
{
    static struct race race;
    char expected[64];
    race = (struct race){.won = {0}};
    for (unsigned i = 0; i < MANY; i++) {
        const char *reply = server_ask(&client, "WEIR.RESERVE day al COST 10");
        const char *id = strstr(reply, "'' '");
        assert_non_null(id);
        memcpy(race.ids[i], id + 4, 32);
    }
    threads_run(THREADS, settle_all, &race);
    assert_int_equal(race.won[0] + race.won[1] + race.won[2] + race.won[3], MANY);
    (void)snprintf(expected, sizeof expected, "['allow' 'day' 1000000 %llu 0 ",
                   (unsigned long long)(1000000 - 3 * (race.won[0] + race.won[2])));
    assert_memory_equal(server_ask(&client, "WEIR.PEEK day al"), expected, strlen(expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(resp2_answers_nine_values_then_eight, start, stop),
        cmocka_unit_test_setup_teardown(resp3_names_the_reservation_before_the_reason, start, stop),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_told, start, stop),
        cmocka_unit_test_setup_teardown(a_part_that_no_key_may_have_is_refused, start, stop),
        cmocka_unit_test_setup_teardown(a_bad_settlement_leaves_the_reservation, start, stop),
        cmocka_unit_test_setup_teardown(the_time_to_live_is_a_minute_or_as_asked, start, stop),
        cmocka_unit_test_setup_teardown(what_a_reload_took_away_is_told, start, stop),
        cmocka_unit_test_setup_teardown(http_speaks_of_the_same_table, start, stop),
        cmocka_unit_test_setup_teardown(http_says_no_as_check_does_with_no_reservation, start,
                                        stop),
        cmocka_unit_test_setup_teardown(http_says_what_is_wrong, start, stop),
        cmocka_unit_test_setup_teardown(a_client_that_takes_all_it_can_gets_half_and_says_overload,
                                        start, stop),
        cmocka_unit_test_setup_teardown(of_four_connections_one_settles, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
