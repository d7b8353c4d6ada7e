/* What one request may contain. */
#include "bounds/bounds_scene.h"
#include "rules/live/call_ask.h"
#include "server/operations/rls.h"
#include "server/http/http_json.h"
#include "server/http/http_routes.h"

static struct http_answer a;
static char body[1 << 18];

static void start(struct scene *s)
{
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
}

static void stop(struct scene *s)
{
    scene_both_are_served(s);
    scene_stop(s);
}

/* Makes a body of `n` pieces between two texts. */
static void compose(const char *first, const char *piece, const char *between, unsigned n,
                    const char *last)
{
    char *to = stpcpy(body, first);
    for (unsigned i = 0; i < n; i++) {
        to = stpcpy(stpcpy(to, i > 0 ? between : ""), piece);
    }
    (void)stpcpy(to, last);
    assert_true(strlen(body) < sizeof body);
}

static int post(struct scene *s, const char *line)
{
    return scene_http(s, PROTOCOL_HTTP, CROWD, line, "", body, &a);
}

/* With small bounds, the reply to a batch of 1000 would be longer than a reply may be. */
static void http_batch(struct scene *s)
{
    static const unsigned counts[] = {200, 1001};
    start(s);
    for (unsigned i = 0; i < 2; i++) {
        compose("{\"requests\":[", "{\"limit\":\"api\",\"key\":\"a\"}", ",", counts[i], "]}");
        assert_int_equal(post(s, "POST /v1/check/batch"), i == 0 ? 200 : 400);
    }
    stop(s);
}

static void question(struct scene *s)
{
    start(s);
    compose("{\"limit\":\"api\",\"key\":\"a\"", " ", "", HTTP_QUESTION_MAX, "}");
    assert_int_equal(post(s, "POST /v1/check"), 413);
    compose("{\"limit\":\"api\",\"key\":\"a\"", " ", "", HTTP_QUESTION_MAX - 100, "}");
    assert_int_equal(post(s, "POST /v1/check"), 200);
    stop(s);
}

static void json_values(struct scene *s)
{
    start(s);
    compose("{\"limit\":\"api\",\"key\":[", "1", ",", 2 * HTTP_JSON_VALUES, "]}");
    assert_int_equal(post(s, "POST /v1/check"), 400);
    assert_non_null(strstr(a.body, "found too many values"));
    stop(s);
}

/* A body that comes byte by byte is answered when it is complete. */
static void looks(struct scene *s)
{
    static const char head[] =
        "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
        "application/json\r\nContent-Length: 2026\r\n\r\n{\"limit\":\"api\",";
    start(s);
    struct server_client *c = scene_add(s, PROTOCOL_HTTP, CROWD);
    assert_true(server_send(c, head, sizeof head - 1));
    memset(body, ' ', 2011);
    memcpy(body + 2001, "\"key\":\"a\"}", 10);
    for (unsigned i = 0; i < 2011; i++) {
        assert_true(server_send(c, body + i, 1));
    }
    assert_true(http_receive(c->fd, &a));
    assert_int_equal(a.status, 200);
    stop(s);
}

static void query(struct scene *s)
{
    static char fields[8192];
    start(s);
    for (unsigned more = 0; more < 2; more++) {
        compose("X-Original-URI: /?", "a=b", "&", 128 + more, "\r\nX-User: u\r\n");
        (void)strcpy(fields, body);
        int status = scene_http(s, PROTOCOL_HTTP, CROWD, "GET /v1/auth", fields, "", &a);
        assert_int_equal(status, more == 0 ? 200 : 400);
    }
    stop(s);
}

static void rls_entries(struct scene *s)
{
    start(s);
    for (unsigned more = 0; more < 2; more++) {
        compose("{\"domain\":\"d\",\"descriptors\":[{\"entries\":[",
                "{\"key\":\"k\",\"value\":\"v\"}", ",", RLS_ENTRIES_MAX + more, "]}]}");
        assert_int_equal(post(s, "POST /json"), more == 0 ? 200 : 400);
    }
    stop(s);
}

