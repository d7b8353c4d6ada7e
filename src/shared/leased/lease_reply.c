/* Ends a lease's call: with a reply, without one, or because it was never sent. */
#include "base/atomic.h"
#include "base/maths.h"
#include "shared/leased/lease_call.h"
#include "shared/leased/lease_size.h"
#include "shared/script.h"

#define DRIFT_PART 100u /* clocks may drift apart by 1/DRIFT_PART of a life (L1) */
#define UNSENT_NS (10 * WEIR_MILLISECOND)

enum { AT_GRANTED = SCRIPT_ANSWER_COUNT, AT_MARK, AT_LIFE, AT_KEPT };

/* Returns the units that the node holds under the new mark. */
static uint64_t held_now(const struct lease_call *call, const struct store_reply *reply)
{
    bool kept = reply->integers[AT_KEPT] != 0 && call->lease != 0;
    return (uint64_t)reply->integers[AT_GRANTED] + (kept ? call->keep : 0);
}

static bool is_lease(const struct lease_call *call, const struct store_reply *reply)
{
    if (reply->type != ':' || reply->n != SCRIPT_LEASE_COUNT) {
        return false;
    }
    for (unsigned i = AT_GRANTED; i <= AT_KEPT; i++) {
        if (reply->integers[i] < 0 || reply->integers[i] > (int64_t)STORE_MOST) {
            return false;
        }
    }
    return (uint64_t)reply->integers[AT_GRANTED] <= call->want && reply->integers[AT_KEPT] <= 1 &&
           (reply->integers[AT_MARK] != 0) == (held_now(call, reply) != 0);
}

static int read_answer(const struct lease_call *call, const struct store_reply *reply,
                       struct weir_answer *answer)
{
    struct store_part part = {.params = &store_limit_numbers(call->limit)->params};
    if (!is_lease(call, reply)) {
        return WEIR_EIO;
    }
    struct store_reply first = *reply;
    first.n = SCRIPT_ANSWER_COUNT;
    return script_answer(&first, &part, 1, answer, NULL);
}

static void note_denial(struct lease_entry *e, uint64_t cost, uint64_t retry_ns,
                        const struct weir_answer *a, uint64_t now_ns)
{
    e->denied_cost = cost;
    e->denied_flags = a->flags;
    e->denied_until_ns =
        add_sat(now_ns, lease_pause(e->limit, lease_params(e), a->flags, retry_ns));
    e->retry_at_ns = add_sat(now_ns, retry_ns);
}

/* Notes what the store has answered. A store that has nothing left would deny the next question, so
 * this is noted like a denial of cost 1. */
static void note_answer(struct lease_entry *e, const struct lease_call *call,
                        const struct weir_answer *a, uint64_t now_ns)
{
    e->quota = a->quota;
    e->rest = a->remaining;
    e->reset_at_ns = add_sat(now_ns, a->reset_after_ns);
    if (a->verdict == WEIR_DENY && call->cost != 0) {
        note_denial(e, call->cost, a->retry_after_ns, a, now_ns);
    } else if (a->remaining == 0 && a->verdict != WEIR_NEVER) {
        note_denial(e, 1, 0, a, now_ns);
    } else if (max_u64(call->cost, a->remaining) >= e->denied_cost) {
        e->denied_cost = 0;
    }
}

/* Sets the times of a new lease, which count from when the call was made (L1). */
static void begin(struct lease_entry *e, const struct lease_call *call, uint64_t life_us)
{
    uint64_t life_ns = life_us * WEIR_MICROSECOND;
    bool ends_with_window = lease_params(e)->algorithm == WEIR_FIXED_WINDOW;
    e->expires_ns = call->made_ns + life_ns - life_ns / DRIFT_PART;
    e->over_ns = call->made_ns + life_ns;
    e->life_ns = min_u64(life_ns, LEASE_LIFE_NS);
    e->renew_ns = ends_with_window ? UINT64_MAX : call->made_ns + life_ns / 4 * 3;
}

