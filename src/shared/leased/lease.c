#include "shared/leased/lease.h"

#include "base/atomic.h"
#include "base/maths.h"
#include "shared/leased/lease_call.h"
#include "shared/leased/lease_size.h"

#define RETRY_LEAST WEIR_MICROSECOND
#define LINGER_NS (10 * WEIR_MILLISECOND) /* a denial lasts this much longer while a call is out */

static uint64_t until(uint64_t at_ns, uint64_t now_ns)
{
    return at_ns == WEIR_FOREVER ? WEIR_FOREVER : sub_floor0(at_ns, now_ns);
}

/* ---- questions ---- */

static void answer_from_lease(const struct lease_entry *e, uint64_t cost, uint64_t now_ns,
                              struct weir_answer *answer)
{
    *answer = (struct weir_answer){
        .verdict = WEIR_ALLOW,
        .quota = e->quota,
        .remaining = e->left + e->rest,
        .granted = cost,
        .reset_after_ns = until(e->reset_at_ns, now_ns),
    };
}

/*
 * Returns whether the store has denied this cost, or a lower one, a moment ago. When that moment is
 * over, one question goes to the store again; the others are denied until its answer is here (for
 * at most LINGER_NS), because otherwise all that come meanwhile would go to the store, too.
 */
static bool is_denied(const struct lease_entry *e, uint64_t cost, uint64_t now_ns)
{
    uint64_t linger = e->flight != 0 ? LINGER_NS : 0;
    return e->denied_cost != 0 && cost >= e->denied_cost && cost <= e->quota &&
           now_ns < add_sat(e->denied_until_ns, linger);
}

/* Answers DENY out of memory. The retry is the later of what the store said and when it will be
 * asked again, because no question is allowed here before both. */
static void answer_from_denial(const struct lease_entry *e, uint64_t now_ns,
                               struct weir_answer *answer)
{
    uint64_t retry_at_ns = max_u64(e->retry_at_ns, e->denied_until_ns);
    *answer = (struct weir_answer){
        .verdict = WEIR_DENY,
        .flags = e->denied_flags,
        .quota = e->quota,
        .remaining = lease_to_spend(e, now_ns),
        .retry_after_ns = max_u64(until(retry_at_ns, now_ns), RETRY_LEAST),
        .reset_after_ns = until(e->reset_at_ns, now_ns),
    };
}

static unsigned spend(struct leases *l, struct lease_stripe *s, struct lease_entry *e,
                      uint64_t cost, uint64_t now_ns, struct weir_answer *answer,
                      struct lease_call *call)
{
    e->left -= cost;
    answer_from_lease(e, cost, now_ns, answer);
    if (!lease_wants_renewal(e, now_ns)) {
        return LEASE_ANSWERED;
    }
    if (call == NULL) {
        lease_make_ready(s, e);
        return LEASE_ANSWERED;
    }
    return lease_renew(l, s, e, now_ns, call) ? LEASE_ANSWERED | LEASE_SEND : LEASE_ANSWERED;
}

/* Makes the key's call for a question that goes to the store (L6). Returns false if the question
 * must use another way: a call is out, no lease is to be taken or settled, or the cost is more than
 * the quota, which is never allowed and so no reason to give back the units that are here. */
static bool ask_store(struct leases *l, struct lease_stripe *s, struct lease_entry *e,
                      uint64_t cost, uint64_t now_ns, struct lease_call *call)
{
    const struct store_params *p = lease_params(e);
    if (e->flight != 0 || cost > p->quota) {
        return false;
    }
    uint64_t want = load_relaxed(&l->stopping) != 0 ? 0 : lease_want(e, p, cost, now_ns);
    if (want == 0 && e->mark == 0) {
        return false;
    }
    lease_call_make(s, e, cost, want, false, now_ns, call);
    return true;
}

/* Returns whether the question is to wait for the call that is out (L8). Units that will be dropped
 * when they come are not worth waiting for. */
static bool is_to_wait(const struct leases *l, const struct lease_entry *e, uint64_t cost)
{
    return e->flight != 0 && e->brings && !e->drop && cost <= lease_params(e)->quota &&
           load_relaxed(&l->stopping) == 0;
}

