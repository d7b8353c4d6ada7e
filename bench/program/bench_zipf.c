/* Keys of which few are asked often: the list of the load generator. */
#include "bench_core.h"
#include "cli/load/load_zipf.h"

#define ZIPF_DRAWS (UINT64_C(1) << 21)

int bench_make_zipf(struct bench *b)
{
    uint64_t n = ZIPF_DRAWS;
    while (n > ZIPF_DRAWS / b->options.ease) {
        n /= 2; /* a power of two, for the list is gone round by a mask */
    }
    b->zipf = zipf_list(n, b->options.keys);
    b->zipf_n = n;
    return b->zipf != NULL ? 0 : -1;
}
