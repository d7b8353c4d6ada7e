/*
 * A map from texts to small numbers: a hash table in an arena, filled once and then only read, by
 * any number of threads. The hash is keyed, because clients choose the texts that are looked up.
 */
#ifndef WEIR_COMMON_TEXT_MAP_H
#define WEIR_COMMON_TEXT_MAP_H

#include <stdint.h>

#include "common/arena.h"

struct text_map;

/*
 * Makes a map with room for n texts. Returns NULL and sets arena->failed if there is no memory or
 * no random numbers.
 */
struct text_map *text_map_create(struct arena *arena, size_t n);

/* Returns the most memory that a map with room for n texts takes, without the texts. */
uint64_t text_map_bytes(size_t n);

/*
 * Adds a text, whose bytes must stay where they are. Returns -1; the number of the same text if it
 * is already there (nothing changes); or -2 if there are n texts already.
 */
int64_t text_map_put(struct text_map *map, struct weir_text text, uint32_t number);

/* Returns the number of a text, -1 if it is not there. map may be NULL. */
int64_t text_map_find(const struct text_map *map, struct weir_text text);

size_t text_map_count(const struct text_map *map);

#endif
