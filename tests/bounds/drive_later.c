/* Answers that come later, wrong secrets, and what the server remembers. */
#include <sys/socket.h>

#include "bounds/bounds_scene.h"
#include "server/operations/reservations.h"
#include "server/loop/penalty.h"
#include "support/server/access_secrets.h"
#include "support/server/server_fleet.h"
#include "support/server/server_http2.h"

static struct http_answer a;

/* ---- a store that does not answer ---- */

static struct slow_scene slow;

#define SLOW_RULES                                                                                 \
    "limits:\n"                                                                                    \
    "  - {name: api, key: [user], rate: 100/day, consistency: exact}\n"                            \
    "  - {name: here, key: [user], rate: 1000000/day, consistency: local}\n"

static void start_slow(struct scene *s, const struct server_options *o)
{
    s->count = 0;
    slow_start(&slow, SLOW_RULES, o);
    (void)snprintf(s->address[PROTOCOL_RESP], sizeof s->address[0], "%s", slow.resp);
    (void)snprintf(s->address[PROTOCOL_HTTP], sizeof s->address[0], "%s", slow.http.address);
}

/* Ends with questions out: some are answered before their connections close, some after. */
static void stop_slow(struct scene *s)
{
    slow_answer(&slow, 3);
    scene_close_crowd(s);
    slow_answer(&slow, 1000000);
    slow_stop(&slow);
}

static void ask_slowly(struct scene *s, unsigned connections, unsigned each)
{
    for (unsigned i = 0; i < connections; i++) {
        struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
        for (unsigned j = 0; j < each; j++) {
            assert_true(server_say(c, "WEIR.CHECK api alice"));
        }
    }
}

static void is_decided_here(struct scene *s, unsigned from)
{
    struct server_client c;
    server_connect_from(&c, s->address[PROTOCOL_RESP], from);
    assert_memory_equal(server_ask(&c, "WEIR.CHECK here bob"), "['allow'", 8);
    server_disconnect(&c);
}

static void pending(struct scene *s)
{
    start_slow(s, NULL);
    ask_slowly(s, 3, 5 * SERVER_PENDING);
    slow_await(&slow, 3 * SERVER_PENDING);
    (void)usleep(200000);
    assert_int_equal(slow.fleet.out_most, 3 * SERVER_PENDING);
    is_decided_here(s, CROWD);
    is_decided_here(s, OTHER);
    slow_answer(&slow, 2 * SERVER_PENDING);
    stop_slow(s);
}

/* Every connection waits for the store: health checks get the reserve, others are refused. */
static void reserve(struct scene *s)
{
    struct server_options o = scene_options();
    o.connections = 4;
    o.listen[PROTOCOL_GRPC] = o.listen[PROTOCOL_METRICS] = "off";
    start_slow(s, &o);
    ask_slowly(s, 4, 1);
    slow_await(&slow, 4);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(
            scene_http(s, PROTOCOL_HTTP, i % 2 == 0 ? CROWD : OTHER, "GET /readyz", "", "", &a),
            200);
    }
    struct server_client c;
    server_connect_from(&c, s->address[PROTOCOL_RESP], OTHER);
    (void)server_say(&c, "PING");
    assert_memory_equal(server_reply(&c), "-ERR", 4);
    server_disconnect(&c);
    for (unsigned i = 0; i < 3 * SERVER_RESERVE; i++) { /* they take all places, and say nothing */
        (void)scene_add(s, PROTOCOL_HTTP, CROWD);
    }
    (void)scene_http(s, PROTOCOL_HTTP, OTHER, "GET /readyz", "", "", &a); /* all were accepted */
    /* One more while it is refused. */
    assert_true(threads_get(&slow.server.connections) <= 4 + SERVER_RESERVE + 1);
    unsigned tries = 0;
    while (scene_http(s, PROTOCOL_HTTP, OTHER, "GET /readyz", "", "", &a) != 200) {
        assert_true(++tries < 600); /* they end by SERVER_RESERVE_MS */
        (void)usleep(100000);
    }
    stop_slow(s);
}

