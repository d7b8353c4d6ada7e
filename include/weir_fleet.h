/*
 * Limits that the nodes of a fleet share, decided by a Redis or Valkey. Needs weir.h, libweir and
 * libweir-redis.
 *
 *     struct weir_fleet *fleet;
 *     struct weir_fleet_options f = WEIR_FLEET_OPTIONS_INIT;
 *     f.url = "redis://127.0.0.1:6379";
 *     if (weir_fleet_open(&fleet, &f, &error) != 0) {
 *         complain(error.text);
 *     }
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
 *     weir_fleet_check(limit, "alice", 5, 1, &a); // waits for the store
 *
 * All nodes that use the same store, prefix and name share the limit; they must give
 * it the same numbers.
 *
 * LOOPS. By default the fleet has its own thread, and every function may be called from any thread.
 * With WEIR_FLEET_CALLERS_LOOP it has none: one thread of the program calls all
 * functions. It waits until weir_fleet_fd() is readable or weir_fleet_timeout_ms() has
 * passed, then calls weir_fleet_run(), which never waits and calls the callbacks.
 * weir_fleet_check() returns WEIR_ENOTSUP then.
 *
 * ANSWERS. Every question is answered once, by the deadline. If the store cannot be asked, or does
 * not answer in time, on_store_failure decides, and the answer has WEIR_FLAG_DEGRADED. A call that
 * was sent is never sent again unless the store has proved that it did not run: a unit is charged
 * at most once for a question.
 *
 * FORK. A child process cannot use the fleet: it may only call weir_fleet_close().
 */
#ifndef WEIR_FLEET_H
#define WEIR_FLEET_H

#include <weir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* answer.flags: the answer does not come from the store. */
#define WEIR_FLAG_DEGRADED 0x200u
/* Set together with it: denied because of WEIR_FLEET_CLOSED, not because units are missing. */
#define WEIR_FLAG_CLOSED 0x400u

struct weir_fleet;
struct weir_fleet_limit;

/* ---- the fleet --------------------------------------------------------- */

/* options.flags: the fleet has no thread of its own; see LOOPS. */
#define WEIR_FLEET_CALLERS_LOOP 0x1u

struct weir_fleet_options {
    size_t size;          /* set by WEIR_FLEET_OPTIONS_INIT */
    unsigned flags;       /* WEIR_FLEET_CALLERS_LOOP */
    unsigned reserved;    /* 0 */
    const char *url;      /* redis://host:port[,...][/db], redis-sentinel://host:port,.../master,
                                  redis-cluster://host:port,...; rediss... for TLS; required */
    const char *user;     /* NULL: none */
    const char *password; /* NULL: none. Copied, and never shown */
    const char *password_file; /* its first line is the password; read for every connection */
    const char *prefix;        /* every key in the store begins with it; NULL: "weir" */
    uint64_t deadline_ns;      /* of a decision; 0: 5 ms */
    uint64_t fleet_size;       /* nodes, for WEIR_FLEET_LOCAL; 0: as counted in the store */
    /* Used only for the Sentinels of redis-sentinel://; NULL: none */
    const char *sentinel_user;
    const char *sentinel_password;
    const char *sentinel_password_file;
    /* "10.0.0.0/8,fd00::/8": a node or master that the store or a Sentinel announces is used only
     * if its address is in one of these networks. Hosts of the URL are always used. "": no others
     * are. NULL: any may be announced. */
    const char *networks;
    /* Used only for rediss://, rediss-sentinel:// and rediss-cluster://. Files in PEM form; they
     * are read again for a new connection if they have changed. */
    const char *tls_ca;   /* CA of the store's certificates; NULL: the system's */
    const char *tls_cert; /* own certificate, for a store that asks for one; NULL: none */
    const char *tls_key;  /* its key; required with tls_cert */
    /* Name or address that all certificates of the store must have; NULL: the host of the URL, or
     * the one that a Sentinel or the Cluster announces. */
    const char *tls_server_name;
    /* Percent of the store's maxmemory from which this node decides keys that are not in the store,
     * as on_full of their limit says; 0: 90, WEIR_FLEET_MEMORY_IGNORED: the store is not asked for
     * its memory. */
    unsigned memory_high;
    unsigned reserved2; /* 0 */
};

/* options.memory_high: the store is not asked for its memory. */
#define WEIR_FLEET_MEMORY_IGNORED 101

/* The initial value of a struct weir_fleet_options. */
#define WEIR_FLEET_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(struct weir_fleet_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* Opens a fleet. Does not wait for the store, and succeeds if it is unavailable. Returns 0,
 * WEIR_EINVAL (*error says what was found), WEIR_ENOMEM, or WEIR_EIO (the password file or one
 * for TLS; no thread). */
WEIR_API int weir_fleet_open(struct weir_fleet **fleet, const struct weir_fleet_options *options,
                             struct weir_error *error);

/* Closes a fleet. Pending questions are answered by the store within 100 ms, otherwise by
 * on_store_failure; unused leases are returned. All limits must be closed before, and no other
 * thread may use the fleet. Must not be called from a callback, because it waits for that
 * thread. NULL is allowed. */
WEIR_API void weir_fleet_close(struct weir_fleet *fleet);

