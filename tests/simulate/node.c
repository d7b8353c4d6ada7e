/* A node: its clock, the questions that it gets, and its calls; modelled on
 * src/shared/store/store.c. */
#include <inttypes.h>
#include <stdlib.h>

#include "shared/core/script.h"
#include "simulate/world.h"

#define KEYS 64 /* of each kind that a node remembers */
#define MILLION 1000000

/* ---- its clock ---- */

uint64_t node_ns(const struct world *w, unsigned n, uint64_t at_us)
{
    const struct node *node = &w->nodes[n];
    u128 ns = (u128)at_us * 1000 * (uint64_t)(MILLION + node->drift_ppm) / MILLION;
    return node->offset_ns + (uint64_t)ns;
}

uint64_t node_us(const struct world *w, unsigned n, uint64_t ns)
{
    const struct node *node = &w->nodes[n];
    if (ns == UINT64_MAX) {
        return NEVER_US;
    }
    uint64_t passed = sub_floor0(ns, node->offset_ns);
    u128 us = (u128)passed * MILLION / ((u128)1000 * (uint64_t)(MILLION + node->drift_ppm));
    uint64_t at_us = us > NEVER_US / 2 ? NEVER_US / 2 : (uint64_t)us;
    while (node_ns(w, n, at_us) < ns && at_us < NEVER_US / 2) {
        at_us++;
    }
    return at_us;
}

static uint64_t now_ns(const struct world *w, unsigned n)
{
    return node_ns(w, n, w->now_us);
}

/* ---- its life ---- */

/* A single node admits no more than the quota of a window; but a bucket refills. */
uint64_t at_once(const struct world *w, unsigned subject, uint64_t units)
{
    const struct store_params *p = w->subjects[subject].params;
    return p == NULL || is_bucket(p) ? units : min_u64(units, p->quota);
}

void node_start(struct world *w, unsigned n)
{
    struct node *node = &w->nodes[n];
    node->life++;
    node->up = true;
    node->tick_us = NEVER_US;
    node->ending = false;
    for (unsigned i = 0; i < SUBJECTS_MAX; i++) {
        struct told *t = &node->told[i];
        *t = (struct told){.past = t->past + at_once(w, i, t->most),
                           .least = t->least,
                           .waits_us = NEVER_US,
                           .setting_us = w->step_us};
    }
    bool leased = w->options->mode == REMOTE_LEASED;
    if (node_keys_of(&node->keys, leased ? KEY_LEASED : KEY_SYNCED, KEYS) != 0) {
        abort();
    }
    if (leased) {
        asked_begin(w, n);
    }
}

/* Releases the calls in flight of a node that is gone. */
static void let_go(struct world *w, unsigned n)
{
    for (size_t i = 0; i < w->heap_n; i++) {
        struct message *m = w->heap[i].message;
        if (m == NULL || m->node != n || m->life != w->nodes[n].life || !m->open) {
            continue;
        }
        m->open = false;
        w->open -= m->asks;
        if (m->kind == MESSAGE_LEASE) {
            asked_lost(w, m);
        } else if (m->kind == MESSAGE_SYNC) {
            sync_lost(w->nodes[n].keys, &m->call.sync, now_ns(w, n));
        }
    }
}

void node_stop(struct world *w, unsigned n)
{
    struct node *node = &w->nodes[n];
    let_go(w, n);
    bool synced = w->options->mode == REMOTE_SYNCED && !w->over;
    for (unsigned i = 0; synced && i < w->plan.subjects; i++) {
        struct told *t = &node->told[i]; /* what it has not reported is lost with it */
        uint64_t most = at_once(w, i, t->most);
        t->least = node->life == 1 ? most : min_u64(t->least, most);
        if (t->admitted > t->told) {
            extra_put(w, i, EXTRA_GIVEN, t->admitted - t->told, 0);
        }
        w->subjects[i].gone += t->admitted - t->ran;
        if (is_bucket(w->subjects[i].params)) {
            level_give(w, i, t->admitted - t->ran);
        }
    }
    node_keys_destroy(node->keys);
    node->keys = NULL;
    node->up = false;
}

