#include "redis/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/maths.h"
#include "redis/breaker.h"
#include "redis/link.h"

#define IN_FLIGHT 16384
#define ROUNDS 4
#define HOPS_AT_ONCE 4
#define PAUSE_FIRST WEIR_MILLISECOND
#define PAUSE_DOUBLINGS 10

static const struct topology_ops *const topologies[STORE_CLUSTER + 1] = {
    [STORE_ALONE] = &topology_alone,
    [STORE_SENTINEL] = &topology_sentinel,
    [STORE_CLUSTER] = &topology_cluster,
};

/* ---- the end of a call ---- */

static void leave_place(struct call *call)
{
    if (call->state == CALL_WAITING) {
        link_take(call->link, call);
    } else if (call->state == CALL_SENT) {
        link_place(call->link, call->place)->arg = NULL;
    } else {
        list_take(&call->node);
    }
}

/* Ends the call. C1: this is the only function that calls `done`. The call must have left its list
 * or place. */
static void finish(struct client *c, struct call *call, enum client_end end,
                   const struct store_reply *reply, uint64_t now_ns)
{
    client_done_fn done = call->done;
    void *arg = call->arg;
    uint64_t *count[] = {&c->counts.replies, &c->counts.not_run, &c->counts.unknown};
    ++*count[end];
    timer_clear(&call->timer);
    if (end == CLIENT_REPLIED) {
        uint64_t took = sub_floor0(now_ns, call->made_ns);
        c->counts.took.counts[histogram_bucket(took)]++;
        c->counts.took.sum_ns += took;
    }
    free(call);
    c->in_flight--;
    done(arg, end, reply, now_ns);
}

void call_end(struct client *c, struct call *call, enum client_end end, uint64_t now_ns)
{
    leave_place(call);
    finish(c, call, end, NULL, now_ns);
}

static void expire(struct client *c, struct call *call, uint64_t now_ns)
{
    if (call->state == CALL_SENT) {
        struct client_link *link = call->link;
        call_end(c, call, CLIENT_UNKNOWN, now_ns);
        link_note_failure(link, now_ns);
    } else {
        call_end(c, call, CLIENT_NOT_RUN, now_ns);
    }
}

/* ---- routing ---- */

/* Gives the call to the link of its slot, parks it if that link will be known soon, or ends it
 * NOT_RUN with `refusal`. The call must be in no list. Its timer is set to its deadline here. */
static void route(struct client *c, struct call *call, const struct store_reply *refusal,
                  uint64_t now_ns)
{
    bool hope = false;
    struct client_link *link = c->ops->route(c->topology, call->slot, now_ns, &hope);
    call->asking = false;
    timer_set(&c->timers, &call->timer, call->deadline_ns, now_ns);
    if (link != NULL && !client_link_is_hopeless(link) && link_has_room(link, call->len)) {
        link_put(link, call, now_ns);
    } else if (link == NULL && hope) {
        call->state = CALL_PARKED;
        list_put(c->parked.prev, &call->node);
    } else {
        finish(c, call, CLIENT_NOT_RUN, refusal, now_ns);
    }
}

static void route_all(struct client *c, struct list *from, uint64_t now_ns)
{
    struct list calls;
    list_init(&calls);
    list_move(&calls, from); /* some may return to `from` */
    while (!list_is_empty(&calls)) {
        route(c, LIST_OF(list_pop(&calls), struct call, node), NULL, now_ns);
    }
}

void client_reroute(struct client *c, uint64_t now_ns)
{
    route_all(c, &c->parked, now_ns);
}

void client_link_reroute(struct client_link *link, uint64_t now_ns)
{
    link->waiting_bytes = 0;
    route_all(link->client, &link->waiting, now_ns);
}

void client_reroute_all(struct client *c, uint64_t now_ns)
{
    client_reroute(c, now_ns);
    for (struct list *at = c->links.next; at != &c->links; at = at->next) {
        client_link_reroute(LIST_OF(at, struct client_link, node), now_ns);
    }
}

/* ---- replies ---- */

/* Returns the first key, which follows the number of keys. */
static struct text first_key(const struct call *call)
{
    struct text rest = call_arguments(call);
    (void)value_text(&rest);
    return value_text(&rest);
}

static void pause_call(struct client *c, struct call *call, const struct store_reply *reply,
                       uint64_t now_ns)
{
    uint64_t pause = PAUSE_FIRST << min_u64(call->pauses, PAUSE_DOUBLINGS);
    uint64_t until = add_sat(now_ns, pause);
    if (until >= call->deadline_ns) {
        finish(c, call, CLIENT_NOT_RUN, reply, now_ns);
        return;
    }
    call->pauses++;
    call->hops = 0;
    call->state = CALL_PAUSED;
    list_put(c->paused.prev, &call->node);
    timer_set(&c->timers, &call->timer, until, now_ns);
    c->counts.resent++;
}

/*
 * Sends the call again after NOSCRIPT. The first such call goes as text (EVAL), which also loads
 * the script; calls that were sent before it and are refused likewise only need to be sent by hash
 * again, after it. A call that is refused a second time goes as text in any case.
 */
static void resend_by_text(struct client *c, struct call *call, uint64_t now_ns)
{
    struct client_link *link = call->link;
    uint64_t *loaded = &link->texts[call->script - c->options->scripts->row];
    bool behind = call->place < *loaded && call->strange == 0;
    call->how = behind ? SCRIPT_BY_SHA : SCRIPT_BY_TEXT;
    call->strange++;
    if (!behind) {
        *loaded = link->last;
    }
    c->counts.resent++;
    link_put(link, call, now_ns);
}

