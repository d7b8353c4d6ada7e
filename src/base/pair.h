/*
 * Sixteen bytes that are read and replaced as one: the slot of the key table. pair_init() looks at
 * the processor and chooses:
 *
 *             swap                              load
 *   x86-64    lock cmpxchg16b                   with AVX one vector load, which is atomic according
 *                                               to Intel and AMD; otherwise a swap
 *   aarch64   with LSE CASPAL; otherwise        with LSE2 LDP and DMB ISHLD; otherwise a swap
 *             LDAXP, STLXP, DMB ISH
 *
 * A load by a swap replaces zero by zero, or nothing.
 *
 * ORDER. A swap that succeeds is a full barrier on every machine: no access of its thread passes it
 * in either direction. A load, and a swap that fails, is an acquire: no later access of its thread
 * comes before it. tests/models checks the protocol of the table with these under the Arm model.
 *
 * ThreadSanitizer does not see assembly. Its builds use __sync on a 128-bit integer, which its
 * runtime guards by a lock of the process: exact among threads, but not among processes.
 */
#ifndef WEIR_BASE_PAIR_H
#define WEIR_BASE_PAIR_H

#include "base/atomic.h"
#include "base/maths.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "weir needs a 16-byte compare-and-swap: x86-64 or aarch64"
#endif
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weir needs a little-endian machine: its files have the same bytes everywhere"
#endif

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define PAIR_UNDER_TSAN 1
#else
#define PAIR_UNDER_TSAN 0
#endif

struct pair {
    uint64_t tag;
    uint64_t word;
} __attribute__((aligned(16)));

/* What this processor has; pair_init() sets it. */
extern bool pair_single_load; /* a 16-byte load that does not tear */
extern bool pair_single_swap; /* aarch64: CASPAL */

/* 0, or WEIR_ECPU without a 16-byte compare-and-swap. Any thread may call it, again and again. */
int pair_init(void);

/* Reads one of the above, which another thread may be storing in pair_init(). */
static inline bool pair_has(const bool *what)
{
    return __atomic_load_n(what, __ATOMIC_RELAXED);
}

#if defined(__aarch64__) && !PAIR_UNDER_TSAN

/* CASPAL takes its pairs in consecutive registers, the first of which is even. */
static inline struct pair pair_swap_single(struct pair *p, struct pair seen, struct pair next)
{
    register uint64_t tag __asm__("x0") = seen.tag;
    register uint64_t word __asm__("x1") = seen.word;
    register uint64_t next_tag __asm__("x2") = next.tag;
    register uint64_t next_word __asm__("x3") = next.word;
    __asm__ volatile(".arch_extension lse\n\t"
                     "caspal %[tag], %[word], %[next_tag], %[next_word], %[p]"
                     : [tag] "+r"(tag), [word] "+r"(word), [p] "+Q"(*p)
                     : [next_tag] "r"(next_tag), [next_word] "r"(next_word)
                     : "memory");
    return (struct pair){tag, word};
}

/*
 * LDAXP alone may tear. Only a store that succeeds proves that both halves were read at one moment,
 * so a pair that is not `seen` is written back. STLXP lets later loads pass it; the DMB stops them.
 */
static inline struct pair pair_swap_exclusive(struct pair *p, struct pair seen, struct pair next)
{
    struct pair found;
    struct pair put;
    uint32_t failed;
    __asm__ volatile("1: ldaxp %[tag], %[word], %[p]\n\t"
                     "cmp %[tag], %[seen_tag]\n\t"
                     "ccmp %[word], %[seen_word], #0, eq\n\t"
                     "csel %[put_tag], %[next_tag], %[tag], eq\n\t"
                     "csel %[put_word], %[next_word], %[word], eq\n\t"
                     "stlxp %w[failed], %[put_tag], %[put_word], %[p]\n\t"
                     "cbnz %w[failed], 1b\n\t"
                     "dmb ish"
                     : [tag] "=&r"(found.tag), [word] "=&r"(found.word), [put_tag] "=&r"(put.tag),
                       [put_word] "=&r"(put.word), [failed] "=&r"(failed), [p] "+Q"(*p)
                     : [seen_tag] "r"(seen.tag), [seen_word] "r"(seen.word),
                       [next_tag] "r"(next.tag), [next_word] "r"(next.word)
                     : "cc", "memory");
    return found;
}

static inline struct pair pair_swap(struct pair *p, struct pair seen, struct pair next)
{
    return __builtin_expect(pair_has(&pair_single_swap), 1) ? pair_swap_single(p, seen, next)
                                                            : pair_swap_exclusive(p, seen, next);
}

static inline struct pair pair_load_by_swap(struct pair *p)
{
    return pair_swap(p, (struct pair){0, 0}, (struct pair){0, 0});
}

static inline bool pair_replace(struct pair *p, struct pair seen, struct pair next)
{
    struct pair found = pair_swap(p, seen, next);
    return found.tag == seen.tag && found.word == seen.word;
}

static inline struct pair pair_load_single(struct pair *p)
{
    struct pair found;
    __asm__ volatile("ldp %[tag], %[word], %[p]\n\t"
                     "dmb ishld"
                     : [tag] "=r"(found.tag), [word] "=r"(found.word)
                     : [p] "Q"(*p)
                     : "memory");
    return found;
}

#else

union pair_bits {
    struct pair pair;
    u128 bits;
};

static inline struct pair pair_load_by_swap(struct pair *p)
{
    union pair_bits u;
    u.bits = __sync_val_compare_and_swap((u128 *)(void *)p, (u128)0, (u128)0);
    return u.pair;
}

static inline bool pair_replace(struct pair *p, struct pair seen, struct pair next)
{
    union pair_bits a = {.pair = seen};
    union pair_bits b = {.pair = next};
    return __sync_bool_compare_and_swap((u128 *)(void *)p, a.bits, b.bits);
}

static inline struct pair pair_load_single(struct pair *p)
{
#if PAIR_UNDER_TSAN
    return pair_load_by_swap(p);
#else
    typedef long long vector __attribute__((vector_size(16)));
    vector v;
    /* volatile and "memory" keep this one load here, apart from others. */
    __asm__ volatile("movdqa %1, %0" : "=x"(v) : "m"(*(const vector *)(const void *)p) : "memory");
    return (struct pair){(uint64_t)v[0], (uint64_t)v[1]};
#endif
}

#endif

/* Returns *p. Acquire: pairs with the release of pair_cas(). */
static inline struct pair pair_load(struct pair *p)
{
    explore_point(p);
    return __builtin_expect(pair_has(&pair_single_load), 1) ? pair_load_single(p)
                                                            : pair_load_by_swap(p);
}

/* Returns whether *p is `expected`, both halves at one moment. */
static inline bool pair_is(struct pair *p, struct pair expected)
{
    struct pair now = pair_load(p);
    return now.tag == expected.tag && now.word == expected.word;
}

/* Returns whether *p was `seen` and is now `next`. Sequentially consistent. */
static inline bool pair_cas(struct pair *p, struct pair seen, struct pair next)
{
    explore_point(p);
    return pair_replace(p, seen, next);
}

#endif