/* ---- questions ---- */

void answered(struct world *w, unsigned n, unsigned subject, uint64_t cost,
              const struct weir_answer *a, const struct message *m, bool probe)
{
    const struct subject *s = &w->subjects[subject];
    TRACE(w, "node %u: %s cost %" PRIu64 " -> verdict %d remaining %" PRIu64 "%s", n, s->name, cost,
          a->verdict, a->remaining, a->flags != 0 ? " flagged" : "");
    w->result->here += m == NULL && a->verdict == WEIR_ALLOW;
    world_print(w, (uint64_t)a->verdict << 32 | subject);
    world_print(w, a->remaining ^ a->retry_after_ns);
    if (a->verdict == WEIR_ALLOW) {
        if (a->granted != cost) {
            world_fail(w, "an allowed question of cost %" PRIu64 " was granted %" PRIu64, cost,
                       a->granted);
        }
        admit(w, subject, n, cost, m != NULL ? m->executed_us : w->now_us,
              m != NULL ? m->executed_store_us : store_us(w, w->now_us));
    } else if (a->verdict != WEIR_DENY && (a->verdict != WEIR_NEVER || cost <= s->params->quota)) {
        world_fail(w, "verdict %d for cost %" PRIu64 " of quota %" PRIu64, a->verdict, cost,
                   s->params->quota);
    }
    if (probe && a->verdict != WEIR_ALLOW) {
        world_fail(w,
                   "%s is not fresh after the end of all: cost %" PRIu64
                   " gets verdict %d, remaining %" PRIu64 ", retry after %" PRIu64 " ns",
                   s->name, cost, a->verdict, a->remaining, a->retry_after_ns);
    }
}

void ask_exact(struct world *w, unsigned n, unsigned subject, uint64_t cost, bool probe)
{
    struct message *m = message_make(w, MESSAGE_EXACT, n, subject);
    m->verb = REMOTE_CHECK;
    m->cost = cost;
    m->asks = true;
    m->probe = probe;
    w->open++;
    message_send(w, m);
}

static bool same_window(const struct world *w, const struct store_params *p, uint64_t at_us)
{
    return window_of(p, store_us(w, at_us)) == window_of(p, store_us(w, w->now_us));
}

static void ask_synced(struct world *w, unsigned n, unsigned subject, uint64_t cost, bool probe)
{
    const struct subject *s = &w->subjects[subject];
    struct told *t = &w->nodes[n].told[subject];
    struct weir_answer a = {0};
    bool counts = cost <= s->params->quota; /* otherwise it is denied without any knowledge */
    if ((sync_ask(w->nodes[n].keys, PART(s->limit, text_of(s->name), cost), now_ns(w, n), &a) &
         SYNC_ANSWERED) == 0) {
        TRACE(w, "node %u: %s is degraded", n, s->name);
        if (probe) {
            world_fail(w, "node %u is degraded after the end of all faults", n);
        }
        return; /* on_store_failure: closed */
    }
    uint64_t most_us = SYNC_DEGRADED_AFTER * w->plan.sync_us;
    bool told = !is_bucket(s->params) && !same_window(w, s->params, t->waits_us); /* or dropped */
    if (counts && !told && t->waits_us < w->now_us &&
        w->now_us - t->waits_us > most_us + most_us / 64 + 1) {
        world_fail(w, "node %u decides about %s, and has had no answer since %" PRIu64, n, s->name,
                   t->waits_us);
    }
    if (a.verdict == WEIR_ALLOW) {
        t->admitted += cost;
        t->waits_us = min_u64(t->waits_us, w->now_us);
        t->most = max_u64(t->most, t->admitted - t->known);
        level_take(w, subject, n, cost);
        if (t->blocked_us > store_us(w, w->now_us)) {
            world_fail(w, "node %u admits %s, of whose block it has heard", n, s->name);
        }
    }
    answered(w, n, subject, cost, &a, NULL, probe);
}

