/*
 * Skewed keys: Zipf, s = 0.99. All draws are made before anything is measured, so that a key
 * costs the measured loop one read from a list.
 */
#include <math.h>
#include <stdlib.h>

#include "base/maths.h"
#include "cli/load/load_zipf.h"

static double weight(uint64_t rank)
{
    return pow((double)rank, -0.99);
}

/*
 * Takes n evenly spaced points of the cumulative distribution, so that every rank has its exact
 * share.
 */
static void draw(uint32_t *list, uint64_t n, uint64_t ranks)
{
    double total = 0;
    for (uint64_t rank = 1; rank <= ranks; rank++) {
        total += weight(rank);
    }
    double below = 1;
    uint64_t rank = 1;
    for (uint64_t i = 0; i < n; i++) {
        double point = ((double)i + 0.5) / (double)n * total;
        while (below < point && rank < ranks) {
            below += weight(++rank);
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
