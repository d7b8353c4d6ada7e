/* Ends a lease's call: with a reply, without one, or because it was never sent. */
#include <assert.h>

#include "base/maths.h"
#include "shared/leased/lease_part.h"
#include "shared/core/script.h"

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

/* Notes what the store has answered. A store that has nothing left would deny the next question, so
 * this is noted like a denial of cost 1. */
static void note_answer(struct node_key *k, const struct lease_call *call,
                        const struct weir_answer *a, uint64_t now_ns)
{
    const struct store_params *p = &store_limit_numbers(call->limit)->params;
    bool denied = a->verdict == WEIR_DENY && call->cost != 0;
    bool empty = a->remaining == 0 && a->verdict != WEIR_NEVER;
    uint64_t keep_ns =
        denied || empty ? lease_pause(call->limit, p, a->flags, a->retry_after_ns) : 0;
    node_key_note(k, empty && !denied ? 1 : call->cost, a, keep_ns, now_ns);
}

/* Sets the times of a new lease, which count from when the call was made (L1). */
static void begin(struct lease *e, const struct lease_call *call, uint64_t life_us)
{
    uint64_t life_ns = life_us * WEIR_MICROSECOND;
    bool ends_with_window = algorithm_has(lease_params(e)->algorithm, IS_FIXED_WINDOW);
    e->expires_ns = call->made_ns + life_ns - life_ns / DRIFT_PART;
    e->over_ns = call->made_ns + life_ns;
    e->life_ns = min_u64(life_ns, LEASE_LIFE_NS);
    assert(e->expires_ns <= e->over_ns); /* L1 */
    e->renew_ns = ends_with_window ? UINT64_MAX : call->made_ns + life_ns / 4 * 3;
}

/*
 * Takes over what the reply grants. Units that were kept while the call was out belong to the new
 * lease if the store says so. If it does not, or grants a lease without having been told of them
 * (L2: their mark is not known), they are given up here, because the lease under which they were
 * taken ends sooner than the new one.
 */
static void take_lease(struct lease *e, const struct lease_call *call,
                       const struct store_reply *reply, const struct weir_answer *a)
{
    uint64_t granted = (uint64_t)reply->integers[AT_GRANTED];
    uint64_t mark = (uint64_t)reply->integers[AT_MARK];
    bool kept = reply->integers[AT_KEPT] != 0 && call->lease != 0;
    assert(e->flight == call->id && e->mark == 0); /* L3; L2: the old mark is settled once */
    if (!kept && (call->lease != 0 || granted != 0)) {
        e->left = 0;
    }
    if (mark != 0) {
        e->left += granted;
        e->held = held_now(call, reply);
        e->mark = mark;
        e->size = call->want;
        assert(e->left <= e->held);
        begin(e, call, (uint64_t)reply->integers[AT_LIFE]);
    }
    /* If the store has no more units, it is asked only when none are left here, either. */
    e->renew_below = granted != 0 && a->remaining != 0 ? e->left / 2 + 1 : 0;
}

/* Notes that the lease's call has ended, and schedules when the lease is looked at next. */
static void land(struct node_keys *keys, struct key_stripe *s, struct lease *e, uint64_t now_ns)
{
    e->flight = 0;
    bool at_once = lease_is_out(e) && (e->drop || node_keys_is_stopping(keys));
    node_key_schedule(s, &e->part, at_once ? 0 : now_ns + LEASE_LOOK_NS);
}

/* Returns the key's lease if it waits for this call (L3), or NULL. No lease waits for a plain
 * call. */
static struct lease *waiting(const struct key_stripe *s, const struct lease_call *call)
{
    struct lease *e = node_key_part(node_key_find(s, call->hash), KEY_LEASED);
    return e != NULL && call->id != 0 && e->flight == call->id ? e : NULL;
}

int lease_reply(struct node_keys *keys, const struct lease_call *call,
                const struct store_reply *reply, uint64_t now_ns, struct weir_answer *answer)
{
    struct weir_answer a;
    int bad = read_answer(call, reply, &a);
    if (bad != 0) {
        lease_lost(keys, call, now_ns);
        return bad;
    }
    struct key_stripe *s = node_keys_lock(keys, call->hash, &now_ns);
    struct lease *e = waiting(s, call);
    struct node_key *k = call->id == 0 ? node_key_make(s, call->hash, now_ns) : NULL;
    if (e != NULL) {
        take_lease(e, call, reply, &a);
        land(keys, s, e, now_ns);
        k = e->part.key;
    }
    if (k != NULL) {
        note_answer(k, call, &a, now_ns);
        a.remaining += lease_to_spend(node_key_part(k, KEY_LEASED), now_ns);
    }
    node_keys_unlock(s);
    store_limit_release(call->limit);
    if (answer != NULL) {
        *answer = a;
    }
    return 0;
}

/* The units that the call kept may be spent until the end of the old lease, which is before that of
 * the new one; but they are not settled any more (L2). */
void lease_lost(struct node_keys *keys, const struct lease_call *call, uint64_t now_ns)
{
    struct key_stripe *s = node_keys_lock(keys, call->hash, &now_ns);
    struct lease *e = waiting(s, call);
    if (e != NULL) {
        e->renew_below = e->left / 2;
        e->renew_ns = UINT64_MAX;
        land(keys, s, e, now_ns);
    }
    node_keys_unlock(s);
    store_limit_release(call->limit);
}

void lease_unsent(struct node_keys *keys, const struct lease_call *call, uint64_t now_ns)
{
    struct key_stripe *s = node_keys_lock(keys, call->hash, &now_ns);
    struct lease *e = waiting(s, call);
    if (e != NULL) {
        assert(e->mark == 0);
        if (call->lease != 0 && !node_keys_is_stopping(keys)) {
            e->mark = call->lease;
            e->held = call->held;
            e->left += call->back;
        }
        e->renew_below = e->left / 2; /* not again at once: the store cannot be reached */
        e->renew_ns = max_u64(e->renew_ns, now_ns + UNSENT_NS);
        land(keys, s, e, now_ns);
        e->drop = e->drop || call->drop; /* the next look tries again */
    }
    node_keys_unlock(s);
    store_limit_release(call->limit);
}
