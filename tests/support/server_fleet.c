#include "support/server_fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/net/server_fleet.h"
#include "support/threads_run.h"

struct slow_question {
    struct slow_question *next;
    struct slow_place *place;
    remote_done_fn done;
    void *arg;
    int error;
    struct remote_answer answer;
};

static void pause_ms(long ms)
{
    struct timespec t = {0, ms * 1000000};
    (void)nanosleep(&t, NULL);
}

static struct slow_fleet *slow_of(struct weir_fleet *fleet)
{
    return (struct slow_fleet *)(void *)fleet;
}

/* ---- limits: a single count of references ---- */

static int open_limit(struct weir_fleet *fleet, const struct remote_spec *spec, void **limit,
                      struct weir_error *error)
{
    struct slow_fleet *f = slow_of(fleet);
    (void)threads_add(&f->held, 1);
    *limit = &f->held;
    return 0;
}

static void hold(void *limit)
{
    (void)threads_add(limit, 1);
}

static void release(void *limit)
{
    threads_require(threads_add(limit, UINT64_MAX) > 0);
}

static int change(void *limit, const struct weir_options *options, struct weir_error *error)
{
    return 0;
}

static void counts(const void *limit, struct remote_counts *counts)
{
    *counts = (struct remote_counts){
        .mode = REMOTE_EXACT, .denied = 7, .degraded = {1, 2, 3}, .remembered = 4};
}

/* ---- questions ---- */

static void note(struct slow_fleet *f, const struct remote_question *q)
{
    if (f->logged < SLOW_LOG) {
        struct text key = q->parts[0].key;
        f->log[f->logged].verb = q->verb;
        f->log[f->logged].cost = q->parts[0].cost;
        f->log[f->logged].time_ns = q->time_ns;
        (void)snprintf(f->log[f->logged].key, sizeof f->log[0].key, "%.*s", TEXT_ARGS(key));
    }
    f->logged++;
    f->asked++;
}

static struct remote_answer decide(const struct slow_plan *p, const struct remote_question *q)
{
    uint64_t cost = q->parts[0].cost;
    return (struct remote_answer){.answer = {.verdict = p->verdict != 0 ? p->verdict : WEIR_ALLOW,
                                             .flags = p->flags,
                                             .quota = 1000000,
                                             .remaining = cost,
                                             .granted = cost,
                                             .retry_after_ns = p->retry_ns},
                                  .stamp = 12345,
                                  .found = 1};
}

static int ask_locked(struct slow_fleet *f, struct slow_place *place,
                      const struct remote_question *question, struct remote_answer *answer,
                      remote_done_fn done, void *arg)
{
    const struct slow_plan *p = &f->plan;
    note(f, question);
    if (p->refuse != 0) {
        return p->refuse;
    }
    if (p->at_once != 0 && f->asked % p->at_once == 0) {
        *answer = decide(p, question);
        return REMOTE_ANSWERED;
    }
    struct slow_question *q = calloc(1, sizeof *q);
    threads_require(q != NULL);
    *q = (struct slow_question){f->out, place, done, arg, p->error, decide(p, question)};
    f->out = q;
    f->out_count++;
    f->out_most = f->out_count > f->out_most ? f->out_count : f->out_most;
    return REMOTE_PENDING;
}

static int ask(struct weir_fleet *fleet, void *where, const struct remote_question *question,
               struct remote_answer *answer, remote_done_fn done, void *arg)
{
    struct slow_fleet *f = slow_of(fleet);
    (void)pthread_mutex_lock(&f->lock);
    int e = ask_locked(f, where, question, answer, done, arg);
    (void)pthread_mutex_unlock(&f->lock);
    return e;
}

static const struct remote_ops ops = {open_limit, hold, release, change, counts, ask};

/* ---- answers ---- */

/* Takes one of the place's questions at random; NULL if it has none. */
static struct slow_question *take(struct slow_fleet *f, const struct slow_place *place)
{
    uint64_t n = 0;
    for (const struct slow_question *q = f->out; q != NULL; q = q->next) {
        n += q->place == place;
    }
    uint64_t which = n > 0 ? threads_random(&f->random) % n : 0;
    for (struct slow_question **at = &f->out; *at != NULL; at = &(*at)->next) {
        if ((*at)->place == place && which-- == 0) {
            struct slow_question *q = *at;
            *at = q->next;
            f->out_count--;
            return q;
        }
    }
    return NULL;
}

static void answer_some(struct slow_place *place, uint64_t most)
{
    struct slow_fleet *f = place->fleet;
    for (uint64_t i = 0; i < most; i++) {
        (void)pthread_mutex_lock(&f->lock);
        struct slow_question *q = take(f, place);
        (void)pthread_mutex_unlock(&f->lock);
        if (q == NULL) {
            break;
        }
        q->done(q->arg, q->error, q->error == 0 ? &q->answer : NULL);
        free(q);
    }
}

static void on_wake(uv_async_t *async)
{
    struct slow_place *place = async->data;
    answer_some(place, __atomic_exchange_n(&place->due, 0, __ATOMIC_ACQ_REL));
}

