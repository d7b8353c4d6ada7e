/*
 * The interface by which rules (libweir-rules) pass limits to a fleet that decides them
 * (libweir-redis). The two libraries use nothing else of each other. The caller that opens rules
 * may give them a fleet, whose first member is a table of functions.
 *
 * R1  A limit is opened when rules that name it are loaded, held by the asker while a question
 *     about it is pending, and released; the last release ends it. hold and release may be called
 *     from any thread.
 * R2  ask() never waits, and never calls `done` itself: it answers at once (REMOTE_ANSWERED), or
 *     `done` will be called exactly once, later, on the thread of `where` (REMOTE_PENDING).
 * R3  The question, its memory, its parts, their texts, limits and limiters belong to the caller,
 *     who keeps them alive and unchanged until the answer; the fleet allocates and copies nothing.
 *     So a question is one object, allocated once by whoever asks first, from the connection down
 *     to the store: each layer puts its part of the state into it, and frees nothing. It ends in
 *     one place, where `done` of that first caller is called.
 * R4  Parts without `limit` are decided here, by their `local`.
 */
#ifndef WEIR_COMMON_REMOTE_H
#define WEIR_COMMON_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "common/text.h"

/* The values of `consistency`, in the order of weir_fleet.h. */
enum remote_mode { REMOTE_LOCAL, REMOTE_EXACT, REMOTE_LEASED, REMOTE_SYNCED };

/* The values of `on_store_failure`. */
enum remote_failure { REMOTE_FAIL_LOCAL, REMOTE_FAIL_OPEN, REMOTE_FAIL_CLOSED, REMOTE_FAILURES };

/* A limit to be decided. */
struct remote_spec {
    struct weir_text name;       /* of the limit with its tier or rate: one name for each state */
    struct weir_options options; /* as for weir_open(); its options of memory are ignored */
    int mode;                    /* enum remote_mode, not LOCAL */
    int on_failure;              /* enum remote_failure */
    uint64_t deny_cache_ns;      /* denials are remembered for min(retry, this); 0: not at all */
    uint64_t sync_ns;            /* SYNCED: time between two exchanges */
    bool any_rate; /* each question brings its own rate; `options` is a token_bucket that says how
                      long the longest of them may take to refill. EXACT, without deny_cache_ns */
};

/* A token bucket whose numbers come with the question: weir_throttle_at(). */
struct remote_rate {
    uint64_t interval_ns; /* time in which one unit comes back */
    uint64_t burst;       /* 0: there is no such rate, the limit's own numbers apply */
};

enum remote_verb {
    REMOTE_CHECK,
    REMOTE_PEEK,
    REMOTE_UP_TO,
    REMOTE_REFUND,
    REMOTE_PENALIZE,
    REMOTE_BLOCK,
    REMOTE_BAN, /* a BLOCK as by weir_ban_at() */
    REMOTE_UNBLOCK,
    REMOTE_RESET,
    REMOTE_VERBS
};

/* One limit of a question, with its key. */
struct remote_part {
    void *limit;            /* as open() made it; NULL: decided here */
    struct weir *local;     /* decides it if `limit` is NULL */
    bool queue;             /* `local` is a leaky_bucket: its units are places in a queue */
    struct weir_text shard; /* at NULL: shard by the key itself */
    struct weir_text key;   /* 1 to WEIR_KEY_MAX bytes */
    uint64_t cost;
    uint64_t wait_ns;        /* CHECK, PEEK: max_wait of this part, if the question has none */
    struct remote_rate rate; /* CHECK, PEEK, UP_TO of a limit with any_rate */
    bool hidden;             /* clients are not told of this limit (`expose: false`) */
};

struct remote_answer {
    struct weir_answer
        answer;     /* answer.limit: the part that bound. CHECK, PEEK, UP_TO, REFUND, PENALIZE */
    uint64_t stamp; /* identifies the charge in a later REFUND */
    int found;      /* UNBLOCK, RESET: 1 if there was something to remove */
};

/* A flag of weir_answer.flags: the answer does not come from the store. */
#define REMOTE_DEGRADED 0x200u /* = WEIR_FLAG_DEGRADED */
/*
 * Set together with it: the denial is due to `on_store_failure: closed`, not to a lack of units.
 * Servers tell their clients so (HTTP: 503 instead of 429).
 */
#define REMOTE_CLOSED 0x400u /* = WEIR_FLAG_CLOSED */

/*
 * error is 0, or WEIR_E... if nothing is known to have happened (WEIR_EIO: the store is not
 * available, for verbs that have no answer without it).
 */
typedef void (*remote_done_fn)(void *arg, int error, const struct remote_answer *answer);

struct remote_question {
    int verb;    /* enum remote_verb */
    bool shadow; /* the request passes anyway: a denial is counted as shadow_denied */
    const struct remote_part *parts;
    size_t n; /* 1; up to WEIR_SEVERAL_MAX for CHECK and PEEK, none twice */
    /* CHECK, PEEK: max_wait of all buckets; other limits decide at once. REFUND: `stamp` of the
     * charge, 0: unknown. BLOCK, BAN: its end, counted from now; WEIR_FOREVER (BLOCK) */
    uint64_t time_ns;
    uint64_t now_ns; /* for parts that are decided here */
    /*
     * NULL, or where the fleet puts the answer of the part that clients may be told: of the shared
     * parts that were asked and are not hidden, the one that binds; `limit` says which it is. The
     * caller sets its verdict to 0, which stays if there is no such part.
     */
    struct weir_answer *shown;
    remote_done_fn done;
    void *arg;
    void *memory; /* remote_ops.bytes, for the fleet while the question is pending */
    struct remote_question *next; /* for the fleet */
};

enum { REMOTE_PENDING = 0, REMOTE_ANSWERED = 1 };

/* The counts of one limit since it was opened. */
struct remote_counts {
    uint64_t keys; /* keys held here now, by LEASED and SYNCED; the others are in the store */
    uint64_t allowed;
    uint64_t denied;
    uint64_t never;
    uint64_t shadow_denied;
    uint64_t degraded[REMOTE_FAILURES]; /* answers that did not come from the store, by policy */
    uint64_t remembered;                /* denials answered from memory */
    /* Answers about keys that a full store does not have, by verdict; not in `degraded`. */
    uint64_t full_allowed;
    uint64_t full_denied;
    int mode; /* last: enum remote_mode in effect: EXACT where leases are not worth it */
};

struct weir_fleet;

struct remote_ops {
    int (*open)(struct weir_fleet *fleet, const struct remote_spec *spec, void **limit,
                struct weir_error *error);
    void (*hold)(void *limit);
    void (*release)(void *limit);
    /* Sets new numbers (count, burst, queue) for later questions. Returns the errors of open(). */
    int (*change)(void *limit, const struct weir_options *options, struct weir_error *error);
    void (*counts)(const void *limit, struct remote_counts *counts);
    /* Returns how much memory a question with n parts needs, aligned as by malloc(). */
    size_t (*bytes)(size_t n);
    /* `where` is a place of the fleet (fleet/place.h); NULL: the fleet's own thread. */
    int (*ask)(struct weir_fleet *fleet, void *where, struct remote_question *question,
               struct remote_answer *answer);
};

/* The beginning of every struct weir_fleet. */
struct remote_face {
    const struct remote_ops *ops;
};

static inline const struct remote_ops *remote_ops(const struct weir_fleet *fleet)
{
    return ((const struct remote_face *)(const void *)fleet)->ops;
}

#endif
