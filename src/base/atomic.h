/*
 * Every atomic access of weir. The ordering is written on the operation, because ThreadSanitizer
 * cannot see fences. The explorer (tests/explore) builds the same sources with WEIR_EXPLORE: then
 * each access calls a scheduler, which may run another thread there or kill the caller.
 */
#ifndef WEIR_BASE_ATOMIC_H
#define WEIR_BASE_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
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

/* Copies n counts, each of which other threads may be changing. */
static inline void load_each(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ((uint64_t *)to)[i] = load_relaxed((const uint64_t *)from + i);
    }
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

/* Adds to a counter that several threads write. It orders no other access. */
static inline void count_shared(uint64_t *p, uint64_t n)
{
    explore_point(p);
    (void)__atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

/* Inverts bits. It orders no other access. */
static inline void flip_relaxed(uint64_t *p, uint64_t bits)
{
    explore_point(p);
    (void)__atomic_fetch_xor(p, bits, __ATOMIC_RELAXED);
}

static inline uint64_t fetch_sub(uint64_t *p, uint64_t value)
{
    explore_point(p);
    return __atomic_fetch_sub(p, value, __ATOMIC_ACQ_REL);
}

/*
 * The accesses named _ordered are in one order with each other. With them two threads can each say
 * that they are in and then look for the other: at least one of them sees the other.
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
 * Adds to a counter with one writer and any number of readers. The writer needs no locked
 * instruction; a reader sees a value that was true a moment ago.
 */
static inline void count_own(uint64_t *p, uint64_t n)
{
    __atomic_store_n(p, __atomic_load_n(p, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

#endif