/* The oldest connections of an address all wait for the store: a new one is refused, although some
 * that came later are idle. */
static void looks(struct scene *s)
{
    struct server_options o = scene_options();
    o.connections_per_address = CROWD_LOOKS + 3;
    start_slow(s, &o);
    ask_slowly(s, CROWD_LOOKS, 1);
    slow_await(&slow, CROWD_LOOKS);
    for (unsigned i = 0; i < 3; i++) {
        assert_string_equal(server_ask(scene_add(s, PROTOCOL_RESP, CROWD), "PING"), "+PONG");
    }
    (void)usleep(2 * CROWD_FRESH_MS * 1000);
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    assert_memory_equal(server_reply(c), "-ERR", 4);
    assert_string_equal(server_ask(c - 1, "PING"), "+PONG");
    is_decided_here(s, OTHER);
    slow_answer(&slow, CROWD_LOOKS);
    assert_memory_equal(server_reply(&s->crowd[0]), "['allow'", 8);
    is_decided_here(s, CROWD);
    stop_slow(s);
}

/* ---- replies to gateways that are held back ---- */

#define AUTH "GET /v1/auth HTTP/1.1\r\nHost: localhost\r\nX-Original-URI: /slow\r\n\r\n"

static void held(struct scene *s)
{
    enum { GATEWAYS = 1 + 3 * DELAYS_HELD };
    struct server_options o = scene_options();
    scene_start(s,
                "server: {hold_max: 1min}\n"
                "limits: [{name: slow, when: {path: /slow}, key: [], algorithm: leaky_bucket,\n"
                "          rate: 6/min, queue: 50},\n"
                "         {name: api, key: [user], rate: 1000000/s, max_keys: 100}]",
                &o);
    const struct worker *w = scene_worker(s);
    for (unsigned i = 0; i < GATEWAYS; i++) {
        assert_true(server_send(scene_add(s, PROTOCOL_HTTP, CROWD), AUTH, sizeof AUTH - 1));
    }
    for (unsigned i = 1 + DELAYS_HELD; i < GATEWAYS; i++) { /* charges nothing */
        assert_true(http_receive(s->crowd[i].fd, &a));
        assert_int_equal(a.status, 429);
        assert_true(http_retry_after(&a) > 0);
    }
    assert_true(threads_get(&w->counts.holding) <= DELAYS_HELD);
    assert_int_equal(threads_get(&w->counts.unheld), GATEWAYS - 1 - DELAYS_HELD);
    scene_both_are_served(s);
    scene_stop(s);
}

/* The second place of the queue is 100 ms away, which is longer than a reply is held. */
static void hold_time(struct scene *s)
{
    static const char rules[] =
        "server: {hold_max: %s}\n"
        "limits: [{name: slow, when: {path: /slow}, key: [], algorithm: leaky_bucket,\n"
        "          rate: 10/s, queue: 5},\n"
        "         {name: api, key: [user], rate: 1000000/s, max_keys: 100}]";
    struct server_options o = scene_options();
    for (unsigned longer = 0; longer < 2; longer++) {
        char text[sizeof rules + 8];
        unsigned denied = 0;
        (void)snprintf(text, sizeof text, rules, longer == 0 ? "50ms" : "10s");
        scene_start(s, text, &o);
        for (unsigned i = 0; i < 4; i++) {
            assert_true(server_send(scene_add(s, PROTOCOL_HTTP, CROWD), AUTH, sizeof AUTH - 1));
        }
        for (unsigned i = 0; i < 4; i++) {
            assert_true(http_receive(s->crowd[i].fd, &a));
            denied += a.status == 429;
        }
        assert_in_range(denied, longer == 0 ? 1 : 0, longer == 0 ? 3 : 0);
        scene_both_are_served(s);
        scene_stop(s);
    }
}

