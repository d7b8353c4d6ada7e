/*
 * Tests C1 and C2 under thousands of random schedules: delays, cuts, resets, silence, refusals,
 * missing scripts, changing masters, moving slots. The store counts what it runs: each call ends
 * once and in time, runs at most once, not at all if it ended NOT_RUN, and exactly once if it was
 * answered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "redis/slots.h"
#include "shared/core/script.h"
#include "support/store/client_world.h"
#include "support/engine/threads_run.h"

enum { CALLS = 400, STEPS = 500, HOSTS = 2 };

struct record {
    unsigned done;
    unsigned ran;
    enum client_end end;
    bool accepted;
    bool child; /* makes another call when it ends */
    uint64_t deadline;
    uint64_t at;
};

/* The store's side of a connection. */
struct peer {
    unsigned attempt; /* number of the connection; 0: none */
    bool loaded;
    bool replica;
    bool asking;
    bool blocked;     /* the client has more to send, but gets no wake for it */
    bool mute;        /* answers nothing until it is reset */
    const char *mood; /* a refusal for all calls; NULL: none */
    struct buffer in;
    struct buffer out;
};

/* A Cluster of two nodes: which one has all slots, and whether they are being moved to the
 * other. */
static struct {
    bool is;
    unsigned owner;
    bool migrating;
} cluster;

static struct client_world *w;
static struct peer peers[HOSTS];
static struct record records[CALLS];
static unsigned made;
static uint64_t seed;
static uint64_t rng;

static uint64_t below(uint64_t n)
{
    return threads_random(&rng) % n;
}

static bool one_in(uint64_t n)
{
    return below(n) == 0;
}

static void require_at(bool condition, const char *what)
{
    if (!condition) {
        fail_msg("WEIR_SEED=%llu: %s", (unsigned long long)seed, what);
    }
}

#define require(condition) require_at((condition), #condition)

/* ---- calls ---- */

static void make_call(void);

static void on_done(void *arg, enum client_end end, const struct store_reply *reply,
                    uint64_t now_ns)
{
    struct record *r = arg;
    require(r->accepted && r->done == 0);
    r->done++;
    r->end = end;
    r->at = now_ns;
    require(end != CLIENT_REPLIED || (reply != NULL && reply->type == ':'));
    require(end != CLIENT_REPLIED || reply->integers[0] == r - records); /* its own reply */
    require(end != CLIENT_UNKNOWN || reply == NULL);
    require(end != CLIENT_NOT_RUN || reply == NULL || store_did_not_run(reply->refusal));
    if (r->child) {
        make_call();
    }
}

static void make_call(void)
{
    static const struct store_params params = {
        .algorithm = WEIR_TOKEN_BUCKET, .quota = 5, .max_debt = 5, .a = 1000, .kind = "t"};
    char key[300];
    if (made == CALLS) {
        return;
    }
    struct record *r = &records[made];
    (void)snprintf(key, sizeof key, "%u/%0*d", made, (int)below(250), 0);
    struct store_part part = {&params, text_of(key), 1, 0};
    struct buffer b;
    buffer_init(&b, 1 << 16);
    struct client_call call = {.slot = cluster_slot(part.key),
                               .script = &store_scripts.row[1 + below(SCRIPT_COUNT - 1)],
                               .count = script_put_arguments(&b, REMOTE_CHECK, &part, 1)};
    call.arguments = buffer_text(&b);
    call.deadline_ns = one_in(3) ? w->now + 1 + below(30 * WORLD_MS) : 0;
    *r = (struct record){.accepted = true,
                         .child = one_in(4),
                         .deadline =
                             call.deadline_ns != 0 ? call.deadline_ns : w->now + WORLD_DEADLINE};
    made++;
    int e = client_call(w->client, &call, w->now, on_done, r);
    require(e == 0 || e == WEIR_EIO || e == WEIR_EFULL);
    require(r->done == 0);
    r->accepted = e == 0;
    buffer_finish(&b);
}

/* ---- the store ---- */

static void say(struct peer *p, const char *text)
{
    buffer_put(&p->out, text_of(text));
}

static unsigned number_of(const struct peer *p)
{
    return (unsigned)(w->sockets[p - peers].host[0] - 'a');
}

/* Returns true if the slot is not, or no longer, at this node. */
static bool redirected(struct peer *p, struct weir_text key, unsigned id)
{
    char line[64];
    bool here = number_of(p) == cluster.owner;
    bool asking = p->asking;
    p->asking = false;
    if (here ? !cluster.migrating || id % 2 == 0 : cluster.migrating && asking) {
        return false;
    }
    unsigned to = here ? 1 - cluster.owner : cluster.owner;
    (void)snprintf(line, sizeof line, "-%s %u %c:%u\r\n", here ? "ASK" : "MOVED", cluster_slot(key),
                   'a' + to, to + 1);
    say(p, line);
    return true;
}