static unsigned ask(struct leases *l, struct store_limit *limit, struct text shard, struct text key,
                    uint64_t cost, bool counts, uint64_t now_ns, struct weir_answer *answer,
                    struct lease_call *call, bool only_here)
{
    bool goes = call != NULL && !only_here; /* the question may go to the store */
    struct hash h = lease_hash(l, limit->id, shard, key);
    const uint64_t hash[2] = {h.low, h.high};
    struct lease_stripe *s = lease_lock(l, hash, &now_ns);
    struct lease_entry *e = lease_find(s, hash);
    unsigned done = 0;
    if (e == NULL && goes) {
        e = lease_make(s, hash, limit, shard, key, now_ns);
    }
    if (e != NULL) {
        bool here = lease_to_spend(e, now_ns) >= cost;
        bool denied = !here && is_denied(e, cost, now_ns);
        if (counts && (here || denied || goes)) {
            lease_count(e, cost, now_ns);
        }
        if (here) {
            done = spend(l, s, e, cost, now_ns, answer, call);
        } else if (denied) {
            answer_from_denial(e, now_ns, answer);
            done = LEASE_ANSWERED;
        } else if (goes && ask_store(l, s, e, cost, now_ns, call)) {
            done = LEASE_SEND;
        } else if (goes && is_to_wait(l, e, cost)) {
            *call = (struct lease_call){.hash = {hash[0], hash[1]}, .id = e->flight};
            done = LEASE_WAIT;
        }
    }
    lease_unlock(s);
    if (done == 0 && goes) {
        lease_call_plain(limit, shard, key, hash, cost, now_ns, call);
        done = LEASE_SEND;
    }
    return done;
}

unsigned lease_ask(struct leases *l, struct store_limit *limit, struct text shard, struct text key,
                   uint64_t cost, uint64_t now_ns, struct weir_answer *answer,
                   struct lease_call *call)
{
    return ask(l, limit, shard, key, cost, true, now_ns, answer, call, false);
}

unsigned lease_ask_here(struct leases *l, struct store_limit *limit, struct text shard,
                        struct text key, uint64_t cost, uint64_t now_ns, struct weir_answer *answer,
                        struct lease_call *call)
{
    return ask(l, limit, shard, key, cost, true, now_ns, answer, call, true);
}

unsigned lease_ask_again(struct leases *l, struct store_limit *limit, struct text shard,
                         struct text key, uint64_t cost, uint64_t now_ns,
                         struct weir_answer *answer, struct lease_call *call)
{
    return ask(l, limit, shard, key, cost, false, now_ns, answer, call, false);
}

void lease_alone(struct store_limit *limit, struct text shard, struct text key, uint64_t cost,
                 uint64_t now_ns, struct lease_call *call)
{
    const uint64_t hash[2] = {call->hash[0], call->hash[1]};
    lease_call_plain(limit, shard, key, hash, cost, now_ns, call);
}

/* ---- looking after leases ---- */

static void end_lease(struct lease_entry *e)
{
    e->left = 0;
    e->held = 0;
    e->mark = 0;
    e->drop = false;
    e->renew_below = 0;
    e->renew_ns = UINT64_MAX;
}

/* Looks after an entry (L5). Returns true if *call is to be sent. An entry of which nothing is
 * outstanding is removed if it was not asked for during LEASE_LIFE_NS, or if leases are stopped. */
