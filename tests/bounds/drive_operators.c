/* What operators take, the log, and the store. */
#include <sys/socket.h>

#include "bounds/bounds_scene.h"
#include "common/buffer.h"
#include "server/sandbox/job.h"
#include "server/sandbox/sandboxes.h"
#include "support/server/access_secrets.h"

static struct http_answer a;

/* ---- streams of events ---- */

#define STREAM "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n"
#define SECRET "Weir-Secret: a-secret-of-operators\r\n"

static void ask_stream(struct scene *s, unsigned from, const char *request)
{
    int least = 4096;
    struct server_client *c = scene_add(s, PROTOCOL_ADMIN, from);
    (void)setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
    assert_true(server_send(c, request, strlen(request)));
}

static void open_stream(struct scene *s, unsigned from)
{
    ask_stream(s, from, STREAM "\r\n");
}

/* Returns the status with which a stream is answered; 0: it was closed. */
static int status_of(struct server_client *c)
{
    char head[16] = "";
    return recv(c->fd, head, 12, MSG_WAITALL) == 12 ? atoi(head + 9) : 0;
}

static const uint64_t *streams_open(struct scene *s)
{
    return &s->world.server.workers[1].counts.streams;
}

/* Streams without a secret do not keep the operator of their address out. */
static void streams_of_roles(struct scene *s)
{
    struct server_options o = scene_options();
    o.access = secrets(NULL, "a-secret-of-operators");
    scene_start(s, SCENE_RULES, &o);
    for (unsigned i = 0; i < SERVER_STREAMS; i++) {
        open_stream(s, CROWD);
        assert_int_equal(status_of(&s->crowd[i]), 200);
    }
    ask_stream(s, CROWD, "HEAD /v1/events HTTP/1.1\r\nHost: localhost\r\n" SECRET "\r\n");
    assert_int_equal(status_of(&s->crowd[s->count - 1]), 200);
    assert_int_equal(threads_get(streams_open(s)), SERVER_STREAMS); /* none made room for it */
    for (unsigned i = 0; i < 2 * SERVER_STREAMS; i++) {
        ask_stream(s, CROWD, STREAM SECRET "\r\n");
        int status = status_of(&s->crowd[s->count - 1]);
        assert_int_equal(status, i < SERVER_STREAMS ? 200 : 503);
    }
    open_stream(s, OTHER); /* a lower role takes no place */
    assert_int_equal(status_of(&s->crowd[s->count - 1]), 503);
    scene_stop(s);
    access_close(o.access);
}

static void streams(struct scene *s)
{
    struct server_options o = scene_options();
    streams_of_roles(s);
    scene_start(s, SCENE_RULES, &o);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 3 * SERVER_STREAMS; i++) {
            open_stream(s, CROWD);
            int status = status_of(&s->crowd[s->count - 1]);
            assert_int_equal(status, i < SERVER_STREAMS ? 200 : 503);
        }
        assert_int_equal(threads_get(streams_open(s)), SERVER_STREAMS);
        open_stream(s, OTHER); /* an address with fewer takes a place */
        assert_int_equal(status_of(&s->crowd[s->count - 1]), 200);
        assert_int_equal(scene_http(s, PROTOCOL_ADMIN, CROWD, "GET /v1/status", "", "", &a), 200);
        scene_close_crowd(s);
        for (unsigned i = 0; i < 600 && threads_get(streams_open(s)) > 0; i++) {
            (void)usleep(100000);
        }
        assert_int_equal(threads_get(streams_open(s)), 0);
    }
    scene_both_are_served(s);
    scene_stop(s);
}

static void stream_bytes(struct scene *s)
{
    struct server_options o = scene_options();
    o.sample_ms = 5;
    scene_start(s, SCENE_RULES, &o);
    for (unsigned i = 0; i < SERVER_STREAMS / 2; i++) {
        open_stream(s, CROWD);
    }
    scene_await(&s->world.server.workers[1].counts.streams_dropped, SERVER_STREAMS / 2);
    assert_int_equal(scene_http(s, PROTOCOL_ADMIN, CROWD, "GET /v1/status", "", "", &a), 200);
    scene_both_are_served(s);
    scene_stop(s);
}

enum { LONG_LIMITS = 60 };

static void fetch_events(struct scene *s, struct buffer *told)
{
    ssize_t n = recv(s->crowd[0].fd, buffer_room(told, 65536), 65536, MSG_DONTWAIT);
    buffer_add(told, n > 0 ? (size_t)n : 0);
}

/* Has a decision of every limit at once. */
static void decide_all(struct server_client *c)
{
    char words[64];
    for (unsigned i = 0; i < LONG_LIMITS; i++) {
        (void)snprintf(words, sizeof words, "WEIR.CHECK a-limit-with-a-long-name-%u x", i);
        assert_true(server_say(c, words));
    }
    for (unsigned i = 0; i < LONG_LIMITS; i++) {
        assert_memory_equal(server_reply(c), "['allow'", 8);
    }
}

/* Returns the length of the longest event. */
static size_t longest(struct weir_text told)
{
    size_t most = 0;
    while (told.len > 0) {
        const char *end = memmem(told.at, told.len, "\n\n", 2);
        size_t n = end != NULL ? (size_t)(end - told.at) + 2 : told.len;
        most = n > most ? n : most;
        told = text_after(told, n);
    }
    return most;
}

/* A sample that is too long is left out; the stream and its neighbours go on. */
static void long_events(struct scene *s)
{
    static char rules[8192];
    struct server_options o = scene_options();
    struct buffer told;
    char *to = stpcpy(rules, "limits:\n"
                             "  - {name: api, key: [user], rate: 1000000/s, max_keys: 10}\n");
    for (unsigned i = 0; i < LONG_LIMITS; i++) {
        to += sprintf(to,
                      "  - {name: a-limit-with-a-long-name-%u, key: [user], rate: 1000000/s,"
                      " max_keys: 10}\n",
                      i);
    }
    o.sample_ms = 20;
    scene_start(s, rules, &o);
    buffer_init(&told, 16u << 20);
    open_stream(s, CROWD);
    assert_int_equal(status_of(&s->crowd[0]), 200);
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    for (unsigned i = 0; i < 50; i++) {
        decide_all(c);
        fetch_events(s, &told);
        (void)usleep(10000);
    }
    unsigned tries = 0;
    while (memmem(told.at, told.end, "event: sample", 13) == NULL) { /* short ones come again */
        assert_true(++tries < 600);
        (void)usleep(100000);
        fetch_events(s, &told);
    }
    assert_in_range(longest(buffer_text(&told)), 300, 2048 + 16); /* small.sed */
    buffer_finish(&told);
    assert_int_equal(threads_get(streams_open(s)), 1);
    assert_int_equal(scene_http(s, PROTOCOL_ADMIN, CROWD, "GET /v1/status", "", "", &a), 200);
    scene_both_are_served(s);
    scene_stop(s);
}

/* ---- sandboxes ---- */

#define SANDBOX "{\"rules\":\"limits: [{name: a, key: [user], rate: 1/s, max_keys: 10}]\"}"

static int make_sandbox(struct scene *s, unsigned from, char *id)
{
    int status = scene_http(s, PROTOCOL_ADMIN, from, "POST /v1/sandbox", "", SANDBOX, &a);
    const char *at = status < 300 ? strstr(a.body, "\"sandbox\":\"") : NULL;
    if (at != NULL) {
        (void)snprintf(id, 33, "%.32s", at + 11);
    }
    return status;
}

static void sandboxes(struct scene *s)
{
    char id[33] = "";
    struct server_options o = scene_options();
    o.sandbox_idle_ms = 500;
    scene_start(s, SCENE_RULES, &o);
    for (unsigned i = 0; i < SANDBOXES_MAX; i++) {
        assert_true(make_sandbox(s, CROWD, id) / 100 == 2);
    }
    assert_int_equal(make_sandbox(s, OTHER, id), 503);
    assert_int_equal(scene_http(s, PROTOCOL_ADMIN, OTHER, "GET /v1/status", "", "", &a), 200);
    unsigned tries = 0;
    while (make_sandbox(s, OTHER, id) / 100 != 2) { /* those without a step end */
        assert_true(++tries < 600);
        (void)usleep(100000);
    }
    scene_both_are_served(s);
    scene_stop(s);
}

