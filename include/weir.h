/*
 * weir: rate limiting, exact and in tens of nanoseconds.
 *
 *     struct weir_options o = WEIR_OPTIONS_INIT;
 *     o.algorithm = WEIR_TOKEN_BUCKET;
 *     o.count = 100;                          // 100 per ...
 *     o.period_ns = 60 * WEIR_SECOND;         // ... minute
 *     o.burst = 150;
 *     struct weir *w;
 *     int e = weir_open(&w, &o, NULL);
 *     struct weir_answer a;
 *     e = weir_check(w, "alice", 5, 1, &a);
 *     if (e == 0 && a.verdict == WEIR_ALLOW) { serve(); }
 *     weir_close(w);
 *
 * THE DECISION. You ask with a limiter, a key (1 to 4096 bytes, any bytes), a
 * cost in units and a time; you get one struct weir_answer. Allow and deny are
 * data. A negative return value means that no decision was made and nothing
 * was changed; weir_strerror() names the reason. A key made of several parts
 * should carry their lengths ("5:alice3:get"), or two pairs will meet in one.
 *
 * TIME is Unix time in nanoseconds, as a uint64_t. Every call that decides has
 * a twin that ends in _at and takes the time; the short form reads the
 * limiter's own clock: Unix time when the limiter was made (or its file was
 * first opened in this boot) plus the time since then by CLOCK_BOOTTIME, so
 * that nobody who sets the wall clock moves it. (A machine may begin before its
 * wall clock is set, with one of 1970. Then the limiter's time begins at the end
 * of 2025 and goes on from the wall clock once that is set: windows are UTC again,
 * and what keys owed, blocks and reservations are over as if the time had passed.)
 * Clocks of different threads or processes may differ by up to a second: that
 * admits nothing extra. A call with an older time never moves a state back. After a
 * larger step back, a key that was ahead of the new time is denied for at most its
 * time to full, debt included, and gains at most one extra burst: the first call that
 * meets its state (a check or peek of the key, a new key that looks for a place, a sweep)
 * pulls it down to the most that it could be now; a log is forgotten. A limiter's time line begins a
 * day before it was made (with WEIR_EXPLICIT_TIME, at 0) and lasts decades, for
 * buckets above 400,000 per second at least 3.4 years; outside it is WEIR_ETIME.
 * On x86-64, where the kernel itself keeps time by the processor's counter, the
 * limiter's own clock reads that counter too, and CLOCK_BOOTTIME once in a
 * millisecond: it is within 25 us of CLOCK_BOOTTIME (1 ms if the counter jumps)
 * and never goes back within a thread.
 *
 * MEMORY is fixed when the limiter is made: about 20.5 bytes for each of
 * max_keys, and for sliding_log 10.24 * (count + 1) more; 32 bytes for each of
 * max_blocks; 256 bytes for each thread that uses it (up to 512 of them).
 * The limiter allocates nothing afterwards. Keys are not stored; a keyed 128-bit
 * hash of each is.
 *
 * THREADS. Every function may be called from any thread at any time, except
 * that weir_close() must be the last call on its limiter, and that none may be
 * called from a signal handler. There is no global lock. A decision on a known
 * key takes none at all, except with sliding_log and WEIR_UP_TO. New keys and
 * the other verbs take one of many lock stripes, and wait for its holder. A
 * process that is stopped inside (SIGSTOP, a debugger) holds its stripe until it
 * goes on or is killed; in weir_open() it holds up other openers of its file. A thread
 * that ends inside a call (pthread_exit, cancellation) releases what it holds.
 *
 * PROCESSES AND FORK.
 *   private memory   a forked child gets its own copy, counts included: both
 *                    sides limit separately from then on. Safe with threads.
 *   shared memory    made before fork(), used by parent and children: one limit.
 *   file             every process that opens the path shares the limit; also
 *                    inherited by fork. Survives the processes, a kill at any
 *                    instruction, a copy, and a reboot. Restore one from a
 *                    backup by moving it into place while no process has it open.
 * Processes in different containers (PID and time namespaces) may share a file, and
 * so may programs with different C libraries. A process that is killed inside a call
 * leaves its stripe to the next caller that waits 20 ms for it. This rests on record
 * locks of the kernel (fcntl), which end when a process closes any descriptor of the
 * file: do not open and close a limiter's file in a process that has it open as a
 * limiter, and let children that close all descriptors spare the library's, for
 * shared memory as well as for files: without them, others cannot tell whether such
 * a child lives, and may wait for ever for a stripe that it died with. Calls of
 * weir_open() and weir_close() for files take turns within a process.
 *
 * Before 1.0 structs may grow with a new minor version; recompile then.
 */
