#include "support/server/server_fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/loop/server_fleet.h"
#include "support/engine/threads_run.h"

static void pause_ms(long ms)
{
    struct timespec t = {0, ms * 1000000};
    (void)nanosleep(&t, NULL);
}

/* ---- places: a loop each ---- */

static void answer_some(const struct slow_place *place, uint64_t most)
{
    for (uint64_t i = 0; i < most && fake_answer_at(&place->scene->fleet, place); i++) {
    }
}

static void on_wake(uv_async_t *async)
{
    struct slow_place *place = async->data;
    uint64_t due = threads_get(&place->due);
    answer_some(place, due);
    (void)threads_add(&place->due, (uint64_t)0 - due); /* slow_answer() waits for this */
}

static int open_place(struct weir_fleet *fleet, uv_loop_t *loop, void **where,
                      struct weir_error *error)
{
    struct slow_scene *s = (struct slow_scene *)(void *)fleet;
    unsigned i = 0;
    while (i < SLOW_PLACES && s->places[i].used) {
        i++;
    }
    threads_require(i < SLOW_PLACES);
    s->places[i] = (struct slow_place){.scene = s, .used = true};
    s->places[i].wake.data = &s->places[i];
    *where = &s->places[i];
    return uv_async_init(loop, &s->places[i].wake, on_wake) == 0 ? 0 : WEIR_EIO;
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

static void read_numbers(struct weir_fleet *fleet, struct fleet_numbers *n)
{
    n->up = threads_get(&((const struct slow_scene *)(const void *)fleet)->away) == 0;
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
    fake_init(&s->fleet);
    slow_plan(s, (struct fake_plan){0});
    o.clock = stand_still;
    o.clock_arg = &s->now_ns;
    o.fleet = fake_of(&s->fleet);
    s->server.fleet =
        (struct server_fleet){o.fleet, NULL, open_place, close_place, leave, read_numbers, NULL};
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
    fake_finish(&s->fleet);
}

void slow_plan(struct slow_scene *s, struct fake_plan plan)
{
    plan.planned = true;
    fake_set_plan(&s->fleet, plan);
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
        if (fake_out(&s->fleet) == out) {
            return;
        }
        pause_ms(1);
    }
    threads_fail(__FILE__, __LINE__, "as many questions as awaited are not pending");
}

void slow_answer(struct slow_scene *s, uint64_t n)
{
    for (unsigned i = 0; i < SLOW_PLACES; i++) {
        if (s->places[i].used) {
            (void)threads_add(&s->places[i].due, n);
            (void)uv_async_send(&s->places[i].wake);
        }
    }
    /* Without this wait, a slow_await() that follows would meet its number halfway through these
     * answers. */
    for (unsigned i = 0; i < SLOW_PLACES; i++) {
        for (unsigned tries = 0; s->places[i].used && threads_get(&s->places[i].due) > 0; tries++) {
            if (tries == 60000) {
                threads_fail(__FILE__, __LINE__, "questions are not answered within a minute");
            }
            pause_ms(1);
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

uint64_t slow_pending(const struct slow_scene *s)
{
    return sum(s, offsetof(struct worker_counts, pending));
}

uint64_t slow_abandoned(const struct slow_scene *s)
{
    return sum(s, offsetof(struct worker_counts, abandoned));
}