/* ---- wrong secrets ---- */

/* Notes wrong secrets of 10.0.`address`. Returns the delay of the last refusal. */
static uint64_t note(struct scene *s, unsigned address, unsigned n, uint64_t now_ms)
{
    char text[32];
    struct address a4;
    uint64_t delay = 0;
    (void)snprintf(text, sizeof text, "10.0.%u.%u", address / 200, address % 200);
    assert_int_equal(address_parse(text_of(text), &a4, NULL), 0);
    for (unsigned i = 0; i < n; i++) {
        delay = penalty_note(s->world.server.penalties, &a4, now_ms);
    }
    return delay;
}

static void delays(struct scene *s)
{
    const uint64_t t = 1000000;
    struct server_options o = scene_options();
    o.access = secrets("a-secret-of-callers", NULL);
    scene_start(s, SCENE_RULES, &o);
    assert_int_equal(note(s, 1, PENALTY_FREE, t), 0);
    assert_true(note(s, 1, 1, t) > 0);
    assert_int_equal(note(s, 1, 40, t), 200); /* small.sed */
    assert_int_equal(note(s, 1, 1, t + 1000), 200);
    assert_int_equal(note(s, 1, 1, t + 1000 + 1001), 0); /* forgotten */
    assert_int_equal(note(s, 2, PENALTY_FREE, t), 0);
    for (unsigned i = 0; i < 50 * 16; i++) { /* of which each has more than that one */
        assert_true(note(s, 3 + i, PENALTY_FREE + 2, t) > 0);
    }
    assert_int_equal(note(s, 2, 1, t), 0); /* its place was taken */
    scene_stop(s);
    access_close(o.access);
}

static void wrong_secrets(struct scene *s)
{
    struct server_options o = scene_options();
    o.access = secrets("a-secret-of-callers", "a-secret-of-operators");
    scene_start(s, SCENE_RULES, &o);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 60; i++) {
            struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD + i % 30);
            for (unsigned j = 0; j < 1 + scene_random(CONNECTION_WRONG_MAX + 3); j++) {
                (void)server_say(c, "AUTH not-the-secret");
            }
        }
        for (unsigned from = CROWD; from < 9; from++) { /* the right secret is never delayed */
            struct server_client c;
            server_connect_from(&c, s->address[PROTOCOL_RESP], from);
            assert_string_equal(server_ask(&c, "AUTH a-secret-of-callers"), "+OK");
            assert_memory_equal(server_ask(&c, "WEIR.CHECK api x"), "['allow'", 8);
            server_disconnect(&c);
            assert_int_equal(scene_http(s, PROTOCOL_ADMIN, from, "GET /v1/status",
                                        "Weir-Secret: a-secret-of-operators\r\n", "", &a),
                             200);
        }
        scene_close_crowd(s);
    }
    struct server_client *c = scene_add(s, PROTOCOL_RESP, OTHER);
    for (unsigned i = 0; i < CONNECTION_WRONG_MAX; i++) {
        assert_memory_equal(server_ask(c, "AUTH not-the-secret"), "-", 1);
    }
    assert_string_equal(server_reply(c), "end");
    assert_true(threads_get(&scene_worker(s)->counts.delayed) > 0);
    scene_stop(s);
    access_close(o.access);
}

#define GUESSES (3 * CONNECTION_WRONG_MAX)

