/*
 * A question on its way. Its parts are in groups, each of which has one answer: all that are decided
 * here, all exact ones of one slot, and each leased or synced one for itself.
 */
#ifndef WEIR_SHARED_ASKING_H
#define WEIR_SHARED_ASKING_H

#include "redis/slots.h"
#include "shared/leased/lease_wait.h"
#include "shared/stores.h"

struct store {
    struct store_shared *shared;
    struct client *client;
    struct client_options options; /* the client's */
    struct buffer arguments;       /* of the call that is being made */
    bool cluster;                  /* keys of different slots live apart */
    bool closing;
    struct lease_waits waits;
};

struct piece {
    struct store_limit *limit; /* held; NULL: decided here */
    const struct store_numbers *numbers;
    struct weir *local;
    bool queue; /* a leaky_bucket */
    struct text shard;
    struct text key;
    struct hash hash; /* known_hash() */
    uint64_t cost;
    unsigned group;
};

/* The order in which groups are asked: what costs nothing first. */
enum group_kind { GROUP_LOCAL, GROUP_SYNCED, GROUP_LEASED, GROUP_EXACT, GROUP_KINDS };

struct group {
    struct asking *asking;
    enum group_kind kind;
    unsigned slot;
    unsigned piece; /* its first */
    bool answered;
    bool charged;              /* and can be given back */
    int error;                 /* of verbs that have no answer without the store */
    struct weir_answer answer; /* .limit: the piece that binds */
    uint64_t stamp_us;
    int found;
    struct lease_question lease; /* GROUP_LEASED that is not answered */
};

struct asking {
    struct store *store;
    int verb;
    uint64_t time_ns;
    uint64_t now_ns; /* for what is decided here */
    remote_done_fn done;
    void *arg;
    bool looked;      /* memory does not deny it */
    unsigned pending; /* groups that are asked and not answered */
    unsigned pieces_count;
    unsigned groups_count;
    struct piece *pieces;
    struct group *groups;
};

/* A copy of the question with its limits held; NULL: no memory. */
struct asking *asking_create(struct store *s, const struct remote_question *q, remote_done_fn done,
                             void *arg);
void asking_destroy(struct asking *a);

/* Asks what has to be asked. True: everything is answered already. */
bool asking_start(struct asking *a, uint64_t now_ns);

/* The same for one part of which lease_ask() has said what is to be done. */
bool asking_wait(struct asking *a, unsigned said, struct lease_call *call, uint64_t now_ns);

/* Of all groups; gives back what a denied question was charged. Error or 0. */
int asking_finish(struct asking *a, uint64_t now_ns, struct remote_answer *out);

/* CHECK that does not wait: what memory, leases and exchanges can answer. */
static inline bool asking_is_plain(int verb, uint64_t time_ns)
{
    return verb == REMOTE_CHECK && time_ns == 0;
}

/* ---- one part (part.c) ---- */

/* The limit's policy decides, since the store has not. */
void part_failed(struct store_limit *limit, const struct remote_part *part, struct hash hash,
                 int verb, uint64_t now_ns, struct weir_answer *answer);

/* A DENY of this very question is remembered. */
bool part_denied(struct store_limit *limit, const struct store_numbers *numbers, struct hash hash,
                 uint64_t cost, uint64_t now_ns, struct weir_answer *answer);

/* What a store has said of a key is remembered. */
void part_note(struct store_limit *limit, struct hash hash, uint64_t cost, bool plain,
               const struct weir_answer *answer, uint64_t now_ns);

/* A question of a synced limit, as sync_ask(). If it is not decided, what is known to be left of the key
 * is noted for part_failed(). */
int part_synced(struct store_limit *limit, const struct remote_part *part, struct hash hash,
                uint64_t now_ns, struct weir_answer *answer);

void part_count(struct store_limit *limit, int verdict);

/* ---- calls (send.c) ---- */

/* 0, or WEIR_E...: it will not be made. */
int send_group(struct group *g, uint64_t now_ns);
int send_sync(struct store *s, const struct sync_call *call, uint64_t now_ns);
void send_beat(struct store *s, uint64_t now_ns);
void send_undo(struct store *s, const struct piece *piece, uint64_t undo_ns, uint64_t now_ns);

/* For who makes a call: room for its arguments; and the call, when `count` of them are there. */
struct buffer *send_fresh(struct store *s);
int send_call(struct store *s, unsigned slot, const struct script *script, unsigned count,
              uint64_t deadline_ns, uint64_t now_ns, client_done_fn done, void *arg);
uint64_t send_unawaited(const struct store *s, uint64_t now_ns); /* its deadline, if nobody waits */

static inline unsigned send_slot(const struct store *s, const struct store_key *key)
{
    return s->cluster ? cluster_slot(store_key_text(key)) : 0;
}

/* ---- calls of leases (send_lease.c) ---- */

void send_lease_init(struct store *s);

/* One that no question waits for. */
void send_lease(struct store *s, const struct lease_call *call, uint64_t now_ns);

/* What lease_ask() has said of a group that is not answered: its call, or waiting for another's. 0,
 * or WEIR_E...: there will be no answer. */
int send_leased(struct group *g, unsigned said, struct lease_call *call, uint64_t now_ns);

/* Calls that store_ask_here() has left. How many, `most` at most. */
unsigned send_left(struct store *s, unsigned most, uint64_t now_ns);

/* Questions whose deadline is here, and which wait for another's call. */
void send_lease_tick(struct store *s, uint64_t now_ns);

/* ---- answers of groups (asking.c) ---- */

/* The group has its answer, or its error. The last one answers the question. */
void group_answered(struct group *g, uint64_t now_ns);

/* It has none from the store: by on_failure of each part. */
void group_failed(struct group *g, uint64_t now_ns);

#endif
