/* Limits whose cost is an attribute: a key without a cost is refused in every protocol, because 1
 * is not what the caller means; and attributes in JSON that are numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/server/server_client.h"
#include "support/server/server_http.h"
#include "support/server/server_store.h"

static const char rules[] =
    "attributes: {user: request, tokens: request}\n"
    "limits:\n"
    "- {name: llm, when: {path: /chat}, key: [user], rate: 1000/day, cost: 'attribute:tokens'}\n"
    "- {name: own, when: {path: /own}, key: [user], rate: 1000/day, cost: 5}\n"
    "- {name: free, when: {path: /free}, key: [user], rate: unlimited, cost: 'attribute:tokens'}\n";

#define REASON                                                                                     \
    "limit 'llm' takes its cost from the attribute 'tokens': give a cost with the key, or ask "    \
    "with attributes"

/* ---- RESP, where the limits are in this process and where a fleet decides them ---- */

static struct server_world world;
static struct server_store store;
static struct server_client client;

static int start_local(void **state)
{
    struct server_options options = server_world_options();
    (void)state;
    server_world_start(&world, rules, &options);
    server_connect(&client, world.address);
    return 0;
}

static int start_shared(void **state)
{
    struct server_options options = server_world_options();
    (void)state;
    server_store_start(&store);
    server_world_start_shared(&world, rules, &options, &store);
    server_connect(&client, world.address);
    return 0;
}

static int stop_local(void **state)
{
    (void)state;
    server_disconnect(&client);
    server_world_stop(&world);
    return 0;
}

static int stop_shared(void **state)
{
    (void)stop_local(state);
    server_store_stop(&store, 1);
    return 0;
}

static void a_key_without_a_cost_is_refused_and_charges_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_string_equal(server_ask(&client, "WEIR.CHECK llm ann"), "-ERR " REASON);
        assert_string_equal(server_ask(&client, "WEIR.PEEK llm ann"), "-ERR " REASON);
        assert_string_equal(server_ask(&client, "WEIR.RESERVE llm ann"), "-ERR " REASON);
    }
    SERVER_TALK(&client, {"WEIR.CHECK llm ann COST 1", "['allow' 'llm' 1000 999 0..."},
                {"WEIR.PEEK llm ann COST 999", "['allow' 'llm' 1000 999 0..."},
                {"WEIR.RESERVE llm ann COST 99", "['allow' 'llm' 1000 900 0..."},
                {"WEIR.ASK path /chat user ann tokens 300", "['allow' 'llm' 1000 600 0..."},
                {"WEIR.ASK path /chat user ann",
                 "-BADKEY tokens: missing, but limit 'llm' needs it as a cost..."},
                {"WEIR.CHECK own ann", "['allow' 'own' 1000 995 0..."},
                {"WEIR.RESERVE own ann", "['allow' 'own' 1000 990 0..."});
}

static void it_is_refused_where_nothing_would_be_counted_too(void **state)
{
    (void)state;
    SERVER_TALK(&client, {"WEIR.CHECK free ann", "-ERR limit 'free' takes its cost from..."},
                {"WEIR.CHECK free ann COST 7", "['allow' 'free' 0 -1 0..."});
}

static void queued_commands_are_refused_one_by_one(void **state)
{
    (void)state;
    SERVER_TALK(&client, {"MULTI", "+OK"}, {"WEIR.CHECK own ann", "+QUEUED"},
                {"WEIR.CHECK llm ann", "+QUEUED"}, {"WEIR.CHECK llm ann COST 10", "+QUEUED"},
                {"EXEC", "[['allow' 'own' 1000 995..."});
    SERVER_TALK(&client, {"WEIR.PEEK llm ann COST 1", "['allow' 'llm' 1000 990..."});
}

/* ---- HTTP ---- */

static struct http_server *server;
static struct http_answer a;

static int start_http(void **state)
{
    (void)state;
    server = calloc(1, sizeof *server);
    const struct server_options options = {.adhoc_keys = 1000};
    http_server_start(server, rules, &options);
    return 0;
}

static int stop_http(void **state)
{
    (void)state;
    http_server_stop(server);
    free(server);
    return 0;
}

static void assert_said(const char *line, const char *body, int status, const char *words)
{
    http_ask(server, line, "", body, &a);
    if (a.status != status || strstr(a.body, words) == NULL) {
        fail_msg("%s %s: expected %d and '%s', found: %s", line, body, status, words, a.text);
    }
}

static void a_key_without_a_cost_is_a_bad_request(void **state)
{
    static const char ann[] = "{\"limit\":\"llm\",\"key\":\"ann\"}";
    (void)state;
    assert_said("POST /v1/check", ann, 400, REASON);
    assert_said("POST /v1/peek", ann, 400, REASON);
    assert_said("POST /v1/reserve", ann, 400, REASON);
    assert_said("POST /v1/check", "{\"limit\":\"llm\",\"key\":\"ann\",\"cost\":10}", 200,
                "\"remaining\":990");
}

