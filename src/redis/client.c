#include "redis/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/maths.h"
#include "redis/breaker.h"
#include "redis/link.h"

#define IN_FLIGHT 16384
#define ROUNDS 4

static const struct topology_ops *const topologies[STORE_CLUSTER + 1] = {
    [STORE_ALONE] = &topology_alone,
    [STORE_SENTINEL] = &topology_sentinel,
    [STORE_CLUSTER] = &topology_cluster,
};

/* ---- time ---- */

static void reap(struct client *c)
{
    c->reap = false;
    for (struct list *at = c->links.next; at != &c->links;) {
        struct client_link *link = LIST_OF(at, struct client_link, node);
        at = at->next;
        if (link->forgotten) {
            link_free(link);
        }
    }
}

static void tick_timers(struct client *c, uint64_t now_ns)
{
    struct timer *timer;
    while ((timer = timers_pop(&c->timers, now_ns)) != NULL) {
        if (timer->kind == TIMER_CALL) {
            call_tick(c, LIST_OF(timer, struct pending_call, timer), now_ns);
        } else {
            link_tick(LIST_OF(timer, struct client_link, timer), now_ns);
        }
    }
}

uint64_t client_tick(struct client *c, uint64_t now_ns)
{
    c->now_ns = now_ns;
    /* Links and the topology may make each other due. */
    for (int i = 0; i == 0 || (i < ROUNDS && client_due(c) <= now_ns); i++) {
        tick_timers(c, now_ns);
        c->topology_due = UINT64_MAX;
        if (c->ops->tick != NULL) {
            client_tick_by(c, c->ops->tick(c->topology, now_ns));
        }
    }
    if (c->reap) {
        reap(c);
    }
    client_tell_metrics(c);
    return client_due(c);
}

void client_tick_by(struct client *c, uint64_t due_ns)
{
    c->topology_due = min_u64(c->topology_due, due_ns);
}

uint64_t client_due(const struct client *c)
{
    return min_u64(timers_due(&c->timers), c->topology_due);
}

/* ---- beginning and end ---- */

int client_create(struct client **out, const struct client_options *options,
                  const struct client_driver *driver, uint64_t now_ns)
{
    struct client *c = topologies[options->url->kind] != NULL ? calloc(1, sizeof *c) : NULL;
    if (c == NULL) {
        return WEIR_ENOMEM;
    }
    c->options = options;
    c->driver = *driver;
    c->ops = topologies[options->url->kind];
    c->now_ns = now_ns;
    c->in_flight_most = options->in_flight != 0 ? options->in_flight : IN_FLIGHT;
    list_init(&c->links);
    list_init(&c->paused);
    list_init(&c->parked);
    timers_init(&c->timers);
    c->topology = calloc(1, c->ops->size);
    if (c->topology == NULL || c->ops->create(c->topology, c, now_ns) != 0) {
        client_destroy(c, now_ns);
        return WEIR_ENOMEM;
    }
    c->topology_due = now_ns;
    *out = c;
    return 0;
}

static void calls_end(struct client *c, struct list *calls, uint64_t now_ns)
{
    while (!list_is_empty(calls)) {
        call_finish(c, LIST_OF(list_pop(calls), struct pending_call, node), CLIENT_NOT_RUN, NULL,
                    now_ns);
    }
}

static void end_link(struct client_link *link, uint64_t now_ns)
{
    struct client *c = link->client;
    link_abandon(link);
    calls_end(c, &link->waiting, now_ns);
    for (; link_waits(link); link->first++) {
        struct reply_place place = *link_place(link, link->first);
        if (place.answer == NULL && place.arg != NULL) {
            call_end(c, place.arg, CLIENT_UNKNOWN, now_ns);
        }
        link_end_late(link, &place, now_ns);
    }
    link_free(link);
}

void client_destroy(struct client *c, uint64_t now_ns)
{
    if (c == NULL) {
        return;
    }
    c->closing = true;
    c->now_ns = now_ns;
    calls_end(c, &c->parked, now_ns);
    calls_end(c, &c->paused, now_ns);
    while (!list_is_empty(&c->links)) {
        end_link(LIST_OF(c->links.next, struct client_link, node), now_ns);
    }
    free(c->topology);
    client_tell_metrics(c);
    free(c);
}

/* ---- state and metrics ---- */

unsigned client_in_flight(const struct client *c)
{
    return c->in_flight;
}

uint64_t client_random(struct client *c, uint64_t below)
{
    return mul_high(breakers_random(c->options->breakers), below);
}

uint64_t client_jitter(struct client *c, uint64_t now_ns, uint64_t gap_ns)
{
    return now_ns + gap_ns / 2 + client_random(c, gap_ns / 2 + 1);
}

void client_complain(struct client *c, const char *format, ...)
{
    va_list list;
    c->blamed = NULL;
    va_start(list, format);
    (void)vsnprintf(c->error, sizeof c->error, format, list);
    va_end(list);
    for (char *at = c->error; *at != 0; at++) {
        *at = *at >= 0x20 && *at < 0x7f ? *at : '?';
    }
}

bool client_link_is_of_cluster(const struct client_link *link, const struct store_reply *reply)
{
    bool is = reply->refusal == STORE_MOVED || reply->refusal == STORE_ASK;
    if (is) {
        client_complain(link->client,
                        "%s: is a node of a Cluster, expected a URL with redis-cluster://",
                        link->name);
    }
    return is;
}

const char *client_last_error(const struct client *c)
{
    return c->error;
}

_Static_assert(sizeof(struct client_metrics) % sizeof(uint64_t) == 0, "counts and nothing else");

/* Adds the client's counts to the metrics of the process, many at a time, so that threads rarely
 * contend for them. */
void client_tell_metrics(struct client *c)
{
    uint64_t *all = (uint64_t *)(void *)c->options->metrics;
    uint64_t *mine = (uint64_t *)(void *)&c->counts;
    for (size_t i = 0; i < sizeof c->counts / sizeof *mine; i++) {
        if (mine[i] != 0) {
            count_shared(&all[i], mine[i]);
            mine[i] = 0;
        }
    }
}
