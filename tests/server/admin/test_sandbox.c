/* Sandboxes: rules that operators try out. Their decisions, their bounds, and how they end. */
#include <pthread.h>

#include "server/admin/sandbox_story.h"

/* ---- deciding ---- */

static void a_sandbox_has_rules_and_a_time_of_its_own(void **state)
{
    char id[33];
    make(id, "limits: [{name: two, key: [user], rate: 2/s, algorithm: fixed_window}]");
    assert_body_has(
        "\"limits\":[{\"name\":\"two\",\"tier\":\"\",\"algorithm\":\"fixed_window\","
        "\"rate\":\"2/s\",\"count\":2,\"period_ms\":1000,\"burst\":null,\"queue\":null}]");
    step(id, "{\"at_ms\":999,\"attributes\":{\"user\":\"ann\"}},"
             "{\"at_ms\":999.5,\"attributes\":{\"user\":\"ann\"}},"
             "{\"at_ms\":999.5,\"attributes\":{\"user\":\"ann\"}},"
             "{\"at_ms\":999.75,\"attributes\":{\"user\":\"bob\"}},"
             "{\"at_ms\":1000,\"attributes\":{\"user\":\"ann\"}}");
    assert_status(200);
    assert_string_equal(verdicts(), "allow allow deny allow allow ");
    assert_body_has("\"verdict\":\"deny\",\"limit\":\"two\",\"quota\":2,\"remaining\":0,"
                    "\"retry_after_ms\":1,");
    step(id, "{\"at_ms\":86400000,\"attributes\":{\"user\":\"ann\"},\"peek\":true},"
             "{\"at_ms\":86400000,\"attributes\":{\"user\":\"ann\"},\"cost\":2},"
             "{\"at_ms\":86400000,\"attributes\":{\"user\":\"ann\"},\"cost\":3}");
    assert_string_equal(verdicts(), "allow allow never ");
}

static void a_sandbox_never_touches_the_limits_in_use(void **state)
{
    char id[33];
    make(id, rules);
    for (unsigned i = 0; i < 3; i++) {
        step(id, "{\"at_ms\":0,\"attributes\":{\"path\":\"/api\",\"user\":\"ann\"}},"
                 "{\"at_ms\":0,\"attributes\":{\"path\":\"/api\",\"user\":\"ann\"}}");
    }
    assert_string_equal(verdicts(), "deny deny ");
    ask("GET /v1/limits/api", "");
    assert_int_equal(admin_number(&a, "allowed"), 0);
    assert_int_equal(admin_number(&a, "denied"), 0);
    assert_int_equal(admin_number(&a, "keys"), 0);
}

/* Every field of the list is one that /v1/auth has sent for the same request, and the reverse. */
static void header_fields_are_those_that_auth_sends(void **state)
{
    char id[33];
    struct http_answer *sent = malloc(sizeof *sent);
    assert_non_null(sent);
    make(id, rules);
    for (unsigned i = 0; i < 5; i++) {
        step(id, "{\"at_ms\":0,\"attributes\":{\"path\":\"/api\",\"header:x-user\":\"eve\"},"
                 "\"headers\":true}");
        auth("/api", "eve", sent);
        assert_int_equal(admin_number(&a, "status"), sent->status);
        assert_same_fields(sent);
    }
    assert_int_equal(sent->status, 429);
    free(sent);
}

/* Returns the Date field of the only answer, as Unix time. */
static time_t date_told(void)
{
    struct tm t = {0};
    const char *date = strstr(a.body, "[\"Date\",\"");
    assert_non_null(date);
    assert_non_null(strptime(date + strlen("[\"Date\",\""), "%a, %d %b %Y %H:%M:%S GMT", &t));
    return timegm(&t);
}

