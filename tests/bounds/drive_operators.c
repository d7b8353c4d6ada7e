/* What operators take, the log, and the store. */
#include <sys/socket.h>

#include "bounds/bounds_scene.h"
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

/* A sample that is too long is left out; the stream and its neighbours go on. */
static void long_events(struct scene *s)
{
    static char rules[8192];
    struct server_options o = scene_options();
    char *to = stpcpy(rules, "limits:\n");
    for (unsigned i = 0; i < 60; i++) {
        to += sprintf(to, "  - {name: %s%u, key: [user], rate: 1000000/s, max_keys: 10}\n",
                      i == 0 ? "api" : "a-limit-with-a-long-name-", i);
    }
    to = strstr(rules, "api0");
    memcpy(to, "api ", 4);
    o.sample_ms = 20;
    scene_start(s, rules, &o);
    open_stream(s, CROWD);
    assert_int_equal(status_of(&s->crowd[0]), 200);
    (void)usleep(500000);
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

/* More jobs at once than may wait; their connections close before the end. */
static void jobs(struct scene *s)
{
    static const char request[] =
        "POST /v1/config/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 60\r\n\r\n"
        "limits: [{name: a, key: [user], rate: 1/s, max_keys: 10}]   ";
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 4; i++) {
            (void)server_send(scene_add(s, PROTOCOL_ADMIN, CROWD + i), request, sizeof request - 1);
        }
        assert_int_equal(scene_http(s, PROTOCOL_ADMIN, OTHER, "GET /v1/status", "", "", &a), 200);
        scene_close_crowd(s);
    }
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
    {"sandboxes.h", "SANDBOX_IDLE_MS", sandboxes, NULL, NULL},
    {"sandboxes.h", "SANDBOX_ASKS_MAX", sandbox_asks, NULL, NULL},
    {"job.h", "JOBS_MAX", jobs, NULL, NULL},
    {"job.h", "JOB_REPLY_BYTES", long_reply_of_a_job, NULL, NULL},
    {"admin_blocks.c", "BLOCKS_MOST", block_pages, NULL, NULL},
    {"weir.h", "max_blocks", blocks, NULL, NULL},
    {"log.h", "LOG_LIMIT_NS", NULL, "unit/common/test_log.c",
     "a_limited_line_comes_once_in_a_second"},
    {"denied_log.h", "DENIED_LOG_EACH", NULL, "unit/server/test_denied_log.c",
     "then_every_hundredth"},
    {"denied_log.h", "DENIED_LOG_KEYS", NULL, "unit/server/test_denied_log.c",
     "a_flood_of_new_keys"},
    {"history.h", "HISTORY_BYTES", NULL, "unit/server/test_history.c", "HISTORY_BYTES"},
    {"history.h", "HISTORY_EVENTS", NULL, "unit/server/test_history.c", "the_newest_50_events"},
    {"history.h", "HISTORY_EVENT_BYTES", NULL, "unit/server/test_history.c", "too_many_messages"},
    {"top_denied.h", "TOP_KEY_BYTES", NULL, "unit/server/test_top.c", "TOP_KEY_BYTES"},
    {"top_panes.h", "TOP_BYTES", NULL, "unit/server/test_top_panes.c",
     "all_of_it_takes_at_most_8_mb"},
    {"fleet_thread.h", "FLEET_READ_BYTES", NULL, "fleet/test_place.c", "ask_many(FLEET_QUEUE_MAX)"},
    {"socket.c", "READS_MAX", NULL, "fleet/test_place.c", "ask_many(FLEET_QUEUE_MAX)"},
    {"fleet_thread.c", "ROUNDS_MAX", NULL, "fleet/test_place.c", "ask_many(FLEET_QUEUE_MAX)"},
    {"fleet_thread.h", "FLEET_SEALED_BYTES", NULL, "fleet/test_tls.c", "rediss"},
    {0},
};
