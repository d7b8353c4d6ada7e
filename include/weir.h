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
 * THE DECISION. You ask with a limiter, a key (1 to 4096 bytes, any bytes), a cost in units and a
 * time; you get one struct weir_answer. Allow and deny are data. A negative return value means that
 * no decision was made and nothing was changed; weir_strerror() names the reason. A key that is
 * made of several parts should contain their lengths ("5:alice3:get"). Otherwise two different
 * lists of parts can make the same key.
 *
 * TIME is Unix time in nanoseconds, as a uint64_t. Every call that decides has a twin that ends in
 * _at and takes the time. The short form reads the limiter's own clock: Unix time when the limiter
 * was made (or its file was first opened in this boot) plus the time since then by CLOCK_BOOTTIME,
 * so that it does not change when the wall clock is set. (A machine may start with its wall clock
 * not yet set, in 1970. Then the limiter's time begins at the end of 2025, and continues from the
 * wall clock once that is set. From then on windows are UTC again, and debts, blocks and
 * reservations are treated as if the time in between had passed.)
 *
 * The clocks of threads and processes may differ by up to a second without admitting anything
 * extra. A call with an older time never moves a state back. After a larger step back, a key whose
 * state is ahead of the new time is denied for at most its time to full, debt included, and gains
 * at most one extra burst. The first call that meets such a state pulls it down to the most that it
 * could be now; a log is forgotten. Such a call is a check or peek of the key, a new key that looks
 * for a place, or a sweep.
 *
 * A limiter's time line begins a day before it was made (with WEIR_EXPLICIT_TIME, at 0; with
 * WEIR_MONTH, at offset_ns after 1970) and lasts decades (WEIR_MONTH: to the year 2170), or at
 * least 3.4 years for buckets above 400,000 per second. Times outside are
 * WEIR_ETIME. On x86-64, if the kernel itself keeps time by the processor's counter, the limiter's
 * own clock reads that counter too, and CLOCK_BOOTTIME once in a millisecond. It is within 25 us of
 * CLOCK_BOOTTIME (1 ms if the counter jumps) and never goes back within a thread.
 *
 * MEMORY is fixed when the limiter is made: about 20.5 bytes for each of max_keys, and for
 * sliding_log 10.24 * (count + 1) more; 32 bytes for each of max_blocks; 256 bytes for each thread
 * that uses the limiter (up to 512 of them). Nothing is allocated afterwards. Keys are not stored,
 * only a keyed 128-bit hash of each.
 *
 * THREADS. Every function may be called from any thread at any time, with two exceptions:
 * weir_close() must be the last call on its limiter, and no function may be called from a signal
 * handler. There is no global lock. A decision on a known key takes no lock at all, except with
 * sliding_log and WEIR_UP_TO. New keys and the other verbs take one of many locks, called stripes,
 * and wait for its holder. A process that is stopped inside a call (SIGSTOP, a debugger) holds its
 * stripe until it continues or is killed; if it is stopped in weir_open(), other openers of its
 * file wait. A thread that ends inside a call (pthread_exit, cancellation) releases what it holds.
 *
 * PROCESSES AND FORK.
 *   private memory   A forked child gets its own copy, including the counts. Parent and child limit
 *                    separately from then on. This is safe with threads.
 *   shared memory    Parent and children use it together, if it was made before fork().
 *   file             Every process that opens the path shares the limit; so do forked children. The
 *                    file survives the processes, a kill at any instruction, a copy, and a reboot.
 *                    To restore one from a backup, move it into place while no process has it open.
 *
 * Processes in different containers (PID and time namespaces) may share a file, and so may programs
 * with different C libraries. If a process is killed inside a call, the next caller that waits for
 * its stripe gets it after 20 ms. This needs record locks of the kernel (fcntl), which end when the
 * process closes any descriptor of the file. So a process that has the file open as a limiter must
 * not open and close it in another way. A child that closes all its descriptors must keep those of
 * the library, for shared memory as well as for files: without them, other processes cannot tell
 * whether the child lives, and may wait for ever for a stripe that it held when it died. Calls of
 * weir_open() and weir_close() for files take turns within a process.
 *
 * VERSIONS. Before 1.0 structs may grow with a new minor version. Recompile your program then.
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
#define WEIR_VERSION_MINOR 2
#define WEIR_VERSION_PATCH 0