/* These are for WEIR_FLEET_CALLERS_LOOP. weir_fleet_fd() returns a descriptor for poll(), readable
 * when there is work. weir_fleet_timeout_ms() returns after how many ms weir_fleet_run() must be
 * called at the latest; -1: only when the descriptor is readable. Without that flag they return
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
                                  max_keys: capacity for WEIR_FLEET_LOCAL */
    int consistency;      /* enum weir_fleet_consistency; 0: EXACT */
    int on_store_failure; /* enum weir_fleet_failure */
    uint64_t deny_cache_ns; /* denials are remembered for min(retry, this); 0: 1 s; 1: off */
    uint64_t sync_ns;       /* 0: 100 ms */
};

/* The initial value of a struct weir_fleet_limit_options. */
#define WEIR_FLEET_LIMIT_OPTIONS_INIT                                                              \
    {                                                                                              \
        sizeof(struct weir_fleet_limit_options), 0, WEIR_OPTIONS_INIT, 0, 0, 0, 0                  \
    }

/* Opens a limit. Returns 0 or an error of weir_open(); WEIR_EINVAL, WEIR_ERATE or WEIR_EQUOTA also
 * for numbers that a script cannot express, and for algorithms that the consistency does not
 * support. *error says what was found. */
WEIR_API int weir_fleet_limit_open(struct weir_fleet_limit **limit, struct weir_fleet *fleet,
                                   const struct weir_fleet_limit_options *options,
                                   struct weir_error *error);

/* Closes a limit. Its pending questions are still answered. NULL is allowed. */
WEIR_API void weir_fleet_limit_close(struct weir_fleet_limit *limit);

/* Returns the consistency in effect: WEIR_FLEET_EXACT if the limit is too small for leases. */
WEIR_API int weir_fleet_limit_consistency(const struct weir_fleet_limit *limit);

/* ---- asking ------------------------------------------------------------ */

/* Called with an answer. error: 0, or WEIR_EIO if the operation needs the store, which is
 * unavailable. Called on the fleet's thread, or within weir_fleet_run(). Must not wait and must not
 * close the fleet; may ask again. */
typedef void (*weir_fleet_done_fn)(void *arg, int error, const struct weir_answer *answer);

/*
 * Asks a question. Returns 1 if *answer is complete: `done` will not be called. Returns 0 if `done`
 * will be called once with the answer. Otherwise returns an error as weir_ask(), and nothing has
 * happened. question->hashed must be NULL.
 */
WEIR_API int weir_fleet_ask(struct weir_fleet_limit *limit, const struct weir_question *question,
                            struct weir_answer *answer, weir_fleet_done_fn done, void *arg);

/* Asks, and waits for the answer. */
WEIR_API int weir_fleet_check(struct weir_fleet_limit *limit, const void *key, size_t key_len,
                              uint64_t cost, struct weir_answer *answer);

/* Do what the functions of weir.h with these names do. They return 0, and `done` (may be NULL) gets
 * the answer; or they return WEIR_E..., and `done` is not called. A block lasts for_ns, which may
 * be WEIR_FOREVER. The answers to block, unblock and reset have no verdict. A refund is for units
 * that were charged just now, so it does nothing for a leaky_bucket. */
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

/* ---- statistics -------------------------------------------------------- */

struct weir_fleet_stats {
    size_t size;      /* in: sizeof(struct weir_fleet_stats) */
    uint64_t up;      /* connections to the store */
    uint64_t nodes;   /* of the fleet */
    uint64_t calls;   /* to the store */
    uint64_t unknown; /* calls that got no reply */
    uint64_t resent;
    uint64_t degraded; /* answers that did not come from the store */
    uint64_t breakers_open;
    uint64_t targets_refused; /* announced addresses that were outside of options.networks */
};

/* Fills *stats. WEIR_EINVAL: an argument is NULL, or the size is wrong. */
WEIR_API int weir_fleet_stats_read(struct weir_fleet *fleet, struct weir_fleet_stats *stats);

/* Returns 0 if the store is available, or WEIR_EIO: *error says why it is not, without secrets
 * ("10.0.0.5:6379: no connection (Connection refused)"). WEIR_EINVAL: an argument is NULL. */
WEIR_API int weir_fleet_trouble(const struct weir_fleet *fleet, struct weir_error *error);

/* ---- a ring ------------------------------------------------------------ */

/*
 * Says which node a key belongs to, for programs that route requests themselves. When a node
 * leaves, only its keys move; when a node is added, keys move only to it. There may be up to 1,000
 * nodes; with up to 100, the heaviest has at most 1.25 times its share of keys. Nodes are
 * identified by their names: all programs with the same names, in any order, on any machine, agree.
 * The hash has no secret: a client that can choose keys can choose their node. A ring takes 256 KB,
 * and about 0.2 ms for each node to make; a lookup takes some 20 ns. A ring never changes: for
 * other nodes, make another.
 */
struct weir_ring;

/* Makes a ring. Names have 1 to 1,024 bytes and must differ. Returns 0, WEIR_EINVAL (*error says
 * what was found) or WEIR_ENOMEM. */
WEIR_API int weir_ring_open(struct weir_ring **ring, const char *const *nodes, size_t count,
                            struct weir_error *error);

/* Returns an index in `nodes`. A key is any bytes, also none. May be called from any thread. */
WEIR_API size_t weir_ring_find(const struct weir_ring *ring, const void *key, size_t key_len);

/* Frees a ring. NULL is allowed. */
WEIR_API void weir_ring_close(struct weir_ring *ring);

#ifdef __cplusplus
}
#endif

#endif
