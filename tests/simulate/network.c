/* The path of a call to the store and back, and its execution in the store. */
#include <inttypes.h>
#include <stdlib.h>

#include "shared/core/script.h"
#include "simulate/world.h"
#include "wire/resp.h"

struct message *message_make(struct world *w, enum message_kind kind, unsigned node,
                             unsigned subject)
{
    struct message *m = calloc(1, sizeof *m);
    if (m == NULL) {
        abort();
    }
    m->kind = kind;
    m->node = node;
    m->life = w->nodes[node].life;
    m->subject = subject;
    m->open = true;
    m->made_us = w->now_us;
    return m;
}

void message_release(struct message *m)
{
    if (m != NULL && --m->references == 0) {
        free(m);
    }
}

/* ---- the path ---- */

static bool faulty(const struct world *w)
{
    return w->now_us < w->plan.faults_until_us;
}

static uint64_t way_us(struct world *w)
{
    const struct plan *p = &w->plan;
    uint64_t us = p->delay_us + world_between(w, 0, p->jitter_us);
    return faulty(w) && world_once_in(w, p->slow_in) ? us + world_between(w, 0, p->slow_us) : us;
}

/* Messages of a node that is cut off are lost, or held until the end of the partition. */
static void put_on_way(struct world *w, struct message *m, enum event_kind kind, int cut)
{
    const struct node *n = &w->nodes[m->node];
    uint64_t at_us = w->now_us + way_us(w);
    if (faulty(w) && world_once_in(w, w->plan.lose_in)) {
        TRACE(w, "node %u: %s is lost", m->node, kind == EVENT_ARRIVE ? "its call" : "the reply");
        return;
    }
    if (w->now_us < n->cut_us && (n->cut & cut) != 0) {
        if ((n->cut & CUT_HOLDS) == 0) {
            return;
        }
        at_us += n->cut_us - w->now_us;
    }
    event_put(w, at_us, kind, m->node, m);
}

/* A question that has already waited for another's call has less time than others, and a renewal
 * has more, as in shared/store/store_group.c. */
static uint64_t deadline_of(const struct world *w, const struct message *m)
{
    uint64_t us = w->plan.deadline_us;
    if (m->kind == MESSAGE_LEASE && m->call.lease.question != NULL) {
        return m->call.lease.question->deadline_ns;
    }
    us = m->kind == MESSAGE_LEASE ? max_u64(us, SECOND_US / 10) : us;
    return node_ns(w, m->node, w->now_us) + us * 1000;
}

bool message_send(struct world *w, struct message *m)
{
    if (faulty(w) && world_once_in(w, w->plan.refuse_in) && m->kind == MESSAGE_LEASE) {
        /* like an open breaker */
        m->references++;
        message_release(m);
        return false;
    }
    w->result->calls++;
    event_put(w, node_us(w, m->node, deadline_of(w, m)), EVENT_DEADLINE, m->node, m);
    put_on_way(w, m, EVENT_ARRIVE, CUT_REQUESTS);
    return true;
}

/* ---- the store ---- */

static const struct script *put_arguments(struct world *w, const struct message *m, unsigned *count)
{
    const struct subject *s = &w->subjects[m->subject];
    struct buffer *b = &w->arguments;
    buffer_take(b, buffer_len(b));
    if (m->kind == MESSAGE_LEASE) {
        lease_put_arguments(&m->call.lease.call, b, count);
        return lease_script(w->scripts, &m->call.lease.call);
    }
    if (m->kind == MESSAGE_SYNC) {
        sync_put_arguments(&m->call.sync, 1, b, count);
        return sync_script(w->scripts, &m->call.sync);
    }
    struct store_part part = {s->params, store_key_text(&s->key), m->cost, m->time_ns};
    *count = script_put_arguments(b, m->verb, &part, 1);
    int64_t beyond =
        (int64_t)sync_beyond(s->limit, s->params); /* as in shared/store/store_group.c */
    *count += beyond != 0 ? script_put_numbers(b, &beyond, 1) : 0;
    return script_for(w->scripts, &part, 1);
}