/* Sends a connection's guesses at once: those after the last that counts are not looked at. */
static void guess(struct scene *s, enum server_protocol protocol)
{
    static const char http[] = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n"
                               "Weir-Secret: not-the-secret\r\n\r\n";
    static const char resp[] = "*2\r\n$4\r\nAUTH\r\n$4\r\nnone\r\n";
    static struct http2_frame frame;
    struct server_client *c = scene_add(s, protocol, OTHER + 1 + protocol);
    if (protocol == PROTOCOL_GRPC) {
        assert_true(http2_begin(c, 65535));
    }
    for (unsigned i = 0; i < GUESSES; i++) {
        if (protocol == PROTOCOL_GRPC) {
            (void)http2_begin_secret_call(c, 2 * i + 1, "/weir.v1.Limiter/Check", "not-the-secret");
        } else {
            (void)(protocol == PROTOCOL_RESP ? server_send(c, resp, sizeof resp - 1)
                                             : server_send(c, http, sizeof http - 1));
        }
    }
    if (protocol == PROTOCOL_GRPC) {
        while (http2_receive(c, &frame)) {
        }
    } else {
        (void)shutdown(c->fd, SHUT_WR);
        while (recv(c->fd, frame.payload, sizeof frame.payload, 0) > 0) {
        }
    }
}

static void guesses_at_once(struct scene *s)
{
    static const enum server_protocol protocols[] = {PROTOCOL_RESP, PROTOCOL_ADMIN, PROTOCOL_GRPC};
    struct server_options o = scene_options();
    o.access = secrets("a-secret-of-callers", "a-secret-of-operators");
    scene_start(s, SCENE_RULES, &o);
    for (unsigned i = 0; i < 3; i++) {
        const struct worker *w =
            &s->world.server.workers[protocols[i] == PROTOCOL_ADMIN ? s->world.server.threads : 0];
        uint64_t before = threads_get(&w->counts.refused_access);
        guess(s, protocols[i]);
        assert_int_equal(threads_get(&w->counts.refused_access) - before, CONNECTION_WRONG_MAX);
    }
    scene_stop(s);
    access_close(o.access);
}

/* Connections that wait for their delayed refusals make room before all others. */
static void delayed_refusals(struct scene *s)
{
    struct server_options o = scene_options();
    o.access = secrets("a-secret-of-callers", "a-secret-of-operators");
    scene_start(s, SCENE_RULES, &o);
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 60; i++) {
            int fd = scene_add(s, PROTOCOL_ADMIN, CROWD)->fd;
            static const char guess[] = "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n"
                                        "Weir-Secret: not-the-secret\r\n\r\n";
            (void)!write(fd, guess, scene_random(3) == 0 ? 1 : sizeof guess - 1);
        }
        for (unsigned i = 0; i < 10; i++) {
            assert_int_equal(scene_http(s, PROTOCOL_ADMIN, CROWD, "GET /v1/status",
                                        "Weir-Secret: a-secret-of-operators\r\n", "", &a),
                             200);
            assert_int_equal(scene_http(s, PROTOCOL_ADMIN, CROWD, "GET /readyz", "", "", &a), 200);
        }
        scene_close_crowd(s);
    }
    scene_stop(s);
    access_close(o.access);
}

static void secrets_and_refusals(struct scene *s)
{
    delays(s);
    wrong_secrets(s);
    delayed_refusals(s);
}

/* ---- what the server remembers ---- */

static void reservations(struct scene *s)
{
    struct server_options o = scene_options();
    unsigned taken[2] = {0, 0};
    scene_start(s, SCENE_RULES, &o);
    for (unsigned i = 0; i < 2; i++) {
        struct server_client *c = scene_add(s, PROTOCOL_RESP, i == 0 ? CROWD : OTHER);
        while (taken[i] <= RESERVATIONS_MAX &&
               strncmp(server_ask(c, "WEIR.RESERVE api alice"), "['allow'", 8) == 0) {
            taken[i]++;
        }
    }
    assert_in_range(taken[0], RESERVATIONS_MAX / 4, RESERVATIONS_MAX * 3 / 4);
    assert_true(taken[1] > 0); /* the other address gets some of what is left */
    scene_both_are_served(s);
    scene_stop(s);
}

