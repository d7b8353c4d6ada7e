/*
 * Skewed keys: Zipf, s = 0.99. All draws are made before anything is measured, so that a key
 * costs the measured loop one read from a list.
 */
#include <stdlib.h>

#include "base/maths.h"
#include "load/load_zipf.h"

/*
 * Returns (1 - x)^0.99 for 0 <= x <= 1/2, by its binomial series: pow() would be the only function
 * of libm that the program needs.
 */
static double power_099(double x)
{
    double term = 1;
    double sum = 1;
    for (int i = 0; i < 60 && (term > 1e-17 || term < -1e-17); i++) {
        term *= -x * (0.99 - i) / (i + 1);
        sum += term;
    }
    return sum;
}

/* The weight of rank k is k^-0.99. Returns the weight of rank k + 1 from that of rank k. */
static double next_weight(double weight, uint64_t k)
{
    return weight * power_099(1 / (double)(k + 1));
}

static double total_weight(uint64_t ranks)
{
    double weight = 1;
    double total = 0;
    for (uint64_t k = 1; k <= ranks; k++) {
        total += weight;
        weight = next_weight(weight, k);
    }
    return total;
}

/*
 * Takes n evenly spaced points of the cumulative distribution, so that every rank has its exact
 * share.
 */
static void draw(uint32_t *list, uint64_t n, uint64_t ranks)
{
    double total = total_weight(ranks);
    double weight = 1;
    double below = 1;
    uint64_t rank = 1;
    for (uint64_t i = 0; i < n; i++) {
        double point = ((double)i + 0.5) / (double)n * total;
        while (below < point && rank < ranks) {
            weight = next_weight(weight, rank++);
            below += weight;
        }
        list[i] = (uint32_t)(rank - 1);
    }
}

static void shuffle(uint32_t *list, uint64_t n)
{
    uint64_t x = 1;
    for (uint64_t i = n - 1; i > 0; i--) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t j = mul_high(x, i + 1);
        uint32_t t = list[i];
        list[i] = list[j];
        list[j] = t;
    }
}

uint32_t *zipf_list(uint64_t n, uint64_t ranks)
{
    uint32_t *list = malloc(n * sizeof *list);
    if (list != NULL) {
        draw(list, n, ranks);
        shuffle(list, n);
    }
    return list;
}