/* Durations in nanoseconds, the unit of every time in this library. */
#define WEIR_MICROSECOND UINT64_C(1000)
#define WEIR_MILLISECOND UINT64_C(1000000)
#define WEIR_SECOND UINT64_C(1000000000)
#define WEIR_MINUTE (60 * WEIR_SECOND)
#define WEIR_HOUR (60 * WEIR_MINUTE)
#define WEIR_DAY (24 * WEIR_HOUR)

/* As the period of a fixed_window: a calendar month in UTC. The value is the mean length of one. */
#define WEIR_MONTH (UINT64_C(2629746) * WEIR_SECOND)

/* No time at all: retry_after_ns of NEVER, or the end of a block that does not end. */
#define WEIR_FOREVER UINT64_MAX

/* A key has 1 to this many bytes. */
#define WEIR_KEY_MAX 4096

/* The errors: code, value, text. weir_strerror() and weir_errname() are made from this list. */
#define WEIR_ERRORS(X)                                                                             \
    X(WEIR_EINVAL, -1, "invalid argument")                                                         \
    X(WEIR_EKEY, -2, "a key must have 1 to 4096 bytes")                                            \
    X(WEIR_ECOST, -3, "a cost must be at least 1")                                                 \
    X(WEIR_ETIME, -4, "the time is outside the time line, or a block ends before it begins")       \
    X(WEIR_ERATE, -5, "the rate is 0, or the algorithm cannot express it")                         \
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

/* A range of bytes that the caller or another object owns: not terminated, and any bytes. */
struct weir_text {
    const char *at;
    size_t len;
};

/* Says in words why a limiter could not be opened or changed. Success leaves it unchanged. */
struct weir_error {
    int code;       /* one of enum weir_errno */
    char text[248]; /* what was found and what was expected; always terminated */
};

/* Returns the text of an error code. It is a constant. An unknown code has a text that says so. */
WEIR_API const char *weir_strerror(int code);

/* Returns the name of an error code, such as "WEIR_EKEY", or "WEIR_E?" for an unknown code. */
WEIR_API const char *weir_errname(int code);

/* Returns the version of the library, such as "0.2.0". */
WEIR_API const char *weir_version(void);

/* ---- limits ------------------------------------------------------------ */

/*
 * The algorithms. docs/explanation/algorithms.md has formulas, bounds and pictures. "Any interval"
 * or "any period" need not be aligned.
 */
enum weir_algorithm {
    WEIR_TOKEN_BUCKET = 1,   /* GCRA: at most burst + rate*t in any interval t */
    WEIR_LEAKY_BUCKET = 2,   /* a queue that is served at the rate; answers carry a delay. At most
                                1 + undelayed + rate*t are released in any interval t */
    WEIR_FIXED_WINDOW = 3,   /* count per UTC-aligned period, or calendar month */
    WEIR_SLIDING_WINDOW = 4, /* two counters; at most 2*count - 1 in any period */
    WEIR_SLIDING_LOG = 5     /* at most count (to 65,535) in any period, exactly */
};

/* Where the state of a limiter is kept; see "PROCESSES AND FORK" above. */
enum weir_memory {
    WEIR_PRIVATE = 0,
    WEIR_SHARED = 1, /* anonymous, inherited by fork() */
    WEIR_FILE = 2    /* options.path */
};

/*
 * What happens to a new key when its eight places in the table are all taken by keys in use. A
 * fresh key (one that answers as a new one would) is always replaced silently.
 */
enum weir_on_full {
    WEIR_EVICT = 0,    /* the new key enters. Of the eight, the one that has taken the smallest
                          share of its quota is forgotten, and counted. If shares are equal, the
                          one that will be fresh first is. Keys of weir_throttle() are compared by
                          that time alone */
    WEIR_DENY_NEW = 1, /* DENY with WEIR_FLAG_FULL; no key is forgotten */
    WEIR_ALLOW_NEW = 2 /* ALLOW with WEIR_FLAG_FULL, not charged; no key is forgotten */
};