#ifndef WEIR_H
#define WEIR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#else
#define WEIR_API
#endif

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0

/* Durations, in the nanoseconds that every time of this library is in. */
#define WEIR_MICROSECOND UINT64_C(1000)
#define WEIR_MILLISECOND UINT64_C(1000000)
#define WEIR_SECOND UINT64_C(1000000000)
#define WEIR_MINUTE (60 * WEIR_SECOND)
#define WEIR_HOUR (60 * WEIR_MINUTE)
#define WEIR_DAY (24 * WEIR_HOUR)

/* "There is no such time": retry_after_ns of NEVER, a block without an end. */
#define WEIR_FOREVER UINT64_MAX

/* A key is 1 to this many bytes. */
#define WEIR_KEY_MAX 4096

/*
 * Errors: code, value, text. One list; weir_strerror() and weir_errname() are
 * made from it.
 */
#define WEIR_ERRORS(X)                                                                             \
    X(WEIR_EINVAL, -1, "invalid argument")                                                         \
    X(WEIR_EKEY, -2, "a key must have 1 to 4096 bytes")                                            \
    X(WEIR_ECOST, -3, "a cost must be at least 1")                                                 \
    X(WEIR_ETIME, -4, "the time is outside the limiter's line, or a block ends before it begins")  \
    X(WEIR_ERATE, -5, "the rate is zero or absurd")                                                \
    X(WEIR_EQUOTA, -6, "the quota, burst, queue or debt is too large for the algorithm")           \
    X(WEIR_ENOTSUP, -7, "the algorithm, or this build of the library, does not support it")        \
    X(WEIR_ENOMEM, -8, "out of memory")                                                            \
    X(WEIR_ENOSPC, -9, "no space left for the file")                                               \
    X(WEIR_EIO, -10, "a system call failed")                                                       \
    X(WEIR_EACCES, -11, "the file may not be used: wrong owner, mode or kind")                     \
    X(WEIR_EVERSION, -12, "the file is of another version of weir")                                \
    X(WEIR_EDAMAGED, -13, "the file is damaged, cut short, or not a weir file")                    \
    X(WEIR_EMISMATCH, -14, "the file holds a limit with other parameters")                         \
    X(WEIR_EFULL, -15, "no room for this key in the table")                                        \
    X(WEIR_ESTALE, -16, "the handle belongs to another limiter, or is used up")                    \
    X(WEIR_EEXPIRED, -17, "the reservation has expired")                                           \
    X(WEIR_ECPU, -18, "this processor lacks a 16-byte compare-and-swap")                           \
    X(WEIR_ENOENT, -19, "the file does not exist")                                                 \
    X(WEIR_ERULES, -20, "the rules have errors")                                                   \
    X(WEIR_EATTRIBUTE, -21, "an attribute of the request cannot be used")                          \
    X(WEIR_ENOLIMIT, -22, "there is no limit of that name")

#define WEIR_ERROR_ENUM(name, value, text) name = value,
enum weir_errno { WEIR_OK = 0, WEIR_ERRORS(WEIR_ERROR_ENUM) };
#undef WEIR_ERROR_ENUM

/* What went wrong when a limiter was opened or changed, for a person. Untouched on success. */
struct weir_error {
    int code;       /* one of enum weir_errno */
    char text[248]; /* what was found and what was expected; always terminated */
};

/* The constant text of an error code; of an unknown code, a text that says so. */
WEIR_API const char *weir_strerror(int code);

/* The name of an error code, such as "WEIR_EKEY"; of an unknown one, "WEIR_E?". */
WEIR_API const char *weir_errname(int code);

/* The version of the library as "0.1.0". */
WEIR_API const char *weir_version(void);