static void dates_begin_when_the_sandbox_was_made_unless_asks_have_dates(void **state)
{
    char id[33];
    time_t before = time(NULL);
    make(id, rules);
    time_t after = time(NULL);
    step(id, "{\"at_ms\":7000,\"attributes\":{\"path\":\"/none\"},\"headers\":true}");
    assert_in_range(date_told(), before + 7, after + 7);
    step(id, "{\"at_ms\":1700000000000,\"attributes\":{\"path\":\"/none\"},\"headers\":true}");
    assert_int_equal(date_told(), 1700000000);
}

static void an_ask_that_the_rules_cannot_read_fails_alone(void **state)
{
    char id[33];
    make(id, rules);
    step(id, "{\"at_ms\":0,\"attributes\":{\"path\":\"/a%00\"}},"
             "{\"at_ms\":0,\"attributes\":{\"path\":\"/api\",\"user\":\"ann\"}}");
    assert_status(200);
    assert_body_has("{\"answers\":[{\"type\":\"about:blank\",\"title\":\"Bad Request\"");
    assert_body_has("\"verdict\":\"allow\",\"limit\":\"api\"");
}

/* ---- what is refused ---- */

static void a_bad_step_changes_nothing(void **state)
{
    static const struct {
        const char *asks;
        const char *why;
    } bad[] = {
        {"7", "asks[0]: found another value, expected an object"},
        {ASK(5) ",{\"attributes\":{}}", "asks[1]: found no member 'at_ms', which is required"},
        {ASK(5) ",{\"at_ms\":6}", "asks[1]: found no member 'attributes', which is required"},
        {ASK(5) "," ASK(4.9), "asks[1]: at_ms: found a time 100 us before"},
        {ASK(-1), "at_ms: found -1, expected a number of milliseconds from 0 to 4102444800000"},
        {ASK("\"5\""), "at_ms: found"},
        {ASK(1e999), "at_ms: found 1e999"},
        {ASK(5, "\"cost\":0"), "cost: found 0, expected a whole number from 1"},
        {ASK(5, "\"peek\":1"), "peek: found 1, expected true or false"},
        {ASK(5, "\"path\":1"), "found \\\"path\\\", expected at_ms, attributes"},
        {"{\"at_ms\":5,\"attributes\":{\"user\":true}}", "user: found true, expected a string"},
    };
    char id[33];
    make(id, rules);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        step(id, bad[i].asks);
        assert_status(400);
        assert_body_has(bad[i].why);
    }
    step(id, ASK(0)); /* the time is still 0, and nothing was charged */
    assert_int_equal(admin_number(&a, "remaining"), 2);
    step(id, ASK(7) "," ASK(7));
    step(id, ASK(6.5));
    assert_status(400);
}

static void bodies_that_are_no_step_are_refused(void **state)
{
    static const char *const bodies[] = {"",
                                         "{",
                                         "[]",
                                         "{}",
                                         "{\"asks\":{}}",
                                         "{\"asks\":[],\"more\":1}",
                                         "{\"a\":[]}",
                                         "{\"asks\":[1,]}"};
    char id[33];
    char line[64];
    make(id, rules);
    (void)snprintf(line, sizeof line, "POST /v1/sandbox/%s", id);
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        ask(line, bodies[i]);
        assert_status(400);
    }
    ask(line, "{\"asks\":[]}");
    assert_status(200);
}

static void a_step_has_at_most_512_asks(void **state)
{
    char id[33];
    char *asks = repeat(ASK(1), 512);
    make(id, rules);
    step(id, asks);
    assert_status(200);
    free(asks);
    asks = repeat(ASK(2), 513);
    step(id, asks);
    assert_status(400);
    assert_body_has("asks[512]: found too many asks in a step, expected at most 512");
    free(asks);
}

static void a_body_of_more_than_256_kb_is_refused(void **state)
{
    static const char *const lines[] = {"POST /v1/sandbox", "POST /v1/config/check"};
    char *body = repeat("1234567", 32769);
    for (size_t i = 0; i < 2; i++) {
        ask(lines[i], body);
        assert_status(413);
    }
    free(body);
}