void node_ask(struct world *w, unsigned n, unsigned subject, uint64_t cost, bool probe)
{
    struct node *node = &w->nodes[n];
    const struct subject *s = &w->subjects[subject];
    if (!node->up || node->ending || node->paused_us > w->now_us) {
        return;
    }
    w->result->questions++;
    w->subjects[subject].offered += cost;
    if (s->limit->mode == REMOTE_LEASED) {
        asked_leased(w, n, subject, cost, probe);
    } else if (s->limit->mode == REMOTE_SYNCED) {
        ask_synced(w, n, subject, cost, probe);
    } else {
        ask_exact(w, n, subject, cost, probe);
    }
    node_pump(w, n);
}

void node_verb(struct world *w, unsigned n, unsigned subject, unsigned verb, uint64_t cost,
               uint64_t time_ns)
{
    const struct subject *s = &w->subjects[subject];
    if (!w->nodes[n].up) {
        return;
    }
    struct message *m = message_make(w, MESSAGE_EXACT, n, subject);
    m->verb = verb;
    m->cost = cost;
    m->time_ns = time_ns;
    TRACE(w, "node %u: verb %d of %s", n, (int)verb, s->name);
    if (s->limit->mode == REMOTE_LEASED && verb != REMOTE_REFUND) {
        struct node_keys *keys = w->nodes[n].keys;
        node_keys_forget(keys, node_key_hash(keys, PART(s->limit, text_of(s->name), 1)));
        lease_forget(keys, PART(s->limit, text_of(s->name), 1));
    }
    message_send(w, m);
    node_pump(w, n);
}

/* ---- calls that no question has made ---- */

unsigned subject_of(const struct world *w, const struct store_key *key)
{
    for (unsigned i = 0; i < w->plan.subjects; i++) {
        if (text_equal(store_key_text(&w->subjects[i].key), store_key_text(key))) {
            return i;
        }
    }
    abort();
}

static void send_sync(struct world *w, unsigned n, const struct sync_call *call)
{
    unsigned subject = subject_of(w, &call->key);
    struct message *m = message_make(w, MESSAGE_SYNC, n, subject);
    struct told *t = &w->nodes[n].told[subject];
    m->call.sync = *call;
    t->flight = t->again ? t->flight : t->admitted;
    m->admitted = t->flight;
    level_made(w, m);
    TRACE(w, "node %u: exchange of %s: delta %" PRId64 " window %" PRId64 " extra %" PRId64, n,
          w->subjects[subject].name, call->delta, call->window, call->extra);
    message_send(w, m);
}

/* Schedules a tick, unless one comes early enough. Nothing may be due now, because it would have
 * been taken. */
static void schedule(struct world *w, unsigned n)
{
    struct node *node = &w->nodes[n];
    bool leased = w->options->mode == REMOTE_LEASED;
    uint64_t due_ns = node_keys_due(node->keys);
    due_ns = leased ? min_u64(due_ns, lease_waits_due(&node->waits)) : due_ns;
    if (due_ns <= now_ns(w, n)) {
        world_fail(w, "node %u has something due now, and nothing to do", n);
        return;
    }
    uint64_t due_us = node_us(w, n, due_ns);
    if (due_us < NEVER_US / 2) {
        due_us += world_between(w, 0, w->plan.late_us);
        if (due_us < node->tick_us) {
            node->tick_us = due_us;
            event_put(w, due_us, EVENT_TICK, n, NULL);
        }
    }
}