/* ---- limits ------------------------------------------------------------ */

/*
 * The algorithms. docs/ALGORITHMS.md has formulas, bounds and pictures.
 * "Interval" is any interval at all, not an aligned one.
 */
enum weir_algorithm {
    WEIR_TOKEN_BUCKET = 1,   /* at most burst + rate*t in any interval t */
    WEIR_LEAKY_BUCKET = 2,   /* a queue that leaks at the rate: answers carry a delay */
    WEIR_FIXED_WINDOW = 3,   /* count per UTC-aligned period */
    WEIR_SLIDING_WINDOW = 4, /* two counters; at most 2*count - 1 in any period */
    WEIR_SLIDING_LOG = 5     /* at most count (to 65,535) in any period, exactly */
};

/* Where the state of a limiter lives; see "PROCESSES AND FORK" above. */
enum weir_memory {
    WEIR_PRIVATE = 0,
    WEIR_SHARED = 1, /* anonymous, inherited by fork() */
    WEIR_FILE = 2    /* options.path */
};

/*
 * What happens to a new key when its eight places in the table are all taken by
 * keys that are in use. A key that is as good as new is always replaced silently.
 */
enum weir_on_full {
    WEIR_EVICT = 0,    /* the new key enters; of the eight, the one that has taken the smallest
                          share of its quota is forgotten, and counted. Of equal shares the one
                          that is as good as new first; with weir_throttle() time alone counts */
    WEIR_DENY_NEW = 1, /* DENY with WEIR_FLAG_FULL; no key is forgotten */
    WEIR_ALLOW_NEW = 2 /* ALLOW with WEIR_FLAG_FULL, not charged; no key is forgotten */
};

enum weir_hash {
    WEIR_SIPHASH = 0, /* SipHash-1-3-128, randomly keyed: for keys that strangers choose */
    WEIR_XXH3 = 1     /* XXH3-128 with a random secret: faster, for keys that you choose; not in
                         a library that was built without xxhash.h */
};

/* Where fixed_window's windows begin. */
enum weir_align {
    WEIR_ALIGN_CLOCK = 0, /* at multiples of the period since 1970 UTC, plus offset_ns */
    WEIR_ALIGN_KEY = 1    /* each key has an offset of its own: no common reset, no stampede */
};

/* options.flags */
#define WEIR_CHANGE 0x1u     /* file: if it holds other count/burst/queue/max_debt, change them */
#define WEIR_MUST_EXIST 0x2u /* file: open it, never make it */
#define WEIR_EXPLICIT_TIME 0x4u /* times are the caller's, from 0 on; the short forms are errors */
#define WEIR_PREFAULT 0x8u      /* private, shared: touch all memory now rather than on first use */
#define WEIR_HUGE_PAGES 0x10u   /* private, shared: ask the kernel for large pages */
#define WEIR_RECOVER 0x20u   /* file: if nobody else has it open, put it in order as after a boot */
#define WEIR_MORE_KEYS 0x40u /* file: one with more max_keys will do, up to 8 times as many */

/* options.max_debt: a key may owe nothing at all. */
#define WEIR_NO_DEBT UINT64_MAX

/*
 * A source of Unix time in nanoseconds. Called from any thread, inside the
 * calls that take no time. Must not call the limiter.
 */
typedef uint64_t (*weir_clock_fn)(void *arg);

/*
 * How to make a limiter. Start with WEIR_OPTIONS_INIT, set what you need; zero
 * means the default. The struct may grow at its end: `size` tells the library
 * which fields the caller knows.
 */