static void the_33rd_sandbox_is_refused(void **state)
{
    char ids[32][33];
    for (unsigned i = 0; i < 32; i++) {
        make(ids[i], rules);
    }
    create(rules);
    assert_status(503);
    assert_body_has("found 32 sandboxes, expected at most 32");
    discard(ids[7]);
    assert_status(204);
    make(ids[7], rules);
    for (unsigned i = 0; i < 32; i++) {
        discard(ids[i]);
    }
}

static void rules_that_need_more_than_16_mb_are_refused(void **state)
{
    create("limits: [{name: log, key: [user], rate: 50k/day, algorithm: sliding_log}]");
    assert_status(422);
    assert_body_has("in a sandbox: lower max_keys or max_blocks, or try fewer limits");
    create("limits: [{name: a, key: [user], rate: 5/s, max_blocks: 10M}]");
    assert_status(422);
    create("limits: [{name: a, key: [user], rate: 5/s, max_keys: 100M}]"); /* it becomes 1000 */
    assert_status(201);
}

static void rules_that_need_more_than_256_tables_are_refused(void **state)
{
    char yaml[32768] = "limits:\n";
    size_t n = strlen(yaml);
    for (unsigned i = 0; i < 257; i++) {
        n += (size_t)snprintf(yaml + n, sizeof yaml - n, "- {name: l%u, key: [u], rate: 1/s}\n", i);
    }
    create(yaml);
    assert_status(422);
    assert_body_has("found limits that need 257 tables, expected at most 256 in a sandbox");
}

/* Puts a limit whose `when` has an anchor, and more limits that have the same by an alias. */
static void alias_when(char *yaml, size_t size, const char *values, unsigned limits)
{
    size_t n = (size_t)snprintf(
        yaml, size, "limits:\n- {name: l0, key: [], rate: 1/s, when: &w {u: [%s]}}\n", values);
    for (unsigned i = 1; i < limits; i++) {
        n += (size_t)snprintf(yaml + n, size - n, "- {name: l%u, key: [], rate: 1/s, when: *w}\n",
                              i);
    }
}

/* One request of such rules took seconds. */
static void aliases_do_not_multiply_wildcards(void **state)
{
    static char yaml[65536];
    char *values = repeat("\"*aaaaaaaaaaaaaaaab*\"", 250);
    alias_when(yaml, sizeof yaml, values, 13); /* 13 * 250 * 19 bytes */
    create(yaml);
    assert_status(201);
    alias_when(yaml, sizeof yaml, values, 14);
    create(yaml);
    assert_status(422);
    assert_body_has("found values with wildcards of 66500 bytes, expected at most 65536");
    free(values);
}

/* The same for names in paths, which each attribute that is taken from one looks for. */
static void attributes_do_not_multiply_wildcards(void **state)
{
    static char yaml[65536];
    size_t n = (size_t)snprintf(yaml, sizeof yaml, "attributes: {");
    for (unsigned i = 0; i < 32; i++) {
        n += (size_t)snprintf(yaml + n, sizeof yaml - n, "%sa%u: 'path:{x}'", i > 0 ? ", " : "", i);
    }
    n += (size_t)snprintf(yaml + n, sizeof yaml - n,
                          "}\nlimits: [{name: l, key: [], rate: 1/s, when: {path: ['/{x}'");
    for (unsigned i = 0; i < 200; i++) {
        n += (size_t)snprintf(yaml + n, sizeof yaml - n, ", '/{x}/*a*a*a%u'", i);
    }
    (void)snprintf(yaml + n, sizeof yaml - n, "]}}]\n");
    create(yaml);
    assert_status(422);
    assert_body_has("found values with wildcards of");
}

static void aliases_do_not_multiply_values(void **state)
{
    static const char yaml[] = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
                               "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
                               "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
                               "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
                               "e: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n";
    create(yaml);
    assert_status(422);
    assert_body_has("found more than 65536 values, including those of aliases");
    admin_ask(world, "POST /v1/config/check", "Content-Type: application/yaml\r\n", yaml, &a);
    assert_status(200);
    assert_body_has("found more than 65536 values, including those of aliases");
}