static void run_script(struct world *w, const struct message *m, enum script_how how)
{
    static const struct resp_limits limits = {
        .args_max = RESP_ARGS_MAX, .bulk_max = (size_t)1 << 20, .request_max = (size_t)2 << 20};
    static struct resp_request request;
    const char *complaint;
    unsigned count;
    const struct script *script = put_arguments(w, m, &count);
    buffer_take(&w->request, buffer_len(&w->request));
    buffer_take(&w->reply, buffer_len(&w->reply));
    resp_put_array(&w->request, 2 + count);
    resp_put_bulk(&w->request, how == SCRIPT_BY_SHA ? TEXT("EVALSHA") : TEXT("EVAL"));
    resp_put_bulk(&w->request, how == SCRIPT_BY_SHA ? text_of(script->sha1) : script->text);
    buffer_put(&w->request, buffer_text(&w->arguments));
    if (resp_parse(buffer_text(&w->request), &limits, &request, &complaint) != RESP_REQUEST ||
        request.used != buffer_len(&w->request)) {
        world_fail(w, "a call is not a request: %s", complaint);
        return;
    }
    fake_redis_set_time(w->redis, store_us(w, w->now_us));
    fake_redis_request(w->redis, request.argv, request.argc, &w->reply);
}

static void trace_execution(struct world *w, const struct message *m)
{
    struct weir_text value =
        fake_redis_value(w->redis, store_key_text(&w->subjects[m->subject].key));
    char reply[MESSAGE_REPLY];
    size_t n = 0;
    for (size_t i = 0; i < m->reply_len; i++) {
        if (m->reply[i] != '\r' && m->reply[i] != ':') {
            reply[n++] = (char)(m->reply[i] == '\n' ? ' ' : m->reply[i]);
        }
    }
    world_trace(w, "store: call of node %u made at %" PRIu64 ", key %s -> %.*s", m->node,
                m->made_us, w->subjects[m->subject].name, (int)n, reply);
    world_trace(w, "       state %.*s", TEXT_ARGS(value));
}

/* Records what a verb adds to the limit, and blocks. */
static void verb_ran(struct world *w, const struct message *m)
{
    struct subject *s = &w->subjects[m->subject];
    if (m->kind != MESSAGE_EXACT) {
        return;
    }
    if (m->verb == REMOTE_RESET) {
        /* in `synced` as if the reported units were lost */
        bool synced = w->options->mode == REMOTE_SYNCED;
        extra_put(w, m->subject, synced ? EXTRA_LOST : EXTRA_GIVEN, s->params->quota, 0);
    } else if (m->verb == REMOTE_REFUND) {
        extra_put(w, m->subject, EXTRA_GIVEN, m->cost, 0);
        level_give(w, m->subject, m->cost);
    }
    bool ends = m->verb == SCRIPT_BLOCK_UNTIL || m->verb == REMOTE_UNBLOCK;
    if (ends && s->blocks_n > 0) {
        uint64_t *to_us = &s->blocks[s->blocks_n - 1].to_us;
        *to_us = min_u64(*to_us, w->now_us);
    }
    if (m->verb == SCRIPT_BLOCK_UNTIL && s->blocks_n < sizeof s->blocks / sizeof s->blocks[0]) {
        uint64_t to_us = m->time_ns / 1000 - w->epoch_us;
        s->blocks[s->blocks_n++] = (struct blocked){w->now_us, to_us};
    }
}

void network_arrive(struct world *w, struct message *m)
{
    run_script(w, m, SCRIPT_BY_SHA);
    if (text_starts(buffer_text(&w->reply), "-NOSCRIPT")) {
        run_script(w, m, SCRIPT_BY_TEXT); /* as a client does */
    }
    struct weir_text reply = buffer_text(&w->reply);
    if (reply.len > sizeof m->reply || text_starts(reply, "-")) {
        world_fail(w, "the store answers %.*s", TEXT_ARGS(reply));
        return;
    }
    memcpy(m->reply, reply.at, reply.len);
    m->reply_len = reply.len;
    m->executed = true;
    m->executed_us = w->now_us;
    m->executed_store_us = store_us(w, w->now_us);
    if (w->options->trace != NULL) {
        trace_execution(w, m);
    }
    verb_ran(w, m);
    level_ran(w, m);
    check_level(w, m);
    put_on_way(w, m, EVENT_REPLY, CUT_REPLIES);
}

/* ---- back at the node ---- */

/* Returns true if the message concerns a node that is alive and waits for it. A paused node gets it
 * later. */
static bool concerns(struct world *w, struct message *m, enum event_kind kind)
{
    const struct node *n = &w->nodes[m->node];
    if (!m->open || !n->up || n->life != m->life) {
        return false;
    }
    if (n->paused_us > w->now_us) {
        event_put(w, n->paused_us, kind, m->node, m);
        return false;
    }
    return true;
}

void network_reply(struct world *w, struct message *m)
{
    if (concerns(w, m, EVENT_REPLY)) {
        m->open = false;
        node_replied(w, m);
    }
}

void network_deadline(struct world *w, struct message *m)
{
    if (concerns(w, m, EVENT_DEADLINE)) {
        m->open = false;
        node_lost(w, m);
    }
}
