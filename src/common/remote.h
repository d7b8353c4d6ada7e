/*
 * How rules (libweir-rules) hand limits to somebody else who decides them (libweir-redis): the two
 * libraries know each other by this alone. Whoever opens rules may give them a fleet, whose first
 * member is a table of functions.
 *
 * R1  A limit is opened when rules that name it are loaded, held by whoever still has a question out,
 *     and released; the last release ends it. hold and release may be called from any thread.
 * R2  ask() never waits, and never calls `done` itself: it answers at once (REMOTE_ANSWERED), or will
 *     call `done` exactly once, later, on the thread of `where` (REMOTE_PENDING). It copies what it
 *     needs: keys, parts, the question. It holds the remote limits of its parts until then.
 * R3  Parts without `limit` are decided here, by their `local`; the caller keeps those limiters alive
 *     until the answer.
 */
#ifndef WEIR_COMMON_REMOTE_H
#define WEIR_COMMON_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "common/text.h"

/* `consistency:`, in the order of weir_fleet.h. */
enum remote_mode { REMOTE_LOCAL, REMOTE_EXACT, REMOTE_LEASED, REMOTE_SYNCED };

/* `on_store_failure:` */
enum remote_failure { REMOTE_FAIL_LOCAL, REMOTE_FAIL_OPEN, REMOTE_FAIL_CLOSED, REMOTE_FAILURES };

/* What there is to decide. */
struct remote_spec {
    struct text name;            /* of the limit, and of its tier or rate: one for each state */
    struct weir_options options; /* as for weir_open(); the local one's memory is not meant */
    int mode;                    /* enum remote_mode, not LOCAL */
    int on_failure;              /* enum remote_failure */
    uint64_t deny_cache_ns;      /* remembers who was denied for min(retry, this); 0: not */
    uint64_t sync_ns;            /* SYNCED: between two exchanges */
};

/* The order of enum store_verb. */
enum remote_verb {
    REMOTE_CHECK,
    REMOTE_PEEK,
    REMOTE_UP_TO,
    REMOTE_REFUND,
    REMOTE_PENALIZE,
    REMOTE_BLOCK,
    REMOTE_UNBLOCK,
    REMOTE_RESET
};

/* One limit of a question, and one key of it. */
struct remote_part {
    void *limit;        /* as open() made it; NULL: decided here */
    struct weir *local; /* then by this */
    bool queue;         /* `local` is a leaky_bucket: its units are places in a queue */
    struct text shard;  /* at NULL: the key itself */
    struct text key;    /* 1 to WEIR_KEY_MAX bytes */
    uint64_t cost;
};

struct remote_question {
    int verb; /* enum remote_verb */
    const struct remote_part *parts;
    size_t n; /* 1; up to WEIR_SEVERAL_MAX for CHECK and PEEK, none twice */
    uint64_t
        time_ns;     /* CHECK, PEEK: max_wait. REFUND: `stamp` of the charge, 0: unknown. BLOCK: its
                         end, counted from now; WEIR_FOREVER */
    uint64_t now_ns; /* for parts that are decided here */
};

struct remote_answer {
    struct weir_answer
        answer;     /* answer.limit: the part that bound. CHECK, PEEK, UP_TO, REFUND, PENALIZE */
    uint64_t stamp; /* for a REFUND of what was granted */
    int found;      /* UNBLOCK, RESET: 1 if there was something */
};

/* A flag of weir_answer.flags: the store has not given this answer. */
#define REMOTE_DEGRADED 0x200u /* = WEIR_FLAG_DEGRADED */
/* And beside it: `on_store_failure: closed` has denied it, not a want of units. Whoever tells a client
 * says so (HTTP: 503 instead of 429). */
#define REMOTE_CLOSED 0x400u /* = WEIR_FLAG_CLOSED */

/* error: 0, or WEIR_E... and nothing is known to have happened (WEIR_EIO: the store is not there, for
 * verbs that have no answer without it). */
typedef void (*remote_done_fn)(void *arg, int error, const struct remote_answer *answer);

enum { REMOTE_PENDING = 0, REMOTE_ANSWERED = 1 };

/* Of one limit, since it was opened. */
struct remote_counts {
    int mode; /* enum remote_mode: that by which it is decided, EXACT where leases are not worth it */
    uint64_t keys; /* that are kept here, by LEASED and SYNCED, now; the others are the store's */
    uint64_t allowed;
    uint64_t denied;
    uint64_t never;
    uint64_t degraded[REMOTE_FAILURES]; /* answers that the store has not given, by policy */
    uint64_t remembered;                /* denials out of memory */
};

struct weir_fleet;

struct remote_ops {
    int (*open)(struct weir_fleet *fleet, const struct remote_spec *spec, void **limit,
                struct weir_error *error);
    void (*hold)(void *limit);
    void (*release)(void *limit);
    /* New numbers (count, burst, queue) for the limit's later questions; what open() would refuse. */
    int (*change)(void *limit, const struct weir_options *options, struct weir_error *error);
    void (*counts)(const void *limit, struct remote_counts *counts);
    /* `where` is a thread of the fleet (fleet/fleet.h); NULL: its own. */
    int (*ask)(struct weir_fleet *fleet, void *where, const struct remote_question *question,
               struct remote_answer *answer, remote_done_fn done, void *arg);
};

/* What a struct weir_fleet begins with. */
struct remote_face {
    const struct remote_ops *ops;
};

static inline const struct remote_ops *remote_ops(const struct weir_fleet *fleet)
{
    return ((const struct remote_face *)(const void *)fleet)->ops;
}

#endif