#define CHAT(tokens) "{\"attributes\":{\"path\":\"/chat\",\"user\":\"ann\",\"tokens\":" tokens "}}"

static void whole_numbers_are_attributes_however_they_are_written(void **state)
{
    (void)state;
    assert_said("POST /v1/check", CHAT("300"), 200, "\"remaining\":700");
    assert_said("POST /v1/check", CHAT("\"100\""), 200, "\"remaining\":600");
    assert_said("POST /v1/check", CHAT("1e2"), 200, "\"remaining\":500");
    assert_said("POST /v1/check", CHAT("100.0"), 200, "\"remaining\":400");
    /* A user that is a number is the same user as its text. */
    assert_said("POST /v1/check", "{\"attributes\":{\"path\":\"/own\",\"user\":42}}", 200,
                "\"remaining\":995");
    assert_said("POST /v1/check", "{\"attributes\":{\"path\":\"/own\",\"user\":\"42\"}}", 200,
                "\"remaining\":990");
    assert_said("POST /v1/check", "{\"attributes\":{\"path\":\"/own\",\"user\":4.2e1}}", 200,
                "\"remaining\":985");
    assert_said("POST /v1/check",
                "{\"attributes\":{\"path\":\"/own\",\"user\":9223372036854775807}}", 200,
                "\"remaining\":995");
}

static void other_values_are_refused_by_what_they_are(void **state)
{
    static const char *const bad[] = {"300.5",  "-1",   "-0", "1e-1", "9223372036854775808",
                                      "1e400",  "true", "[]", "{}",   "null",
                                      "[\"1\"]"};
    static const char expected[] =
        "expected a string, or a whole number from 0 to 9223372036854775807";
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char body[128];
        (void)snprintf(body, sizeof body, "{\"attributes\":{\"path\":\"/own\",\"user\":%s}}",
                       bad[i]);
        assert_said("POST /v1/check", body, 400, expected);
        assert_said("POST /v1/check", body, 400, "user: found ");
    }
    assert_said("POST /v1/check", CHAT("0"), 400, "expected a whole number");
    assert_said("POST /v1/check", CHAT("true"), 400, "tokens: found true");
}

/* Calls of Envoy's service: a number is a number of 32 bits, also in quotes. */
static void hits_have_32_bits(void **state)
{
    static const char call[] = "{\"domain\":\"d\",\"descriptors\":[{\"entries\":[{\"key\":\"path\","
                               "\"value\":\"/x\"}]}],\"hitsAddend\":%s}";
    static const struct {
        const char *hits;
        int status;
        const char *words;
    } calls[] = {
        {"4294967295", 200, "\"overallCode\":\"OK\""},
        {"\"4294967295\"", 200, "\"overallCode\":\"OK\""},
        {"4294967296", 400, "a whole number from 0 to 4294967295"},
        {"\"4294967296\"", 400, "a whole number from 0 to 4294967295"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        char body[256];
        (void)snprintf(body, sizeof body, call, calls[i].hits);
        assert_said("POST /json", body, calls[i].status, calls[i].words);
    }
}

static void units_of_a_limit_that_a_call_brings_have_names(void **state)
{
    static const char call[] =
        "{\"domain\":\"d\",\"descriptors\":[{\"entries\":[{\"key\":\"path\",\"value\":\"/%s\"}],"
        "\"limit\":{\"requestsPerUnit\":5,\"unit\":\"%s\"}}]}";
    static const char *const units[] = {"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"};
    char body[256];
    char said[64];
    (void)state;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        (void)snprintf(body, sizeof body, call, units[i], units[i]);
        (void)snprintf(said, sizeof said, "\"unit\":\"%s\"", units[i]);
        assert_said("POST /json", body, 200, said);
    }
    (void)snprintf(body, sizeof body, call, "x", "FORTNIGHT");
    assert_said("POST /json", body, 400, "unit: found 'FORTNIGHT', expected SECOND, MINUTE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_key_without_a_cost_is_refused_and_charges_nothing,
                                        start_local, stop_local),
        cmocka_unit_test_setup_teardown(it_is_refused_where_nothing_would_be_counted_too,
                                        start_local, stop_local),
        cmocka_unit_test_setup_teardown(queued_commands_are_refused_one_by_one, start_local,
                                        stop_local),
        cmocka_unit_test_setup_teardown(a_key_without_a_cost_is_refused_and_charges_nothing,
                                        start_shared, stop_shared),
        cmocka_unit_test_setup_teardown(a_key_without_a_cost_is_a_bad_request, start_http,
                                        stop_http),
        cmocka_unit_test_setup_teardown(whole_numbers_are_attributes_however_they_are_written,
                                        start_http, stop_http),
        cmocka_unit_test_setup_teardown(other_values_are_refused_by_what_they_are, start_http,
                                        stop_http),
        cmocka_unit_test_setup_teardown(hits_have_32_bits, start_http, stop_http),
        cmocka_unit_test_setup_teardown(units_of_a_limit_that_a_call_brings_have_names, start_http,
                                        stop_http),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