static void sandbox_asks(struct scene *s)
{
    char id[33] = "";
    char line[96];
    char body[1024];
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    assert_true(make_sandbox(s, CROWD, id) / 100 == 2);
    assert_non_null(strstr(a.body, "\"expires_in_s\":300")); /* SANDBOX_IDLE_MS */
    (void)snprintf(line, sizeof line, "POST /v1/sandbox/%s", id);
    for (unsigned more = 0; more < 2; more++) {
        char *to = stpcpy(body, "{\"asks\":[");
        for (unsigned i = 0; i < SANDBOX_ASKS_MAX + more; i++) {
            to = stpcpy(to, i > 0 ? "," : "");
            to = stpcpy(to, "{\"at_ms\":0,\"attributes\":{\"user\":\"u\"}}");
        }
        (void)stpcpy(to, "]}");
        assert_int_equal(scene_http(s, PROTOCOL_ADMIN, CROWD, line, "", body, &a),
                         more == 0 ? 200 : 400);
    }
    scene_both_are_served(s);
    scene_stop(s);
}

static void sandbox_step_time(struct scene *s)
{
    char id[33] = "";
    char line[96];
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    assert_int_equal(s->world.server.sandboxes->step_ns, SANDBOX_STEP_NS);
    scene_stop(s);
    o.sandbox_step_ns = 1;
    scene_start(s, SCENE_RULES, &o);
    assert_true(make_sandbox(s, CROWD, id) / 100 == 2);
    (void)snprintf(line, sizeof line, "POST /v1/sandbox/%s", id);
    for (unsigned gone = 0; gone < 2; gone++) {
        int status = scene_http(s, PROTOCOL_ADMIN, CROWD, line, "",
                                "{\"asks\":[{\"at_ms\":0,\"attributes\":{\"user\":\"u\"}}]}", &a);
        assert_int_equal(status, gone == 0 ? 422 : 404);
    }
    scene_both_are_served(s);
    scene_stop(s);
}

static void sandbox_values(struct scene *s)
{
    static char body[1 << 17] = "{\"asks\":[0";
    char id[33] = "";
    char line[96];
    struct server_options o = scene_options();
    char *to = body + strlen("{\"asks\":[0");
    for (unsigned i = 0; i < 32768; i++) { /* STEP_VALUES */
        to = stpcpy(to, ",0");
    }
    (void)stpcpy(to, "]}");
    scene_start(s, SCENE_RULES, &o);
    assert_true(make_sandbox(s, CROWD, id) / 100 == 2);
    (void)snprintf(line, sizeof line, "POST /v1/sandbox/%s", id);
    assert_int_equal(scene_http(s, PROTOCOL_ADMIN, CROWD, line, "", body, &a), 400);
    assert_non_null(strstr(a.body, "found too many values"));
    scene_both_are_served(s);
    scene_stop(s);
}

/* ---- the demo ---- */

static int make_demo(struct scene *s, unsigned from)
{
    return scene_http(s, PROTOCOL_ADMIN, from, "POST /v1/demo", "", "{\"scenario\":\"all\"}", &a);
}

/* One address has one of the places, however often it begins, and operators have theirs. */
static void demo_sandboxes(struct scene *s)
{
    char id[33] = "";
    struct server_options o = scene_options();
    o.demo = true;
    scene_start(s, SCENE_RULES, &o);
    for (unsigned i = 0; i < 4 * DEMO_SANDBOXES_MAX; i++) {
        assert_int_equal(make_demo(s, CROWD), 201);
    }
    for (unsigned i = 1; i < DEMO_SANDBOXES_MAX; i++) {
        assert_int_equal(make_demo(s, CROWD + i), 201);
    }
    assert_int_equal(make_demo(s, OTHER), 503);
    assert_true(make_sandbox(s, OTHER, id) / 100 == 2);
    assert_int_equal(scene_http(s, PROTOCOL_ADMIN, OTHER, "GET /v1/status", "", "", &a), 200);
    unsigned tries = 0;
    while (make_demo(s, OTHER) != 201) { /* those without a step end */
        assert_true(++tries < 600);
        (void)usleep(100000);
    }
    scene_both_are_served(s);
    scene_stop(s);
}