struct weir_options {
    size_t size;         /* sizeof(struct weir_options), set by WEIR_OPTIONS_INIT */
    int algorithm;       /* enum weir_algorithm; required */
    int memory;          /* enum weir_memory */
    uint64_t count;      /* units per period; required, at least 1 */
    uint64_t period_ns;  /* required: 1 us to 100 years. Buckets: count/period at most 1e9 per s
                            (above 1.28e7 up to 0.8 % too strict), and burst + max_debt must
                            refill within 36 years (above 400,000 per s fewer, down to 1.1).
                            Windows: count + max_debt fit what 64 bits leave beside the index
                            of a window in 100 years: below 2^32 at 1 s, 2^48 at a day; for
                            sliding_window half the bits: 65,535 at 1 s, 16,777,215 at a day */
    uint64_t burst;      /* token_bucket: the most at once. 0: count. Else an error */
    uint64_t queue;      /* leaky_bucket: places behind the one being served. Else an error */
    uint64_t max_keys;   /* keys in use at once that are never forgotten. 0: 100,000.
                            A table has 28 % more slots, and at least 128 */
    uint64_t max_debt;   /* units a key may owe beyond its quota by penalties, settlements and
                            waiting. 0: as much as its quota; WEIR_NO_DEBT: nothing.
                            sliding_log holds no debt */
    int on_full;         /* enum weir_on_full */
    int hash;            /* enum weir_hash */
    int align;           /* enum weir_align; fixed_window */
    unsigned flags;      /* WEIR_CHANGE, ... */
    uint64_t offset_ns;  /* window algorithms: begin this much after multiples of the period;
                            less than the period */
    const char *path;    /* WEIR_FILE: where. Copied */
    weir_clock_fn clock; /* the clock of the short forms; NULL: the system's */
    void *clock_arg;
    uint64_t max_blocks; /* keys that can be blocked at once, 32 bytes each. 0: max_keys / 128, at
                            least 64 */
};

