/* Routes calls again: those that were refused (C2), and those that are not sent when something new
 * is known about their route. */
#include "base/maths.h"
#include "redis/breaker.h"
#include "redis/link.h"

#define HOPS_AT_ONCE 4
#define PAUSE_FIRST WEIR_MILLISECOND
#define PAUSE_DOUBLINGS 10

void call_resend(struct client *c, struct pending_call *call, const struct store_reply *refusal,
                 uint64_t now_ns)
{
    bool hope = false;
    struct client_link *link = call_route(c, call->slot, now_ns, &hope);
    call->asking = false;
    timer_set(&c->timers, &call->timer, call->deadline_ns, now_ns);
    if (link != NULL && !client_link_is_hopeless(link) && link_has_room(link, call->len)) {
        link_put(link, call, now_ns);
    } else if (link == NULL && hope) {
        call_park(c, call);
    } else {
        call_finish(c, call, CLIENT_NOT_RUN, refusal, now_ns);
    }
}

static void route_all(struct client *c, struct list *from, uint64_t now_ns)
{
    struct list calls;
    list_init(&calls);
    list_move(&calls, from); /* some may return to `from` */
    while (!list_is_empty(&calls)) {
        call_resend(c, LIST_OF(list_pop(&calls), struct pending_call, node), NULL, now_ns);
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

/* ---- refusals ---- */

/* Returns the first key, which follows the number of keys. */
struct weir_text call_key(const struct pending_call *call)
{
    struct weir_text rest = call_arguments(call);
    (void)value_text(&rest);
    return value_text(&rest);
}

static void pause_call(struct client *c, struct pending_call *call, const struct store_reply *reply,
                       uint64_t now_ns)
{
    uint64_t pause = PAUSE_FIRST << min_u64(call->pauses, PAUSE_DOUBLINGS);
    uint64_t until = add_sat(now_ns, pause);
    if (until >= call->deadline_ns) {
        call_finish(c, call, CLIENT_NOT_RUN, reply, now_ns);
        return;
    }
    call->pauses++;
    call->hops = 0;
    call->state = CALL_PAUSED;
    list_put(c->paused.prev, &call->node);
    timer_set(&c->timers, &call->timer, until, now_ns);
    c->counts.resent++;
}

_Static_assert((int)SCRIPT_COUNT <= (int)BREAKER_TEXTS, "a breaker knows of all scripts");

/*
 * Sends the call again after NOSCRIPT (C6). The first such call of the process goes as text (EVAL),
 * which also loads the script. Calls that were sent before it on its link, and are refused
 * likewise, only need to be sent by hash again, after it. Those of other links wait for a moment;
 * if they are refused again, they go as text, too.
 */
static void resend_by_text(struct client *c, struct pending_call *call,
                           const struct store_reply *reply, uint64_t now_ns)
{
    struct client_link *link = call->link;
    unsigned script = (unsigned)(call->script - c->options->scripts->row);
    bool behind = call->place < link->texts[script];
    bool first = call->strange++ == 0;
    if (!behind && !breaker_begin_text(link->breaker, script, link, now_ns) && first) {
        pause_call(c, call, reply, now_ns);
        return;
    }
    if (!behind) {
        call->how = SCRIPT_BY_TEXT;
        link->texts[script] = link->last;
    }
    c->counts.resent++;
    link_put(link, call, now_ns);
}

static void follow(struct client *c, struct pending_call *call, const struct store_reply *reply,
                   uint64_t now_ns)
{
    struct client_link *to = NULL;
    enum topology_next next = c->ops->refused(c->topology, call->link, reply, now_ns, &to);
    call->hops++;
    if (next == TOPOLOGY_END) {
        call_finish(c, call, CLIENT_NOT_RUN, reply, now_ns);
    } else if (next == TOPOLOGY_PAUSE || call->hops >= HOPS_AT_ONCE) {
        pause_call(c, call, reply, now_ns);
    } else if (next == TOPOLOGY_NOW) {
        c->counts.resent++;
        call_resend(c, call, reply, now_ns);
    } else if (client_link_is_hopeless(to) || !link_has_room(to, call->len)) {
        call_finish(c, call, CLIENT_NOT_RUN, reply, now_ns);
    } else {
        call->asking = true;
        c->counts.resent++;
        link_put(to, call, now_ns);
    }
}

void call_refused(struct client *c, struct pending_call *call, const struct store_reply *reply,
                  uint64_t now_ns)
{
    if (store_is_failure(reply->refusal)) {
        link_refuses(call->link, reply->text, call_key(call), now_ns);
    }
    if (reply->refusal == STORE_OOM && c->options->memory_high != 0) {
        /* Until the next reply to INFO, which may be a second away, new keys are not tried. */
        store_relaxed(&call->link->breaker->memory.full, 1);
    }
    if (now_ns >= call->deadline_ns) {
        call_finish(c, call, CLIENT_NOT_RUN, reply, now_ns);
    } else if (reply->refusal != STORE_NOSCRIPT) {
        follow(c, call, reply, now_ns);
    } else if (call->how == SCRIPT_BY_SHA) {
        resend_by_text(c, call, reply, now_ns);
    } else {
        pause_call(c, call, reply, now_ns);
    }
}