/* Viewers that ask for sandboxes and leave before the reply. */
static void demo_viewers_leave(struct scene *s)
{
    static const char request[] =
        "POST /v1/demo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 18\r\n\r\n{\"scenario\":\"all\"}";
    struct server_options o = scene_options();
    o.demo = true;
    scene_start(s, SCENE_RULES, &o);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 4; i++) {
            (void)server_send(scene_add(s, PROTOCOL_ADMIN, CROWD + i % 3), request,
                              sizeof request - 1);
        }
        assert_int_equal(scene_http(s, PROTOCOL_ADMIN, OTHER, "GET /v1/status", "", "", &a), 200);
        scene_close_crowd(s);
    }
    scene_both_are_served(s);
    scene_stop(s);
    demo_sandboxes(s);
}

static void demo_bodies(struct scene *s)
{
    char body[DEMO_BODY_MAX + 2];
    struct server_options o = scene_options();
    o.demo = true;
    scene_start(s, SCENE_RULES, &o);
    for (size_t len = DEMO_BODY_MAX; len <= DEMO_BODY_MAX + 1; len++) {
        memset(body, ' ', len);
        memcpy(body, "{\"scenario\":\"all\"}", 18);
        body[len] = 0;
        assert_int_equal(scene_http(s, PROTOCOL_ADMIN, CROWD, "POST /v1/demo", "", body, &a),
                         len == DEMO_BODY_MAX ? 201 : 413);
    }
    scene_both_are_served(s);
    scene_stop(s);
}

/* ---- jobs ---- */

#define JOBS (4 * JOBS_MAX)
#define JOB_BYTES 50000 /* so that the check takes a while */

/* Asks for more jobs at once than may wait. Adds how many were done, and how many were refused. */
static void ask_for_jobs(struct scene *s, unsigned *done, unsigned *refused)
{
    static char text[JOB_BYTES + 512];
    int n = snprintf(text, sizeof text,
                     "POST /v1/config/check HTTP/1.1\r\nHost: localhost\r\n"
                     "Content-Type: application/json\r\nContent-Length: %u\r\n\r\nlimits:\n",
                     JOB_BYTES + 8);
    for (int i = 0; i < JOB_BYTES; i += 50) { /* of 50 bytes each */
        (void)snprintf(text + n + i, 51, "- {name: a%05d, key: [user], rate: 1/s}%*s\n", i, 9, "");
    }
    for (unsigned i = 0; i < JOBS; i++) {
        assert_true(
            server_send(scene_add(s, PROTOCOL_ADMIN, CROWD + i), text, (size_t)n + JOB_BYTES - 1));
    }
    for (unsigned i = 0; i < JOBS; i++) {
        assert_true(server_send(&s->crowd[i], "\n", 1));
    }
    assert_int_equal(scene_http(s, PROTOCOL_ADMIN, OTHER, "GET /v1/status", "", "", &a), 200);
    for (unsigned i = 0; i < JOBS; i++) {
        int status = status_of(&s->crowd[i]);
        assert_true(status == 200 || status == 422 || status == 503);
        *refused += status == 503;
        *done += status != 503;
    }
}

/* Jobs whose connections close before the end, and jobs beyond what may wait. */
static void jobs(struct scene *s)
{
    static const char request[] =
        "POST /v1/config/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 60\r\n\r\n"
        "limits: [{name: a, key: [user], rate: 1/s, max_keys: 10}]   ";
    struct server_options o = scene_options();
    unsigned done = 0;
    unsigned refused = 0;
    scene_start(s, SCENE_RULES, &o);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 4; i++) {
            (void)server_send(scene_add(s, PROTOCOL_ADMIN, CROWD + i), request, sizeof request - 1);
        }
        assert_int_equal(scene_http(s, PROTOCOL_ADMIN, OTHER, "GET /v1/status", "", "", &a), 200);
        scene_close_crowd(s);
    }
    for (unsigned round = 0; round < 50 && (refused == 0 || done == 0); round++) {
        ask_for_jobs(s, &done, &refused);
        scene_close_crowd(s);
    }
    assert_true(refused > 0 && done > 0);
    scene_both_are_served(s);
    scene_stop(s);
}

