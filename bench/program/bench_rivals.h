/*
 * What one would write instead of weir: a hash map from the key's bytes to a
 * token bucket, made safe by mutexes in the two usual ways. Same hash, same keys,
 * memory mapped the same way; open addressing with the key in the entry, so that
 * neither is slow for want of care. They cannot grow, evict or be shared.
 */
#ifndef WEIR_BENCH_RIVALS_H
#define WEIR_BENCH_RIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir.h>

struct rival;

/* Room for max_keys keys of up to 16 bytes. NULL if there is no memory. */
struct rival *mutex_map_create(uint64_t max_keys, bool huge);
struct rival *striped_map_create(uint64_t max_keys, bool huge);
void rival_destroy(struct rival *r);

/*
 * May the key take 1 unit? 0, or -1 if there is no room for it.
 * mutex_map: one lock around the map, and one in each bucket.
 * striped_map: 1,024 maps with a lock each, which also guards their buckets.
 */
int mutex_map_check(struct rival *r, const void *key, size_t len, uint64_t now_ns,
                    struct weir_answer *answer);
int striped_map_check(struct rival *r, const void *key, size_t len, uint64_t now_ns,
                      struct weir_answer *answer);

#endif
