/* The operators' listener: what it shows, what it changes, whom it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/log.h"
#include "support/server/server_admin.h"
#include "support/server/server_client.h"

static const char rules[] =
    "limits:\n"
    "  - {name: api, when: {path: /api}, key: [user], rate: 3/day}\n"
    "  - {name: pair, when: {path: /pair}, key: [user, ip], rate: 10/day}\n"
    "  - {name: either, when: {path: /either}, key: [user|ip, host|tenant], rate: 3/day}\n"
    "  - {name: quiet, when: {path: /quiet}, key: [user], rate: 1/day, shadow: true}\n"
    "  - {name: tiers, key: [user], rate: 5/day, when: {path: /tiers},\n"
    "     tiers: {by: tier, default: free, free: {}, pro: {rate: 50/day}}}\n";

static struct admin_world *world;
static struct http_answer a;

static int start(void **state)
{
    world = calloc(1, sizeof *world);
    admin_world_start(world, rules, NULL);
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

static void assert_status(int status)
{
    if (a.status != status) {
        fail_msg("expected %d, found: %s", status, a.text);
    }
}

static void assert_body_has(const char *part)
{
    if (strstr(a.body, part) == NULL) {
        fail_msg("not in the body: %s\nfound: %s", part, a.text);
    }
}

/* `n` checks of a key, and the status of the last. */
static int check(const char *limit, const char *key, unsigned n)
{
    char body[256];
    (void)snprintf(body, sizeof body, "{\"limit\":\"%s\",\"key\":\"%s\"}", limit, key);
    for (unsigned i = 0; i < n; i++) {
        admin_check(world, body, &a);
    }
    return a.status;
}

/* ---- limits ---- */

static void limits_are_shown_with_what_they_have_decided(void **state)
{
    assert_int_equal(check("api", "ann", 4), 429);
    ask("GET /v1/limits/api", "");
    assert_status(200);
    assert_body_has("{\"limits\":[{\"name\":\"api\",\"tier\":\"\",\"algorithm\":\"token_bucket\","
                    "\"rate\":\"3/day\",\"count\":3,\"period_ms\":86400000,\"burst\":3,");
    assert_int_equal(admin_number(&a, "allowed"), 3);
    assert_int_equal(admin_number(&a, "denied"), 1);
    assert_int_equal(admin_number(&a, "keys"), 1);
}

static void every_tier_is_an_item_of_the_list(void **state)
{
    ask("GET /v1/limits", "");
    assert_body_has("\"name\":\"tiers\",\"tier\":\"free\"");
    assert_body_has("\"name\":\"tiers\",\"tier\":\"pro\"");
    ask("GET /v1/limits/tiers", "");
    assert_null(strstr(a.body, "\"api\""));
}

static void a_limit_that_is_not_there_is_not_found(void **state)
{
    static const char *const paths[] = {"GET /v1/limits/none",    "DELETE /v1/limits/none",
                                        "GET /v1/limits/",        "PUT /v1/limits/",
                                        "GET /v1/limits/a%00b",   "GET /v1/limits/a%2Fb%26c",
                                        "DELETE /v1/limits/adhoc"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        ask(paths[i], "");
        assert_status(404);
    }
}

static void a_limit_is_added_replaced_and_removed_while_it_runs(void **state)
{
    ask("PUT /v1/limits/new", "{\"name\":\"new\",\"key\":[\"user\"],\"rate\":\"1/day\"}");
    assert_status(201);
    assert_int_equal(check("new", "ann", 2), 429);
    admin_ask(world, "PUT /v1/limits/new", "Content-Type: application/yaml\r\n",
              "name: new\nkey: [user]\nrate: 2/day\n", &a);
    assert_status(200);
    assert_body_has("\"rate\":\"2/day\"");
    assert_int_equal(check("new", "bob", 2), 200);
    ask("DELETE /v1/limits/new", "");
    assert_status(204);
    assert_null(strstr(a.text, "Content-Length"));
    assert_int_equal(check("new", "ann", 1), 404);
}

/* YAML has no surrogate pairs, takes null for a word, and folds U+2028. */
static void a_limit_in_json_is_read_as_json(void **state)
{
    static const struct {
        const char *type, *user;
    } cases[] = {
        {"application/json", "\"\\ud83d\\ude00\\/\\u00e9\\t\""},
        {"application/json; charset=utf-8", "\"\xf0\x9f\x98\x80/\xc3\xa9\\t\""},
        {"application/yaml", "\"\\ud83d\\ude00\\/\\u00e9\\t\""}, /* it is JSON all the same */
        {"application/json", "\"\\ud83d\\ude00/\xe2\x80\xa8\x7f\xc2\x85 x\""},
    };
    static const char *const keys[] = {"\xf0\x9f\x98\x80/\xc3\xa9\t", "\xf0\x9f\x98\x80/\xc3\xa9\t",
                                       "\xf0\x9f\x98\x80/\xc3\xa9\t",
                                       "\xf0\x9f\x98\x80/\xe2\x80\xa8\x7f\xc2\x85 x"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char body[256];
        char fields[64];
        struct weir_rules_answer answer;
        (void)snprintf(fields, sizeof fields, "Content-Type: %s\r\n", cases[i].type);
        (void)snprintf(
            body, sizeof body,
            "{\"name\":\"new\",\t\"when\":{\"user\":%s},\r\n\"key\":[],\"rate\":\"1/day\"}",
            cases[i].user);
        admin_ask(world, "PUT /v1/limits/new", fields, body, &a);
        assert_status(i == 0 ? 201 : 200);
        struct weir_rules_attribute user = {"user", 4, keys[i], strlen(keys[i])};
        struct weir_rules_question q = {
            .attributes = &user, .attributes_count = 1, .mode = WEIR_PEEK};
        assert_int_equal(weir_rules_ask(world->server.rules, &q, &answer, NULL), 0);
        assert_string_equal(answer.limit, "new");
    }
    admin_ask(world, "PUT /v1/limits/new", "Content-Type: application/json\r\n",
              "name: new\nkey: []\nrate: 1/day\n", &a);
    assert_status(400);
    assert_non_null(strstr(a.body, "the body is not JSON"));
    ask("PUT /v1/limits/new", "{\"name\":\"new\",\n\"group\":null,\"key\":[],\"rate\":\"1/day\"}");
    assert_status(422);
    assert_non_null(strstr(a.body, "limit:2:"));
    ask("PUT /v1/limits/new",
        "{\"name\":\"new\",\"key\":[],\"rate\":\"1/day\",\"group\":\"\\ud83d\"}");
    assert_status(400); /* half a pair */
}

static void a_bad_limit_changes_nothing_and_says_all_that_is_wrong(void **state)
{
    ask("PUT /v1/limits/api", "{\"name\":\"api\",\"key\":[\"user\"],\"rat\":\"1/day\"}");
    assert_status(422);
    assert_body_has("\"messages\":[\"limit:1:1: found a limit without 'rate'");
    assert_body_has("did you mean 'rate'?");
    ask("GET /v1/limits/api", "");
    assert_body_has("\"rate\":\"3/day\"");
}

/* The sender of a limit need not be able to read files of the server. */
static void a_limit_that_names_a_file_is_refused_without_a_word_of_the_file(void **state)
{
    static const char *const parts[][2] = {
        {"\"overrides\":{\"by\":\"user\",\"file\":\"", "\"}"},
        {"\"when\":{\"ip\":\"file:", "\"}"},
        {"\"unless\":{\"user\":[\"x\",\"file:", "\"]}"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char body[512];
        (void)snprintf(body, sizeof body,
                       "{\"name\":\"new\",\"key\":[\"user\"],\"rate\":\"1/day\",%s%s%s}",
                       parts[i][0], world->file, parts[i][1]);
        ask("PUT /v1/limits/new", body);
        assert_status(422);
        assert_body_has("found a file, expected values: only the rule file may name files");
        assert_null(strstr(a.body, "limits:")); /* the first word of the file */
        assert_null(strstr(a.body, "No such file"));
    }
    ask("GET /v1/limits/new", "");
    assert_status(404);
}

static void a_body_that_names_another_limit_changes_neither(void **state)
{
    static const char *const bodies[] = {
        "{\"name\":\"pair\",\"key\":[\"user\"],\"rate\":\"1/day\"}",
        "{\"key\":[\"user\"],\"rate\":\"1/day\"}", "{\"name\":[\"api\"],\"rate\":\"1/day\"}"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        ask("PUT /v1/limits/api", bodies[i]);
        assert_status(400);
    }
    ask("GET /v1/limits", "");
    assert_body_has("\"rate\":\"3/day\"");
    assert_body_has("\"rate\":\"10/day\"");
}

static void hostile_bodies_are_refused(void **state)
{
    static const char *const bodies[] = {
        "", "[]", "{", "\x01", "- - -", "null", "&a *a", "{a: {b: {c: d}}}", "\xff\xfe"};
    static const char *const lines[] = {"PUT /v1/limits/api", "PUT /v1/mode", "PUT /v1/log-level",
                                        "POST /v1/keys/reset"};
    for (size_t l = 0; l < sizeof lines / sizeof lines[0]; l++) {
        for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
            ask(lines[l], bodies[i]);
            assert_in_range(a.status, 400, 422);
        }
    }
    char *deep = calloc(1, 60001);
    memset(deep, '[', 60000);
    for (size_t l = 0; l < sizeof lines / sizeof lines[0]; l++) {
        ask(lines[l], deep);
        assert_in_range(a.status, 400, 422);
    }
    free(deep);
}

/* ---- rules ---- */

static void a_reload_takes_over_the_file_and_keeps_the_keys(void **state)
{
    assert_int_equal(check("api", "ann", 3), 200);
    admin_world_write(world, "limits:\n  - {name: api, key: [user], rate: 4/day}\n");
    ask("POST /v1/reload", "");
    assert_status(200);
    assert_body_has("{\"generation\":2,\"messages\":[");
    assert_body_has("rate 3/day -> 4/day, burst 3 -> 4; keys kept\"");
    assert_body_has("\"pair: removed with its keys\"");
    ask("GET /v1/limits", "");
    assert_null(strstr(a.body, "pair"));
    ask("GET /v1/keys?limit=api&key=ann", "");
    assert_int_equal(admin_number(&a, "quota"), 4);
    assert_true(admin_number(&a, "remaining") < 4);
}

static void a_bad_file_keeps_the_old_rules_and_is_counted(void **state)
{
    char *place = NULL;
    admin_world_write(world, "limits:\n  - {name: api, key: [user], rate: often}\n");
    ask("POST /v1/reload", "");
    assert_status(422);
    assert_true(asprintf(&place, "\"messages\":[\"%s:2:", world->file) > 0);
    assert_body_has(place);
    free(place);
    assert_int_equal(check("api", "ann", 1), 200);
    assert_true(admin_metric(world, "weir_config_reloads_total{result=\"failure\"}") == 1);
    assert_true(admin_metric(world, "weir_config_reloads_total{result=\"success\"}") == 0);
}

static void the_rules_in_use_read_back_as_rules(void **state)
{
    struct weir_rules *copy = NULL;
    struct weir_error error = {0};
    ask("GET /v1/config", "");
    assert_status(200);
    assert_true(http_has_line(&a, "Content-Type: application/yaml"));
    if (weir_rules_open_text(&copy, "copy", a.body, strlen(a.body), NULL, &error) != 0) {
        fail_msg("%s", error.text);
    }
    weir_rules_close(copy);
}

/* ---- keys ---- */

static void a_key_is_looked_at_reset_blocked_and_unblocked(void **state)
{
    assert_int_equal(check("api", "ann", 4), 429);
    ask("GET /v1/keys?limit=api&key=ann", "");
    assert_status(200);
    assert_body_has("\"verdict\":\"deny\"");
    assert_body_has("\"blocked_ms\":0,\"reason\":\"limit\"}");
    ask("POST /v1/keys/reset", "{\"limit\":\"api\",\"key\":\"ann\"}");
    assert_int_equal(admin_number(&a, "remaining"), 3);
    ask("POST /v1/keys/block", "{\"limit\":\"api\",\"key\":\"ann\",\"for_ms\":60000}");
    assert_in_range(admin_number(&a, "blocked_ms"), 1, 60000);
    assert_int_equal(check("api", "ann", 1), 429);
    ask("POST /v1/keys/block", "{\"limit\":\"api\",\"key\":\"ann\"}");
    assert_int_equal(admin_number(&a, "blocked_ms"), -1);
    ask("POST /v1/keys/unblock", "{\"limit\":\"api\",\"key\":\"ann\"}");
    assert_int_equal(admin_number(&a, "blocked_ms"), 0);
    assert_int_equal(check("api", "ann", 1), 200);
}

static void units_are_given_back_and_taken(void **state)
{
    ask("POST /v1/keys/penalize", "{\"limit\":\"api\",\"key\":\"ann\",\"units\":2}");
    assert_int_equal(admin_number(&a, "remaining"), 1);
    ask("POST /v1/keys/refund", "{\"limit\":\"api\",\"key\":\"ann\",\"units\":1}");
    assert_int_equal(admin_number(&a, "remaining"), 2);
}

static void a_misspelt_verb_is_not_found(void **state)
{
    ask("POST /v1/keys/penalice", "{\"limit\":\"api\",\"key\":\"bea\",\"units\":2}");
    assert_status(404);
}

static void keys_of_two_parts_and_tiers_are_found(void **state)
{
    ask("POST /v1/keys/penalize",
        "{\"limit\":\"pair\",\"key\":[\"ann\",\"192.0.2.1\"],\"units\":4}");
    assert_int_equal(admin_number(&a, "remaining"), 6);
    ask("GET /v1/keys?limit=pair&key=ann&key=192.0.2.1", "");
    assert_int_equal(admin_number(&a, "remaining"), 6);
    ask("GET /v1/keys?limit=tiers&key=%61nn&tier=pro", "");
    assert_int_equal(admin_number(&a, "quota"), 50);
}

static void a_key_of_a_later_alternative_is_named_by_its_attribute(void **state)
{
    ask("POST /v1/keys/block",
        "{\"limit\":\"either\",\"key\":[\"192.0.2.1\",\"x.org\"],\"by\":\"ip\"}");
    assert_int_equal(admin_number(&a, "blocked_ms"), -1);
    ask("GET /v1/keys?limit=either&key=192.0.2.1&key=x.org&by=ip", "");
    assert_int_equal(admin_number(&a, "blocked_ms"), -1);
    ask("GET /v1/keys?limit=either&key=192.0.2.1&key=x.org", ""); /* the user of that name */
    assert_int_equal(admin_number(&a, "blocked_ms"), 0);
    admin_check(world,
                "{\"attributes\":{\"path\":\"/either\",\"ip\":\"192.0.2.1\",\"host\":\"x.org\"}}",
                &a);
    assert_status(403);
    admin_check(world,
                "{\"attributes\":{\"path\":\"/either\",\"user\":\"192.0.2.1\",\"host\":\"x.org\"}}",
                &a);
    assert_status(200);
    ask("POST /v1/keys/penalize",
        "{\"limit\":\"either\",\"key\":[\"192.0.2.1\",\"t\"],\"by\":\"tenant,ip\",\"units\":3}");
    assert_status(200);
    admin_check(
        world, "{\"attributes\":{\"path\":\"/either\",\"ip\":\"192.0.2.1\",\"tenant\":\"t\"}}", &a);
    assert_status(429);
    ask("POST /v1/keys/unblock",
        "{\"limit\":\"either\",\"key\":[\"192.0.2.1\",\"x.org\"],\"by\":\"ip\"}");
    assert_int_equal(admin_number(&a, "blocked_ms"), 0);
    ask("GET /v1/keys?limit=either&key=a&key=b&by=nobody", "");
    assert_status(400);
    assert_body_has("by: found 'nobody', expected at most one attribute of each part of the key of "
                    "limit 'either'");
}

static void questions_about_keys_that_make_no_sense_are_refused(void **state)
{
    static const struct {
        const char *line, *body;
        int status;
    } rows[] = {
        {"GET /v1/keys", "", 400},
        {"GET /v1/keys?limit=none&key=a", "", 404},
        {"GET /v1/keys?limit=api", "", 400},
        {"GET /v1/keys?limit=api&key=a&key=b", "", 400},
        {"GET /v1/keys?limit=api&key=a&cost=2", "", 400},
        {"GET /v1/keys?limit=api&key=1&key=2&key=3&key=4&key=5&key=6&key=7&key=8&key=9", "", 400},
        {"GET /v1/keys?limit=api&key=a&by=ip", "", 400},
        {"GET /v1/keys?limit=either&key=a&key=b&by=user,ip", "", 400},
        {"GET /v1/keys?limit=either&key=a&key=b&by=,", "", 400},
        {"GET /v1/keys?limit=adhoc&key=a&by=ip", "", 400},
        {"POST /v1/keys/reset", "{\"limit\":\"either\",\"key\":[\"a\",\"b\"],\"by\":\"\"}", 400},
        {"POST /v1/keys/reset", "{\"limit\":\"none\",\"key\":\"a\"}", 404},
        {"POST /v1/keys/reset", "{\"key\":\"a\"}", 400},
        {"POST /v1/keys/reset", "{\"limit\":\"api\"}", 400},
        {"POST /v1/keys/reset", "{\"limit\":\"api\",\"key\":\"a\",\"units\":1}", 400},
        {"POST /v1/keys/reset", "{\"limit\":\"api\",\"key\":\"a\",\"other\":1}", 400},
        {"POST /v1/keys/reset", "{\"limit\":\"api\",\"key\":7}", 400},
        {"POST /v1/keys/block", "{\"limit\":\"api\",\"key\":\"a\",\"for_ms\":0}", 400},
        {"POST /v1/keys/block", "{\"limit\":\"api\",\"key\":\"a\",\"for_ms\":1.5}", 400},
        {"POST /v1/keys/refund", "{\"limit\":\"api\",\"key\":\"a\",\"units\":-1}", 400},
        {"POST /v1/keys/refund",
         "{\"limit\":\"api\",\"key\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]}",
         400},
        {"POST /v1/keys/forget", "{\"limit\":\"api\",\"key\":\"a\"}", 404},
        {"POST /v1/keys", "{\"limit\":\"api\",\"key\":\"a\"}", 405},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ask(rows[i].line, rows[i].body);
        if (a.status != rows[i].status) {
            fail_msg("%s %s: expected %d, found %s", rows[i].line, rows[i].body, rows[i].status,
                     a.text);
        }
        assert_true(http_has_line(&a, "Content-Type: application/problem+json"));
    }
    ask("GET /v1/limits/api", "");
    assert_int_equal(admin_number(&a, "keys"), 0);
}

/* ---- switches ---- */

static void the_kill_switch_lets_everything_pass_and_back(void **state)
{
    assert_int_equal(check("api", "ann", 4), 429);
    ask("PUT /v1/mode", "{\"mode\":\"shadow\"}");
    assert_string_equal(a.body, "{\"mode\":\"shadow\",\"limits\":{}}");
    assert_int_equal(check("api", "ann", 1), 200);
    ask("GET /v1/limits/api", "");
    assert_body_has("\"shadow\":false,\"mode\":\"shadow\"");
    ask("PUT /v1/mode", "{\"mode\":\"enforce\"}");
    assert_int_equal(check("api", "ann", 1), 429);
}

/* ---- the built-in limit ---- */

static bool is_limited(const char *key)
{
    struct server_client c;
    char words[64];
    (void)snprintf(words, sizeof words, "CL.THROTTLE %s 0 1 86400", key);
    server_connect(&c, world->address[PROTOCOL_RESP]);
    bool limited = server_ask(&c, words)[1] == '1';
    server_disconnect(&c);
    return limited;
}

static void the_built_in_limit_is_shown_without_numbers_of_its_own(void **state)
{
    assert_false(is_limited("ann"));
    assert_true(is_limited("ann"));
    ask("GET /v1/limits/adhoc", "");
    assert_body_has(
        "{\"limits\":[{\"name\":\"adhoc\",\"tier\":\"\",\"algorithm\":\"token_bucket\","
        "\"rate\":null,\"count\":null,\"period_ms\":null,\"burst\":null,\"shadow\":false,"
        "\"mode\":\"enforce\"");
    assert_int_equal(admin_number(&a, "allowed"), 1);
    assert_int_equal(admin_number(&a, "denied"), 1);
    assert_int_equal(admin_number(&a, "capacity") >= 1000, 1);
    ask("GET /v1/limits", "");
    assert_body_has("{\"name\":\"adhoc\"");
}

static void the_kill_switch_is_for_the_built_in_limit_too(void **state)
{
    assert_false(is_limited("ann"));
    assert_true(is_limited("ann"));
    ask("PUT /v1/mode", "{\"mode\":\"shadow\"}");
    assert_string_equal(a.body, "{\"mode\":\"shadow\",\"limits\":{}}");
    assert_false(is_limited("ann"));
    ask("GET /v1/limits/adhoc", "");
    assert_body_has("\"mode\":\"shadow\"");
    ask("PUT /v1/mode", "{\"mode\":\"enforce\",\"limit\":\"adhoc\"}");
    assert_string_equal(a.body, "{\"mode\":\"shadow\",\"limits\":{\"adhoc\":\"enforce\"}}");
    assert_true(is_limited("ann"));
}

static void one_limit_is_switched_by_its_name(void **state)
{
    ask("PUT /v1/mode", "{\"mode\":\"shadow\",\"limit\":\"api\"}");
    assert_string_equal(a.body, "{\"mode\":\"enforce\",\"limits\":{\"api\":\"shadow\"}}");
    assert_int_equal(check("api", "ann", 5), 200);
    assert_int_equal(check("tiers", "ann", 6), 429);
    ask("PUT /v1/mode", "{\"mode\":\"shadow\",\"limit\":\"none\"}");
    assert_status(404);
    ask("PUT /v1/mode", "{\"mode\":\"off\"}");
    assert_status(400);
    ask("PUT /v1/mode", "{\"mode\":\"shadow\",\"limit\":7}");
    assert_status(400);
    ask("GET /v1/mode", "");
    assert_string_equal(a.body, "{\"mode\":\"enforce\",\"limits\":{\"api\":\"shadow\"}}");
}

static void the_log_says_more_when_it_is_told_to(void **state)
{
    enum log_level before = log_get_level();
    ask("PUT /v1/log-level", "{\"level\":\"debug\"}");
    assert_string_equal(a.body, "{\"level\":\"debug\"}");
    assert_int_equal(log_get_level(), LEVEL_DEBUG);
    static const char *const bad[] = {"{\"level\":\"loud\"}", "{\"level\":\"audit\"}",
                                      "{\"level\":1}", "{}", "{\"level\":\"info\",\"x\":1}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ask("PUT /v1/log-level", bad[i]);
        assert_status(400);
    }
    ask("GET /v1/log-level", "");
    assert_string_equal(a.body, "{\"level\":\"debug\"}");
    log_set_level(before);
}

/* ---- status ---- */

static void the_status_tells_how_the_server_is(void **state)
{
    assert_int_equal(check("api", "ann", 4), 429);
    ask("GET /v1/status", "");
    assert_status(200);
    assert_body_has("\"state\":\"ready\"");
    assert_body_has("\"threads\":2,\"generation\":1,");
    assert_body_has(world->file);
    assert_body_has("\"decisions\":{\"allow\":3,\"deny\":1,\"never\":0,\"shadow_deny\":0}");
    assert_body_has("\"requests\":{\"resp\":0,\"http\":4,\"grpc\":0,\"admin\":0,\"metrics\":0}");
    assert_int_equal(admin_number(&a, "pid"), getpid());
    assert_true(admin_number(&a, "memory_bytes") > 100000);
}

#define DENIED(key, count)                                                                         \
    "{\"limit\":\"api\",\"key\":\"" key "\",\"reason\":\"limit\",\"count\":" #count ",\"error\":"  \
    "0}"

static void who_is_denied_most_comes_first(void **state)
{
    (void)check("api", "ann", 5);
    (void)check("api", "bob", 4);
    (void)check("quiet", "ann", 9);
    admin_check(world, "{\"attributes\":{\"path\":\"/api\",\"user\":\"ann\"}}", &a);
    ask("GET /v1/top", "");
    assert_memory_equal(a.body, "{\"minutes\":15,\"seconds\":", 24);
    assert_non_null(
        strstr(a.body, ",\"others\":0,\"denied\":[" DENIED("ann", 3) "," DENIED("bob", 1) "]}"));
    ask("GET /v1/top?minutes=1&n=1", "");
    assert_memory_equal(a.body, "{\"minutes\":1,", 13);
    assert_body_has(",\"others\":1,\"denied\":[" DENIED("ann", 3) "]}"); /* bob was denied once */
    ask("GET /v1/top?n=1", "");
    assert_null(strstr(a.body, "bob"));
    ask("GET /v1/top?n=0", "");
    assert_status(400);
    ask("GET /v1/top?n=many", "");
    assert_status(400);
    ask("GET /v1/top?minutes=2", "");
    assert_status(400);
    assert_body_has("minutes=1, 5 or 15");
    ask("GET /v1/top?minutes=", "");
    assert_status(400);
}

static void the_method_that_is_right_is_told(void **state)
{
    ask("PATCH /v1/limits/api", "{}");
    assert_status(405);
    assert_true(http_has_line(&a, "Allow: GET, HEAD, PUT, DELETE"));
    ask("DELETE /v1/limits", ""); /* all of them? */
    assert_status(405);
    assert_true(http_has_line(&a, "Allow: GET, HEAD"));
    ask("POST /v1/keys", "{}");
    assert_status(405);
    assert_true(http_has_line(&a, "Allow: GET, HEAD"));
    ask("GET /v1/reload", "");
    assert_status(405);
    assert_true(http_has_line(&a, "Allow: POST"));
}

static void clients_have_no_way_to_what_operators_have(void **state)
{
    static const char *const paths[] = {"GET /v1/limits", "GET /metrics", "POST /v1/reload",
                                        "GET /v1/status", "PUT /v1/mode"};
    struct admin_world clients = *world;
    memcpy(clients.address[PROTOCOL_ADMIN], world->address[PROTOCOL_HTTP],
           sizeof clients.address[0]);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        admin_ask(&clients, paths[i], "", "", &a);
        assert_status(404);
    }
    ask("POST /v1/check", "{\"limit\":\"api\",\"key\":\"ann\"}");
    assert_status(404);
}

/* ---- pages of strangers ---- */

static void a_page_of_a_stranger_is_refused(void **state)
{
    static const struct {
        const char *line, *fields;
        int status;
    } rows[] = {
        {"PUT /v1/mode", "Origin: http://evil.example\r\n", 403},
        {"PUT /v1/mode", "Origin: null\r\n", 403},
        {"PUT /v1/mode", "Origin:\r\n", 403},
        {"PUT /v1/mode", "Sec-Fetch-Site: cross-site\r\n", 403},
        {"GET /v1/status", "Origin: http://evil.example\r\n", 403},
        {"GET /v1/status", "Host: evil.example\r\n", 403},
        {"GET /v1/status", "Host: localhost.evil.example:8082\r\n", 403},
        {"GET /v1/status", "Host: 127.0.0.1.evil.example\r\n", 403},
        {"GET /v1/status", "Host: [::1]evil.example\r\n", 400},
        {"GET /metrics", "Host: evil.example\r\n", 403},
        {"GET /v1/status", "Host: evil.example\r\nOrigin: http://evil.example\r\n", 403},
        {"PUT /v1/mode", "Content-Type: text/plain\r\n", 415},
        {"PUT /v1/mode", "Content-Type: text/plain;charset=UTF-8\r\n", 415},
        {"PUT /v1/mode", "Content-Type: application/x-www-form-urlencoded\r\n", 415},
        {"PUT /v1/mode", "Content-Type: Multipart/Form-Data; boundary=x\r\n", 415},
        {"GET /healthz", "Host: anything.example\r\n", 200},
        {"GET /v1/status", "Host: localhost:8082\r\n", 200},
        {"GET /v1/status", "Host: 127.0.0.1:8082\r\n", 200},
        {"GET /v1/status", "Host: [::1]:8082\r\n", 200},
        {"PUT /v1/mode", "Host: localhost:9\r\nOrigin: http://localhost:9\r\n", 200},
        {"PUT /v1/mode", "Sec-Fetch-Site: same-origin\r\n", 200},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool changes = rows[i].line[0] == 'P';
        admin_ask(world, rows[i].line, rows[i].fields, changes ? "{\"mode\":\"shadow\"}" : "", &a);
        if (a.status != rows[i].status) {
            fail_msg("%s %s: expected %d, found %s", rows[i].line, rows[i].fields, rows[i].status,
                     a.text);
        }
        bool shadow = weir_rules_shadow_get(world->server.rules, NULL) == 1;
        assert_int_equal(shadow, changes && rows[i].status == 200);
        (void)weir_rules_shadow_set(world->server.rules, NULL, 0, NULL);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(limits_are_shown_with_what_they_have_decided),
        TEST(the_built_in_limit_is_shown_without_numbers_of_its_own),
        TEST(the_kill_switch_is_for_the_built_in_limit_too),
        TEST(every_tier_is_an_item_of_the_list),
        TEST(a_limit_that_is_not_there_is_not_found),
        TEST(a_limit_is_added_replaced_and_removed_while_it_runs),
        TEST(a_limit_in_json_is_read_as_json),
        TEST(a_bad_limit_changes_nothing_and_says_all_that_is_wrong),
        TEST(a_limit_that_names_a_file_is_refused_without_a_word_of_the_file),
        TEST(a_body_that_names_another_limit_changes_neither),
        TEST(hostile_bodies_are_refused),
        TEST(a_reload_takes_over_the_file_and_keeps_the_keys),
        TEST(a_bad_file_keeps_the_old_rules_and_is_counted),
        TEST(the_rules_in_use_read_back_as_rules),
        TEST(a_key_is_looked_at_reset_blocked_and_unblocked),
        TEST(units_are_given_back_and_taken),
        TEST(a_misspelt_verb_is_not_found),
        TEST(keys_of_two_parts_and_tiers_are_found),
        TEST(a_key_of_a_later_alternative_is_named_by_its_attribute),
        TEST(questions_about_keys_that_make_no_sense_are_refused),
        TEST(the_kill_switch_lets_everything_pass_and_back),
        TEST(one_limit_is_switched_by_its_name),
        TEST(the_log_says_more_when_it_is_told_to),
        TEST(the_status_tells_how_the_server_is),
        TEST(who_is_denied_most_comes_first),
        TEST(the_method_that_is_right_is_told),
        TEST(clients_have_no_way_to_what_operators_have),
        TEST(a_page_of_a_stranger_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