static void say_slots(struct peer *p)
{
    char line[200];
    unsigned who = one_in(10) ? 1 - cluster.owner : cluster.owner; /* or outdated */
    (void)snprintf(line, sizeof line,
                   "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$1\r\n%c\r\n:%u\r\n$2\r\nid\r\n", 'a' + who,
                   who + 1);
    say(p, line);
}

static void run_script(struct peer *p, const struct resp_request *request, bool by_text)
{
    unsigned id = (unsigned)strtoul(request->argv[3].at, NULL, 10);
    if (cluster.is && redirected(p, request->argv[3], id)) {
        return;
    }
    if (p->replica) {
        say(p, "-READONLY You can't write against a read only replica.\r\n");
    } else if (p->mood != NULL) {
        say(p, p->mood);
    } else if (!by_text && !p->loaded) {
        say(p, "-NOSCRIPT No matching script.\r\n");
    } else {
        p->loaded = true;
        require(id < made);
        records[id].ran++;
        resp_put_integer(&p->out, id);
    }
}

/* Answers a probe: it is refused like a call, and nothing runs. */
static void answer_probe(struct peer *p, const struct resp_request *request)
{
    bool keyed = request->argc > 3;
    unsigned id = keyed ? (unsigned)strtoul(request->argv[3].at, NULL, 10) : 0;
    if (!keyed) {
        say(p, p->mood != NULL && one_in(2) ? p->mood : ":1\r\n");
    } else if (!cluster.is || !redirected(p, request->argv[3], id)) {
        say(p, p->replica ? "-READONLY x\r\n" : p->mood != NULL ? p->mood : ":0\r\n");
    }
}

static void serve(struct peer *p, const struct resp_request *request)
{
    struct weir_text word = request->argv[0];
    if (text_is(word, "PING")) {
        say(p, p->mood != NULL && one_in(2) ? p->mood : "+PONG\r\n");
    } else if (text_is(word, "EVAL") && text_starts(request->argv[1], "return KEYS[1]")) {
        answer_probe(p, request);
    } else if (text_is(word, "ROLE")) {
        say(p, p->replica ? "*2\r\n$5\r\nslave\r\n:1\r\n" : "*3\r\n$6\r\nmaster\r\n:1\r\n*0\r\n");
    } else if (text_is(word, "CLUSTER")) {
        say_slots(p);
    } else if (text_is(word, "ASKING")) {
        p->asking = true;
        say(p, "+OK\r\n");
    } else {
        run_script(p, request, text_is(word, "EVAL"));
    }
}

static void serve_whole(struct peer *p)
{
    static const struct resp_limits limits = {RESP_ARGS_MAX, 1 << 20, 1 << 22, false};
    static struct resp_request request;
    const char *complaint;
    while (buffer_len(&p->in) > 0) {
        int e = resp_parse(buffer_text(&p->in), &limits, &request, &complaint);
        require(e != RESP_BAD);
        if (e != RESP_REQUEST || p->mute) {
            return;
        }
        serve(p, &request);
        buffer_take(&p->in, request.used);
    }
}

/* Ends a connection that the client has closed or that is reset. Some of the bytes under way still
 * arrive, and run. */
static void end_peer(struct peer *p)
{
    size_t cut = below(buffer_len(&p->in) + 1);
    p->in.end = p->in.begin + (one_in(2) ? buffer_len(&p->in) : cut);
    p->mute = p->mute && one_in(2);
    serve_whole(p);
    buffer_take(&p->in, buffer_len(&p->in));
    buffer_take(&p->out, buffer_len(&p->out));
    p->attempt = 0;
    p->mute = false;
    p->blocked = false;
    p->asking = false;
}

/* ---- events ---- */

static void change_mood(struct peer *p)
{
    static const char *const moods[] = {"-LOADING x\r\n",     "-BUSY x\r\n",
                                        "-OOM x\r\n",         "-TRYAGAIN x\r\n",
                                        "-CLUSTERDOWN x\r\n", "-NOREPLICAS x\r\n"};
    p->mood = one_in(3) ? moods[below(6)] : NULL;
}

static void send_some(struct world_socket *s, struct peer *p)
{
    struct weir_text out = client_outgoing(s->link);
    size_t n = one_in(2) ? out.len : below(out.len + 1);
    buffer_put(&p->in, (struct weir_text){out.at, n});
    client_sent(s->link, n);
    p->blocked = n < out.len;
    s->woken = false;
}

