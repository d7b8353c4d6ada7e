/* SHA-1 (FIPS 180-4), by which a Redis names scripts. */
#include <stdint.h>
#include <stdio.h>

#include "simulate/fake_inside.h"

#define BLOCK 64

static uint32_t left(uint32_t x, unsigned n)
{
    return x << n | x >> (32 - n);
}

static uint32_t mix(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
    static const uint32_t constants[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t f = round < 20                  ? (b & c) | (~b & d)
                 : round < 40 || round >= 60 ? b ^ c ^ d
                                             : (b & c) | (b & d) | (c & d);
    return f + constants[round / 20];
}

static uint32_t load(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void compress(uint32_t *state, const unsigned char *block)
{
    uint32_t w[80];
    for (unsigned i = 0; i < 80; i++) {
        w[i] = i < 16 ? load(block + 4 * (size_t)i)
                      : left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    }
    uint32_t s[5];
    memcpy(s, state, sizeof s);
    for (unsigned i = 0; i < 80; i++) {
        uint32_t next = left(s[0], 5) + mix(i, s[1], s[2], s[3]) + s[4] + w[i];
        s[4] = s[3];
        s[3] = s[2];
        s[2] = left(s[1], 30);
        s[1] = s[0];
        s[0] = next;
    }
    for (unsigned i = 0; i < 5; i++) {
        state[i] += s[i];
    }
}

void fake_sha1(struct weir_text text, char digits[FAKE_SHA_DIGITS + 1])
{
    uint32_t state[] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    size_t whole = text.len / BLOCK * BLOCK;
    unsigned char last[2 * BLOCK] = {0};
    memcpy(last, text.at + whole, text.len - whole);
    last[text.len - whole] = 0x80;
    size_t end = text.len - whole < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    for (size_t i = 0; i < 8; i++) {
        last[end - 1 - i] = (unsigned char)((uint64_t)text.len * 8 >> 8 * i);
    }
    for (size_t i = 0; i < whole; i += BLOCK) {
        compress(state, (const unsigned char *)text.at + i);
    }
    for (size_t i = 0; i < end; i += BLOCK) {
        compress(state, last + i);
    }
    for (size_t i = 0; i < 5; i++) {
        (void)sprintf(digits + 8 * i, "%08x", state[i]);
    }
}
