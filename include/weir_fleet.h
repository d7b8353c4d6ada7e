/*
 * weir in a fleet: limits that many nodes share, decided by a Redis or Valkey. Needs weir.h, libweir and
 * libweir-redis.
 *
 *     struct weir_fleet *fleet;
 *     struct weir_fleet_options f = WEIR_FLEET_OPTIONS_INIT;
 *     f.url = "redis://127.0.0.1:6379";
 *     if (weir_fleet_open(&fleet, &f, &error) != 0) { complain(error.text); }
 *
 *     struct weir_fleet_limit *limit;
 *     struct weir_fleet_limit_options l = WEIR_FLEET_LIMIT_OPTIONS_INIT;
 *     l.name = "api";
 *     l.limit.algorithm = WEIR_TOKEN_BUCKET;
 *     l.limit.count = 100;
 *     l.limit.period_ns = WEIR_SECOND;
 *     l.consistency = WEIR_FLEET_EXACT;
 *     weir_fleet_limit_open(&limit, fleet, &l, &error);
 *
 *     struct weir_answer a;
 *     weir_fleet_check(limit, "alice", 5, 1, &a);      // waits for the store, up to the deadline
 *
 * All nodes that use the same store, prefix and name share the limit; they must give it the same numbers.
 *
 * LOOPS. By default the fleet has a thread of its own, and every function may be called from any thread.
 * With WEIR_FLEET_CALLERS_LOOP it has none: one thread, the caller's, calls everything. It waits until
 * weir_fleet_fd() is readable or weir_fleet_timeout_ms() has passed, then calls weir_fleet_run(), which
 * never waits and calls the callbacks; weir_fleet_check() is WEIR_ENOTSUP there.
 *
 * ANSWERS. Every question is answered once, by the deadline. If the store cannot be asked, or does not
 * answer in time, on_store_failure decides, and the answer carries WEIR_FLAG_DEGRADED. A call that was
 * sent is never sent again unless the store has proved that it did not run: a unit is charged at most
 * once for a question.
 *
 * FORK. A fleet does not follow into a child: there only weir_fleet_close() may be called.
 */
#ifndef WEIR_FLEET_H
#define WEIR_FLEET_H

#include <weir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* answer.flags: the store has not given this answer. */
#define WEIR_FLAG_DEGRADED 0x200u
/* With it: denied because on_store_failure is WEIR_FLEET_CLOSED, not because units are missing. */
#define WEIR_FLAG_CLOSED 0x400u

struct weir_fleet;
struct weir_fleet_limit;

/* ---- the fleet --------------------------------------------------------- */

#define WEIR_FLEET_CALLERS_LOOP 0x1u

struct weir_fleet_options {
    size_t size;          /* set by WEIR_FLEET_OPTIONS_INIT */
    unsigned flags;       /* WEIR_FLEET_CALLERS_LOOP */
    unsigned reserved;    /* 0 */
    const char *url;      /* redis://host:port[,...][/db], redis-sentinel://host:port,.../master,
                                  redis-cluster://host:port,...; required */
    const char *user;     /* NULL: none */
    const char *password; /* NULL: none. Copied, and never shown */
    const char *password_file; /* its first line instead; read again for every connection */
    const char *prefix;        /* what every key in the store begins with; NULL: "weir" */
    uint64_t deadline_ns;      /* of a decision; 0: 5 ms */
    uint64_t fleet_size;       /* nodes that share the limits while the store is away; 0: as seen */
    /* For the Sentinels of redis-sentinel:// alone, as the three above for the store; NULL: none */
    const char *sentinel_user;
    const char *sentinel_password;
    const char *sentinel_password_file;
};

#define WEIR_FLEET_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct weir_fleet_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                      \
    }

/* Does not wait for the store: that it is away is no error. WEIR_EINVAL (with what was found),
 * WEIR_ENOMEM, WEIR_EIO (the password file; no thread). */
WEIR_API int weir_fleet_open(struct weir_fleet **fleet, const struct weir_fleet_options *options,
                             struct weir_error *error);

/* Answers what is out, if not by the store within 100 ms, by on_store_failure; gives unused leases back,
 * ends. All its limits must be closed, and nobody else may be asking; not from within a callback, whose
 * thread it waits for. NULL is allowed. */
WEIR_API void weir_fleet_close(struct weir_fleet *fleet);

/* WEIR_FLEET_CALLERS_LOOP. fd: for poll(), readable when there is something to do. timeout: in how many
 * ms weir_fleet_run() wants to be called at the latest; -1: only by the fd. Without that flag they are
 * WEIR_ENOTSUP, -1 and WEIR_ENOTSUP. */
WEIR_API int weir_fleet_fd(const struct weir_fleet *fleet);
WEIR_API int weir_fleet_timeout_ms(const struct weir_fleet *fleet);
WEIR_API int weir_fleet_run(struct weir_fleet *fleet);

/* ---- limits ------------------------------------------------------------ */

enum weir_fleet_consistency {
    WEIR_FLEET_EXACT = 1, /* one call to the store for each decision */
    WEIR_FLEET_LEASED =
        2, /* units taken in advance; never more than the limit. token_bucket, fixed_window */
    WEIR_FLEET_SYNCED =
        3 /* totals exchanged every sync_ns. token_bucket, fixed_window, sliding_window */
};

enum weir_fleet_failure {
    WEIR_FLEET_LOCAL = 0, /* this node's part of the limit */
    WEIR_FLEET_OPEN = 1,
    WEIR_FLEET_CLOSED = 2
};

