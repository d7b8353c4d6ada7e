/* POST /v1/explain and POST /v1/config/check. */
#include "server/admin/sandbox_story.h"

/* ---- explaining ---- */

static void a_request_is_explained_limit_by_limit(void **state)
{
    ask("POST /v1/explain", "{\"attributes\":{\"path\":\"/api\",\"header:X-User\":\"ann\"}}");
    assert_status(200);
    assert_body_has("{\"verdict\":\"allow\",\"limit\":\"api\",\"quota\":3,\"remaining\":3,");
    assert_body_has("\"attributes\":{\"path\":\"/api\",\"user\":\"ann\",\"header:x-user\":\"ann\"},"
                    "\"list\":null,\"limits\":[{\"name\":\"api\",\"line\":3,\"applies\":true,"
                    "\"mode\":\"enforce\",\"tier\":null,\"algorithm\":\"token_bucket\","
                    "\"rate\":\"3/day\",\"key\":\"ann\",\"consistency\":\"local\","
                    "\"verdict\":\"allow\",\"quota\":3,\"remaining\":3,\"retry_after_ms\":0,"
                    "\"reset_after_ms\":0,\"blocked_ms\":0}]}");
    ask("POST /v1/explain", "{\"attributes\":{\"path\":\"/login\"}}");
    assert_body_has("{\"name\":\"api\",\"line\":3,\"applies\":false,"
                    "\"why\":\"path is /login, expected /api\"}");
}

static void explaining_charges_nothing_and_sees_blocks(void **state)
{
    static const char question[] = "{\"attributes\":{\"path\":\"/api\",\"user\":\"ann\"}}";
    for (unsigned i = 0; i < 5; i++) {
        ask("POST /v1/explain", question);
    }
    assert_body_has("\"verdict\":\"allow\",\"quota\":3,\"remaining\":3");
    ask("POST /v1/keys/block", "{\"limit\":\"api\",\"key\":\"ann\"}");
    assert_status(200);
    ask("POST /v1/explain", question);
    assert_body_has("{\"verdict\":\"never\",\"limit\":\"api\"");
    assert_body_has("\"blocked_ms\":-1");
}

static void bad_questions_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "{}",
                                      "[]",
                                      "{\"attributes\":[]}",
                                      "{\"attributes\":{\"path\":\"/a%00\"}}",
                                      "{\"attributes\":{\"ip\":\"x\"},\"cost\":1,\"more\":1}",
                                      "{\"attributes\":{},\"cost\":0}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ask("POST /v1/explain", bad[i]);
        assert_status(400);
    }
}

static void hostile_values_stay_text(void **state)
{
    ask("POST /v1/explain", "{\"attributes\":{\"path\":\"/api\",\"user\":\"\\\"<img "
                            "onerror=x>\\u0000\\ud83d\\ude00\"}}");
    assert_status(200);
    json_t *reply = json_loads(a.body, JSON_ALLOW_NUL, NULL);
    assert_non_null(reply);
    json_decref(reply);
}

static void a_step_explains_an_ask_before_it_is_decided(void **state)
{
    char id[33];
    make(id, rules);
    step(id, ASK(0, "\"explain\":true") "," ASK(0, "\"explain\":false"));
    assert_status(200);
    assert_body_has("\"remaining\":2,\"retry_after_ms\":0,");
    assert_body_has(
        "\"status\":200,\"explain\":{\"verdict\":\"allow\",\"limit\":\"api\",\"quota\":3,"
        "\"remaining\":3,");
    assert_body_has("\"applies\":true");
    assert_null(strstr(strstr(a.body, "\"explain\"") + 1, "\"explain\""));
}

/* ---- checking ---- */

static void check(const char *yaml)
{
    admin_ask(world, "POST /v1/config/check", "Content-Type: application/yaml\r\n", yaml, &a);
}

static void a_check_tells_what_would_change_and_changes_nothing(void **state)
{
    check("attributes: {user: ['header:x-user', 'header:y-user']}\n"
          "limits:\n"
          "  - {name: api, when: {path: /api}, key: [user], rate: 5/day}\n"
          "  - {name: new, key: [ip], rate: 5/s}\n");
    assert_status(200);
    assert_body_has("{\"ok\":true,");
    assert_body_has("\"limits\":[{\"name\":\"api\",\"line\":3},{\"name\":\"new\",\"line\":4}],"
                    "\"changes\":[\"api: rate 3/day -> 5/day, burst 3 -> 5; keys kept\","
                    "\"new: added\"]}");
    ask("GET /v1/limits", "");
    assert_body_has("\"rate\":\"3/day\"");
    assert_null(strstr(a.body, "\"new\""));
}

static void a_check_tells_all_that_is_wrong_with_its_place(void **state)
{
    check("limits:\n"
          "  - {name: api, key: [user], rate: often}\n"
          "  - {name: b, when: {ip: 'file:/etc/passwd'}, key: [], rate: 1/s}\n");
    assert_status(200);
    assert_body_has(
        "{\"ok\":false,\"messages\":[{\"severity\":\"error\",\"line\":2,\"column\":36,");
    assert_body_has(
        "{\"severity\":\"error\",\"line\":3,\"column\":26,\"text\":\"found a file, expected "
        "values: only the rule file may name files\"}");
    assert_body_has("\"changes\":[]");
    check("limits: [");
    assert_body_has("{\"ok\":false,\"messages\":[{\"severity\":\"error\",\"line\":");
    check("");
    assert_body_has("\"ok\":false");
}

static void the_files_of_a_reload_are_checked(void **state)
{
    ask("POST /v1/config/check?source=file", "");
    assert_status(200);
    assert_body_has("\"ok\":true");
    assert_body_has("\"changes\":[]");
    admin_world_write(world, "limits: [{name: api, key: [user], rate: 9/day}]\n");
    ask("POST /v1/config/check?source=file", "");
    assert_body_has("\"changes\":[");
    assert_body_has("rate 3/day -> 9/day");
    admin_world_write(world, "limits: [{name: api, rate: 9}]\n");
    ask("POST /v1/config/check?source=file", "");
    assert_body_has("\"ok\":false");
    assert_body_has("\"file\":\"/tmp/weir-admin-");
    ask("GET /v1/limits/api", "");
    assert_body_has("\"rate\":\"3/day\"");
    ask("POST /v1/config/check?source=file&more=1", "");
    assert_status(400);
    admin_ask(world, "POST /v1/config/check?source=file", "Content-Type: application/yaml\r\n",
              "limits: []", &a);
    assert_status(400);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_explained_limit_by_limit),
        TEST(explaining_charges_nothing_and_sees_blocks),
        TEST(bad_questions_are_refused),
        TEST(hostile_values_stay_text),
        TEST(a_step_explains_an_ask_before_it_is_decided),
        TEST(a_check_tells_what_would_change_and_changes_nothing),
        TEST(a_check_tells_all_that_is_wrong_with_its_place),
        TEST(the_files_of_a_reload_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
