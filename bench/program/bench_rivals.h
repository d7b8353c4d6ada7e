/*
 * The rivals are what a program would have without weir: a hash map from the key's bytes to a token
 * bucket, made thread-safe by mutexes in the two usual ways. They use the same hash, the same keys,
 * and memory that is mapped the same way; they use open addressing with the key in the entry, so
 * that neither is slow because of a careless implementation. They cannot grow, evict or be shared.
 */
#ifndef WEIR_BENCH_RIVALS_H
#define WEIR_BENCH_RIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir.h>

struct rival;

/* Create a map with room for max_keys keys of up to 16 bytes. Return NULL if out of memory. */
struct rival *mutex_map_create(uint64_t max_keys, bool huge);
struct rival *striped_map_create(uint64_t max_keys, bool huge);
void rival_destroy(struct rival *r);

/*
 * Take 1 unit for the key if the bucket has it. Return 0, or -1 if there is no room for the key.
 * mutex_map has one lock around the map, and one in each bucket. striped_map is 1,024 maps with a
 * lock each, which also guards their buckets.
 */
int mutex_map_check(struct rival *r, const void *key, size_t len, uint64_t now_ns,
                    struct weir_answer *answer);
int striped_map_check(struct rival *r, const void *key, size_t len, uint64_t now_ns,
                      struct weir_answer *answer);

#endif
