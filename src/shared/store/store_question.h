/*
 * A question that is being answered. Its parts are in groups, each of which has one answer: all
 * parts that are decided here are a group, all exact parts of one slot are a group, and each leased
 * or synced part is a group of its own.
 */
#ifndef WEIR_SHARED_STORE_STORE_QUESTION_H
#define WEIR_SHARED_STORE_STORE_QUESTION_H

#include "redis/slots.h"
#include "shared/leased/lease_wait.h"
#include "shared/store/stores.h"

struct store {
    struct store_shared *shared;
    struct client *client;
    struct client_options options; /* the client's */
    struct buffer arguments;       /* of the call that is being made */
    bool cluster;                  /* keys of different slots are on different endpoints */
    bool closing;
    struct lease_waits waits;
};

/* One part of a question, and what was found out about it. */
struct piece {
    const struct remote_part *part;
    struct store_limit *limit;         /* part->limit; NULL: decided here */
    const struct store_params *params; /* NULL: decided here */
    struct hash hash;                  /* node_key_hash() */
    bool queue;                        /* a leaky_bucket */
    bool waits;                        /* a bucket: max_wait applies to it */
    unsigned group;
    bool here; /* not in the store, which is full: store_limit_full() has decided it */
};

struct group {
    struct store_question *of;
    int mode; /* enum remote_mode in which it is asked */
    unsigned slot;
    unsigned piece; /* index of its first piece */
    bool some;      /* `answer` is that of pieces which are decided here; others may follow */
    bool stored;    /* the store has answered for the pieces that are not */
    bool answered;
    bool charged;              /* its units were charged and can be given back */
    int error;                 /* 0, or WEIR_E...: then it has no answer */
    struct weir_answer answer; /* .limit: the piece that binds */
    uint64_t stamp_us;
    int found;                   /* remote_answer.found */
    struct lease_question lease; /* of a REMOTE_LEASED one that is not answered */
};

/* The store's part of a pending question, in the question's memory. */
struct store_question {
    struct store *store;
    const struct remote_question *asked;
    bool looked;      /* the memory of denials was searched and does not deny it */
    unsigned pending; /* number of groups that were asked and are not answered */
    unsigned pieces_count;
    unsigned groups_count;
    struct piece *pieces;
    struct group *groups;
    struct store_params own; /* of a question with a rate */
};

/* Returns whether the question is a CHECK without max_wait, which remembered denials, leases and
 * synced counts can answer. */
static inline bool store_question_is_plain(const struct remote_question *q)
{
    bool plain = q->verb == REMOTE_CHECK && q->time_ns == 0;
    for (size_t i = 0; plain && i < q->n; i++) {
        plain = q->parts[i].wait_ns == 0;
    }
    return plain;
}

/* Returns the first piece from `i` on that is in the group, or pieces_count if there is none. */
static inline unsigned group_next_piece(const struct group *g, unsigned i)
{
    const struct store_question *a = g->of;
    unsigned number = (unsigned)(g - a->groups);
    while (i < a->pieces_count && a->pieces[i].group != number) {
        i++;
    }
    return i;
}

#define FOR_PIECES(i, g)                                                                           \
    for (unsigned i = group_next_piece(g, 0); i < (g)->of->pieces_count;                           \
         i = group_next_piece(g, i + 1))

/* ---- one part (store_limit.c) ---- */

/* Answers by the limit's on_failure, because the store has not answered. */
void store_limit_failed(const struct remote_part *part, int verb, uint64_t now_ns,
                        struct weir_answer *answer);
/* Answers by the limit's on_full, because the store is full and does not have the key. */
void store_limit_full(const struct remote_part *part, int verb, uint64_t now_ns,
                      struct weir_answer *answer);

/* Returns true, with a DENY in *answer, if a denial of this cost is remembered. */
bool store_limit_remembers(const struct store_limit *limit, const struct store_params *params,
                           struct hash hash, uint64_t cost, uint64_t now_ns,
                           struct weir_answer *answer);

/* ---- groups (store_group.c) ---- */

/*
 * Asks a plain question of one part in this mode without sending anything: out of memory, a lease
 * or a synced count. Returns what lease_ask() returns: with LEASE_SEND or LEASE_WAIT, *call is to
 * be sent or waited for. 0: the store must be asked. If `call` is NULL, no call is made. LEASE_DUE
 * is also returned for an exchange.
 */