static int open_place(struct weir_fleet *fleet, uv_loop_t *loop, void **where,
                      struct weir_error *error)
{
    struct slow_fleet *f = slow_of(fleet);
    unsigned i = 0;
    while (i < SLOW_PLACES && f->places[i].used) {
        i++;
    }
    threads_require(i < SLOW_PLACES);
    f->places[i] = (struct slow_place){.fleet = f, .used = true};
    f->places[i].wake.data = &f->places[i];
    *where = &f->places[i];
    return uv_async_init(loop, &f->places[i].wake, on_wake) == 0 ? 0 : WEIR_EIO;
}

static void close_place(void *where)
{
    struct slow_place *place = where;
    answer_some(place, UINT64_MAX);
    uv_close((uv_handle_t *)&place->wake, NULL);
}

static uint64_t leave(struct weir_fleet *fleet, void *where)
{
    return 0;
}

static void read_numbers(const struct weir_fleet *fleet, struct fleet_numbers *n)
{
    n->up = 1;
    n->nodes = 3;
    n->endpoints_count = 1;
    (void)snprintf(n->endpoints[0].name, sizeof n->endpoints[0].name, "here:1");
    n->endpoints[0].open = 1;
}

/* ---- the scene ---- */

static uint64_t stand_still(void *arg)
{
    return threads_get(arg);
}

void slow_start(struct slow_scene *s, const char *rules, const struct server_options *options)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error = {0};
    *s = (struct slow_scene){.now_ns = (uint64_t)time(NULL) * WEIR_SECOND};
    s->server.options = options != NULL ? *options : server_world_options();
    s->server.options.listen[PROTOCOL_HTTP] = "127.0.0.1:0";
    s->server.options.listen[PROTOCOL_ADMIN] = "127.0.0.1:0";
    s->server.options.threads = 1;
    s->fleet.face.ops = &ops;
    s->fleet.random = 1;
    (void)pthread_mutex_init(&s->fleet.lock, NULL);
    o.clock = stand_still;
    o.clock_arg = &s->now_ns;
    o.fleet = (struct weir_fleet *)(void *)&s->fleet;
    s->server.fleet = (struct server_fleet){o.fleet, open_place, close_place, leave, read_numbers};
    if (weir_rules_open_text(&s->server.rules, "test", rules, strlen(rules), &o, &error) != 0 ||
        server_start(&s->server, &error) != 0) {
        threads_fail(__FILE__, __LINE__, error.text);
    }
    (void)server_address(&s->server, PROTOCOL_RESP, s->resp, sizeof s->resp);
    (void)server_address(&s->server, PROTOCOL_HTTP, s->http.address, sizeof s->http.address);
    (void)server_address(&s->server, PROTOCOL_ADMIN, s->admin.address, sizeof s->admin.address);
}

/* Requires that every question was answered and every limit released. */
void slow_stop(struct slow_scene *s)
{
    server_stop(&s->server);
    weir_rules_close(s->server.rules);
    threads_require(s->fleet.out == NULL);
    threads_require(threads_get(&s->fleet.held) == 0);
    (void)pthread_mutex_destroy(&s->fleet.lock);
}

void slow_plan(struct slow_scene *s, struct slow_plan plan)
{
    (void)pthread_mutex_lock(&s->fleet.lock);
    s->fleet.plan = plan;
    (void)pthread_mutex_unlock(&s->fleet.lock);
}

void slow_forget(struct slow_scene *s)
{
    (void)pthread_mutex_lock(&s->fleet.lock);
    s->fleet.logged = 0;
    s->fleet.out_most = s->fleet.out_count;
    (void)pthread_mutex_unlock(&s->fleet.lock);
}

uint64_t slow_logged(struct slow_scene *s)
{
    (void)pthread_mutex_lock(&s->fleet.lock);
    uint64_t n = s->fleet.logged;
    (void)pthread_mutex_unlock(&s->fleet.lock);
    return n;
}

void slow_await(struct slow_scene *s, uint64_t out)
{
    for (unsigned tries = 0; tries < 60000; tries++) {
        (void)pthread_mutex_lock(&s->fleet.lock);
        uint64_t now = s->fleet.out_count;
        (void)pthread_mutex_unlock(&s->fleet.lock);
        if (now == out) {
            return;
        }
        pause_ms(1);
    }
    threads_fail(__FILE__, __LINE__, "as many questions as awaited are not out");
}

void slow_answer(struct slow_scene *s, uint64_t n)
{
    for (unsigned i = 0; i < SLOW_PLACES; i++) {
        if (s->fleet.places[i].used) {
            (void)threads_add(&s->fleet.places[i].due, n);
            (void)uv_async_send(&s->fleet.places[i].wake);
        }
    }
}

static uint64_t sum(const struct slow_scene *s, size_t offset)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < s->server.workers_count; i++) {
        const char *counts = (const char *)&s->server.workers[i].counts;
        n += threads_get((const uint64_t *)(const void *)(counts + offset));
    }
    return n;
}

uint64_t slow_deferred(const struct slow_scene *s)
{
    return sum(s, offsetof(struct worker_counts, deferred));
}

uint64_t slow_abandoned(const struct slow_scene *s)
{
    return sum(s, offsetof(struct worker_counts, abandoned));
}