#define WEIR_OPTIONS_INIT                                                                          \
    {                                                                                              \
        sizeof(struct weir_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0    \
    }

/* A limiter: one limit and the state of its keys. */
struct weir;

/*
 * Makes a limiter, or opens the one in options->path. A file is made aside and
 * linked into place complete, mode 0600; its space is allocated, so that a full
 * disk is an error here and not a crash later. (On a file system that cannot make
 * files without a name, without /proc, and when a file of weir 0.1 is converted, a kill
 * at that moment leaves a hidden .weir-XXXXXX.) A
 * file that belongs to another user, or that group or others may use, is refused.
 * Processes that open one file must agree on the parameters, or ask for the change
 * with WEIR_CHANGE (count, burst, queue, max_debt; the rest is fixed with the
 * file). Opening waits for another process that is putting a file of an earlier
 * boot in order, at most about a second after that process has died.
 *
 * On success *w is the caller's, to be ended with weir_close(). On failure *w
 * is NULL, nothing has changed, and *error (may be NULL) says why.
 *
 * WEIR_EINVAL (a field that makes no sense), WEIR_ERATE, WEIR_EQUOTA, WEIR_ENOMEM, WEIR_ENOSPC,
 * WEIR_EIO, WEIR_ENOENT (WEIR_MUST_EXIST), WEIR_EACCES, WEIR_EVERSION, WEIR_EDAMAGED,
 * WEIR_EMISMATCH, WEIR_ETIME (the file's time line has run out, or the clock is wrong), WEIR_ECPU,
 * WEIR_ENOTSUP (WEIR_XXH3 in a library that was built without xxhash.h).
 */
WEIR_API int weir_open(struct weir **w, const struct weir_options *options,
                       struct weir_error *error);

/*
 * Ends a limiter. Private and shared memory go with the last process that has
 * it; a file stays. NULL is allowed. No other call may be under way in this
 * process.
 */
WEIR_API void weir_close(struct weir *w);

/*
 * Changes count and burst (leaky_bucket: queue) of a live limiter, for every
 * process that shares it, at once. Keys keep their state (a bucket's is the time
 * until it is full: 3 of 5 used are 6 of 10 used): a key gains at most
 * one extra burst, and is locked out at most 1 s plus the new time to full, debt
 * included. A default max_debt follows the quota. burst_or_queue is 0 for the
 * windows and the log; 0 for token_bucket: count.
 * sliding_log cannot grow beyond the count that it was made with, nor a bucket
 * to a rate that its time unit cannot express: WEIR_EQUOTA, WEIR_ERATE.
 *
 * WEIR_EINVAL, WEIR_ERATE, WEIR_EQUOTA; then nothing has changed.
 */
WEIR_API int weir_change(struct weir *w, uint64_t count, uint64_t burst_or_queue,
                         struct weir_error *error);

/* What weir_change() would return now; changes nothing. */
WEIR_API int weir_change_check(struct weir *w, uint64_t count, uint64_t burst_or_queue,
                               struct weir_error *error);

/* The limiter's own time now. WEIR_EINVAL with WEIR_EXPLICIT_TIME. */
WEIR_API int weir_now(struct weir *w, uint64_t *now_ns);

/* Bytes of memory or file that options would take; WEIR_E... as weir_open(). */
WEIR_API int weir_size(const struct weir_options *options, uint64_t *bytes,
                       struct weir_error *error);

/* The name of an algorithm ("token_bucket"), NULL if there is none; and back, 0 if unknown. */
WEIR_API const char *weir_algorithm_name(int algorithm);
WEIR_API int weir_algorithm_by_name(const char *name);

/* ---- asking ------------------------------------------------------------ */

/*
 * No verdict is 0: a call that fails leaves *answer as it was, so an answer that the
 * caller zeroed allows nothing. Of two verdicts the larger one binds.
 */
enum weir_verdict {
    WEIR_ALLOW = 1,
    WEIR_DENY = 2, /* not now: retry after retry_after_ns */
    WEIR_NEVER = 3 /* this cost can never fit */
};

#define WEIR_FLAG_FULL 0x1u     /* the table was full; on_full decided. ALLOW: without a charge */
#define WEIR_FLAG_BLOCKED 0x2u  /* the key is blocked; retry_after_ns lasts at least as long */
#define WEIR_FLAG_SPURIOUS 0x4u /* several limits: denied only because of a race; was rolled back */

/*
 * The answer, always complete.
 * With no other traffic on the key, the same call is denied one nanosecond
 * before retry_after_ns and allowed at it. (With WEIR_FLAG_FULL it is an estimate,
 * made from other keys.)
 */
struct weir_answer {
    int verdict;             /* enum weir_verdict */
    unsigned flags;          /* WEIR_FLAG_... */
    uint64_t quota;          /* the most that can ever be taken at once */
    uint64_t remaining;      /* the most that could be taken right after this answer */
    uint64_t granted;        /* units charged by this call. UP_TO: units that may be used; with
                                WEIR_FLAG_FULL none of them was charged, so refund none */
    uint64_t retry_after_ns; /* ALLOW: 0; DENY: at least 1; NEVER, endless block: WEIR_FOREVER */
    uint64_t reset_after_ns; /* until the key is as good as new */
    uint64_t delay_ns;       /* ALLOW: act this much later (leaky_bucket, max_wait) */
    uint32_t limit;          /* weir_check_several(): index of the limit that bound */
    uint32_t reserved;
};

/* A key that was hashed once, for callers of weir_ask() that ask often. Belongs to one limiter. */
struct weir_key {
    uint64_t word[3];
};

/* struct weir_question.mode */
enum weir_mode {
    WEIR_CHECK = 0, /* take all of cost or nothing */
    WEIR_PEEK = 1,  /* what would CHECK say; cost may be 0; granted is 0. Changes nothing, except a
                       state from a far future (see TIME). Does not foresee whether a full table
                       would have room for a new key */
    WEIR_UP_TO = 2  /* take as much of cost as there is; DENY only if there is none */
};

/* One question. Zero what you do not use. */
struct weir_question {
    const void *key; /* the key's bytes, or ... */
    size_t key_len;
    const struct weir_key *hashed; /* ... the key hashed before; wins over key */
    uint64_t cost;
    uint64_t max_wait_ns; /* ALLOW with a delay up to this, charging the future, at most max_debt.
                             token_bucket and leaky_bucket; else WEIR_ENOTSUP. 0: token_bucket does
                             not wait; leaky_bucket waits as long as its queue, else max_wait_ns
                             takes the place of the queue's length */
    int mode;             /* enum weir_mode */
    unsigned reserved;    /* 0 */
};

/*
 * May this key take `cost` units now? Takes them if so. A denied call changes
 * nothing, except a state from a far future (see TIME). The short form reads the
 * limiter's clock.
 *
 * 0; WEIR_EINVAL (NULL; the short form with WEIR_EXPLICIT_TIME), WEIR_EKEY, WEIR_ECOST, WEIR_ETIME.
 */
WEIR_API int weir_check(struct weir *w, const void *key, size_t key_len, uint64_t cost,
                        struct weir_answer *answer);
WEIR_API int weir_check_at(struct weir *w, const void *key, size_t key_len, uint64_t cost,
                           uint64_t now_ns, struct weir_answer *answer);

/*
 * The same with all that a question can carry: peek, up-to, max_wait, a hashed
 * key. Also WEIR_EINVAL (a mode that there is not, reserved set, UP_TO with
 * max_wait), WEIR_ENOTSUP, WEIR_ESTALE.
 */
WEIR_API int weir_ask(struct weir *w, const struct weir_question *ask, struct weir_answer *answer);
WEIR_API int weir_ask_at(struct weir *w, const struct weir_question *ask, uint64_t now_ns,
                         struct weir_answer *answer);

/*
 * Many questions to one limiter, decided in order as if asked one by one, in about
 * a quarter of the time where the table is larger than the caches: memory is
 * fetched for 32 of them at once. Every
 * question is validated first; on an error nothing has been decided and,
 * if a question was bad, *bad (may be NULL) is the index of the first.
 */
WEIR_API int weir_ask_batch(struct weir *w, const struct weir_question *asks, size_t n,
                            struct weir_answer *answers, size_t *bad);
WEIR_API int weir_ask_batch_at(struct weir *w, const struct weir_question *asks, size_t n,
                               uint64_t now_ns, struct weir_answer *answers, size_t *bad);

/* The most limits that one weir_check_several() takes. */
#define WEIR_SEVERAL_MAX 32

struct weir_part {
    struct weir *limiter;
    struct weir_question
        ask; /* mode WEIR_CHECK or WEIR_PEEK, the same in all parts; max_wait_ns 0 */
};

/*
 * Several limits at once, all or nothing: every part is allowed and charged,
 * or none is charged. The answer is that of the part that bound, named by
 * answer->limit: on deny NEVER first, then the largest retry; on allow the
 * smallest remaining; ties by order. On allow delay_ns is the longest of any, and
 * WEIR_FLAG_FULL says that a full table let some part through uncharged. Two parts
 * may name the same limiter, with different keys. Under a race another caller's
 * call may be denied although it would have fitted (WEIR_FLAG_SPURIOUS, counted);
 * nothing is ever admitted too much. A process killed inside may leave charges that nobody used.
 * The short form reads the first part's clock.
 *
 * As weir_ask(), and WEIR_EINVAL: no parts or too many, different modes, a
 * max_wait, or the same key of the same limiter twice.
 */
WEIR_API int weir_check_several(const struct weir_part *parts, size_t n,
                                struct weir_answer *answer);
WEIR_API int weir_check_several_at(const struct weir_part *parts, size_t n, uint64_t now_ns,
                                   struct weir_answer *answer);

/*
 * A token bucket whose numbers come with the question: one unit per interval_ns,
 * burst units at once. A key keeps its state when they change. For protocols
 * that carry the limit in each call; w is a token_bucket limiter that lends its
 * table, and whose own burst takes longest to refill: burst * interval_ns must
 * not exceed that time.
 *
 * As weir_ask(), and WEIR_ERATE: interval or burst is 0; WEIR_EQUOTA: too long
 * to refill; WEIR_ENOTSUP: not a token_bucket.
 */
WEIR_API int weir_throttle(struct weir *w, uint64_t interval_ns, uint64_t burst,
                           const struct weir_question *ask, struct weir_answer *answer);
WEIR_API int weir_throttle_at(struct weir *w, uint64_t interval_ns, uint64_t burst,
                              const struct weir_question *ask, uint64_t now_ns,
                              struct weir_answer *answer);

/* Hashes a key for w. 0; WEIR_EINVAL, WEIR_EKEY. Using it with another limiter: WEIR_ESTALE. */
WEIR_API int weir_key_init(const struct weir *w, const void *key, size_t key_len,
                           struct weir_key *out);

/*
 * Begins to fetch the memory that a question about this key will need, and does not wait for it:
 * for callers that know several keys before they ask. Only a hint; a key of another limiter, or
 * NULL, does nothing. weir_ask_batch() does it by itself.
 */
WEIR_API void weir_key_prefetch(const struct weir *w, const struct weir_key *key);

/* ---- other verbs ------------------------------------------------------- */

/*
 * Gives units back that were charged at charged_ns. Never beyond a fresh key.
 *
 * token_bucket: in full, however late. If the bucket was full at some time since
 * the charge, the refund adds at most min(units, refill since the charge, units
 * others took since); in every interval that contains the charge the limit's bound
 * holds. charged_ns does not matter.
 * leaky_bucket: only while their place is the last of the queue; otherwise nothing,
 * because calls that follow have been told their turns. charged_ns says which place
 * it is, by its end: now_ns + reset_after_ns of the answer that gave it.
 * Windows: into a window that has passed it does nothing.
 * sliding_log: the exact inverse if the newest `units` were charged at charged_ns;
 * otherwise the oldest go, which never admits too much (with clocks that differ, an
 * exact inverse may admit up to count - 1 units within that difference).
 *
 * The short form takes charged_ns = now. *answer (may be NULL) is a peek of 1
 * afterwards.
 *
 * Here and below: WEIR_EINVAL, WEIR_EKEY, WEIR_ECOST, WEIR_ETIME.
 */
WEIR_API int weir_refund(struct weir *w, const void *key, size_t key_len, uint64_t units,
                         struct weir_answer *answer);
WEIR_API int weir_refund_at(struct weir *w, const void *key, size_t key_len, uint64_t units,
                            uint64_t charged_ns, uint64_t now_ns, struct weir_answer *answer);

/*
 * Charges units whether they fit or not, into debt up to max_debt. *answer (may
 * be NULL) is a peek of 1 afterwards, with granted = what was charged, perhaps 0.
 * WEIR_EFULL if the key is new and on_full refuses it.
 */
WEIR_API int weir_penalize(struct weir *w, const void *key, size_t key_len, uint64_t units,
                           struct weir_answer *answer);
WEIR_API int weir_penalize_at(struct weir *w, const void *key, size_t key_len, uint64_t units,
                              uint64_t now_ns, struct weir_answer *answer);

/*
 * Denies the key until until_ns (WEIR_FOREVER: until unblocked), whatever its
 * quota; the quota's state is kept. Blocks have a table of their own: they take no
 * key's place, and none is ever forgotten while it lasts. WEIR_EFULL if max_blocks
 * are in force, WEIR_ETIME if until_ns is not after now. A second block replaces the
 * end of the first. While any block lasts, decisions look it up, which takes them a little longer.
 * unblock: 1 if there was an entry (perhaps one that had run out), 0 if not.
 */
WEIR_API int weir_block(struct weir *w, const void *key, size_t key_len, uint64_t until_ns);
WEIR_API int weir_block_at(struct weir *w, const void *key, size_t key_len, uint64_t until_ns,
                           uint64_t now_ns);
WEIR_API int weir_unblock(struct weir *w, const void *key, size_t key_len);

/* Forgets the key's state (not its block). 1 if there was an entry, 0 if not. */
WEIR_API int weir_reset(struct weir *w, const void *key, size_t key_len);

/* ---- reserve, then settle ---------------------------------------------- */

/*
 * Units taken in advance, for work whose true cost is known later. The handle
 * is self-contained: it may be copied and sent to another process that has the
 * same limiter open. Settle or cancel it once.
 */
struct weir_reservation {
    uint64_t word[8];
};

/*
 * Takes `estimate` units like weir_check() and, on ALLOW, fills *reservation.
 * It can be settled until ttl_ns (at least 1) from now; after that the estimate
 * stays charged. On DENY and NEVER *reservation is one that cannot be settled.
 * WEIR_EINVAL, WEIR_EKEY, WEIR_ECOST, WEIR_ETIME.
 */
WEIR_API int weir_reserve(struct weir *w, const void *key, size_t key_len, uint64_t estimate,
                          uint64_t ttl_ns, struct weir_reservation *reservation,
                          struct weir_answer *answer);
WEIR_API int weir_reserve_at(struct weir *w, const void *key, size_t key_len, uint64_t estimate,
                             uint64_t ttl_ns, uint64_t now_ns, struct weir_reservation *reservation,
                             struct weir_answer *answer);

/*
 * Replaces the estimate by the actual cost: gives the rest back as weir_refund_at()
 * does (the handle knows the charge, and the rate that it was made at), or charges
 * what is missing into debt (answer->granted: what was charged, at most
 * max_debt). Cancel is settling with 0. The handle is used up, except after an
 * error. WEIR_EEXPIRED: too late, the estimate stays. WEIR_ESTALE: another
 * limiter's, or already settled. WEIR_EFULL: the key was forgotten meanwhile and
 * there is no room to charge it. WEIR_EINVAL, WEIR_ETIME. *answer may be NULL.
 */
WEIR_API int weir_settle(struct weir *w, struct weir_reservation *reservation, uint64_t actual,
                         struct weir_answer *answer);
WEIR_API int weir_settle_at(struct weir *w, struct weir_reservation *reservation, uint64_t actual,
                            uint64_t now_ns, struct weir_answer *answer);
WEIR_API int weir_cancel(struct weir *w, struct weir_reservation *reservation,
                         struct weir_answer *answer);
WEIR_API int weir_cancel_at(struct weir *w, struct weir_reservation *reservation, uint64_t now_ns,
                            struct weir_answer *answer);

/* ---- looking after it -------------------------------------------------- */

/*
 * Counted in this process through this limiter (a forked child goes on from its
 * parent's numbers), except the last four, which are the table's. Each call
 * counts once; peeks do not count. Of several limits an allowed call counts on
 * each, a denied one on the limiter that bound.
 */
struct weir_stats {
    size_t size; /* in: sizeof(struct weir_stats) */
    uint64_t allowed;
    uint64_t denied; /* blocked and full ones included */
    uint64_t never;
    uint64_t blocked;      /* denied because of a block */
    uint64_t spurious;     /* several limits: denied and rolled back after a lost race */
    uint64_t reclaimed;    /* slots whose key owed nothing any more and that a new key took over */
    uint64_t evicted;      /* keys in use that were forgotten (on_full evict) */
    uint64_t full_denied;  /* new keys refused (on_full deny), penalties too */
    uint64_t full_allowed; /* new keys let through without a charge (on_full allow) */
    uint64_t moved;        /* keys moved to make room */
    uint64_t keys;         /* resident keys; may be one too low per killed process */
    uint64_t capacity;     /* slots */
    uint64_t blocks;       /* blocks, those that are over and not yet replaced included */
    uint64_t bytes;        /* memory or file; what the threads take not included */
};

/* WEIR_EINVAL: NULL, or a size below that of the first field or above what this library knows. */
WEIR_API int weir_stats_read(struct weir *w, struct weir_stats *stats);

/*
 * Visits up to `lines` lines of four slots (the whole table has stats.capacity / 4)
 * and frees those whose key is as good as new; states from a far future are pulled
 * down (see TIME). Never needed for correctness: new keys reuse such slots anyway. Call it now and then if `keys` should follow the
 * live ones. Returns the slots freed, or a WEIR_E...
 */
WEIR_API int64_t weir_sweep(struct weir *w, uint64_t lines);
WEIR_API int64_t weir_sweep_at(struct weir *w, uint64_t lines, uint64_t now_ns);

/* ---- replay ------------------------------------------------------------ */

/*
 * The classic stepped bucket over explicit integer times, for replaying command
 * streams: capacity tokens, refilled by floor(elapsed * capacity / window). Not
 * a limiter: it grows with its clients, has no clock and is for one thread.
 * Capacity 0 denies everything, window 0 never refills, a decreasing time
 * refills nothing.
 */
struct weir_replayer;
WEIR_API int weir_replay_open(struct weir_replayer **r, int64_t capacity, int64_t window,
                              struct weir_error *error);
/* 1 allow, 0 deny; WEIR_EINVAL, WEIR_EKEY, WEIR_ENOMEM. */
WEIR_API int weir_replay(struct weir_replayer *r, const void *client, size_t client_len,
                         int64_t time);
WEIR_API uint64_t weir_replay_clients(const struct weir_replayer *r);
WEIR_API void weir_replay_close(struct weir_replayer *r);

#ifdef __cplusplus
}
#endif

#endif