/* A file with so many mistakes that the reply would be too long. */
static void long_reply_of_a_job(struct scene *s)
{
    static char body[8192];
    struct server_options o = scene_options();
    char *to = stpcpy(body, "limits:\n");
    for (unsigned i = 0; i < 80; i++) {
        to += sprintf(to, "  - {name: a, kex: [user], rate: often, max_keys: none}\n");
    }
    scene_start(s, SCENE_RULES, &o);
    int status = scene_http(s, PROTOCOL_ADMIN, CROWD, "POST /v1/config/check", "", body, &a);
    assert_int_equal(status, 422);
    scene_both_are_served(s);
    scene_stop(s);
}

static void sandbox_times(struct scene *s)
{
    sandbox_asks(s);
    sandboxes(s);
}

/* ---- blocks ---- */

/* Blocks keys until that is refused, or `n` are blocked. Returns how many. */
static unsigned block(struct scene *s, unsigned n)
{
    char body[96];
    unsigned blocked = 0;
    for (bool goes_on = true; goes_on && blocked < n;) {
        (void)snprintf(body, sizeof body, "{\"limit\":\"api\",\"key\":\"key%u\",\"for_ms\":60000}",
                       blocked);
        goes_on = scene_http(s, PROTOCOL_ADMIN, CROWD, "POST /v1/keys/block", "", body, &a) == 200;
        blocked += goes_on;
    }
    return blocked;
}

static void blocks(struct scene *s)
{
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    assert_in_range(block(s, 1000), 32, 200); /* 64 places, of which each key may have a few */
    assert_int_equal(scene_http(s, PROTOCOL_ADMIN, OTHER, "GET /v1/blocks", "", "", &a), 200);
    scene_both_are_served(s);
    scene_stop(s);
}

static void block_pages(struct scene *s)
{
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    (void)block(s, 10);
    assert_int_equal(scene_http(s, PROTOCOL_ADMIN, CROWD, "GET /v1/blocks", "", "", &a), 200);
    unsigned told = 0;
    for (const char *at = a.body; (at = strstr(at, "\"key")) != NULL; at++) {
        told += strncmp(at, "\"key", 4) == 0 && at[4] >= '0' && at[4] <= '9';
    }
    assert_in_range(told, 1, 4); /* small.sed */
    scene_both_are_served(s);
    scene_stop(s);
}

const struct driver drivers_operators[] = {
    {"server.h", "SERVER_STREAMS", streams, NULL, NULL},
    {"server.h", "SERVER_STREAM_BYTES", stream_bytes, NULL, NULL},
    {"events.c", "TEXT_BYTES", long_events, NULL, NULL},
    {"sandboxes.h", "SANDBOXES_MAX", sandboxes, NULL, NULL},
    {"sandboxes.h", "SANDBOX_IDLE_MS", sandbox_times, NULL, NULL},
    {"sandboxes.h", "SANDBOX_ASKS_MAX", sandbox_asks, NULL, NULL},
    {"sandboxes.h", "SANDBOX_STEP_NS", sandbox_step_time, NULL, NULL},
    {"sandbox_step.c", "STEP_VALUES", sandbox_values, NULL, NULL},
    {"sandboxes.h", "DEMO_SANDBOXES_MAX", demo_viewers_leave, NULL, NULL},
    {"sandboxes.h", "DEMO_IDLE_MS", demo_sandboxes, NULL, NULL},
    {"sandboxes.h", "DEMO_BODY_MAX", demo_bodies, NULL, NULL},
    {"job.h", "JOBS_MAX", jobs, NULL, NULL},
    {"job.h", "JOB_REPLY_BYTES", long_reply_of_a_job, NULL, NULL},
    {"admin_blocks.c", "BLOCKS_MOST", block_pages, NULL, NULL},
    {"weir.h", "max_blocks", blocks, NULL, NULL},
    {"connection_accept.c", "STREAM_KERNEL_BYTES", stream_bytes, NULL, NULL},
    {0},
};
