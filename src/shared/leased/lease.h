/*
 * `leased`: a node takes units of a key in advance, and spends them without asking. Of one
 * process: any thread may ask; keys are in stripes, each with a lock that is held for
 * nanoseconds. No I/O and no clock: `now_ns` is any monotonic line that goes on while the
 * machine sleeps, read for this question, and calls are made and sent by others (store.c, or the
 * simulator, which runs this very code).
 *
 * The store's side (lua/lease.lua, leased_bucket.lua): every grant q of a key is outstanding (H)
 * until it is settled or expires, and the key refills only to B - H; so level + H <= B always,
 * and what the fleet admits in any time t is at most B + R t (P1): out of leases outstanding at
 * its beginning (H), of what there was (level), and of what refilled. Settling gives back what
 * was not spent. An expired lease counts as spent. fixed_window (leased_window.lua): a grant
 * counts in its window, and dies with it.
 *
 * The node's side. L1 A lease is spent only before it expires at the store: its life counts from
 * the time at which the call was made here, not from the reply, less 1 % for clocks that drift.
 * L2 A call without a reply granted nothing; if it did after all, that expires at the store; and
 * nothing that it may have settled is settled again. L3 Replies that come late or twice, or for
 * a lease that is gone, are returned or ignored, never spent twice. L4 A lease is renewed before
 * it is dry, by one call at a time for each key; its size follows the demand, and N nodes
 * holding q each leave at most N q of a window or of B unused: q is at most what the store says
 * this node may hold. That is, of a bucket, B / (4 (n + 1)) with n other leases on the key, and
 * half of what is there; of a window, an eighth of what is left. L5 Units that are not used for
 * half of a lease's life are returned, and all of them when the node ends. L6 A key that has no
 * lease, or a dry one, is asked in the store (the same call decides the question and grants a
 * lease). L7 A limit too small for leases (lease_is_worth()) acts as `exact`, on the same state
 * (store_params_lease()). L8 While a call that may bring units of a key is out, further questions
 * of the key wait for it (lease_wait.h) and make none of their own. One that waits has been charged
 * nothing and holds nothing: when the reply is here it is asked again, as if it came only now.
 *
 * Where the store is dry, it is not asked for each question: a denial stands for what the store
 * said, or deny_cache if that is less; or for the time of 1/64 of the quota and at most 20 ms,
 * if that is more, so that a fleet that asks for more than there is finds units when it asks. It
 * stands for costs as high or higher, so it keeps nobody out whom the store would let in for
 * longer than that; and nothing is lost by it, because the bucket fills meanwhile. Who is denied by it
 * is told to come back when it is over.
 */
#ifndef WEIR_SHARED_LEASED_LEASE_H
#define WEIR_SHARED_LEASED_LEASE_H

#include "common/buffer.h"
#include "shared/store.h"

struct leases;

/* At most `keys` leases at once, 0: 65536; beyond that, what is not outstanding is forgotten, else
 * questions go to the store without a lease. WEIR_ENOMEM, WEIR_EIO (no random numbers). */
int leases_create(struct leases **l, uint64_t keys);
void leases_destroy(struct leases *l);

/*
 * False: `leased` would leave too much unused, and the limit acts as `exact`: where less than 32
 * units are for each node (a lease of a quarter's share would be less than 8), or where a bucket
 * fills or a window ends within 50 ms (ten deadlines of a call).
 */
bool lease_is_worth(const struct store_params *params, uint64_t nodes);

/* A call that is to be sent, once. A value: it may be copied, and outlives nothing that it
 * names. */
struct lease_call {
    struct store_limit *limit; /* held until lease_reply() or lease_lost() */
    struct store_key key;      /* in the store */
    uint64_t hash[2];          /* of the key here */
    uint64_t id;               /* of the key's call; 0: neither settles nor takes out a lease */
    uint64_t made_ns;
    uint64_t cost;  /* of the question that waits for it; 0: none does */
    uint64_t want;  /* units to hold afterwards */
    uint64_t lease; /* the mark of the store under which the key's lease was granted; 0: none */
    uint64_t held;  /* units of it that are settled by this call: */
    uint64_t back;  /* ... come back unused, */
    uint64_t keep;  /* ... go on under the new lease; the rest is spent */
    bool drop;      /* what comes back is not to be spent here, also if it cannot be sent */
};

enum { LEASE_ANSWERED = 1, LEASE_SEND = 2, LEASE_WAIT = 4 };

/*
 * CHECK of one key. LEASE_ANSWERED: *answer is complete. LEASE_SEND: *call is to be sent; without
 * ANSWERED, the question waits for its reply. LEASE_WAIT: the call that *call names by its hash and
 * id, and nothing else of it, is out: wait for it and lease_ask_again(), or lease_alone(). With
 * `call` NULL nothing is to be sent: 0 means that the store must be asked, and what else is due is
 * left for lease_next().
 */
unsigned lease_ask(struct leases *l, struct store_limit *limit, struct text shard, struct text key,
                   uint64_t cost, uint64_t now_ns, struct weir_answer *answer,
                   struct lease_call *call);

/* By who cannot go to the store: LEASE_ANSWERED, also with LEASE_SEND; or 0, and nothing has happened: it is
 * lease_ask() that counts the question. */
unsigned lease_ask_here(struct leases *l, struct store_limit *limit, struct text shard,
                        struct text key, uint64_t cost, uint64_t now_ns, struct weir_answer *answer,
                        struct lease_call *call);

/* The same question once more: it is not more demand. */
unsigned lease_ask_again(struct leases *l, struct store_limit *limit, struct text shard,
                         struct text key, uint64_t cost, uint64_t now_ns,
                         struct weir_answer *answer, struct lease_call *call);

/* Of a question that was told to wait, and cannot: the *call that asks for it alone. */
void lease_alone(struct store_limit *limit, struct text shard, struct text key, uint64_t cost,
                 uint64_t now_ns, struct lease_call *call);

/* Gives units back that were taken here and nobody used (several limits). False: they are not of a
 * lease that is still there; a REFUND to the store may give them back (lease_stamp()). */
bool lease_refund(struct leases *l, const struct store_limit *limit, struct text shard,
                  struct text key, uint64_t units, uint64_t now_ns);

/* For client_call. */
const struct script *lease_script(const struct scripts *s, const struct lease_call *call);
void lease_put_arguments(const struct lease_call *call, struct buffer *b, unsigned *count);

/* Exactly one of the three for each call. `answer` may be NULL if no question waits. WEIR_EIO: not
 * such a reply, which is as good as none. unsent: it certainly did not run (client.h
 * CLIENT_NOT_RUN). */
int lease_reply(struct leases *l, const struct lease_call *call, const struct store_reply *reply,
                uint64_t now_ns, struct weir_answer *answer);
void lease_lost(struct leases *l, const struct lease_call *call, uint64_t now_ns);
void lease_unsent(struct leases *l, const struct lease_call *call, uint64_t now_ns);

/* Of a reply that lease_reply() took: for a REFUND of what the question was granted. */
uint64_t lease_stamp(const struct store_reply *reply);

/* The next call that nobody's question has made: renewals, returns. False: none now. */
bool lease_next(struct leases *l, uint64_t now_ns, struct lease_call *call);
uint64_t lease_due(const struct leases *l);

/* From now on everything is returned (lease_next()) and nothing is granted. */
void lease_stop(struct leases *l);

/* The key was blocked, reset or penalized through this node: what it holds is returned at once. */
void lease_forget(struct leases *l, const struct store_limit *limit, struct text shard,
                  struct text key);

#endif