void node_pump(struct world *w, unsigned n)
{
    struct node *node = &w->nodes[n];
    struct sync_call sync;
    if (node->keys != NULL && w->options->mode == REMOTE_LEASED) {
        asked_tick(w, n);
        asked_next(w, n);
    }
    while (node->keys != NULL && sync_next(node->keys, now_ns(w, n), &sync)) {
        send_sync(w, n, &sync);
    }
    schedule(w, n);
}

void node_tick(struct world *w, unsigned n)
{
    struct node *node = &w->nodes[n];
    if (!node->up || w->now_us < node->tick_us) {
        return; /* an earlier tick has replaced it, or the node has restarted */
    }
    node->tick_us = NEVER_US;
    if (node->paused_us > w->now_us) {
        node->tick_us = node->paused_us;
        event_put(w, node->paused_us, EVENT_TICK, n, NULL);
        return;
    }
    node_pump(w, n);
}

/* ---- ends of calls ---- */

static void replied_sync(struct world *w, struct message *m, const struct store_reply *reply)
{
    struct told *t = &w->nodes[m->node].told[m->subject];
    const struct sync_call *call = &m->call.sync;
    bool window = !is_bucket(w->subjects[m->subject].params);
    t->again = false;
    t->waits_us = t->admitted > m->admitted && !window ? w->now_us : NEVER_US;
    t->known = m->admitted;
    t->heard = m->others;
    t->known_window = m->heard;
    t->setting_us = (int64_t)(m->executed_store_us - m->executed_us - w->epoch_us);
    t->told += (uint64_t)(call->delta + (window ? call->extra : 0));
    t->blocked_us = reply->n == 6 ? (uint64_t)reply->integers[4] : 0;
    w->most_way_us = max_u64(w->most_way_us, w->now_us - m->made_us);
    if (sync_reply(w->nodes[m->node].keys, &m->call.sync, reply, now_ns(w, m->node)) != 0) {
        world_fail(w, "node %u cannot read the reply to an exchange", m->node);
    }
}

static void replied_exact(struct world *w, struct message *m, const struct store_reply *reply)
{
    const struct subject *s = &w->subjects[m->subject];
    struct store_part part = {.params = s->params, .cost = m->cost};
    struct weir_answer a;
    if (m->verb != REMOTE_CHECK) {
        return;
    }
    if (script_answer(reply, &part, 1, &a, NULL) != 0) {
        world_fail(w, "node %u cannot read the reply to a check", m->node);
        return;
    }
    answered(w, m->node, m->subject, m->cost, &a, m, m->probe);
}

void node_replied(struct world *w, struct message *m)
{
    struct store_reply reply;
    if (store_reply_read((struct weir_text){m->reply, m->reply_len}, &reply) != STORE_REPLY) {
        world_fail(w, "not a reply: %.*s", (int)m->reply_len, m->reply);
        return;
    }
    w->open -= m->asks;
    if (m->kind == MESSAGE_LEASE) {
        asked_replied(w, m, &reply);
    } else if (m->kind == MESSAGE_SYNC) {
        replied_sync(w, m, &reply);
    } else {
        replied_exact(w, m, &reply);
    }
    node_pump(w, m->node);
}

/* The question is then answered by on_store_failure: closed. */
void node_lost(struct world *w, struct message *m)
{
    TRACE(w, "node %u: no reply to its call of %" PRIu64, m->node, m->made_us);
    w->open -= m->asks;
    if (m->probe) {
        world_fail(w, "no answer though nothing fails any more");
    }
    if (m->kind == MESSAGE_LEASE) {
        asked_lost(w, m);
    } else if (m->kind == MESSAGE_SYNC) {
        const struct sync_call *call = &m->call.sync;
        bool window = !is_bucket(w->subjects[m->subject].params);
        w->nodes[m->node].told[m->subject].again = call->delta != 0 || (window && call->extra != 0);
        sync_lost(w->nodes[m->node].keys, call, now_ns(w, m->node));
    }
    node_pump(w, m->node);
}