static bool look_after(struct leases *l, struct lease_stripe *s, struct lease_entry *e,
                       uint64_t now_ns, struct lease_call *call)
{
    uint64_t idle_ns = sub_floor0(now_ns, e->used_ns);
    bool stopping = load_relaxed(&l->stopping) != 0;
    if (e->flight != 0) {
        return false;
    }
    if (now_ns >= e->over_ns || (e->mark == 0 && now_ns >= e->expires_ns)) {
        end_lease(e);
    }
    if (!lease_is_out(e)) {
        if (idle_ns >= LEASE_LIFE_NS || stopping) {
            lease_remove(s, e);
        }
        return false;
    }
    if (e->mark == 0) {
        return false; /* its units are spent until they expire, and cannot be settled (L2) */
    }
    bool idle = idle_ns >= e->life_ns / 2 || (now_ns >= e->renew_ns && idle_ns >= e->life_ns / 4);
    if (idle && e->left == 0 && lease_params(e)->algorithm == WEIR_FIXED_WINDOW) {
        end_lease(e); /* the window has counted the units; whether they were spent is no matter */
        return false;
    }
    if (e->drop || stopping || idle) {
        lease_call_make(s, e, 0, 0, false, now_ns, call);
        return true;
    }
    return lease_wants_renewal(e, now_ns) && lease_renew(l, s, e, now_ns, call);
}

static bool next_of(struct leases *l, struct lease_stripe *s, uint64_t now_ns,
                    struct lease_call *call)
{
    while (!list_is_empty(&s->ready)) {
        struct lease_entry *e = LIST_OF(s->ready.next, struct lease_entry, ready);
        list_take(&e->ready);
        if (look_after(l, s, e, now_ns, call)) {
            return true;
        }
    }
    while (!list_is_empty(&s->look)) {
        struct lease_entry *e = LIST_OF(s->look.next, struct lease_entry, look);
        if (e->look_ns > now_ns) {
            break;
        }
        lease_look_later(s, e, now_ns);
        if (look_after(l, s, e, now_ns, call)) {
            return true;
        }
    }
    return false;
}

bool lease_next(struct leases *l, uint64_t now_ns, struct lease_call *call)
{
    uint64_t from = load_relaxed(&l->turn); /* a hint, which any thread may change */
    for (uint64_t i = 0; i < LEASE_STRIPES; i++) {
        uint64_t at = (from + i) % LEASE_STRIPES;
        if (load_relaxed(&l->stripe[at].due_ns) > now_ns) {
            continue;
        }
        uint64_t its_now = now_ns;
        struct lease_stripe *s = lease_lock(l, (const uint64_t[2]){at << 58, 0}, &its_now);
        bool found = next_of(l, s, its_now, call);
        lease_unlock(s);
        if (found) {
            store_relaxed(&l->turn, at);
            return true;
        }
    }
    return false;
}

void lease_stop(struct leases *l)
{
    store_relaxed(&l->stopping, 1);
    for (uint64_t i = 0; i < LEASE_STRIPES; i++) {
        uint64_t now_ns = 0;
        struct lease_stripe *s = lease_lock(l, (const uint64_t[2]){i << 58, 0}, &now_ns);
        for (struct list *at = s->look.next; at != &s->look; at = at->next) {
            lease_make_ready(s, LIST_OF(at, struct lease_entry, look));
        }
        lease_unlock(s);
    }
}

void lease_forget(struct leases *l, const struct store_limit *limit, struct text shard,
                  struct text key)
{
    struct hash h = lease_hash(l, limit->id, shard, key);
    const uint64_t hash[2] = {h.low, h.high};
    uint64_t now_ns = 0;
    struct lease_stripe *s = lease_lock(l, hash, &now_ns);
    struct lease_entry *e = lease_find(s, hash);
    if (e != NULL) {
        e->denied_cost = 0;
        e->left = e->mark != 0 || e->flight != 0 ? e->left : 0;
        if (lease_is_out(e)) {
            e->drop = true;
            lease_make_ready(s, e);
        }
    }
    lease_unlock(s);
}

bool lease_refund(struct leases *l, const struct store_limit *limit, struct text shard,
                  struct text key, uint64_t units, uint64_t now_ns)
{
    struct hash h = lease_hash(l, limit->id, shard, key);
    const uint64_t hash[2] = {h.low, h.high};
    struct lease_stripe *s = lease_lock(l, hash, &now_ns);
    struct lease_entry *e = lease_find(s, hash);
    bool here = e != NULL && e->mark != 0 && now_ns < e->expires_ns && units <= e->held - e->left;
    if (here) {
        e->left += units;
    }
    lease_unlock(s);
    return here;
}
