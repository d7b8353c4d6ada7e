/*
 * Random numbers without floating point, so that a seed gives the same traffic on every machine
 * and with every compiler.
 */
#include "cli/simulate/simulate.h"

/*
 * Returns the logarithm to base 2 of x / 2^63, for x in [2^63, 2^64), in units of 2^-32.
 * Squaring doubles the logarithm, so each square yields one more binary digit.
 */
static uint64_t fraction_of_log2(uint64_t x)
{
    uint64_t digits = 0;
    for (int i = 0; i < 32; i++) {
        unsigned __int128 square = (unsigned __int128)x * x; /* in [2^126, 2^128) */
        uint64_t carry = (uint64_t)(square >> 127);
        x = (uint64_t)(square >> (63 + carry));
        digits = digits << 1 | carry;
    }
    return digits;
}

uint64_t sim_exponential(uint64_t random)
{
    const uint64_t ln2 = UINT64_C(2977044472); /* ln 2 in 2^-32 */
    if (random == UINT64_MAX) {
        return 0; /* -ln(1) */
    }
    uint64_t u = random + 1;
    unsigned shift = (unsigned)__builtin_clzll(u);
    uint64_t log2 = ((uint64_t)(63 - shift) << 32) + fraction_of_log2(u << shift);
    uint64_t minus_log2 = (UINT64_C(64) << 32) - log2;
    return (uint64_t)((unsigned __int128)minus_log2 * ln2 >> 32);
}