static void rules_that_name_files_are_refused_without_a_word_of_the_file(void **state)
{
    create("limits: [{name: a, when: {ip: \"file:/etc/passwd\"}, key: [ip], rate: 5/s}]");
    assert_status(422);
    assert_body_has("\"severity\":\"error\",\"line\":1,\"column\":");
    assert_body_has("found a file, expected values: only the rule file may name files");
    assert_null(strstr(a.body, "root"));
    create("attributes: {t: {file: /etc/passwd, by: user}}\nlimits: []");
    assert_status(422);
    create("limits: [{name: a, key: [u], rate: 5/s, overrides: {by: u, file: /etc/passwd}}]");
    assert_status(422);
    assert_null(strstr(a.body, "root"));
}

static void a_sandbox_that_is_not_there_is_not_found(void **state)
{
    static const char *const paths[] = {"POST /v1/sandbox/0123456789abcdef0123456789abcdef",
                                        "DELETE /v1/sandbox/0123456789abcdef0123456789abcdef",
                                        "POST /v1/sandbox/", "DELETE /v1/sandbox/x"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        ask(paths[i], "");
        assert_status(404);
    }
}

/* ---- how they end ---- */

static void an_idle_sandbox_ends(void **state)
{
    struct sandboxes *s;
    struct server_options options = {.sandbox_idle_ms = 1000};
    char text[33];
    assert_int_equal(sandboxes_create(&s, &options, NULL), 0);
    struct sandbox *idle = sandboxes_take(s, POOL_OPERATORS, 5000);
    struct sandbox *busy = sandboxes_take(s, POOL_OPERATORS, 5000);
    id_print(idle->id, text);
    sandboxes_expire(s, 9000); /* both are at work */
    sandbox_rest(idle, 9000);
    sandboxes_expire(s, 9999);
    assert_ptr_equal(sandboxes_find(s, POOL_OPERATORS, text_of(text)), idle);
    sandboxes_expire(s, 10000);
    assert_null(sandboxes_find(s, POOL_OPERATORS, text_of(text)));
    assert_true(busy->used);
    sandboxes_destroy(s);
}

static void the_place_of_an_idle_sandbox_becomes_free(void **state)
{
    struct server_options options = {.sandbox_idle_ms = 500, .idle_ms = 1000};
    char id[33];
    restart(&options);
    for (unsigned i = 0; i < 32; i++) {
        make(id, rules);
    }
    do {
        create(rules);
    } while (a.status == 503);
    assert_status(201);
}

static void a_step_that_takes_too_long_ends_its_sandbox(void **state)
{
    struct server_options options = {.sandbox_step_ns = 1};
    char id[33];
    restart(&options);
    make(id, rules);
    step(id, ASK(0));
    assert_status(422);
    assert_body_has("the step took too long, and the sandbox was removed");
    step(id, ASK(0));
    assert_status(404);
}

/* ---- while others are at work ---- */

static void one_step_runs_at_a_time_and_others_are_answered(void **state)
{
    char id[33];
    make(id, rules);
    block_pool();
    int fd = send_step(id, ASK(0));
    step(id, ASK(0));
    assert_status(409);
    ask("GET /v1/status", "");
    assert_status(200);
    free_pool();
    assert_true(http_receive(fd, &a));
    assert_status(200);
    (void)close(fd);
    step(id, ASK(0));
    assert_status(200);
}

static void a_connection_may_close_while_its_step_runs(void **state)
{
    char id[33];
    make(id, rules);
    block_pool();
    int fd = send_step(id, ASK(0));
    step(id, ASK(0));
    assert_status(409); /* the first has begun */
    (void)close(fd);
    ask("GET /v1/status", ""); /* after the server has seen that */
    free_pool();
    do {
        step(id, ASK(0));
    } while (a.status == 409);
    assert_status(200);
    assert_int_equal(admin_number(&a, "remaining"), 1); /* of 3; the step was made all the same */
}

