/*
 * What the concurrency tests share: threads that start together, a barrier that spins, tallies of
 * the answers that threads got, and a check of the table.
 *
 * Only the thread that runs the test may use cmocka's asserts. Others use threads_require(), which
 * ends the program with file, line and reason.
 */
#ifndef WEIR_TESTS_THREADS_RUN_H
#define WEIR_TESTS_THREADS_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir.h>

/* Loop counts: full in a release build, fewer where each access costs ten times as much. */
#if defined(__SANITIZE_THREAD__)
#define THREADS_TSAN 1
#define THREADS_ASAN 0
#elif defined(__SANITIZE_ADDRESS__)
#define THREADS_TSAN 0
#define THREADS_ASAN 1
#elif defined(__has_feature)
#define THREADS_TSAN __has_feature(thread_sanitizer)
#define THREADS_ASAN __has_feature(address_sanitizer)
#else
#define THREADS_TSAN 0
#define THREADS_ASAN 0
#endif
#if defined(WEIR_COVERAGE) || defined(WEIR_EMULATED) /* as slow as asan */
#undef THREADS_ASAN
#define THREADS_ASAN 1
#endif
#ifdef WEIR_LONG
#define THREADS_LONG 1
#else
#define THREADS_LONG 0
#endif

/* Returns the number of rounds for this build, given those of a release, an asan and a tsan
 * build. */
#define THREADS_ROUNDS(release, asan, tsan)                                                        \
    ((uint64_t)(THREADS_TSAN   ? (tsan)                                                            \
                : THREADS_ASAN ? (asan)                                                            \
                               : (release)) *                                                      \
     (THREADS_LONG ? 10 : 1))

#define THREADS_MAX 128

/* The time of tests with a frozen clock. */
#define THREADS_T0 (1000 * WEIR_SECOND)

/* Runs fn(index, arg) in n threads that begin together; returns when all have ended. */
typedef void (*threads_fn)(unsigned index, void *arg);
void threads_run(unsigned n, threads_fn fn, void *arg);

/* A barrier that threads leave within nanoseconds of each other if each has a core. */
struct threads_barrier {
    uint64_t arrived; /* must be zero at first */
    uint32_t round;
    uint32_t sleepers;
};
void threads_meet(struct threads_barrier *b, unsigned n);

/* Waits some tens of cycles. */
void threads_pause(void);

/* Ends the program unless `condition`. */
#define threads_require(condition)                                                                 \
    ((condition) ? (void)0 : threads_fail(__FILE__, __LINE__, #condition))
_Noreturn void threads_fail(const char *file, int line, const char *what);

/* A small random generator; any seed works. */
uint64_t threads_random(uint64_t *state);

static inline uint64_t threads_get(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void threads_set(uint64_t *p, uint64_t value)
{
    __atomic_store_n(p, value, __ATOMIC_RELEASE);
}

/* Returns the value before. */
static inline uint64_t threads_add(uint64_t *p, uint64_t n)
{
    return __atomic_fetch_add(p, n, __ATOMIC_ACQ_REL);
}

/* ---- limiters ---- */

/* Returns options with explicit times and the given quota, for any algorithm. */
struct weir_options threads_options(int algorithm, uint64_t quota, uint64_t period_ns);

/* Calls weir_open() and requires success. */
struct weir *threads_open(const struct weir_options *options);

/* Changes the limit of `w` so that it has this quota and the same rate. */
void threads_change(struct weir *w, int algorithm, uint64_t rate, uint64_t quota);

/* Call weir_check_at() and weir_ask_at() and require success. */
struct weir_answer threads_check(struct weir *w, const char *key, uint64_t cost, uint64_t now);
struct weir_answer threads_ask(struct weir *w, const char *key, uint64_t cost, int mode,
                               uint64_t now);

/* Returns how many units of `key` are taken at `now`. */
uint64_t threads_taken(struct weir *w, const char *key, uint64_t now);

struct weir_stats threads_stats(struct weir *w);

/* The answers that threads got. Each thread keeps its own tally and adds it to the common one at
 * the end. */
struct threads_tally {
    uint64_t allowed, denied, never, blocked, spurious, full, granted;
};
void threads_count(struct threads_tally *tally, const struct weir_answer *answer);
void threads_merge(struct threads_tally *all, const struct threads_tally *one);

/* Checks that the limiter's statistics equal the tally. */
void threads_assert_told(struct weir *w, const struct threads_tally *told);

/*
 * Checks that no key is being moved or is in the table twice, and that the table's counts match its
 * slots.
 */
void threads_assert_sound(struct weir *w);

/* The name of a key, "prefix-number". */
struct threads_key {
    char name[32];
};
struct threads_key threads_key(const char *prefix, uint64_t number);

#endif
