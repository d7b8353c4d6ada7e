/*
 * `leased`: a node takes units of a key in advance, and spends them without asking the store. The
 * leases of a process are parts of its keys (shared/core/node_keys.h): any thread may ask, and
 * locks are held for nanoseconds. There is no I/O and no clock here: `now_ns` is any monotonic time
 * that goes on while the machine sleeps, read for this question, and the caller sends the calls
 * (store.c, or the simulator, which runs this very code).
 *
 *   lease.c        questions, and looking after leases
 *   lease_reply.c  the end of a call
 *   lease_size.c   how large a lease should be, and for how long a denial stands
 *   lease_call.c   makes the calls
 *   lease_wait.h   questions that wait for a call
 *
 * The store's side (lua/lease.lua, leased_bucket.lua): every grant q of a key is outstanding until
 * it is settled or expires. H is the sum of all that is outstanding, and the key refills only to
 * B - H; so level + H <= B always. What the fleet admits in any time t is therefore at most B + R t
 * (P1): it comes from the leases outstanding at the beginning (H), from the level at the beginning,
 * and from what refilled. Settling gives back what was not spent. An expired lease counts as spent.
 * fixed_window (leased_window.lua): a grant counts in its window, and ends with it.
 *
 * The node's side:
 *
 * L1  A lease is spent only before it expires at the store: its life counts from the time at which
 *     the call was made here, not from the reply, less 1 % because clocks drift.
 * L2  A call without a reply is taken to have granted nothing; if it did grant units, they expire
 *     at the store. What it may have settled is not settled again.
 * L3  A reply that comes late or twice, or for a lease that is gone, is ignored or its units are
 *     returned: no unit is spent twice.
 * L4  A lease is renewed before it is empty, by one call at a time for each key. Its size follows
 *     the demand. N nodes that hold q each leave at most N q of a window or of B unused, so q is at
 *     most what the store says this node may hold: of a bucket, B / (4 (n + 1)) with n other leases
 *     on the key, and half of what is there; of a window, an eighth of what is left.
 * L5  Units that are not used for half of a lease's life are returned, and all units are returned
 *     when the node stops.
 * L6  A question for a key that has no lease, or an empty one, goes to the store; the same call
 *     decides the question and grants a lease.
 * L7  A limit too small for leases (lease_is_worth()) acts as `exact`, on the same state
 *     (store_params_lease()).
 * L8  While a call that may bring units of a key is out, further questions for the key wait for it
 *     (lease_wait.h) and make no call of their own. A waiting question has been charged nothing and
 *     holds nothing: when the reply has come it is asked again, as if it came only then.
 *
 * While the store has nothing left, it is not asked for each question. A denial stands for the
 * retry time that the store said, or for deny_cache if that is less; but at least for the time in
 * which 1/64 of the quota refills, or 20 ms if that is less, so that a fleet that asks for more
 * than there is finds units when it asks. It stands for costs as high or higher, so a question that
 * the store would allow is denied for no longer than that; and nothing is lost by it, because the
 * bucket fills meanwhile. The retry of such an answer is not before the denial is over.
 */
#ifndef WEIR_SHARED_LEASED_LEASE_H
#define WEIR_SHARED_LEASED_LEASE_H

#include "base/hash.h"
#include "common/buffer.h"
#include "shared/core/store_limit.h"

struct node_keys;

/*
 * Returns false if `leased` would leave too much unused, so that the limit acts as `exact` (L7):
 * each node's share is less than 32 units (a lease of a quarter of it would be less than 8), or a
 * bucket fills, or a window ends, in less than 50 ms (ten deadlines of a call).
 */
bool lease_is_worth(const struct store_params *params, uint64_t nodes);

/* A call that is to be sent once. It is a plain value that may be copied. */
struct lease_call {
    struct store_limit *limit; /* held until lease_reply() or lease_lost() */
    struct store_key key;      /* in the store */
    struct hash hash;          /* node_key_hash() of the key */
    uint64_t id; /* number of the call for this key; 0: it neither settles nor takes a lease */
    uint64_t made_ns;
    uint64_t cost;  /* of the question that waits for the call; 0: none does */
    uint64_t want;  /* units that the node wants to hold afterwards */
    uint64_t lease; /* the store's mark of the key's lease that is settled; 0: none */
    uint64_t held;  /* units of that lease, all of which this call settles */
    uint64_t back;  /* units of `held` that come back unused */
    uint64_t keep;  /* units of `held` that go on under the new lease; the rest is spent */
    bool drop;      /* the returned units may not be spent here, even if the call cannot be sent */
};

enum { LEASE_ANSWERED = 1, LEASE_SEND = 2, LEASE_WAIT = 4, LEASE_DUE = 8 };

/* How a question is asked. LEASE_HERE: no call is made (`call` may be NULL), and the question
 * counts only if it is answered here. LEASE_AGAIN: it has waited, and was counted before. */
enum lease_how { LEASE_ASK, LEASE_HERE, LEASE_AGAIN };

/*
 * Asks for a CHECK of one key. Returns a set of flags. LEASE_ANSWERED: *answer is complete.
 * LEASE_SEND: *call is to be sent; without LEASE_ANSWERED, the question waits for its reply.
 * LEASE_WAIT: another call is out, which *call names by its hash and id (the rest of *call is not
 * set): wait for it and ask with LEASE_AGAIN, or call lease_alone().
 *
 * With LEASE_HERE, 0 means that the store must be asked, and nothing has happened. LEASE_DUE, in
 * addition to LEASE_ANSWERED, means that lease_next() must be called to renew the lease: a thread
 * that sleeps until node_keys_due() must look again.
 *
 * If there is no room for another lease, questions of new keys go to the store without one.
 */
unsigned lease_ask(struct node_keys *keys, const struct remote_part *of, enum lease_how how,
                   uint64_t now_ns, struct weir_answer *answer, struct lease_call *call);

/* Makes the *call that asks the store for this question alone, when a question that got LEASE_WAIT
 * cannot wait: it settles nothing and takes no lease. lease_ask() has set call->hash. */
void lease_alone(const struct remote_part *of, uint64_t now_ns, struct lease_call *call);

/* Gives back the cost, which was taken here and not used (several limits). Returns false if the
 * lease that they came from is gone; an UNDO in the store may then give them back. */
bool lease_refund(struct node_keys *keys, const struct remote_part *of, uint64_t now_ns);

/* The script and the arguments of a call, for client_call(). */
const struct script *lease_script(const struct scripts *s, const struct lease_call *call);
void lease_put_arguments(const struct lease_call *call, struct buffer *b, unsigned *count);

/* Exactly one of these three must be called for each call. lease_reply(): a reply has come;
 * `answer` may be NULL if no question waits; returns 0, or WEIR_EIO if the reply is not that of
 * such a call, which then counts as lost. lease_lost(): there is no reply. lease_unsent(): the call
 * certainly did not run (client.h CLIENT_NOT_RUN). */
int lease_reply(struct node_keys *keys, const struct lease_call *call,
                const struct store_reply *reply, uint64_t now_ns, struct weir_answer *answer);
void lease_lost(struct node_keys *keys, const struct lease_call *call, uint64_t now_ns);
void lease_unsent(struct node_keys *keys, const struct lease_call *call, uint64_t now_ns);

/* Makes the next call that is due without a question: a renewal or a return. Returns false if there
 * is none. */
bool lease_next(struct node_keys *keys, uint64_t now_ns, struct lease_call *call);

/* Returns at once the units that the node holds of a key, because the key was changed through this
 * node (blocked, reset, penalized ...). */
void lease_forget(struct node_keys *keys, const struct remote_part *of);

#endif