static void reservation_time(struct scene *s)
{
    struct server_options o = scene_options();
    char words[64];
    scene_start(s, SCENE_RULES, &o);
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    for (unsigned more = 0; more < 2; more++) {
        (void)snprintf(words, sizeof words, "WEIR.RESERVE api alice TTL %llu",
                       (unsigned long long)(RESERVATION_TTL_LONGEST_MS + more));
        const char *reply = server_ask(c, words);
        assert_int_equal(reply[0], more == 0 ? '[' : '-');
    }
    scene_both_are_served(s);
    scene_stop(s);
}

static void keys(struct scene *s)
{
    char words[64];
    unsigned taken = 0;
    struct server_options o = scene_options();
    scene_start(s,
                "limits: [{name: few, key: [user], rate: 1000/day, max_keys: 64, on_full: deny},\n"
                "         {name: api, key: [user], rate: 1000000/s, max_keys: 100}]",
                &o);
    struct server_client *honest = scene_add(s, PROTOCOL_RESP, OTHER);
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    assert_memory_equal(server_ask(honest, "WEIR.CHECK few honest"), "['allow'", 8);
    do {
        (void)snprintf(words, sizeof words, "WEIR.CHECK few key%u", taken);
    } while (strncmp(server_ask(c, words), "['allow'", 8) == 0 && ++taken < 10000);
    assert_non_null(strstr(c->reply, "'full'"));
    assert_in_range(taken, 32, 200); /* of 128 places a key may have a few */
    assert_memory_equal(server_ask(honest, "WEIR.CHECK few honest"), "['allow'", 8);
    scene_both_are_served(s);
    scene_stop(s);
}

static void adhoc_keys(struct scene *s)
{
    struct server_options o = scene_options();
    o.adhoc_keys = 64;
    o.adhoc_on_full = WEIR_EVICT;
    scene_start(s, SCENE_RULES, &o);
    struct server_client *honest = scene_add(s, PROTOCOL_RESP, OTHER);
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    for (unsigned i = 0; i < 5; i++) {
        (void)server_ask(honest, "CL.THROTTLE debtor 4 5 3600");
    }
    assert_memory_equal(server_ask(honest, "CL.THROTTLE debtor 4 5 3600"), "[1", 2);
    for (unsigned i = 0; i < 2000; i++) {
        char words[64];
        (void)snprintf(words, sizeof words, "CL.THROTTLE key%u 1000 1000 60", i);
        assert_memory_equal(server_ask(c, words), "[0", 2);
    }
    assert_memory_equal(server_ask(honest, "CL.THROTTLE debtor 4 5 3600"), "[1", 2);
    scene_both_are_served(s);
    scene_stop(s);
}

const struct driver drivers_later[] = {
    {"server.h", "SERVER_RESERVE", reserve, NULL, NULL},
    {"server.h", "SERVER_RESERVE_MS", reserve, NULL, NULL},
    {"crowd.h", "CROWD_LOOKS", looks, NULL, NULL},
    {"pending.h", "SERVER_PENDING", pending, NULL, NULL},
    {"delays.h", "DELAYS_HELD", held, NULL, NULL},
    {"config.h", "hold_max_ns", hold_time, NULL, NULL},
    {"connection.h", "CONNECTION_WRONG_MAX", guesses_at_once, NULL, NULL},
    {"penalty.h", "PENALTY_FREE", wrong_secrets, NULL, NULL},
    {"penalty.h", "PENALTY_MOST_MS", secrets_and_refusals, NULL, NULL},
    {"penalty.h", "PENALTY_FORGET_MS", delays, NULL, NULL},
    {"penalty.h", "PENALTY_PLACES", delays, NULL, NULL},
    {"reservations.h", "RESERVATIONS_MAX", reservations, NULL, NULL},
    {"reservations.h", "RESERVATION_TTL_LONGEST_MS", reservation_time, NULL, NULL},
    {"weir.h", "max_keys", keys, NULL, NULL},
    {"server.h", "adhoc_keys", adhoc_keys, NULL, NULL},
    {0},
};