static void answer_some(unsigned i, struct peer *p)
{
    struct weir_text out = buffer_text(&p->out);
    out.len = one_in(2) ? out.len : below(out.len + 1);
    if (out.len > 0) {
        char *copy = malloc(out.len); /* so that a read beyond the end is noticed */
        memcpy(copy, out.at, out.len);
        bool open = world_say_bytes(w, i, (struct weir_text){copy, out.len});
        free(copy);
        if (open) {
            buffer_take(&p->out, out.len);
        }
    }
}

static void step_up(unsigned i, struct peer *p)
{
    struct world_socket *s = &w->sockets[i];
    if (one_in(60)) {
        end_peer(p);
        world_down(w, i);
        return;
    }
    if (one_in(3) && (s->woken || p->blocked)) {
        send_some(s, p);
    }
    p->mute = p->mute || one_in(300);
    if (one_in(3)) {
        serve_whole(p);
    }
    if (one_in(3)) {
        answer_some(i, p);
    }
}

static void step_socket(unsigned i)
{
    struct world_socket *s = &w->sockets[i];
    struct peer *p = &peers[i];
    if (p->attempt != 0 && (s->state != WORLD_UP || p->attempt != s->attempts)) {
        end_peer(p);
    }
    if (s->state == WORLD_CONNECTING && one_in(4)) {
        if (one_in(4)) {
            world_down(w, i);
        } else {
            s->state = WORLD_UP;
            p->attempt = s->attempts;
            client_up(s->link, w->now);
            world_tick(w);
        }
    } else if (s->state == WORLD_UP) {
        step_up(i, p);
    }
}

static void step(void)
{
    for (uint64_t n = below(4); n > 0; n--) {
        make_call();
    }
    for (unsigned i = 0; i < w->count; i++) {
        if (one_in(30)) {
            change_mood(&peers[i]);
        }
        peers[i].loaded = peers[i].loaded && !one_in(30);
        step_socket(i);
    }
    if (cluster.is && one_in(40)) {
        cluster.owner = cluster.migrating && one_in(2) ? 1 - cluster.owner : cluster.owner;
        cluster.migrating = !cluster.migrating;
    }
    if (!cluster.is && w->count == 2 && one_in(100)) {
        bool first = one_in(2);
        peers[0].replica = !first;
        peers[1].replica = first;
    }
    world_pass(w, one_in(50) ? below(200 * WORLD_MS) : below(WORLD_MS));
}

static void assert_sound(void)
{
    for (unsigned i = 0; i < made; i++) {
        const struct record *r = &records[i];
        require(r->done == r->accepted);
        require(r->ran <= 1);
        require(r->accepted || r->ran == 0);
        if (r->accepted) {
            require(r->at <= r->deadline);
            require(r->end != CLIENT_NOT_RUN || r->ran == 0);
            require(r->end != CLIENT_REPLIED || r->ran == 1);
        }
    }
}

static unsigned ends[3];

static void run(struct client_world *world)
{
    static const char *const urls[] = {"redis://a:1", "redis://a:1,b:2", "redis-cluster://a:1"};
    struct breakers *breakers = breakers_create(seed);
    rng = seed * 0x9e3779b97f4a7c15u + 1;
    made = 0;
    w = world;
    memset(peers, 0, sizeof peers);
    for (unsigned i = 0; i < HOSTS; i++) {
        buffer_init(&peers[i].in, 1 << 24);
        buffer_init(&peers[i].out, 1 << 24);
    }
    world_prepare(w, urls[seed % 3], breakers);
    cluster.is = seed % 3 == 2;
    w->options.in_flight = seed % 7 == 0 ? 10 : 0;
    world_create(w);
    for (unsigned i = 0; i < STEPS; i++) {
        step();
    }
    world_pass(w, seed % 5 == 0 ? 0 : 100 * WORLD_MS);
    for (unsigned i = 0; i < HOSTS; i++) { /* everything under way arrives */
        peers[i].mute = false;
        serve_whole(&peers[i]);
    }
    world_stop(w);
    assert_sound();
    for (unsigned i = 0; i < made; i++) {
        ends[records[i].end] += records[i].accepted;
    }
    for (unsigned i = 0; i < HOSTS; i++) {
        buffer_finish(&peers[i].in);
        buffer_finish(&peers[i].out);
    }
    breakers_destroy(breakers);
}

static void every_call_ends_once_in_time_and_runs_at_most_once(void **state)
{
    static struct client_world world;
    uint64_t most = THREADS_ROUNDS(3000, 600, 200);
    const char *only = getenv("WEIR_SEED");
    for (seed = 1; seed <= most; seed++) {
        seed = only != NULL ? strtoull(only, NULL, 10) : seed;
        run(&world);
        if (only != NULL) {
            break;
        }
    }
    print_message("%u replied, %u not run, %u unknown\n", ends[0], ends[1], ends[2]);
    assert_true(only != NULL || (ends[0] > most && ends[1] > most && ends[2] > most));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_ends_once_in_time_and_runs_at_most_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
