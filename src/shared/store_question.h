/*
 * A question that is being answered. Its parts are in groups, each of which has one answer: all
 * parts that are decided here are a group, all exact parts of one slot are a group, and each leased
 * or synced part is a group of its own.
 */
#ifndef WEIR_SHARED_STORE_QUESTION_H
#define WEIR_SHARED_STORE_QUESTION_H

#include "redis/slots.h"
#include "shared/leased/lease_wait.h"
#include "shared/stores.h"

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
    struct store_limit *limit; /* part->limit; NULL: decided here */
    const struct store_numbers *numbers;
    struct hash hash; /* node_key_hash() */
    bool queue;       /* a leaky_bucket */
    unsigned group;
};

/* The kinds of groups, in the order in which they are asked: those that need no call first. */
enum group_kind { GROUP_LOCAL, GROUP_SYNCED, GROUP_LEASED, GROUP_EXACT, GROUP_KINDS };

struct group {
    struct store_question *of;
    enum group_kind kind;
    unsigned slot;
    unsigned piece; /* index of its first piece */
    bool answered;
    bool charged;              /* its units were charged and can be given back */
    int error;                 /* 0, or WEIR_E...: then it has no answer */
    struct weir_answer answer; /* .limit: the piece that binds */
    uint64_t stamp_us;
    int found;                   /* remote_answer.found */
    struct lease_question lease; /* of a GROUP_LEASED that is not answered */
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
};

struct store_question *store_question_init(struct store *s, const struct remote_question *q);

/* Asks groups until one has an error or denies a CHECK. Returns true if no answer is pending. */
bool store_question_start(struct store_question *a, uint64_t now_ns);

/* The same for a question of one part for which lease_ask() has returned `said` and *call. */
bool store_question_wait(struct store_question *a, unsigned said, struct lease_call *call,
                         uint64_t now_ns);

/* Makes the question's answer out of those of all groups, and gives back what a denied question was
 * charged. Returns 0, or the error of a group. */
int store_question_finish(struct store_question *a, uint64_t now_ns, struct remote_answer *out);

/* Returns whether the question is a CHECK without max_wait, which remembered denials, leases and
 * synced counts can answer. */
static inline bool store_question_is_plain(const struct remote_question *q)
{
    return q->verb == REMOTE_CHECK && q->time_ns == 0;
}

/* ---- one part (store_limit.c) ---- */

/* Answers by the limit's on_failure, because the store has not answered. */
void store_limit_failed(const struct remote_part *part, int verb, uint64_t now_ns,
                        struct weir_answer *answer);

/* Returns true, with a DENY in *answer, if a remembered denial answers this question. */
bool store_limit_denies(struct store_limit *limit, const struct store_numbers *numbers,
                        struct hash hash, uint64_t cost, uint64_t now_ns,
                        struct weir_answer *answer);

/* Remembers what the store has said of a key. `plain`: store_question_is_plain(), so that a DENY may be
 * used again. */
void store_limit_note(struct store_limit *limit, struct hash hash, uint64_t cost, bool plain,
                      const struct weir_answer *answer, uint64_t now_ns);

void store_limit_count(struct store_limit *limit, int verdict);

/* ---- calls (send.c) ---- */

/* Send the call of a group, of an exchange, of the heartbeat, and of an UNDO. The first two return
 * 0, or WEIR_E... if the call will not be made. */
int send_group(struct group *g, uint64_t now_ns);
int send_sync(struct store *s, const struct sync_call *call, uint64_t now_ns);
void send_beat(struct store *s, uint64_t now_ns);
void send_undo(struct store *s, const struct piece *piece, uint64_t undo_ns, uint64_t now_ns);

/* Make a call: send_fresh() returns the emptied buffer for its arguments, and send_call() makes the
 * call when `count` arguments are in the buffer. */
struct buffer *send_fresh(struct store *s);
int send_call(struct store *s, unsigned slot, const struct script *script, unsigned count,
              uint64_t deadline_ns, uint64_t now_ns, client_done_fn done, void *arg);
/* Returns the deadline of a call that no question waits for. */
uint64_t send_unawaited(const struct store *s, uint64_t now_ns);

static inline unsigned send_slot(const struct store *s, const struct store_key *key)
{
    return s->cluster ? cluster_slot(store_key_text(key)) : 0;
}

/* ---- calls of leases (send_lease.c) ---- */

void send_lease_init(struct store *s);

/* Sends a call that no question waits for. */
void send_lease(struct store *s, const struct lease_call *call, uint64_t now_ns);

/* Does what lease_ask() has said for a group that is not answered: sends its call, or lets it wait
 * for another's. Returns 0, or WEIR_E... if there will be no answer. */
int send_leased(struct group *g, unsigned said, struct lease_call *call, uint64_t now_ns);

/* Fails the questions that wait for another's call and whose deadline is here. */
void send_lease_tick(struct store *s, uint64_t now_ns);

/* ---- answers of groups (store_question.c) ---- */

/* Notes that the group has its answer or its error. The last pending group answers the question. */
void group_answered(struct group *g, uint64_t now_ns);

/* The same for a group that has no answer from the store: on_failure of each part decides. */
void group_failed(struct group *g, uint64_t now_ns);

#endif