enum weir_hash {
    WEIR_SIPHASH = 0, /* SipHash-1-3-128, randomly keyed: for keys that strangers choose */
    WEIR_XXH3 = 1     /* XXH3-128 with a random secret: faster, for keys that you choose. A library
                         that was built without xxhash.h does not have it */
};

/*
 * Where the windows of fixed_window begin. Windows of a week or several weeks begin on a Monday,
 * 00:00 UTC, those of WEIR_MONTH on the first of the month; others at multiples of the period since
 * 1970 UTC. options.offset_ns moves all of them.
 */
enum weir_align {
    WEIR_ALIGN_CLOCK = 0, /* as above */
    WEIR_ALIGN_KEY = 1    /* each key has its own offset, so that keys do not all reset at once */
};

/* options.flags, each with the kinds of memory that it is for. */
#define WEIR_CHANGE 0x1u /* file: if count, burst, queue, undelayed or max_debt differ, change */
#define WEIR_MUST_EXIST 0x2u    /* file: open it, never make it */
#define WEIR_EXPLICIT_TIME 0x4u /* all: the caller gives all times, from 0 on; no short forms */
#define WEIR_PREFAULT 0x8u      /* private, shared: touch all memory now rather than on first use */
#define WEIR_HUGE_PAGES 0x10u   /* private, shared: ask the kernel for large pages */
#define WEIR_RECOVER 0x20u   /* file: if no other process has it open, repair it as after a boot */
#define WEIR_MORE_KEYS 0x40u /* file: accept one with more max_keys, up to 8 times as many */

/* options.max_debt: a key may owe nothing. */
#define WEIR_NO_DEBT UINT64_MAX

/*
 * A source of Unix time in nanoseconds. It is called from any thread, inside the short forms, and
 * must not call the limiter.
 */
typedef uint64_t (*weir_clock_fn)(void *arg);

/*
 * How to make a limiter. Start with WEIR_OPTIONS_INIT and set what you need; 0 is the default. The
 * struct may grow at its end: `size` tells the library which fields the caller knows.
 */
struct weir_options {
    size_t size;         /* sizeof(struct weir_options), set by WEIR_OPTIONS_INIT */
    int algorithm;       /* enum weir_algorithm; required */
    int memory;          /* enum weir_memory */
    uint64_t count;      /* units per period; required, at least 1 */
    uint64_t period_ns;  /* required: 1 us to 100 years, or for fixed_window WEIR_MONTH.
                            Buckets: count/period is at most 1e9 per
                            s (above 1.28e7 up to 0.8 % too strict), and burst + max_debt must
                            refill within 36 years (above 400,000 per s fewer, down to 1.1).
                            Windows: count + max_debt must fit in the bits of 64 that the index
                            of a window in 100 years leaves: below 2^32 at 1 s, 2^48 at a day;
                            sliding_window has half the bits: 65,535 at 1 s, 16,777,215 at a
                            day */
    uint64_t burst;      /* token_bucket only: the most units at once. 0 means count */
    uint64_t queue;      /* leaky_bucket only: places after the one being served */
    uint64_t max_keys;   /* keys in use at once that are never forgotten. 0 means 100,000.
                            A table has 28 % more slots, and at least 128 */
    uint64_t max_debt;   /* units that a key may owe beyond its quota by penalties, settlements
                            and waits. 0 means as much as its quota; WEIR_NO_DEBT, none.
                            sliding_log holds no debt */
    int on_full;         /* enum weir_on_full */
    int hash;            /* enum weir_hash */
    int align;           /* enum weir_align; fixed_window only */
    unsigned flags;      /* WEIR_CHANGE, ... */
    uint64_t offset_ns;  /* windows begin this much later (see enum weir_align); less than the
                            period. Window algorithms only */
    const char *path;    /* of the file, for WEIR_FILE. It is copied */
    weir_clock_fn clock; /* the clock of the short forms; NULL means the system's */
    void *clock_arg;
    uint64_t max_blocks; /* keys that can be blocked at once, 32 bytes each. 0 means max_keys / 128,
                            at least 64 */
    uint64_t undelayed;  /* leaky_bucket only: units of the queue that need not wait, at most queue.
                            The delay is shorter by their time: at most 1 + undelayed + rate*t are
                            released in any interval t */
};