static void rls_values(struct scene *s)
{
    start(s);
    compose("{\"domain\":\"d\",\"descriptors\":[{\"entries\":[", "1", ",",
            (CALL_MAX + 1) * (RLS_ENTRIES_MAX * 5 + 20) + 1, "]}]}");
    assert_int_equal(post(s, "POST /json"), 400);
    assert_non_null(strstr(a.body, "found too many values"));
    stop(s);
}

/* ---- RESP ---- */

static void script_arguments(struct scene *s)
{
    start(s);
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    assert_memory_equal(
        SERVER_ASK(c, "EVAL", "return redis.call('CL.THROTTLE',1,2,3,4,5,6,7,8,9,10)", "0"), "-ERR",
        4);
    assert_memory_equal(SERVER_ASK(c, "EVAL", "return redis.call('CL.THROTTLE','k',4,6,60)", "0"),
                        "[0", 2);
    stop(s);
}

static void script_digits(struct scene *s)
{
    start(s);
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    assert_memory_equal(
        SERVER_ASK(c, "EVAL", "return redis.call('CL.THROTTLE','k',4,6,1000000000000000)", "0"),
        "-ERR", 4);
    stop(s);
}

/* Fills a MULTI with a command until one is refused. Returns how many were queued. */
static unsigned fill_multi(struct server_client *c, const char *words, const char *exec)
{
    unsigned queued = 0;
    assert_string_equal(server_ask(c, "MULTI"), "+OK");
    while (queued < 2000 && strcmp(server_ask(c, words), "+QUEUED") == 0) {
        queued++;
    }
    assert_memory_equal(server_ask(c, "EXEC"), exec, strlen(exec));
    return queued;
}

static void multi(struct scene *s)
{
    char words[1000];
    start(s);
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    assert_int_equal(fill_multi(c, "WEIR.CHECK api multi", "-EXECABORT"), 8); /* small.sed */
    (void)snprintf(words, sizeof words, "ECHO %0900d", 0);
    assert_in_range(fill_multi(c, words, "-EXECABORT"), 3, 4); /* 4096 bytes */
    (void)scene_add(s, PROTOCOL_RESP, CROWD);
    assert_true(server_say(&s->crowd[1], "MULTI")); /* it closes within */
    stop(s);
}

#define EXEC_BYTES 8192 /* small.sed */

/* Replies of EXEC beyond its bound are errors. */
static void exec(struct scene *s)
{
    static const char docs[] = "*2\r\n$7\r\nCOMMAND\r\n$4\r\nDOCS\r\n";
    start(s);
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    size_t one = scene_fetch_all(c, docs, 1) - scene_fetch_all(c, docs, 0);
    assert_true(7 * one > EXEC_BYTES + 2 * one);
    assert_string_equal(server_ask(c, "MULTI"), "+OK");
    for (unsigned i = 0; i < 7; i++) {
        assert_string_equal(server_ask(c, "COMMAND DOCS"), "+QUEUED");
    }
    size_t all = scene_fetch_all(c, "*1\r\n$4\r\nEXEC\r\n", 1);
    assert_in_range(all, EXEC_BYTES, EXEC_BYTES + 2 * one);
    scene_is_served(s, CROWD);
    stop(s);
}

const struct driver drivers_requests[] = {
    {"http_operations.c", "BATCH_MAX", http_batch, NULL, NULL},
    {"http_routes.h", "HTTP_QUESTION_MAX", question, NULL, NULL},
    {"http_json.h", "HTTP_JSON_VALUES", json_values, NULL, NULL},
    {"http_routes.h", "HTTP_LOOKS_MAX", looks, NULL, NULL},
    {"http_auth.c", "QUERY_MAX", query, NULL, NULL},
    {"rls.h", "RLS_ENTRIES_MAX", rls_entries, NULL, NULL},
    {"http_rls.c", "VALUES_MAX", rls_values, NULL, NULL},
    {"resp_eval.c", "ARGS_MAX", script_arguments, NULL, NULL},
    {"resp_eval.c", "DIGITS_MAX", script_digits, NULL, NULL},
    {"resp_multi.c", "QUEUE_COMMANDS", multi, NULL, NULL},
    {"resp_multi.c", "QUEUE_BYTES", multi, NULL, NULL},
    {"resp_multi.c", "EXEC_BYTES", exec, NULL, NULL},
    {0},
};
