#include "support/fleet/fleet_crowd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "redis/slots.h"
#include "shared/core/script.h"
#include "support/fleet/fleet_open.h"

#define PATIENCE_NS (60 * WEIR_SECOND)

struct crowd;

struct crowd_thread {
    struct crowd *crowd;
    pthread_t id;
    unsigned node;
    unsigned first; /* index of its first key */
    uint64_t answered_ns;
};

/* All threads write it and the test reads it: relaxed counters. */
struct crowd_key {
    uint64_t admitted;
    uint64_t answered_ns; /* when the latest question that the store has answered was asked */
};

struct crowd {
    struct crowd_options options;
    struct weir_fleet *fleets[CROWD_NODES_MAX];
    struct weir_fleet_limit *limits[CROWD_NODES_MAX];
    struct crowd_thread threads[CROWD_THREADS_MAX];
    unsigned thread_count;
    uint64_t halt;
    struct crowd_key keys[CROWD_KEYS_MAX];
    struct crowd_tally tally; /* except unknown and resent */
    struct crowd_grant *grants;
    uint64_t granted; /* how many of its places are taken */
};

static void die(const char *what)
{
    (void)fprintf(stderr, "crowd: %s\n", what);
    exit(1);
}

static void nap(void)
{
    (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void raise_to(uint64_t *value, uint64_t to)
{
    uint64_t seen = load_relaxed(value);
    while (seen < to && !cas_u64(value, seen, to)) {
        seen = load_relaxed(value);
    }
}

/* ---- asking ---- */

static void remember(struct crowd *c, const struct crowd_grant *grant)
{
    if (c->options.grants == 0) {
        return;
    }
    uint64_t place = fetch_add(&c->granted, 1);
    if (place >= c->options.grants) {
        die("more admissions than can be remembered");
    }
    c->grants[place] = *grant;
}

static void note(struct crowd_thread *t, unsigned key, const struct weir_answer *a,
                 uint64_t begin_ns)
{
    struct crowd *c = t->crowd;
    uint64_t now_ns = clock_monotonic_ns();
    raise_to(&c->tally.slowest_ns, now_ns - begin_ns);
    if ((a->flags & WEIR_FLAG_DEGRADED) != 0) {
        (void)fetch_add(&c->tally.degraded, 1);
        nap(); /* while the store is away, answers come at once */
        return;
    }
    bool admitted = a->verdict == WEIR_ALLOW;
    if (admitted) {
        remember(c, &(struct crowd_grant){c->options.quota - a->remaining, key, begin_ns, now_ns});
    }
    (void)fetch_add(admitted ? &c->tally.admitted : &c->tally.denied, 1);
    (void)fetch_add(&c->keys[key].admitted, admitted);
    raise_to(&c->keys[key].answered_ns, begin_ns);
    raise_to(&t->answered_ns, begin_ns);
}

static void *work(void *arg)
{
    struct crowd_thread *t = arg;
    struct crowd *c = t->crowd;
    for (unsigned key = t->first; load_relaxed(&c->halt) == 0; key++) {
        struct weir_answer a;
        unsigned k = key % c->options.key_count;
        const char *name = c->options.keys[k];
        uint64_t begin_ns = clock_monotonic_ns();
        if (weir_fleet_check(c->limits[t->node], name, strlen(name), 1, &a) != 0) {
            die("a check that fails");
        }
        note(t, k, &a, begin_ns);
    }
    return NULL;
}

/* ---- beginning and end ---- */

static void open_node(struct crowd *c, unsigned i)
{
    struct weir_fleet_limit_options o = WEIR_FLEET_LIMIT_OPTIONS_INIT;
    o.name = "crowd";
    o.limit.algorithm = WEIR_TOKEN_BUCKET;
    o.limit.count = 1;
    o.limit.period_ns = UINT64_C(1000000000000000000) / c->options.quota; /* full after 31 years */
    o.limit.burst = c->options.quota;
    o.on_store_failure = WEIR_FLEET_CLOSED;
    o.deny_cache_ns = 1;
    c->fleets[i] = fleet_open_at(c->options.url, 0, c->options.deadline_ns);
    c->limits[i] = fleet_limit_of(c->fleets[i], &o);
}

static int peek(struct crowd *c, unsigned node, unsigned key, struct weir_answer *a);

/* Asks until the store itself answers, and returns that answer. */
static struct weir_answer await_node(struct crowd *c, unsigned node, unsigned key)
{
    uint64_t end = clock_monotonic_ns() + PATIENCE_NS;
    struct weir_answer a;
    while (peek(c, node, key, &a) != 0 || (a.flags & WEIR_FLAG_DEGRADED) != 0) {
        if (clock_monotonic_ns() > end) {
            die("no store");
        }
        nap();
    }
    return a;
}

static void start_thread(struct crowd *c, unsigned node)
{
    struct crowd_thread *t = &c->threads[c->thread_count];
    *t = (struct crowd_thread){.crowd = c, .node = node, .first = c->thread_count++};
    if (pthread_create(&t->id, NULL, work, t) != 0) {
        die("thread");
    }
}

struct crowd *crowd_start(const struct crowd_options *options)
{
    struct crowd *c = calloc(1, sizeof *c);
    if (c == NULL || options->nodes > CROWD_NODES_MAX ||
        options->nodes * options->threads > CROWD_THREADS_MAX) {
        die("too many");
    }
    c->options = *options;
    c->grants = calloc(options->grants + 1, sizeof *c->grants);
    if (c->grants == NULL) {
        die("memory");
    }
    for (unsigned i = 0; i < options->nodes; i++) {
        open_node(c, i);
    }
    for (unsigned i = 0; i < options->nodes; i++) {
        for (unsigned key = 0; key < options->key_count; key++) {
            (void)await_node(c, i, key);
        }
    }
    for (unsigned i = 0; i < options->nodes * options->threads; i++) {
        start_thread(c, i / options->threads);
    }
    return c;
}

void crowd_halt(struct crowd *c)
{
    store_relaxed(&c->halt, 1);
    for (unsigned i = 0; i < c->thread_count; i++) {
        (void)pthread_join(c->threads[i].id, NULL);
    }
    c->thread_count = 0;
}

void crowd_end(struct crowd *c)
{
    crowd_halt(c);
    for (unsigned i = 0; i < c->options.nodes; i++) {
        weir_fleet_limit_close(c->limits[i]);
        weir_fleet_close(c->fleets[i]);
    }
    free(c->grants);
    free(c);
}

/* ---- inspection ---- */

struct crowd_tally crowd_tally(struct crowd *c)
{
    struct crowd_tally t = {.admitted = load_relaxed(&c->tally.admitted),
                            .denied = load_relaxed(&c->tally.denied),
                            .degraded = load_relaxed(&c->tally.degraded),
                            .slowest_ns = load_relaxed(&c->tally.slowest_ns)};
    for (unsigned i = 0; i < c->options.nodes; i++) {
        struct weir_fleet_stats s = fleet_stats_of(c->fleets[i]);
        t.unknown += s.unknown;
        t.resent += s.resent;
    }
    return t;
}

uint64_t crowd_admitted(struct crowd *c, unsigned key)
{
    return load_relaxed(&c->keys[key].admitted);
}

const struct crowd_grant *crowd_grants(const struct crowd *c, size_t *count)
{
    *count = c->granted;
    return c->grants;
}

/* Waits until *answered_ns is after begin_ns. */
static void await_since(const uint64_t *answered_ns, uint64_t begin_ns)
{
    while (load_relaxed(answered_ns) <= begin_ns) {
        if (clock_monotonic_ns() > begin_ns + PATIENCE_NS) {
            die("the store does not come back");
        }
        nap();
    }
}

static uint64_t ms_since(uint64_t begin_ns)
{
    return (clock_monotonic_ns() - begin_ns) / WEIR_MILLISECOND;
}

uint64_t crowd_await_answer(struct crowd *c, unsigned key)
{
    uint64_t begin_ns = clock_monotonic_ns();
    await_since(&c->keys[key].answered_ns, begin_ns);
    return ms_since(begin_ns);
}

uint64_t crowd_await_everybody(struct crowd *c)
{
    uint64_t begin_ns = clock_monotonic_ns();
    for (unsigned i = 0; i < c->options.key_count; i++) {
        await_since(&c->keys[i].answered_ns, begin_ns);
    }
    for (unsigned i = 0; i < c->thread_count; i++) {
        await_since(&c->threads[i].answered_ns, begin_ns);
    }
    return ms_since(begin_ns);
}

void crowd_await_progress(struct crowd *c, uint64_t units)
{
    uint64_t end_ns = clock_monotonic_ns() + PATIENCE_NS;
    uint64_t until = load_relaxed(&c->tally.admitted) + units;
    while (load_relaxed(&c->tally.admitted) < until) {
        if (clock_monotonic_ns() > end_ns) {
            die("no progress");
        }
        nap();
    }
}

/* ---- asking without taking ---- */

struct peek {
    struct weir_answer answer;
    int error;
    uint32_t done;
};

static void on_peeked(void *arg, int error, const struct weir_answer *answer)
{
    struct peek *p = arg;
    p->error = error;
    if (error == 0) {
        p->answer = *answer;
    }
    __atomic_store_n(&p->done, 1, __ATOMIC_RELEASE);
}

static int peek(struct crowd *c, unsigned node, unsigned key, struct weir_answer *a)
{
    const char *name = c->options.keys[key];
    struct weir_question q = {.key = name, .key_len = strlen(name), .cost = 1, .mode = WEIR_PEEK};
    struct peek p = {.done = 0};
    int e = weir_fleet_ask(c->limits[node], &q, a, on_peeked, &p);
    if (e != 0) {
        return e == 1 ? 0 : e;
    }
    while (__atomic_load_n(&p.done, __ATOMIC_ACQUIRE) == 0) {
        (void)nanosleep(&(struct timespec){0, 100000}, NULL);
    }
    *a = p.answer;
    return p.error;
}

uint64_t crowd_charged(struct crowd *c, unsigned key)
{
    return c->options.quota - await_node(c, 0, key).remaining;
}

/* The hash tag of a key is 'r' and its bytes: src/shared/core/script.h. */
void crowd_key_in_slot(unsigned slot, unsigned n, char key[16])
{
    char tag[16] = "r";
    unsigned number = 0;
    for (unsigned found = 0; found <= n; number++) {
        (void)snprintf(tag + 1, sizeof tag - 1, "%u", number);
        found += cluster_slot(text_of(tag)) == slot;
    }
    memcpy(key, tag + 1, sizeof tag - 1);
}
