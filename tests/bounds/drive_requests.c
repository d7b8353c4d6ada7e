/* What one request may contain. */
#include "bounds/bounds_scene.h"
#include "rules/live/call_ask.h"
#include "server/operations/rls.h"
#include "server/http/http_json.h"
#include "server/http/http_routes.h"
#include "wire/jsontext.h"
#include "wire/resp.h"

static struct http_answer a;
static char body[HTTP_BODY_MAX + 1024];

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

static void batch_values(struct scene *s)
{
    start(s);
    compose("{\"requests\":[", "1", ",", 1000 * 32 + 1, "]}");
    assert_int_equal(post(s, "POST /v1/check/batch"), 400);
    assert_non_null(strstr(a.body, "found too many values"));
    stop(s);
}

/* ---- heads and bodies of HTTP ---- */

/* Asks for health with `n` more fields, or one with a value of `n` bytes. Returns the status. */
static int ask_with_fields(struct scene *s, const char *first, const char *piece, unsigned n,
                           const char *last)
{
    static char fields[2 * HTTP_HEAD_MAX];
    compose(first, piece, "", n, last);
    (void)strcpy(fields, body);
    return scene_http(s, PROTOCOL_HTTP, CROWD, "GET /healthz", fields, "", &a);
}

static void head(struct scene *s)
{
    start(s);
    assert_int_equal(ask_with_fields(s, "X-Long: ", "x", HTTP_HEAD_MAX - 200, "\r\n"), 200);
    assert_int_equal(ask_with_fields(s, "X-Long: ", "x", HTTP_HEAD_MAX, "\r\n"), 431);
    assert_int_equal(ask_with_fields(s, "", "X: y\r\n", HTTP_FIELDS_MAX - 2, ""), 200);
    assert_int_equal(ask_with_fields(s, "", "X: y\r\n", HTTP_FIELDS_MAX - 1, ""), 431);
    stop(s);
}

static void http_body(struct scene *s)
{
    static const char question[] = "{\"requests\":[{\"limit\":\"api\",\"key\":\"a\"}]}";
    start(s);
    for (unsigned more = 0; more < 2; more++) {
        compose(question, " ", "", HTTP_BODY_MAX - (sizeof question - 1) + more, "");
        assert_int_equal(post(s, "POST /v1/check/batch"), more == 0 ? 200 : 413);
    }
    stop(s);
}

/* Sends a question after `n` chunks, of which each is a piece and `blanks` blanks. Returns the
 * status. */
static int send_chunks(struct scene *s, const char *piece, unsigned blanks, unsigned n)
{
    struct server_client *c = scene_add(s, PROTOCOL_HTTP, CROWD);
    char *to = stpcpy(body, "POST /v1/check HTTP/1.1\r\nHost: localhost\r\n"
                            "Content-Type: application/json\r\n"
                            "Transfer-Encoding: chunked\r\n\r\n");
    for (unsigned i = 0; i < n; i++) {
        to += sprintf(to, "%s\r\n%*s\r\n", piece, (int)blanks, "");
    }
    to = stpcpy(to, "19\r\n{\"limit\":\"api\",\"key\":\"a\"}\r\n0\r\n\r\n");
    assert_true(to < body + sizeof body);
    assert_true(server_send(c, body, (size_t)(to - body)));
    assert_true(http_receive(c->fd, &a));
    return a.status;
}