static void a_sandbox_may_be_deleted_while_its_step_runs(void **state)
{
    char id[33];
    make(id, rules);
    block_pool();
    int fd = send_step(id, ASK(0));
    step(id, ASK(0));
    assert_status(409);
    discard(id);
    assert_status(204);
    step(id, ASK(0));
    assert_status(404);
    free_pool();
    assert_true(http_receive(fd, &a));
    assert_status(200);
    (void)close(fd);
    step(id, ASK(0));
    assert_status(404);
}

static void more_jobs_than_8_are_refused(void **state)
{
    int fds[8];
    block_pool();
    for (unsigned i = 0; i < 8; i++) {
        fds[i] = send_check("limits: []\n");
    }
    do { /* the last of them may be on its way */
        ask("POST /v1/config/check?source=file", "");
    } while (a.status == 200);
    assert_status(503);
    free_pool();
    for (unsigned i = 0; i < 8; i++) {
        assert_true(http_receive(fds[i], &a));
        assert_status(200);
        (void)close(fds[i]);
    }
}

static void *free_pool_later(void *arg)
{
    free_pool();
    return arg;
}

static void a_server_that_stops_waits_for_its_jobs(void **state)
{
    char id[33];
    pthread_t thread;
    make(id, rules);
    block_pool();
    int fd = send_step(id, ASK(0));
    step(id, ASK(0));
    assert_status(409);
    assert_int_equal(pthread_create(&thread, NULL, free_pool_later, NULL), 0);
    restart(NULL);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(http_receive(fd, &a));
    assert_status(200);
    (void)close(fd);
}

static void a_client_of_the_role_check_has_no_sandbox(void **state)
{
    struct server_options options = {.access = secrets("for-check", "for-admin")};
    static const char *const lines[] = {"POST /v1/sandbox", "POST /v1/config/check",
                                        "DELETE /v1/sandbox/0123456789abcdef0123456789abcdef"};
    restart(&options);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ask(lines[i], "");
        assert_status(401);
        admin_ask(world, lines[i], "Authorization: Bearer for-check\r\n", "", &a);
        assert_status(403);
        admin_ask(world, lines[i], "Authorization: Bearer for-admin\r\n", "", &a);
        assert_true(a.status != 401 && a.status != 403);
    }
    restart(NULL);
    access_close(options.access);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sandbox_has_rules_and_a_time_of_its_own),
        TEST(a_sandbox_never_touches_the_limits_in_use),
        TEST(header_fields_are_those_that_auth_sends),
        TEST(dates_begin_when_the_sandbox_was_made_unless_asks_have_dates),
        TEST(an_ask_that_the_rules_cannot_read_fails_alone),
        TEST(a_bad_step_changes_nothing),
        TEST(bodies_that_are_no_step_are_refused),
        TEST(a_step_has_at_most_512_asks),
        TEST(a_body_of_more_than_256_kb_is_refused),
        TEST(the_33rd_sandbox_is_refused),
        TEST(rules_that_need_more_than_16_mb_are_refused),
        TEST(rules_that_need_more_than_256_tables_are_refused),
        TEST(aliases_do_not_multiply_wildcards),
        TEST(attributes_do_not_multiply_wildcards),
        TEST(aliases_do_not_multiply_values),
        TEST(rules_that_name_files_are_refused_without_a_word_of_the_file),
        TEST(a_sandbox_that_is_not_there_is_not_found),
        cmocka_unit_test(an_idle_sandbox_ends),
        TEST(the_place_of_an_idle_sandbox_becomes_free),
        TEST(a_step_that_takes_too_long_ends_its_sandbox),
        TEST(one_step_runs_at_a_time_and_others_are_answered),
        TEST(a_connection_may_close_while_its_step_runs),
        TEST(a_sandbox_may_be_deleted_while_its_step_runs),
        TEST(more_jobs_than_8_are_refused),
        TEST(a_server_that_stops_waits_for_its_jobs),
        TEST(a_client_of_the_role_check_has_no_sandbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
