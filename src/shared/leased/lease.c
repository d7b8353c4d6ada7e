#include "shared/leased/lease.h"

#include <assert.h>

#include "base/atomic.h"
#include "base/maths.h"
#include "shared/leased/lease_part.h"

#define LINGER_NS (10 * WEIR_MILLISECOND) /* a denial lasts this much longer while a call is out */

/* ---- leases of keys ---- */

static struct lease *find(const struct key_stripe *s, struct hash hash)
{
    return node_key_part(node_key_find(s, hash), KEY_LEASED);
}

/* key_matters_fn */
static uint64_t matters(struct key_part *part, uint64_t now_ns)
{
    (void)now_ns;
    return lease_is_out((const struct lease *)part) ? UINT64_MAX : 0;
}

/* Gives the key a lease without units. Returns NULL if there is no room or no memory. */
static struct lease *make(struct key_stripe *s, struct hash hash, const struct remote_part *of,
                          uint64_t now_ns)
{
    struct key_part *least = node_key_least(s, KEY_LEASED, matters, now_ns);
    if (least != NULL) {
        node_key_end(s, least);
    }
    struct lease *e = node_key_begin(s, hash, of, KEY_LEASED, sizeof *e);
    if (e != NULL) {
        e->since_ns = now_ns;
        e->renew_ns = UINT64_MAX;
        node_key_schedule(s, &e->part, now_ns + LEASE_LOOK_NS);
    }
    return e;
}

/* ---- questions ---- */

/* Makes the call for a renewal, if one is wanted; or makes it due, if no call may be made. */
static unsigned renew(struct node_keys *keys, struct key_stripe *s, struct lease *e,
                      enum lease_how how, uint64_t now_ns, struct lease_call *call)
{
    if (!lease_wants_renewal(e, now_ns)) {
        return 0;
    }
    if (how != LEASE_HERE) {
        return lease_renew(keys, s, e, now_ns, call) ? LEASE_SEND : 0;
    }
    if (e->part.due_ns <= now_ns) {
        return 0; /* as another question has said */
    }
    node_key_schedule(s, &e->part, 0);
    return LEASE_DUE;
}

static void spend(struct lease *e, uint64_t cost, uint64_t now_ns, struct weir_answer *answer)
{
    const struct node_key *k = e->part.key;
    assert(now_ns < e->expires_ns && !e->drop && cost <= e->left); /* L1 */
    e->left -= cost;
    *answer = (struct weir_answer){
        .verdict = WEIR_ALLOW,
        .quota = lease_params(e)->quota,
        .remaining = e->left + k->remaining,
        .granted = cost,
        .reset_after_ns = node_key_until(k->reset_at_ns, now_ns),
    };
}

/*
 * Answers DENY if the store has denied this cost, or a lower one, a moment ago. When that moment is
 * over, one question goes to the store again; the others are denied until its answer is here (for
 * at most LINGER_NS), because otherwise all that come meanwhile would go to the store, too. The key
 * may have no entry (NULL), or no lease.
 */
static bool deny(struct node_key *k, const struct lease *e, const struct remote_part *of,
                 uint64_t now_ns, struct weir_answer *answer)
{
    struct store_limit *limit = of->limit;
    const struct store_params *p = &store_limit_numbers(limit)->params;
    uint64_t linger_ns = e != NULL && e->flight != 0 ? LINGER_NS : 0;
    if (k == NULL || !node_key_denies(k, p, of->cost, linger_ns, now_ns, answer)) {
        return false;
    }
    answer->remaining += lease_to_spend(e, now_ns);
    count_shared(&limit->counts.remembered, 1);
    return true;
}

/* Makes the key's call for a question that goes to the store (L6). Returns false if the question
 * must use another way: a call is out, no lease is to be taken or settled, or the cost is more than
 * the quota, which is never allowed and so no reason to give back the units that are here. */
static bool ask_store(struct node_keys *keys, struct key_stripe *s, struct lease *e, uint64_t cost,
                      uint64_t now_ns, struct lease_call *call)
{
    const struct store_params *p = lease_params(e);
    if (e->flight != 0 || cost > p->quota) {
        return false;
    }
    uint64_t want = node_keys_is_stopping(keys) ? 0 : lease_want(e, p, cost, now_ns);
    if (want == 0 && e->mark == 0) {
        return false;
    }
    lease_call_make(s, e, cost, want, false, now_ns, call);
    return true;
}

/* Returns whether the question is to wait for the call that is out (L8). Units that will be dropped
 * when they come are not worth waiting for. */
static bool is_to_wait(const struct node_keys *keys, const struct lease *e, uint64_t cost)
{
    return e->flight != 0 && e->brings && !e->drop && cost <= lease_params(e)->quota &&
           !node_keys_is_stopping(keys);
}

/* Counts a question as demand. */
static void count(struct lease *e, uint64_t cost, uint64_t now_ns)
{
    e->asked += cost;
    e->part.key->used_ns = now_ns;
}

/* Sends a question that could not be answered here, or lets it wait. Returns 0 if it must ask the
 * store alone. */