static void chunks(struct scene *s)
{
    char line[HTTP_CHUNK_LINE_MAX + 8];
    start(s);
    assert_int_equal(send_chunks(s, "1", 1, HTTP_CHUNKS_MAX - 1), 200);
    assert_int_equal(send_chunks(s, "1", 1, HTTP_CHUNKS_MAX), 413);
    assert_int_equal(send_chunks(s, "400", 1024, HTTP_CHUNKED_MAX / 1024 - 1), 200);
    assert_int_equal(send_chunks(s, "400", 1024, HTTP_CHUNKED_MAX / 1024), 413);
    for (unsigned more = 0; more < 2; more++) { /* with its line end */
        (void)snprintf(line, sizeof line, "1;%0*d", (int)(HTTP_CHUNK_LINE_MAX - 4 + more), 0);
        assert_int_equal(send_chunks(s, line, 1, 1), more == 0 ? 200 : 400);
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

static void json_depth(struct scene *s)
{
    start(s);
    for (unsigned more = 0; more < 2; more++) {
        compose("{\"requests\":", "[", "", JSONTEXT_DEPTH_MAX - 1 + more, "");
        compose(body, "]", "", JSONTEXT_DEPTH_MAX - 1 + more, "}");
        int status = post(s, "POST /v1/check/batch"); /* a list is no question */
        assert_int_equal(status, more == 0 ? 200 : 400);
    }
    stop(s);
}

/* Each piece but the second looks like the end of a head, and is none: empty lines before a request
 * come in pieces. */
static void looks_at_empty_lines(struct scene *s)
{
    struct server_client *c = scene_add(s, PROTOCOL_HTTP, CROWD);
    assert_true(server_send(c, "\r", 1));
    for (size_t sent = 1; sent < 2 * HTTP_LOOKS_MAX + 3; sent += 2) {
        for (unsigned tries = 0; scene_units(s, CROWD_KEPT) != sent; tries++) {
            assert_true(tries < 60000);
            (void)usleep(1000);
        }
        assert_true(server_send(c, "\n\r", 2));
    }
    assert_true(http_receive(c->fd, &a));
    assert_int_equal(a.status, 400);
    assert_non_null(strstr(a.body, "end is not clear"));
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
    looks_at_empty_lines(s);
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

static void several(struct scene *s)
{
    static char rules[8192];
    struct server_options o = scene_options();
    char *to = stpcpy(rules, "limits:\n"
                             "  - {name: api, key: [user], rate: 1000000/s, max_keys: 100}\n");
    for (unsigned i = 0; i < WEIR_SEVERAL_MAX; i++) {
        to +=
            sprintf(to, "  - {name: l%u, when: {path: '%s'}, key: [ip], rate: 9/s, max_keys: 10}\n",
                    i, i == 0 ? "/all" : "/**");
    }
    scene_start(s, rules, &o);
    for (unsigned more = 0; more < 2; more++) {
        compose("{\"attributes\":{\"user\":\"u\",\"ip\":\"192.0.2.1\",\"path\":\"/",
                more == 0 ? "some" : "all", "", 1, "\"}}");
        assert_int_equal(post(s, "POST /v1/check"), more == 0 ? 200 : 400);
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

/* Returns the reply to a command of `n` arguments, each of so many bytes, on a connection of its
 * own. */
static const char *ask_resp(struct scene *s, unsigned n, unsigned bytes)
{
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    char *to = body + sprintf(body, "*%u\r\n$4\r\nECHO\r\n", 1 + n);
    for (unsigned i = 0; i < n; i++) {
        to += sprintf(to, "$%u\r\n%0*d\r\n", bytes, (int)bytes, 0);
    }
    (void)server_send(c, body, (size_t)(to - body)); /* it may be refused before its end */
    return server_reply(c);
}

static void commands(struct scene *s)
{
    enum { ARGUMENT = 16384, MOST = 81920 }; /* of resp_commands.c */
    start(s);
    assert_memory_equal(ask_resp(s, RESP_ARGS_MAX - 1, 1), "-ERR wrong number", 17);
    assert_memory_equal(ask_resp(s, RESP_ARGS_MAX, 1), "-ERR Protocol error: invalid multi", 34);
    assert_memory_equal(ask_resp(s, 1, ARGUMENT), "'0000", 5);
    assert_memory_equal(ask_resp(s, 1, ARGUMENT + 1), "-ERR Protocol error: invalid bulk", 33);
    assert_memory_equal(ask_resp(s, 10, MOST / 10 - 20), "-ERR wrong number", 17);
    assert_memory_equal(ask_resp(s, 10, MOST / 10), "-ERR Protocol error: too big", 28);
    for (unsigned more = 0; more < 2; more++) { /* with its line end */
        struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
        int n = sprintf(body, "PING %0*d\r\n", (int)(RESP_INLINE_MAX - 7 + more), 0);
        (void)server_send(c, body, (size_t)n);
        assert_memory_equal(server_reply(c), more == 0 ? "'000" : "-ERR", 4);
    }
    stop(s);
}

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
    {"http_request.h", "HTTP_HEAD_MAX", head, NULL, NULL},
    {"http_request.h", "HTTP_FIELDS_MAX", head, NULL, NULL},
    {"http_request.h", "HTTP_BODY_MAX", http_body, NULL, NULL},
    {"http_request.h", "HTTP_CHUNKED_MAX", chunks, NULL, NULL},
    {"http_request.h", "HTTP_CHUNKS_MAX", chunks, NULL, NULL},
    {"http_request.h", "HTTP_CHUNK_LINE_MAX", chunks, NULL, NULL},
    {"http_operations.c", "BATCH_MAX", http_batch, NULL, NULL},
    {"http_operations.c", "BATCH_VALUES", batch_values, NULL, NULL},
    {"http_routes.h", "HTTP_QUESTION_MAX", question, NULL, NULL},
    {"http_json.h", "HTTP_JSON_VALUES", json_values, NULL, NULL},
    {"jsontext.h", "JSONTEXT_DEPTH_MAX", json_depth, NULL, NULL},
    {"http_routes.h", "HTTP_LOOKS_MAX", looks, NULL, NULL},
    {"http_auth.c", "QUERY_MAX", query, NULL, NULL},
    {"weir.h", "WEIR_SEVERAL_MAX", several, NULL, NULL},
    {"rls.h", "RLS_ENTRIES_MAX", rls_entries, NULL, NULL},
    {"http_rls.c", "VALUES_MAX", rls_values, NULL, NULL},
    {"resp.h", "RESP_ARGS_MAX", commands, NULL, NULL},
    {"resp.h", "RESP_INLINE_MAX", commands, NULL, NULL},
    {"resp_commands.c", "ARGUMENT_BYTES", commands, NULL, NULL},
    {"resp_commands.c", "COMMAND_BYTES", commands, NULL, NULL},
    {"resp_eval.c", "ARGS_MAX", script_arguments, NULL, NULL},
    {"resp_eval.c", "DIGITS_MAX", script_digits, NULL, NULL},
    {"resp_multi.c", "QUEUE_COMMANDS", multi, NULL, NULL},
    {"resp_multi.c", "QUEUE_BYTES", multi, NULL, NULL},
    {"resp_multi.c", "EXEC_BYTES", exec, NULL, NULL},
    {0},
};
