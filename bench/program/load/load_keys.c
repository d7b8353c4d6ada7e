#include "base/maths.h"
#include "load/load.h"

const char *const load_order_names[LOAD_ORDERS + 1] = {"uniform", "zipf", "sequential", NULL};

uint64_t load_next_key(struct load_keys *keys)
{
    switch (keys->order) {
    case LOAD_SEQUENTIAL:
        return keys->next++ % keys->count;
    case LOAD_ZIPF:
        return keys->zipf[keys->next++ & (keys->zipf_n - 1)];
    default:
        return mul_high(splitmix_next(&keys->random), keys->count);
    }
}
