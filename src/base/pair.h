/*
 * Sixteen bytes that are read and replaced as one: the slot of the key table.
 *
 * The compare-and-swap is __sync on a 128-bit integer: gcc and clang make one
 * lock cmpxchg16b of it (-mcx16), and ThreadSanitizer understands it. A read is
 * one aligned vector load, which processors with AVX perform atomically (Intel
 * and AMD say so); without AVX, under ThreadSanitizer and on other processors
 * the read is a compare-and-swap of zero with zero, which writes back what was
 * there. (ThreadSanitizer's runtime guards 16 bytes by a lock of the process, so
 * its builds are exact among threads, but not among processes.)
 */
#ifndef WEIR_BASE_PAIR_H
#define WEIR_BASE_PAIR_H

#include "base/atomic.h"
#include "base/maths.h"

#if !defined(__x86_64__) && !(defined(__aarch64__) && defined(__ARM_FEATURE_ATOMICS))
#error "weir needs a 16-byte compare-and-swap: x86-64, or aarch64 with -march=armv8.1-a (CASP)"
#endif

#if defined(__SANITIZE_THREAD__)
#define PAIR_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PAIR_UNDER_TSAN 1
#endif
#endif
#ifndef PAIR_UNDER_TSAN
#define PAIR_UNDER_TSAN 0
#endif

#if defined(__x86_64__) && !PAIR_UNDER_TSAN
#define PAIR_VECTOR_LOAD 1
#else
#define PAIR_VECTOR_LOAD 0
#endif

struct pair {
    uint64_t tag;
    uint64_t word;
} __attribute__((aligned(16)));

/* False where this processor tears 16-byte vector loads. Set by pair_init(). */
extern bool pair_vector_load;

/* 0, or WEIR_ECPU if the processor has no 16-byte compare-and-swap. Any thread, any number of times. */
int pair_init(void);

union pair_bits {
    struct pair pair;
    u128 bits;
};

static inline struct pair pair_load_by_cas(struct pair *p)
{
    union pair_bits u;
    u.bits = __sync_val_compare_and_swap((u128 *)(void *)p, (u128)0, (u128)0);
    return u.pair;
}

/* Acquire: pairs with the release of pair_cas(). */
static inline struct pair pair_load(struct pair *p)
{
    explore_point(p);
#if PAIR_VECTOR_LOAD
    if (__builtin_expect(pair_vector_load, 1)) {
        typedef long long vector __attribute__((vector_size(16)));
        vector v;
        /* volatile and "memory": one load, here, not merged with another. */
        __asm__ volatile("movdqa %1, %0"
                         : "=x"(v)
                         : "m"(*(const vector *)(const void *)p)
                         : "memory");
        return (struct pair){(uint64_t)v[0], (uint64_t)v[1]};
    }
#endif
    return pair_load_by_cas(p);
}

/* True if *p is `expected`, both halves at one moment. */
static inline bool pair_is(struct pair *p, struct pair expected)
{
    struct pair now = pair_load(p);
    return now.tag == expected.tag && now.word == expected.word;
}

/* True if *p was `seen` and is now `next`. Sequentially consistent. */
static inline bool pair_cas(struct pair *p, struct pair seen, struct pair next)
{
    union pair_bits a = {.pair = seen};
    union pair_bits b = {.pair = next};
    explore_point(p);
    return __sync_bool_compare_and_swap((u128 *)(void *)p, a.bits, b.bits);
}

#endif