struct weir_fleet_limit_options {
    size_t size;      /* set by WEIR_FLEET_LIMIT_OPTIONS_INIT */
    const char *name; /* required; shared by all nodes */
    struct weir_options
        limit;            /* algorithm, count, period_ns, burst, queue, max_debt, align, offset_ns;
                                  max_keys: of what `local` remembers */
    int consistency;      /* enum weir_fleet_consistency; 0: EXACT */
    int on_store_failure; /* enum weir_fleet_failure */
    uint64_t deny_cache_ns; /* a denial is remembered for min(retry, this); 0: 1 s; 1: not */
    uint64_t sync_ns;       /* 0: 100 ms */
};

#define WEIR_FLEET_LIMIT_OPTIONS_INIT                                                              \
    {                                                                                              \
        sizeof(struct weir_fleet_limit_options), 0, WEIR_OPTIONS_INIT, 0, 0, 0, 0                  \
    }

/* WEIR_EINVAL, WEIR_ERATE, WEIR_EQUOTA, ... with what was found: as weir_open(), and what no script can
 * express; an algorithm that the consistency cannot. */
WEIR_API int weir_fleet_limit_open(struct weir_fleet_limit **limit, struct weir_fleet *fleet,
                                   const struct weir_fleet_limit_options *options,
                                   struct weir_error *error);
WEIR_API void weir_fleet_limit_close(struct weir_fleet_limit *limit);

/* WEIR_FLEET_EXACT where leases were asked for but the limit is too small for them. */
WEIR_API int weir_fleet_limit_consistency(const struct weir_fleet_limit *limit);

/* ---- asking ------------------------------------------------------------ */

/* error: 0, or WEIR_EIO: the store is not there, for what only it can do. Must not wait; may ask again,
 * must not close the fleet. On the fleet's thread, or within weir_fleet_run(). */
typedef void (*weir_fleet_done_fn)(void *arg, int error, const struct weir_answer *answer);

/*
 * 1: *answer is complete, `done` will not be called. 0: it will, once, with the answer. Or as
 * weir_ask(): nothing has happened. question->hashed must be NULL.
 */
WEIR_API int weir_fleet_ask(struct weir_fleet_limit *limit, const struct weir_question *question,
                            struct weir_answer *answer, weir_fleet_done_fn done, void *arg);

/* The same, and waits. */
WEIR_API int weir_fleet_check(struct weir_fleet_limit *limit, const void *key, size_t key_len,
                              uint64_t cost, struct weir_answer *answer);

/* What weir.h has by the same names; these too are answered by `done` (NULL: nobody wants to know).
 * 0, or WEIR_E... and `done` is not called. block: for so long; WEIR_FOREVER. The answers to block, unblock
 * and reset have no verdict. refund: of units that were charged just now, so it does nothing for a
 * leaky_bucket. */
WEIR_API int weir_fleet_refund(struct weir_fleet_limit *limit, const void *key, size_t key_len,
                               uint64_t units, weir_fleet_done_fn done, void *arg);
WEIR_API int weir_fleet_penalize(struct weir_fleet_limit *limit, const void *key, size_t key_len,
                                 uint64_t units, weir_fleet_done_fn done, void *arg);
WEIR_API int weir_fleet_block(struct weir_fleet_limit *limit, const void *key, size_t key_len,
                              uint64_t for_ns, weir_fleet_done_fn done, void *arg);
WEIR_API int weir_fleet_unblock(struct weir_fleet_limit *limit, const void *key, size_t key_len,
                                weir_fleet_done_fn done, void *arg);
WEIR_API int weir_fleet_reset(struct weir_fleet_limit *limit, const void *key, size_t key_len,
                              weir_fleet_done_fn done, void *arg);

/* ---- looking at it ----------------------------------------------------- */

struct weir_fleet_stats {
    size_t size;      /* in: sizeof(struct weir_fleet_stats) */
    uint64_t up;      /* connections to the store that stand */
    uint64_t nodes;   /* of the fleet */
    uint64_t calls;   /* to the store */
    uint64_t unknown; /* of them without a reply */
    uint64_t resent;
    uint64_t degraded; /* answers that the store has not given */
    uint64_t breakers_open;
};

WEIR_API int weir_fleet_stats_read(struct weir_fleet *fleet, struct weir_fleet_stats *stats);

/* 0, or WEIR_EIO: why the store is not there is in *error, for a person, without secrets
 * ("10.0.0.5:6379: no connection (Connection refused)"). WEIR_EINVAL: NULL. */
WEIR_API int weir_fleet_trouble(const struct weir_fleet *fleet, struct weir_error *error);

/* ---- a ring ------------------------------------------------------------ */

/*
 * Which node a key belongs to, for programs that route requests themselves: when a node leaves, only its
 * keys move, and when one comes, only to it. Up to 1,000 nodes; with up to 100, the heaviest has at most
 * 1.25 times its share of keys. Nodes are known by their names: every program that has the same names, in
 * any order, agrees, on any machine. Keys have no secret: who may choose keys can choose their node.
 * 256 KB, made in about 0.2 ms for each node; a lookup takes some 20 ns. It never changes: for other
 * nodes, make another.
 */
struct weir_ring;

/* Names have 1 to 1,024 bytes, no two alike. WEIR_EINVAL (with what was found), WEIR_ENOMEM. */
WEIR_API int weir_ring_open(struct weir_ring **ring, const char *const *nodes, size_t count,
                            struct weir_error *error);
/* The index in `nodes`. Any bytes, also none. From any thread. */
WEIR_API size_t weir_ring_find(const struct weir_ring *ring, const void *key, size_t key_len);
WEIR_API void weir_ring_close(struct weir_ring *ring); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif
