#include "common/sha256.h"

#include <stdint.h>

#define BLOCK 64

static uint32_t load_be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be32(unsigned char *p, uint32_t x)
{
    p[0] = (unsigned char)(x >> 24);
    p[1] = (unsigned char)(x >> 16);
    p[2] = (unsigned char)(x >> 8);
    p[3] = (unsigned char)x;
}

static uint32_t right(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static void schedule(const unsigned char *block, uint32_t *w)
{
    for (unsigned i = 0; i < 64; i++) {
        if (i < 16) {
            w[i] = load_be32(block + 4 * (size_t)i);
            continue;
        }
        uint32_t x = w[i - 15];
        uint32_t y = w[i - 2];
        w[i] = w[i - 16] + (right(x, 7) ^ right(x, 18) ^ x >> 3) + w[i - 7] +
               (right(y, 17) ^ right(y, 19) ^ y >> 10);
    }
}

/* The variables a to h change places in each round: here their indexes do, so none is moved. */
static void compress(uint32_t *state, const unsigned char *block)
{
    uint32_t w[64];
    uint32_t s[8];
    schedule(block, w);
    memcpy(s, state, sizeof s);
#pragma GCC unroll 8
    for (unsigned i = 0; i < 64; i++) {
#define S(n) s[((n)-i) & 7]
        uint32_t one = S(7) + (right(S(4), 6) ^ right(S(4), 11) ^ right(S(4), 25)) +
                       ((S(4) & S(5)) ^ (~S(4) & S(6))) + constants[i] + w[i];
        uint32_t two = (right(S(0), 2) ^ right(S(0), 13) ^ right(S(0), 22)) +
                       ((S(0) & S(1)) ^ (S(0) & S(2)) ^ (S(1) & S(2)));
        S(3) += one;
        S(7) = one + two;
    }
    for (unsigned i = 0; i < 8; i++) {
        state[i] += s[i];
    }
}

/* Compresses the text in blocks, then a 1 bit, zeros, and the length in bits. */
void sha256(struct weir_text text, unsigned char out[SHA256_SIZE])
{
    uint32_t state[] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const unsigned char *at = (const unsigned char *)text.at;
    size_t n = text.len;
    for (; n >= BLOCK; n -= BLOCK, at += BLOCK) {
        compress(state, at);
    }
    unsigned char last[2 * BLOCK] = {0};
    if (n > 0) {
        memcpy(last, at, n);
    }
    last[n] = 0x80;
    size_t end = n < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    uint64_t bits = (uint64_t)text.len * 8;
    store_be32(last + end - 8, (uint32_t)(bits >> 32));
    store_be32(last + end - 4, (uint32_t)bits);
    for (size_t i = 0; i < end; i += BLOCK) {
        compress(state, last + i);
    }
    for (size_t i = 0; i < SHA256_SIZE / 4; i++) {
        store_be32(out + 4 * i, state[i]);
    }
}

void sha256_mark(struct weir_text text, char out[SHA256_MARKED])
{
    unsigned char hash[SHA256_SIZE];
    sha256(text, hash);
    out[0] = 0;
    memcpy(out + 1, hash, sizeof hash);
}
