#include "support/engine/threads_run.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "limit/limiter.h"

/* From <linux/futex.h>, which a compiler for musl may lack. */
#define FUTEX_WAIT_PRIVATE (0 | 128)
#define FUTEX_WAKE_PRIVATE (1 | 128)

/* ---- threads ---- */

struct start {
    pthread_t thread;
    unsigned index;
    unsigned n;
    threads_fn fn;
    void *arg;
    struct threads_barrier *gate;
};

/*
 * Some schedulers pack threads that do little onto one processor, and then they do not race at all.
 * So each thread gets the next of the allowed processors.
 */
static void spread(unsigned index)
{
    cpu_set_t allowed;
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) == 0) {
        return;
    }
    unsigned skip = index % (unsigned)CPU_COUNT(&allowed);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed) && skip-- == 0) {
            CPU_ZERO(&mine);
            CPU_SET(cpu, &mine);
            (void)pthread_setaffinity_np(pthread_self(), sizeof mine, &mine);
            return;
        }
    }
}

static void *run_one(void *arg)
{
    struct start *s = arg;
    spread(s->index);
    threads_meet(s->gate, s->n);
    s->fn(s->index, s->arg);
    return NULL;
}

void threads_run(unsigned n, threads_fn fn, void *arg)
{
    struct start start[THREADS_MAX];
    struct threads_barrier gate = {0, 0, 0};
    assert_true(n <= THREADS_MAX);
    for (unsigned i = 0; i < n; i++) {
        start[i] = (struct start){.index = i, .n = n, .fn = fn, .arg = arg, .gate = &gate};
        assert_int_equal(pthread_create(&start[i].thread, NULL, run_one, &start[i]), 0);
    }
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(pthread_join(start[i].thread, NULL), 0);
    }
}

