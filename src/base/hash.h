/*
 * The keyed hash that stands for a key. It has 128 bits, because it alone tells two keys of a
 * limiter apart; and it is keyed, so that a stranger who chooses keys cannot steer it.
 *
 * It is SipHash-1-3 with 128 bits of output (Aumasson and Bernstein; one compression round and
 * three finalisation rounds, as in the hash maps of several languages). The functions are inline
 * because hashing is half of a decision's time.
 */
#ifndef WEIR_BASE_HASH_H
#define WEIR_BASE_HASH_H

#include <string.h>

#include "base/maths.h"

struct hash {
    uint64_t low;
    uint64_t high;
};

#define HASH_SECRET_XXH3 192

/* Random bytes, made once for each limiter and kept in its header. */
struct hash_secret {
    uint64_t sip[2];
    unsigned char xxh3[HASH_SECRET_XXH3];
};

/* Fills *secret from the kernel's random source. 0 or WEIR_EIO. */
int hash_secret_init(struct hash_secret *secret);

/* False in a library that was built without xxhash.h. Then hash_xxh3() must not be called. */
extern const bool hash_has_xxh3;

/* Returns XXH3-128 with secret->xxh3, for keys that strangers do not choose. */
struct hash hash_xxh3(const struct hash_secret *secret, const void *key, size_t len);

static inline uint64_t load_le64(const unsigned char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x); /* base/pair.h refuses big-endian machines */
    return x;
}

static inline uint32_t load_le32(const unsigned char *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline uint64_t rotate_left(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

struct sip_state {
    uint64_t v0, v1, v2, v3;
};

ALWAYS_INLINE void sip_rounds(struct sip_state *s, int rounds)
{
#pragma GCC unroll 4
    for (int i = 0; i < rounds; i++) {
        s->v0 += s->v1;
        s->v1 = rotate_left(s->v1, 13) ^ s->v0;
        s->v0 = rotate_left(s->v0, 32);
        s->v2 += s->v3;
        s->v3 = rotate_left(s->v3, 16) ^ s->v2;
        s->v0 += s->v3;
        s->v3 = rotate_left(s->v3, 21) ^ s->v0;
        s->v2 += s->v1;
        s->v1 = rotate_left(s->v1, 17) ^ s->v2;
        s->v2 = rotate_left(s->v2, 32);
    }
}

ALWAYS_INLINE void sip_word(struct sip_state *s, uint64_t m, int rounds)
{
    s->v3 ^= m;
    sip_rounds(s, rounds);
    s->v0 ^= m;
}

/*
 * Returns the bytes after the last whole word, which begin at `p`, with the length in the top byte.
 * Loads overlap: in a key of more than eight bytes with bytes before `p`, otherwise with each
 * other.
 */
static inline uint64_t sip_tail(const unsigned char *p, size_t len)
{
    uint64_t m = (uint64_t)(len & 0xff) << 56;
    unsigned left = len & 7;
    if (left == 0) {
        return m;
    }
    if (len > 8) {
        return m | load_le64(p + left - 8) >> 8 * (8 - left);
    }
    if (left >= 4) {
        return m | load_le32(p) | (uint64_t)load_le32(p + left - 4) << 8 * (left - 4);
    }
    return m | p[0] | (uint64_t)p[left / 2] << 8 * (left / 2) |
           (uint64_t)p[left - 1] << 8 * (left - 1);
}

/* SipHash-c-d-128. The rounds are arguments, so that the published vectors of 2-4 can test it. */
ALWAYS_INLINE struct hash siphash128(const uint64_t key[2], const void *data, size_t len, int c,
                                     int d)
{
    struct sip_state s = {
        key[0] ^ 0x736f6d6570736575ULL,
        key[1] ^ 0x646f72616e646f6dULL ^ 0xee,
        key[0] ^ 0x6c7967656e657261ULL,
        key[1] ^ 0x7465646279746573ULL,
    };
    const unsigned char *p = data;
    const unsigned char *end = p + (len & ~(size_t)7);
    for (; p != end; p += 8) {
        sip_word(&s, load_le64(p), c);
    }
    sip_word(&s, sip_tail(p, len), c);
    s.v2 ^= 0xee;
    sip_rounds(&s, d);
    uint64_t low = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
    s.v1 ^= 0xdd;
    sip_rounds(&s, d);
    return (struct hash){low, s.v0 ^ s.v1 ^ s.v2 ^ s.v3};
}

ALWAYS_INLINE struct hash hash_sip(const struct hash_secret *secret, const void *key, size_t len)
{
    return siphash128(secret->sip, key, len, 1, 3);
}

/* Adds bytes to a hash without a secret. It depends on the order and lengths of what is added. */
static inline void hash_mix(struct hash *h, const void *bytes, size_t len)
{
    const uint64_t key[2] = {h->low, h->high ^ len};
    *h = siphash128(key, bytes, len, 1, 3);
}

static inline bool hash_same(struct hash a, struct hash b)
{
    return a.low == b.low && a.high == b.high;
}

#endif
