/*
 * Every atomic access of weir, so that the ordering is written on the operation (ThreadSanitizer
 * cannot see fences), and that the explorer (tests/explore) can build the same sources with
 * WEIR_EXPLORE, where each access hands control to a scheduler that may run another thread or kill
 * the caller there.
 */
#ifndef WEIR_BASE_ATOMIC_H
#define WEIR_BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#ifdef WEIR_EXPLORE
void explore_point(const void *address); /* tests/explore/scheduler.c */
#else
static inline void explore_point(const void *address)
{
    (void)address;
}
#endif

static inline uint64_t load_relaxed(const uint64_t *p)
{
    explore_point(p);
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline uint64_t load_acquire(const uint64_t *p)
{
    explore_point(p);
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void store_relaxed(uint64_t *p, uint64_t value)
{
    explore_point(p);
    __atomic_store_n(p, value, __ATOMIC_RELAXED);
}

static inline void store_release(uint64_t *p, uint64_t value)
{
    explore_point(p);
    __atomic_store_n(p, value, __ATOMIC_RELEASE);
}

static inline uint64_t fetch_add(uint64_t *p, uint64_t value)
{
    explore_point(p);
    return __atomic_fetch_add(p, value, __ATOMIC_ACQ_REL);
}

static inline uint64_t exchange_u64(uint64_t *p, uint64_t value)
{
    explore_point(p);
    return __atomic_exchange_n(p, value, __ATOMIC_ACQ_REL);
}

/* A counter that several write; its value orders nothing. */
static inline void count_shared(uint64_t *p, uint64_t n)
{
    explore_point(p);
    (void)__atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

static inline uint64_t fetch_sub(uint64_t *p, uint64_t value)
{
    explore_point(p);
    return __atomic_fetch_sub(p, value, __ATOMIC_ACQ_REL);
}

/*
 * In one order with all others of this kind: for "I say that I am in, then look whether you are" on
 * both sides, where one of two must see the other.
 */
static inline uint64_t fetch_add_ordered(uint64_t *p, uint64_t value)
{
    explore_point(p);
    return __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST);
}

static inline void store_ordered(uint64_t *p, uint64_t value)
{
    explore_point(p);
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);
}

static inline uint64_t load_ordered(const uint64_t *p)
{
    explore_point(p);
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

static inline bool cas_u64(uint64_t *p, uint64_t seen, uint64_t next)
{
    explore_point(p);
    return __atomic_compare_exchange_n(p, &seen, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/*
 * A counter with one writer and any number of readers: the writer needs no locked instruction, the
 * reader sees a value that was true a moment ago.
 */
static inline void count_own(uint64_t *p, uint64_t n)
{
    __atomic_store_n(p, __atomic_load_n(p, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

#endif