unsigned part_ask(const struct remote_part *part, int mode, uint64_t now_ns,
                  struct weir_answer *answer, struct lease_call *call);

/* Asks the group. If its answer will come later, it is counted in `pending`. */
void group_ask(struct group *g, uint64_t now_ns);
/* Does what part_ask() has said of the group's only piece: takes the answer, sends the call, or
 * waits. */
void group_take(struct group *g, unsigned said, struct lease_call *call, uint64_t now_ns);

/* Note that a pending group has its answer or its error, or that the store has not answered it:
 * then on_failure of each part decides. */
void group_answered(struct group *g, uint64_t now_ns);
void group_failed(struct group *g, uint64_t now_ns);
/* The store is full and does not have these pieces, as bits in the order of the call: on_full of
 * each decides it. The store is asked again for the others, unless one is denied. */
void group_full(struct group *g, uint64_t absent, uint64_t now_ns);

/* Gives back what the group was charged (group_undo.c). */
void group_give_back(struct group *g, uint64_t now_ns);

/*
 * Returns the time by which a refund knows the charge of piece i, made at `time_ns`. For a
 * leaky_bucket that is the end of its place. The reply says it only of the piece that binds; places
 * of other pieces are not given back.
 */
uint64_t group_charge_ns(const struct group *g, unsigned i, uint64_t time_ns);

/* ---- what clients are told (store_shown.c) ---- */

/* Notes the answer of a piece in remote_question.shown, if clients may be told of it and no other
 * one binds. */
void piece_show(const struct store_question *a, unsigned piece, const struct weir_answer *answer);

/* Does so with the remembered denials of the group, when one has answered the question. */
void group_show_remembered(const struct group *g, uint64_t now_ns);

/* ---- the end of a question (store_question.c) ---- */

/* Joins `a` to the answers so far (`first`: there is none). As in weir_check_several(), an ALLOW
 * has the longest delay of all parts, and WEIR_FLAG_FULL if a full table let a part through
 * uncharged. Returns whether `a` binds rather than those before it. */
bool answer_join(struct weir_answer *sum, const struct weir_answer *a, bool first);

/* Counts an answered group. The last one that was pending answers the question. */
void group_finish(struct group *g, uint64_t now_ns);

/* ---- calls (store_group.c) ---- */

/* Make a call: send_fresh() returns the emptied buffer for its arguments, and send_call() makes the
 * call when call->count arguments are in the buffer. */
struct buffer *send_fresh(struct store *s);
int send_call(struct store *s, struct client_call *call, uint64_t now_ns, client_done_fn done,
              void *arg);
/* Puts what follows the arguments of the n pieces (script_put_numbers()): the debts that the verbs
 * must know of, unless there can be none; and if `told` is set and of some pieces clients may not
 * be told, of which they may. Returns how many arguments were put. */
unsigned send_numbers(struct buffer *b, const struct piece *pieces, const unsigned *index, size_t n,
                      bool told);
/* Returns the deadline of a call that no question waits for. */
uint64_t send_unawaited(const struct store *s, uint64_t now_ns);

/* Returns the slot of a key; 0 without a Cluster, where all keys are together. */
static inline unsigned send_slot(const struct store *s, struct weir_text key)
{
    return s->cluster ? cluster_slot(key) : 0;
}

/* ---- exchanges (store/send_sync.c) ---- */

/* Sends exchanges that are due, at most so many. Returns how many there were. */
unsigned send_syncs(struct store *s, unsigned most, uint64_t now_ns);

/* ---- calls of leases (send_lease.c) ---- */

void send_lease_init(struct store *s);

/* Sends a call that no question waits for. */
void send_lease(struct store *s, const struct lease_call *call, uint64_t now_ns);

/* Does what lease_ask() has said for a group that is not answered: sends its call, or lets it wait
 * for another's. Returns 0, or WEIR_E... if there will be no answer. */
int send_leased(struct group *g, unsigned said, struct lease_call *call, uint64_t now_ns);

/* Fails the questions that wait for another's call and whose deadline is here. */
void send_lease_tick(struct store *s, uint64_t now_ns);

#endif