/* The initial value of a struct weir_options. */
#define WEIR_OPTIONS_INIT                                                                          \
    {                                                                                              \
        sizeof(struct weir_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, 0, 0 \
    }

/* A limiter: one limit and the state of its keys. */
struct weir;

/*
 * Makes a limiter, or opens the one in options->path.
 *
 * A new file gets its name when it is complete, with mode 0600. Its space is allocated, so that a
 * full disk is an error here and not a crash later. (A kill while the file is made may leave a
 * hidden .weir-XXXXXX, on a file system that cannot make files without a name and without /proc.)
 * A file that belongs to another user, or that group or others may use, is refused, and so is a
 * file whose format is that of another version. Processes that open one file must agree on the
 * parameters, or ask for the change with WEIR_CHANGE (count, burst, queue and max_debt; the others
 * are fixed with the file). If another process is putting a file of an earlier boot in order,
 * opening waits for it, and for at most about a second after that process has died.
 *
 * On success the caller owns *w and ends it with weir_close(). On failure *w is NULL, nothing has
 * changed, and *error (may be NULL) says why.
 *
 * Errors: WEIR_EINVAL (a field that makes no sense), WEIR_ERATE, WEIR_EQUOTA, WEIR_ENOMEM,
 * WEIR_ENOSPC, WEIR_EIO, WEIR_ENOENT (WEIR_MUST_EXIST), WEIR_EACCES, WEIR_EVERSION, WEIR_EDAMAGED,
 * WEIR_EMISMATCH, WEIR_ETIME (the file's time line has run out, or the clock is wrong), WEIR_ECPU,
 * WEIR_ENOTSUP (WEIR_XXH3 in a library that was built without xxhash.h).
 */
WEIR_API int weir_open(struct weir **w, const struct weir_options *options,
                       struct weir_error *error);

/*
 * Ends a limiter. Private and shared memory are freed with the last process that has them; a file
 * stays. NULL is allowed. No other call on the limiter may be under way in this process.
 */
WEIR_API void weir_close(struct weir *w);

/*
 * Changes count and burst (leaky_bucket: queue) of a live limiter, at once and for every process
 * that shares it. Keys keep their state. (That of a bucket is the time until it is full: 3 of 5
 * used become 6 of 10 used.) A key gains at most one extra burst, and is locked out for at most 1 s
 * plus the new time to full, debt included. A default max_debt follows the quota. burst_or_queue
 * must be 0 for the windows and the log; 0 means count for token_bucket.
 *
 * Returns 0, WEIR_EINVAL, WEIR_ERATE or WEIR_EQUOTA. An error changes nothing. sliding_log cannot
 * grow beyond the count that it was made with (WEIR_EQUOTA), nor a bucket to a rate that its time
 * unit cannot express (WEIR_ERATE).
 */
WEIR_API int weir_change(struct weir *w, uint64_t count, uint64_t burst_or_queue,
                         struct weir_error *error);

/* Returns what weir_change() would return now. Changes nothing. */
WEIR_API int weir_change_check(struct weir *w, uint64_t count, uint64_t burst_or_queue,
                               struct weir_error *error);

/* Reads the limiter's own clock. WEIR_EINVAL with WEIR_EXPLICIT_TIME. */
WEIR_API int weir_now(struct weir *w, uint64_t *now_ns);

/* Computes how many bytes of memory or file the options would take. Errors as weir_open(). */
WEIR_API int weir_size(const struct weir_options *options, uint64_t *bytes,
                       struct weir_error *error);

/* Return the name of an algorithm ("token_bucket") or NULL, and the algorithm of a name or 0. */
WEIR_API const char *weir_algorithm_name(int algorithm);
WEIR_API int weir_algorithm_by_name(const char *name);

/* ---- asking ------------------------------------------------------------ */

/*
 * No verdict is 0. A call that fails leaves *answer as it was, so an answer that the caller zeroed
 * allows nothing. Of two verdicts the larger one binds.
 */
enum weir_verdict {
    WEIR_ALLOW = 1,
    WEIR_DENY = 2, /* not now; retry after retry_after_ns */
    WEIR_NEVER = 3 /* this cost can never fit */
};

/* answer.flags: */
#define WEIR_FLAG_FULL 0x1u    /* the table was full and on_full decided; an ALLOW is not charged */
#define WEIR_FLAG_BLOCKED 0x2u /* the key is blocked; retry_after_ns lasts at least as long */
#define WEIR_FLAG_SPURIOUS 0x4u /* several limits: denied only because of a race, and rolled back */
#define WEIR_FLAG_BANNED 0x8u   /* with WEIR_FLAG_BLOCKED: the block is a ban, by weir_ban_at() */

/*
 * The answer. All fields are set. Without other traffic on the key, the same call is denied one
 * nanosecond before retry_after_ns has passed, and allowed when it has. (With WEIR_FLAG_FULL it is
 * an estimate from other keys.)
 */
struct weir_answer {
    int verdict;             /* enum weir_verdict */
    unsigned flags;          /* WEIR_FLAG_... */
    uint64_t quota;          /* the most that can ever be taken at once */
    uint64_t remaining;      /* the most that could be taken right after this answer */
    uint64_t granted;        /* units charged by this call. UP_TO: units that may be used. With
                                WEIR_FLAG_FULL none of them was charged, so refund none */
    uint64_t retry_after_ns; /* ALLOW: 0. DENY: at least 1. NEVER, endless block: WEIR_FOREVER */
    uint64_t reset_after_ns; /* until the key is fresh */
    uint64_t delay_ns;       /* ALLOW: wait this long before you act (leaky_bucket, max_wait) */
    uint32_t limit;          /* weir_check_several(): index of the limit that bound */
    uint32_t reserved;
};

/* A key that was hashed once, for callers that ask about it often. It belongs to one limiter. */
struct weir_key {
    uint64_t word[3];
};

/* struct weir_question.mode */
enum weir_mode {
    WEIR_CHECK = 0, /* take all of cost or nothing */
    WEIR_PEEK = 1, /* say what CHECK would say. cost may be 0; granted is 0. Changes nothing, except
                       a state from a far future (see TIME). Does not predict whether a full table
                       would have room for a new key */
    WEIR_UP_TO = 2 /* take as much of cost as remains; DENY only if nothing does */
};

/* One question. Set the fields that you do not use to 0. */
struct weir_question {
    const void *key; /* the bytes of the key */
    size_t key_len;
    const struct weir_key *hashed; /* or the key, hashed before; then `key` is ignored */
    uint64_t cost;
    uint64_t max_wait_ns; /* ALLOW with a delay up to this, charging the future, at most max_debt.
                             Only for token_bucket and leaky_bucket; others: WEIR_ENOTSUP. With 0,
                             token_bucket does not wait, and leaky_bucket waits as long as its
                             queue; otherwise this replaces the length of the queue */
    int mode;             /* enum weir_mode */
    unsigned flags;       /* 0 or WEIR_SHADOW */
};

/* struct weir_question.flags: the caller lets the request pass whatever the answer is. A denial is
 * counted in stats.shadow_denied instead of `denied` and `never`; nothing else differs. */
#define WEIR_SHADOW 0x1u

/*
 * Takes `cost` units from the key, if it has them. A denied call changes nothing, except a state
 * from a far future (see TIME). The short form reads the limiter's clock.
 *
 * Returns 0, WEIR_EINVAL (an argument is NULL, or the short form with WEIR_EXPLICIT_TIME),
 * WEIR_EKEY, WEIR_ECOST or WEIR_ETIME.
 */
WEIR_API int weir_check(struct weir *w, const void *key, size_t key_len, uint64_t cost,
                        struct weir_answer *answer);
WEIR_API int weir_check_at(struct weir *w, const void *key, size_t key_len, uint64_t cost,
                           uint64_t now_ns, struct weir_answer *answer);

/*
 * Does the same with all that a question can carry: peek, up-to, max_wait, a hashed key. Also
 * WEIR_EINVAL (an unknown mode or flag, UP_TO with max_wait), WEIR_ENOTSUP, WEIR_ESTALE.
 */
WEIR_API int weir_ask(struct weir *w, const struct weir_question *ask, struct weir_answer *answer);
WEIR_API int weir_ask_at(struct weir *w, const struct weir_question *ask, uint64_t now_ns,
                         struct weir_answer *answer);

/*
 * Decides many questions to one limiter, in order, as if they were asked one by one. Where the
 * table is larger than the caches, that takes about a quarter of the time, because memory is
 * fetched for 32 questions at once. Every question is validated first. After an error nothing has
 * been decided; if a question was bad, *bad (may be NULL) is the index of the first bad one.
 */
WEIR_API int weir_ask_batch(struct weir *w, const struct weir_question *asks, size_t n,
                            struct weir_answer *answers, size_t *bad);
WEIR_API int weir_ask_batch_at(struct weir *w, const struct weir_question *asks, size_t n,
                               uint64_t now_ns, struct weir_answer *answers, size_t *bad);

/* The most parts that weir_check_several() takes. */
#define WEIR_SEVERAL_MAX 32

/* A limiter and a question to it, one of several. */
struct weir_part {
    struct weir *limiter;
    struct weir_question ask; /* mode CHECK or PEEK, the same in all parts */
};

/*
 * Decides several limits at once, all or nothing: either every part is allowed and charged, or none
 * is charged. The answer is that of the part that binds, and answer->limit is its index. On deny,
 * that is a NEVER, or the part with the largest retry_after_ns; on allow, the one with the smallest
 * remaining; of equal ones, the first. On allow, delay_ns is the longest of any part, and
 * WEIR_FLAG_FULL says that a full table let some part through without a charge.
 *
 * max_wait_ns of a part says how long that limit may make the call wait: the call is allowed if
 * each part has its units in time, and waits for the slowest. All parts are charged now. So where a
 * call waits for another part, a limit may release in an interval t what it admits in t + the
 * longest wait.
 *
 * Two parts may name the same limiter with different keys. In a race, another caller's call may be
 * denied although it would have fitted (WEIR_FLAG_SPURIOUS, counted), but no limit ever admits too
 * much. If a process is killed inside this call, units may stay charged although no call was
 * allowed. The short form reads the clock of the first part's limiter.
 *
 * Errors as weir_ask(), and WEIR_EINVAL: no parts or too many, different modes, or the same key
 * of the same limiter twice.
 */
WEIR_API int weir_check_several(const struct weir_part *parts, size_t n,
                                struct weir_answer *answer);
WEIR_API int weir_check_several_at(const struct weir_part *parts, size_t n, uint64_t now_ns,
                                   struct weir_answer *answer);

/*
 * Decides by GCRA: a token bucket whose numbers come with the question, one unit per interval_ns
 * and burst units at once. A key keeps its state when they change. This is for protocols that carry
 * the limit in each call. w is a token_bucket limiter that provides the table, and the time that
 * its own burst takes to refill bounds burst * interval_ns.
 *
 * Errors as weir_ask(), and WEIR_ERATE: interval_ns or burst is 0; WEIR_EQUOTA: it takes too long
 * to refill; WEIR_ENOTSUP: w is not a token_bucket.
 */
WEIR_API int weir_throttle(struct weir *w, uint64_t interval_ns, uint64_t burst,
                           const struct weir_question *ask, struct weir_answer *answer);
WEIR_API int weir_throttle_at(struct weir *w, uint64_t interval_ns, uint64_t burst,
                              const struct weir_question *ask, uint64_t now_ns,
                              struct weir_answer *answer);

/* Hashes a key for w. Returns 0, WEIR_EINVAL or WEIR_EKEY. Calls of another limiter that get this
 * key return WEIR_ESTALE. */
WEIR_API int weir_key_init(const struct weir *w, const void *key, size_t key_len,
                           struct weir_key *out);

/*
 * Begins to fetch the memory that a question about this key will need, and does not wait for it.
 * This is for callers that know several keys before they ask. It is only a hint: a key of another
 * limiter, or NULL, does nothing. weir_ask_batch() does it by itself.
 */
WEIR_API void weir_key_prefetch(const struct weir *w, const struct weir_key *key);

/* ---- other verbs ------------------------------------------------------- */

/*
 * Gives back units that were charged at charged_ns. A key never gets more than a fresh one has.
 *
 * token_bucket: in full, however late. If the bucket was full at some time since the charge, the
 *   refund adds at most min(units, refill since the charge, units others took since). In every
 *   interval that contains the charge the limit's bound holds. charged_ns does not matter.
 * leaky_bucket: only while their place is the last of the queue; otherwise nothing, because later
 *   calls have been told their turns. charged_ns names the place by its end: now_ns +
 *   reset_after_ns of the answer that gave it.
 * Windows: only while the window of charged_ns counts; otherwise nothing.
 * sliding_log: exactly those units, if the newest `units` were charged at charged_ns; otherwise the
 *   oldest, which never admits too much. (With clocks that differ, an exact refund may admit up to
 *   count - 1 units within that difference.)
 *
 * The short form takes charged_ns = now. *answer (may be NULL) is that of a peek of 1 afterwards.
 *
 * The errors of this call and of those below are WEIR_EINVAL, WEIR_EKEY, WEIR_ECOST and WEIR_ETIME.
 */
WEIR_API int weir_refund(struct weir *w, const void *key, size_t key_len, uint64_t units,
                         struct weir_answer *answer);
WEIR_API int weir_refund_at(struct weir *w, const void *key, size_t key_len, uint64_t units,
                            uint64_t charged_ns, uint64_t now_ns, struct weir_answer *answer);

/*
 * Charges units whether they fit or not, into debt up to max_debt. *answer (may be NULL) is that of
 * a peek of 1 afterwards; its `granted` is what was charged, perhaps 0. WEIR_EFULL if the key is
 * new and on_full refuses it.
 */
WEIR_API int weir_penalize(struct weir *w, const void *key, size_t key_len, uint64_t units,
                           struct weir_answer *answer);
WEIR_API int weir_penalize_at(struct weir *w, const void *key, size_t key_len, uint64_t units,
                              uint64_t now_ns, struct weir_answer *answer);

/*
 * Denies the key until until_ns (WEIR_FOREVER: until it is unblocked), whatever its quota. The
 * state of its quota is kept. Blocks have a table of their own: they take no key's place, and none
 * is forgotten while it lasts. A second block replaces the end of the first. While any block lasts,
 * each decision looks for one, which takes a little longer. WEIR_EFULL if max_blocks are in force,
 * WEIR_ETIME if until_ns is not after now.
 *
 * weir_unblock() returns 1 if there was a block (perhaps one that was over), otherwise 0.
 */
WEIR_API int weir_block(struct weir *w, const void *key, size_t key_len, uint64_t until_ns);
WEIR_API int weir_block_at(struct weir *w, const void *key, size_t key_len, uint64_t until_ns,
                           uint64_t now_ns);
WEIR_API int weir_unblock(struct weir *w, const void *key, size_t key_len);

/*
 * Blocks the key as weir_block_at() does, for programs that block keys by a rule of their own, such
 * as `ban` of weir_rules.h: answers have WEIR_FLAG_BANNED too, and a block that ends later is kept
 * as it is. WEIR_ETIME also if until_ns is WEIR_FOREVER: a ban must end.
 */
WEIR_API int weir_ban_at(struct weir *w, const void *key, size_t key_len, uint64_t until_ns,
                         uint64_t now_ns);

/* Forgets the state of a key, but not its block. Returns 1 if there was a state, otherwise 0. */
WEIR_API int weir_reset(struct weir *w, const void *key, size_t key_len);

/* ---- reserve, then settle ---------------------------------------------- */

/*
 * Units taken in advance, for work whose true cost is known later. The handle contains everything:
 * it may be copied and sent to another process that has the same limiter open. Settle or cancel it
 * once.
 */
struct weir_reservation {
    uint64_t word[8];
};

/*
 * Takes `estimate` units like weir_check() and, on ALLOW, fills *reservation. It can be settled for
 * ttl_ns (at least 1) from now; after that the estimate stays charged. On DENY and NEVER
 * *reservation cannot be settled. WEIR_EINVAL, WEIR_EKEY, WEIR_ECOST, WEIR_ETIME.
 */
WEIR_API int weir_reserve(struct weir *w, const void *key, size_t key_len, uint64_t estimate,
                          uint64_t ttl_ns, struct weir_reservation *reservation,
                          struct weir_answer *answer);
WEIR_API int weir_reserve_at(struct weir *w, const void *key, size_t key_len, uint64_t estimate,
                             uint64_t ttl_ns, uint64_t now_ns, struct weir_reservation *reservation,
                             struct weir_answer *answer);

/*
 * Replaces the estimate by the actual cost. If the cost is lower, gives the rest back as
 * weir_refund_at() does; the handle knows the charge, and the rate at which it was made. If it is
 * higher, charges the difference into debt; answer->granted is what was charged, at most max_debt.
 * To cancel is to settle with 0. The handle is used up, except after an error. *answer may be NULL.
 *
 * WEIR_EEXPIRED: it is too late, and the estimate stays. WEIR_ESTALE: the handle belongs to another
 * limiter, or was settled already. WEIR_EFULL: the key was forgotten meanwhile, and there is no
 * room to charge it. WEIR_EINVAL, WEIR_ETIME.
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
 * What was counted in this process through this limiter, except the last four fields, which
 * describe the table. A forked child continues with its parent's numbers. Each call counts once;
 * peeks do not count. With several limits an allowed call counts on each limiter, a denied one on
 * the limiter that bound.
 */
struct weir_stats {
    size_t size; /* in: sizeof(struct weir_stats) */
    uint64_t allowed;
    uint64_t denied; /* including blocked and full_denied */
    uint64_t never;
    uint64_t blocked;       /* denied because of a block */
    uint64_t spurious;      /* several limits: denied and rolled back after a race */
    uint64_t reclaimed;     /* slots that a new key took from a key that was fresh */
    uint64_t evicted;       /* keys in use that were forgotten (on_full evict) */
    uint64_t full_denied;   /* new keys refused (on_full deny), including penalties */
    uint64_t full_allowed;  /* new keys let through without a charge (on_full allow) */
    uint64_t moved;         /* keys moved to make room */
    uint64_t keys;          /* resident keys; may be one too low per killed process */
    uint64_t capacity;      /* slots */
    uint64_t blocks;        /* blocks, including those that are over and not yet replaced */
    uint64_t bytes;         /* of memory or file, without the memory of threads */
    uint64_t shadow_denied; /* denials of questions with WEIR_SHADOW */
};

/* Fills *stats. WEIR_EINVAL: NULL, or `size` is below one field or above what the library knows. */
WEIR_API int weir_stats_read(struct weir *w, struct weir_stats *stats);

/*
 * Returns where the limiter's memory, or its mapped file, begins, and sets *bytes to its size. An
 * access to a file that another program has truncated raises SIGBUS: a program that handles this
 * signal can tell by the address which limiter it was. NULL: an argument is NULL.
 */
WEIR_API const void *weir_memory(const struct weir *w, size_t *bytes);

/*
 * Visits up to `lines` lines of four slots (the whole table has stats.capacity / 4), frees slots
 * whose key is fresh, and pulls down states from a far future (see TIME). It is never needed for
 * correctness, because new keys reuse such slots anyway. Call it now and then if stats.keys should
 * follow the keys in use. Returns the number of slots freed, or a WEIR_E...
 */
WEIR_API int64_t weir_sweep(struct weir *w, uint64_t lines);
WEIR_API int64_t weir_sweep_at(struct weir *w, uint64_t lines, uint64_t now_ns);

#ifdef __cplusplus
}
#endif

#endif
