/* The store of a fleet: a real Redis, of which small numbers are asked and read in each turn. */
#include "bounds/bounds_scene.h"
#include "fleet/fleet.h"
#include "fleet/loop.h"
#include "support/fleet/fleet_open.h"
#include "support/server/server_store.h"

#define RULES                                                                                      \
    "limits: [{name: far, key: [user], rate: 1000000/day, consistency: exact,\n"                   \
    "          on_store_failure: open},\n"                                                         \
    "         {name: api, key: [user], rate: 1000000/s, max_keys: 100, consistency: local}]"

static struct server_store store;
static int64_t no_clock[2]; /* the store's own time counts */
static struct http_answer a;

/* With `tls` the store speaks it; NULL: plain text. */
static void start(struct scene *s, const struct redis_tls *tls)
{
    struct weir_fleet_options o = WEIR_FLEET_OPTIONS_INIT;
    struct server_options options = scene_options();
    struct weir_error error = {0};
    redis_world_alone(&store.redis, &(struct redis_world_options){.tls = tls});
    o.tls_ca = tls != NULL ? certificates_path(tls->certificates, "ca.crt") : NULL;
    store.clock = no_clock;
    o.url = store.redis.url;
    o.deadline_ns = 10 * WEIR_SECOND;
    o.fleet_size = 1;
    if (fleet_open_bare(&store.fleet, &o, &error) != 0) {
        fail_msg("%s", error.text);
    }
    s->count = 0;
    store.fleet->connections = 1; /* so that two threads share it, by a queue */
    options.threads = 2;
    server_world_start_shared(&s->world, RULES, &options, &store);
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        (void)server_address(&s->world.server, i, s->address[i], sizeof s->address[i]);
    }
}

static void stop(struct scene *s)
{
    scene_both_are_served(s);
    scene_stop(s);
    weir_fleet_close(store.fleet);
    redis_world_stop(&store.redis);
}

/* Asks the store n questions in one turn. Returns how many were decided without it. */
static unsigned ask_batch(struct scene *s, unsigned from, unsigned n)
{
    static char body[1 << 16];
    char *to = stpcpy(body, "{\"requests\":[");
    for (unsigned i = 0; i < n; i++) {
        to += sprintf(to, "%s{\"limit\":\"far\",\"key\":\"user%u\"}", i > 0 ? "," : "", i);
    }
    (void)stpcpy(to, "]}");
    assert_int_equal(scene_http(s, PROTOCOL_HTTP, from, "POST /v1/check/batch", "", body, &a), 200);
    return scene_count(a.body, "[\"degraded\"]");
}

static void await_store(struct scene *s)
{
    for (unsigned tries = 0; ask_batch(s, OTHER, 1) > 0; tries++) {
        assert_true(tries < 600);
        (void)usleep(100000);
    }
}

/* What waits beyond the bound is decided at once, unless the fleet's thread was faster; an honest
 * client has its answer from the store. */
static void queue(struct scene *s)
{
    unsigned degraded = 0;
    start(s, NULL);
    await_store(s);
    for (unsigned round = 0; round < 5 || (round < 500 && degraded == 0); round++) {
        unsigned some = ask_batch(s, CROWD, 4 * FLEET_QUEUE_MAX);
        assert_true(some <= 3 * FLEET_QUEUE_MAX);
        degraded += some;
        await_store(s);
    }
    assert_true(degraded > 0);
    stop(s);
}

/* Long pipelines of several connections: each question has its answer, and none goes astray. */
static void many_questions(struct scene *s, const struct redis_tls *tls)
{
    enum { CLIENTS = 6, EACH = 200 };
    start(s, tls);
    await_store(s);
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD + i % 2);
        for (unsigned n = 0; n < EACH; n++) {
            assert_true(server_say(c, "WEIR.CHECK far alice"));
        }
    }
    scene_both_are_served(s);
    for (unsigned i = 0; i < CLIENTS; i++) {
        for (unsigned n = 0; n < EACH; n++) {
            assert_memory_equal(server_reply(&s->crowd[i]), "['allow' 'far'", 14);
        }
    }
    for (unsigned i = 0; i < CLIENTS; i++) { /* these close with questions out */
        for (unsigned n = 0; n < 50; n++) {
            assert_true(server_say(&s->crowd[i], "WEIR.CHECK far bob"));
        }
    }
    scene_close_crowd(s);
    await_store(s);
    stop(s);
}

static void reads(struct scene *s)
{
    many_questions(s, NULL);
}

static void sealed(struct scene *s)
{
    static struct certificates files;
    certificates_make(&files);
    many_questions(s, &(struct redis_tls){.certificates = &files});
    certificates_remove(&files);
}

const struct driver drivers_store[] = {
    {"loop.h", "FLEET_QUEUE_MAX", queue, NULL, NULL},
    {"fleet_thread.h", "FLEET_READ_BYTES", reads, NULL, NULL},
    {"socket.c", "READS_MAX", reads, NULL, NULL},
    {"fleet_thread.c", "ROUNDS_MAX", reads, NULL, NULL},
    {"fleet_thread.h", "FLEET_SEALED_BYTES", sealed, NULL, NULL},
    {0},
};