void threads_pause(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

/*
 * Spinning lets two cores leave together. A thread that has to wait longer sleeps: on a busy
 * machine a sleeper is woken at once, while a spinner has used up its share of the processor.
 */
static void wait_for_round(struct threads_barrier *b, uint32_t round)
{
    for (unsigned spins = 0; spins < 500; spins++) {
        if (__atomic_load_n(&b->round, __ATOMIC_ACQUIRE) != round) {
            return;
        }
        threads_pause();
    }
    (void)__atomic_fetch_add(&b->sleepers, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&b->round, __ATOMIC_SEQ_CST) == round) {
        (void)syscall(SYS_futex, &b->round, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
    }
    (void)__atomic_fetch_sub(&b->sleepers, 1, __ATOMIC_SEQ_CST);
}

void threads_meet(struct threads_barrier *b, unsigned n)
{
    uint32_t round = __atomic_load_n(&b->round, __ATOMIC_ACQUIRE);
    if (threads_add(&b->arrived, 1) + 1 != n) {
        wait_for_round(b, round);
        return;
    }
    threads_set(&b->arrived, 0);
    __atomic_store_n(&b->round, round + 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&b->sleepers, __ATOMIC_SEQ_CST) != 0) {
        (void)syscall(SYS_futex, &b->round, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

void threads_fail(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "%s:%d: required in a thread: %s\n", file, line, what);
    abort();
}

uint64_t threads_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* ---- limiters ---- */

struct weir_options threads_options(int algorithm, uint64_t quota, uint64_t period_ns)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = algorithm;
    o.count = quota;
    o.period_ns = period_ns;
    o.queue = algorithm == WEIR_LEAKY_BUCKET ? quota - 1 : 0;
    o.flags = WEIR_EXPLICIT_TIME;
    return o;
}

struct weir *threads_open(const struct weir_options *options)
{
    struct weir *w;
    struct weir_error error = {0, ""};
    if (weir_open(&w, options, &error) != 0) {
        threads_fail(__FILE__, __LINE__, error.text);
    }
    return w;
}

void threads_change(struct weir *w, int algorithm, uint64_t rate, uint64_t quota)
{
    bool bucket = algorithm == WEIR_TOKEN_BUCKET || algorithm == WEIR_LEAKY_BUCKET;
    uint64_t second = algorithm == WEIR_LEAKY_BUCKET ? quota - 1 : quota;
    threads_require(weir_change(w, bucket ? rate : quota, bucket ? second : 0, NULL) == 0);
}

struct weir_answer threads_check(struct weir *w, const char *key, uint64_t cost, uint64_t now)
{
    struct weir_answer a;
    threads_require(weir_check_at(w, key, strlen(key), cost, now, &a) == 0);
    return a;
}

struct weir_answer threads_ask(struct weir *w, const char *key, uint64_t cost, int mode,
                               uint64_t now)
{
    struct weir_question ask = {.key = key, .key_len = strlen(key), .cost = cost, .mode = mode};
    struct weir_answer a;
    threads_require(weir_ask_at(w, &ask, now, &a) == 0);
    return a;
}

uint64_t threads_taken(struct weir *w, const char *key, uint64_t now)
{
    struct weir_answer a = threads_ask(w, key, 0, WEIR_PEEK, now);
    return a.quota - a.remaining;
}

struct weir_stats threads_stats(struct weir *w)
{
    struct weir_stats s = {.size = sizeof s};
    threads_require(weir_stats_read(w, &s) == 0);
    return s;
}

struct threads_key threads_key(const char *prefix, uint64_t number)
{
    struct threads_key key;
    (void)snprintf(key.name, sizeof key.name, "%s-%llu", prefix, (unsigned long long)number);
    return key;
}

/* ---- tallies ---- */

void threads_count(struct threads_tally *tally, const struct weir_answer *answer)
{
    tally->allowed += answer->verdict == WEIR_ALLOW;
    tally->denied += answer->verdict == WEIR_DENY;
    tally->never += answer->verdict == WEIR_NEVER;
    tally->blocked += (answer->flags & WEIR_FLAG_BLOCKED) != 0;
    tally->spurious += (answer->flags & WEIR_FLAG_SPURIOUS) != 0;
    tally->full += (answer->flags & WEIR_FLAG_FULL) != 0;
    tally->granted += answer->granted;
}

void threads_merge(struct threads_tally *all, const struct threads_tally *one)
{
    (void)threads_add(&all->allowed, one->allowed);
    (void)threads_add(&all->denied, one->denied);
    (void)threads_add(&all->never, one->never);
    (void)threads_add(&all->blocked, one->blocked);
    (void)threads_add(&all->spurious, one->spurious);
    (void)threads_add(&all->full, one->full);
    (void)threads_add(&all->granted, one->granted);
}

void threads_assert_told(struct weir *w, const struct threads_tally *told)
{
    struct weir_stats s = threads_stats(w);
    assert_int_equal(s.allowed, told->allowed);
    assert_int_equal(s.denied, told->denied);
    assert_int_equal(s.never, told->never);
    assert_int_equal(s.blocked, told->blocked);
    assert_int_equal(s.spurious, told->spurious);
    assert_int_equal(s.full_denied + s.full_allowed, told->full);
}

/* ---- the table ---- */

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

void threads_assert_sound(struct weir *w)
{
    const struct table *t = &w->table;
    uint64_t *tags = malloc(2 * t->half * LINE_SLOTS * sizeof *tags);
    uint64_t keys = 0;
    assert_non_null(tags);
    for (uint64_t i = 0; i < 2 * t->half * LINE_SLOTS; i++) {
        uint64_t tag = t->lines[i / LINE_SLOTS].slot[i % LINE_SLOTS].tag;
        if (tag != 0) {
            assert_int_equal(tag & TAG_MARKS, 0);
            tags[keys++] = tag;
        }
    }
    /* 61 bits of hash: two different keys of a test do not share a tag. */
    qsort(tags, keys, sizeof *tags, compare_u64);
    for (uint64_t i = 1; i < keys; i++) {
        assert_true(tags[i - 1] != tags[i]);
    }
    free(tags);
    assert_int_equal(t->counts->keys, keys);
    uint64_t blocks = 0;
    for (uint64_t i = 0; i < t->blocks.line_count * BLOCK_LINE_PLACES; i++) {
        blocks += t->blocks.lines[i / BLOCK_LINE_PLACES].block[i % BLOCK_LINE_PLACES].tag != 0;
    }
    assert_int_equal(t->counts->blocks.count, blocks);
}
