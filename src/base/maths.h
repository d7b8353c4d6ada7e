/* Integer arithmetic that cannot overflow: products have 128 bits, and sums saturate. */
#ifndef WEIR_BASE_MATHS_H
#define WEIR_BASE_MATHS_H

#include <stdbool.h>
#include <stdint.h>

/* For the few functions that every decision runs: inlined even if the compiler finds them large. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

static inline uint64_t add_sat(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t sub_floor0(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline u128 mul_wide(uint64_t a, uint64_t b)
{
    return (u128)a * b;
}

/* Returns the high half of a*b. It maps a uniform 64-bit a onto [0, b) without a division. */
static inline uint64_t mul_high(uint64_t a, uint64_t b)
{
    return (uint64_t)(mul_wide(a, b) >> 64);
}

/* Returns floor(a*b/c), saturating; c > 0. */
static inline uint64_t mul_div(uint64_t a, uint64_t b, uint64_t c)
{
    u128 q = mul_wide(a, b) / c;
    return q > UINT64_MAX ? UINT64_MAX : (uint64_t)q;
}

/* Returns ceil(a*b/c), saturating; c > 0. */
static inline uint64_t mul_div_up(uint64_t a, uint64_t b, uint64_t c)
{
    u128 q = (mul_wide(a, b) + (c - 1)) / c;
    return q > UINT64_MAX ? UINT64_MAX : (uint64_t)q;
}

/* Returns ceil(x / 2^shift); shift < 64. */
static inline uint64_t shift_up(uint64_t x, unsigned shift)
{
    uint64_t floor = x >> shift;
    return floor + ((floor << shift) != x);
}

#define SPLITMIX_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Returns x with every bit spread over all bits: the finish of splitmix64. */
static inline uint64_t splitmix_finish(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Returns the next of a stream of random numbers (splitmix64), which any state begins. */
static inline uint64_t splitmix_next(uint64_t *state)
{
    return splitmix_finish(*state += SPLITMIX_STEP);
}

/* Returns how many bits x needs: 0 for 0. */
static inline unsigned bits_for(uint64_t x)
{
    return x == 0 ? 0 : 64u - (unsigned)__builtin_clzll(x);
}

#endif