static unsigned go(struct node_keys *keys, struct key_stripe *s, struct lease *e, uint64_t cost,
                   uint64_t now_ns, struct lease_call *call)
{
    if (ask_store(keys, s, e, cost, now_ns, call)) {
        return LEASE_SEND;
    }
    if (is_to_wait(keys, e, cost)) {
        *call = (struct lease_call){.hash = e->part.key->hash, .id = e->flight};
        return LEASE_WAIT;
    }
    return 0;
}

unsigned lease_ask(struct node_keys *keys, const struct remote_part *of, enum lease_how how,
                   uint64_t now_ns, struct weir_answer *answer, struct lease_call *call)
{
    unsigned done = 0;
    struct hash hash = node_key_hash(keys, of);
    struct key_stripe *s = node_keys_lock(keys, hash, &now_ns);
    struct node_key *k = node_key_find(s, hash);
    struct lease *e = node_key_part(k, KEY_LEASED);
    if (e == NULL && how != LEASE_HERE) {
        e = make(s, hash, of, now_ns);
        k = node_key_find(s, hash); /* make() may have removed the old one */
    }
    bool here = e != NULL && lease_to_spend(e, now_ns) >= of->cost;
    bool denied = !here && deny(k, e, of, now_ns, answer);
    if (e != NULL && how != LEASE_AGAIN && (here || denied || how != LEASE_HERE)) {
        count(e, of->cost, now_ns);
    }
    if (here) {
        spend(e, of->cost, now_ns, answer);
        done = LEASE_ANSWERED | renew(keys, s, e, how, now_ns, call);
    } else if (denied) {
        done = LEASE_ANSWERED;
    } else if (e != NULL && how != LEASE_HERE) {
        done = go(keys, s, e, of->cost, now_ns, call);
    }
    node_keys_unlock(s);
    if (done == 0 && how != LEASE_HERE) {
        call->hash = hash;
        lease_alone(of, now_ns, call);
        done = LEASE_SEND;
    }
    return done;
}

/* ---- looking after leases ---- */

static void end_lease(struct lease *e)
{
    e->left = 0;
    e->held = 0;
    e->mark = 0;
    e->drop = false;
    e->renew_below = 0;
    e->renew_ns = UINT64_MAX;
}

/* key_look_fn: looks after a lease (L5). A key of which nothing is outstanding has no lease any
 * more if it was not asked for during LEASE_LIFE_NS, or if leases are stopped. */
static bool look_after(struct node_keys *keys, struct key_stripe *s, struct key_part *part,
                       uint64_t now_ns, void *call)
{
    struct lease *e = (struct lease *)part;
    assert(e->flight == 0); /* while a call is out, the lease is in no heap */
    uint64_t idle_ns = sub_floor0(now_ns, part->key->used_ns);
    bool stopping = node_keys_is_stopping(keys);
    node_key_schedule(s, part, now_ns + LEASE_LOOK_NS);
    if (now_ns >= e->over_ns || (e->mark == 0 && now_ns >= e->expires_ns)) {
        end_lease(e);
    }
    if (!lease_is_out(e)) {
        if (idle_ns >= LEASE_LIFE_NS || stopping) {
            node_key_end(s, part);
        }
        return false;
    }
    if (e->mark == 0) {
        return false; /* its units are spent until they expire, and cannot be settled (L2) */
    }
    bool idle = idle_ns >= e->life_ns / 2 || (now_ns >= e->renew_ns && idle_ns >= e->life_ns / 4);
    if (idle && e->left == 0 && algorithm_has(lease_params(e)->algorithm, IS_FIXED_WINDOW)) {
        end_lease(e); /* the window has counted the units; whether they were spent is no matter */
        return false;
    }
    if (e->drop || stopping || idle) {
        lease_call_make(s, e, 0, 0, false, now_ns, call);
        return true;
    }
    return lease_wants_renewal(e, now_ns) && lease_renew(keys, s, e, now_ns, call);
}

bool lease_next(struct node_keys *keys, uint64_t now_ns, struct lease_call *call)
{
    return node_keys_next(keys, KEY_LEASED, now_ns, look_after, call);
}

void lease_forget(struct node_keys *keys, const struct remote_part *of)
{
    struct hash hash = node_key_hash(keys, of);
    uint64_t now_ns = 0;
    struct key_stripe *s = node_keys_lock(keys, hash, &now_ns);
    struct lease *e = find(s, hash);
    if (e != NULL) {
        e->left = e->mark != 0 || e->flight != 0 ? e->left : 0;
        e->drop = e->drop || lease_is_out(e);
        if (e->drop && e->flight == 0) {
            node_key_schedule(s, &e->part, 0);
        }
    }
    node_keys_unlock(s);
}

bool lease_refund(struct node_keys *keys, const struct remote_part *of, uint64_t now_ns)
{
    struct hash hash = node_key_hash(keys, of);
    struct key_stripe *s = node_keys_lock(keys, hash, &now_ns);
    struct lease *e = find(s, hash);
    bool here =
        e != NULL && e->mark != 0 && now_ns < e->expires_ns && of->cost <= e->held - e->left;
    if (here) {
        e->left += of->cost;
        assert(e->left <= e->held);
    }
    node_keys_unlock(s);
    return here;
}