static void follow(struct client *c, struct call *call, const struct store_reply *reply,
                   uint64_t now_ns)
{
    struct client_link *to = NULL;
    enum topology_next next = c->ops->refused(c->topology, call->link, reply, now_ns, &to);
    call->hops++;
    if (next == TOPOLOGY_END) {
        finish(c, call, CLIENT_NOT_RUN, reply, now_ns);
    } else if (next == TOPOLOGY_PAUSE || call->hops >= HOPS_AT_ONCE) {
        pause_call(c, call, reply, now_ns);
    } else if (next == TOPOLOGY_NOW) {
        c->counts.resent++;
        route(c, call, reply, now_ns);
    } else if (client_link_is_hopeless(to) || !link_has_room(to, call->len)) {
        finish(c, call, CLIENT_NOT_RUN, reply, now_ns);
    } else {
        call->asking = true;
        c->counts.resent++;
        link_put(to, call, now_ns);
    }
}

/* Handles a reply that proves that the call did not run: sends it again or ends it (C2). */
static void refused(struct client *c, struct call *call, const struct store_reply *reply,
                    uint64_t now_ns)
{
    if (store_is_failure(reply->refusal)) {
        link_refuses(call->link, reply->text, first_key(call), now_ns);
    }
    if (now_ns >= call->deadline_ns) {
        finish(c, call, CLIENT_NOT_RUN, reply, now_ns);
    } else if (reply->refusal != STORE_NOSCRIPT) {
        follow(c, call, reply, now_ns);
    } else if (call->how == SCRIPT_BY_SHA) {
        resend_by_text(c, call, now_ns);
    } else {
        pause_call(c, call, reply, now_ns);
    }
}

void call_replied(struct call *call, const struct store_reply *reply, uint64_t now_ns)
{
    struct client_link *link = call->link;
    struct client *c = link->client;
    if (store_did_not_run(reply->refusal)) {
        refused(c, call, reply, now_ns);
        return;
    }
    if (store_is_failure(reply->refusal)) {
        link_refuses(link, reply->text, first_key(call), now_ns);
    } else if (reply->type == '-') {
        link->good++;
        link_complain(link, reply->text); /* C5: not a failure of the endpoint, but reported */
    } else {
        link->good++;
        link->well = true;
        link_clear_complaint(link);
    }
    finish(c, call, CLIENT_REPLIED, reply, now_ns);
}

/* ---- calling ---- */

static int find_way(struct client *c, unsigned slot, uint64_t now_ns, struct client_link **link)
{
    bool hope = false;
    *link = c->ops->route(c->topology, slot, now_ns, &hope);
    if (*link == NULL) {
        return hope ? 0 : WEIR_EIO;
    }
    if (client_link_is_hopeless(*link)) {
        link_try_probe(*link, now_ns);
        return WEIR_EIO;
    }
    return 0;
}

/* Returns a new call with a copy of the arguments; NULL: a bound is reached, or no memory. */
static struct call *make_call(struct client *c, const struct client_call *from, uint64_t now_ns)
{
    bool fits = c->in_flight < c->in_flight_most && from->arguments.len <= CALL_BYTES_MAX;
    struct call *call = fits ? malloc(sizeof *call + from->arguments.len) : NULL;
    if (call == NULL) {
        return NULL;
    }
    *call = (struct call){
        .how = SCRIPT_BY_SHA,
        .slot = from->slot,
        .count = from->count,
        .script = from->script,
        .made_ns = now_ns,
        .deadline_ns =
            from->deadline_ns != 0 ? from->deadline_ns : add_sat(now_ns, c->options->deadline_ns),
        .len = from->arguments.len,
    };
    timer_init(&call->timer, TIMER_CALL);
    memcpy(call->bytes, from->arguments.at, call->len);
    return call;
}

int client_call(struct client *c, const struct client_call *from, uint64_t now_ns,
                client_done_fn done, void *arg)
{
    struct client_link *link;
    c->now_ns = now_ns;
    int e = c->closing ? WEIR_EIO : find_way(c, from->slot, now_ns, &link);
    if (e != 0) {
        return e;
    }
    bool room = link == NULL || link_has_room(link, from->arguments.len);
    struct call *call = room ? make_call(c, from, now_ns) : NULL;
    if (call == NULL) {
        return WEIR_EFULL;
    }
    call->done = done;
    call->arg = arg;
    c->in_flight++;
    c->counts.calls++;
    timer_set(&c->timers, &call->timer, call->deadline_ns, now_ns);
    if (link != NULL) {
        link_put(link, call, now_ns);
    } else {
        call->state = CALL_PARKED;
        list_put(c->parked.prev, &call->node);
    }
    return 0;
}

static void call_tick(struct client *c, struct call *call, uint64_t now_ns)
{
    if (call->state == CALL_PAUSED && now_ns < call->deadline_ns) {
        list_take(&call->node);
        route(c, call, NULL, now_ns);
    } else {
        expire(c, call, now_ns);
    }
}

static void calls_end(struct client *c, struct list *calls, uint64_t now_ns)
{
    while (!list_is_empty(calls)) {
        finish(c, LIST_OF(list_pop(calls), struct call, node), CLIENT_NOT_RUN, NULL, now_ns);
    }
}

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
            call_tick(c, LIST_OF(timer, struct call, timer), now_ns);
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
