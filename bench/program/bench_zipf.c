/* Skewed keys, of which a few are asked often. The list is made by the load generator's code. */
#include "bench_core.h"
#include "load/load_zipf.h"

#define ZIPF_DRAWS (UINT64_C(1) << 21)

int bench_make_zipf(struct bench *b)
{
    uint64_t n = ZIPF_DRAWS;
    while (n > ZIPF_DRAWS / b->options.ease) {
        n /= 2; /* stays a power of two, because the list is indexed by a mask */
    }
    b->zipf = zipf_list(n, b->options.keys);
    b->zipf_n = n;
    return b->zipf != NULL ? 0 : -1;
}