/*
 * Takes over what the reply grants. Units that were kept while the call was out belong to the new
 * lease if the store says so. If it does not, or grants a lease without having been told of them
 * (L2: their mark is not known), they are given up here, because the lease under which they were
 * taken ends sooner than the new one.
 */
static void take_lease(struct lease_entry *e, const struct lease_call *call,
                       const struct store_reply *reply, const struct weir_answer *a)
{
    uint64_t granted = (uint64_t)reply->integers[AT_GRANTED];
    uint64_t mark = (uint64_t)reply->integers[AT_MARK];
    bool kept = reply->integers[AT_KEPT] != 0 && call->lease != 0;
    if (!kept && (call->lease != 0 || granted != 0)) {
        e->left = 0;
    }
    if (mark != 0) {
        e->left += granted;
        e->held = held_now(call, reply);
        e->mark = mark;
        e->size = call->want;
        begin(e, call, (uint64_t)reply->integers[AT_LIFE]);
    }
    /* If the store has no more units, it is asked only when none are left here, either. */
    e->renew_below = granted != 0 && a->remaining != 0 ? e->left / 2 + 1 : 0;
}

static void land(struct leases *l, struct lease_stripe *s, struct lease_entry *e)
{
    e->flight = 0;
    if (lease_is_out(e) && (e->drop || load_relaxed(&l->stopping) != 0)) {
        lease_make_ready(s, e);
    }
}

/* Returns the call's entry if the entry waits for this call (L3), or NULL. No entry waits for a
 * plain call. */
static struct lease_entry *waiting(const struct lease_stripe *s, const struct lease_call *call)
{
    struct lease_entry *e = lease_find(s, call->hash);
    return e != NULL && call->id != 0 && e->flight == call->id ? e : NULL;
}

int lease_reply(struct leases *l, const struct lease_call *call, const struct store_reply *reply,
                uint64_t now_ns, struct weir_answer *answer)
{
    struct weir_answer a;
    int bad = read_answer(call, reply, &a);
    if (bad != 0) {
        lease_lost(l, call, now_ns);
        return bad;
    }
    struct lease_stripe *s = lease_lock(l, call->hash, &now_ns);
    struct lease_entry *e = waiting(s, call);
    if (e != NULL) {
        take_lease(e, call, reply, &a);
        note_answer(e, call, &a, now_ns);
        land(l, s, e);
    } else if (call->id == 0 && (e = lease_find(s, call->hash)) != NULL) {
        note_answer(e, call, &a, now_ns);
    }
    a.remaining = e != NULL ? e->rest + lease_to_spend(e, now_ns) : a.remaining;
    lease_unlock(s);
    store_limit_release(call->limit);
    if (answer != NULL) {
        *answer = a;
    }
    return 0;
}

uint64_t lease_stamp(const struct store_reply *reply)
{
    return (uint64_t)reply->integers[SCRIPT_ANSWER_STAMP];
}

/* The units that the call kept may be spent until the end of the old lease, which is before that of
 * the new one; but they are not settled any more (L2). */
void lease_lost(struct leases *l, const struct lease_call *call, uint64_t now_ns)
{
    struct lease_stripe *s = lease_lock(l, call->hash, &now_ns);
    struct lease_entry *e = waiting(s, call);
    if (e != NULL) {
        e->renew_below = e->left / 2;
        e->renew_ns = UINT64_MAX;
        land(l, s, e);
    }
    lease_unlock(s);
    store_limit_release(call->limit);
}

void lease_unsent(struct leases *l, const struct lease_call *call, uint64_t now_ns)
{
    struct lease_stripe *s = lease_lock(l, call->hash, &now_ns);
    struct lease_entry *e = waiting(s, call);
    if (e != NULL) {
        if (call->lease != 0 && load_relaxed(&l->stopping) == 0) {
            e->mark = call->lease;
            e->held = call->held;
            e->left += call->back;
        }
        e->renew_below = e->left / 2; /* not again at once: the store cannot be reached */
        e->renew_ns = max_u64(e->renew_ns, now_ns + UNSENT_NS);
        land(l, s, e);
        e->drop = e->drop || call->drop; /* the next look tries again */
    }
    lease_unlock(s);
    store_limit_release(call->limit);
}
