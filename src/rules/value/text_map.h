/*
 * From texts to small numbers: a hash table in an arena, filled once, then only
 * read, by any number of threads. Keyed, because strangers choose what is looked up.
 */
#ifndef WEIR_RULES_VALUE_TEXT_MAP_H
#define WEIR_RULES_VALUE_TEXT_MAP_H

#include <stdint.h>

#include "common/arena.h"

struct text_map;

/* Room for up to n texts. NULL, and arena->failed: out of memory, or no random numbers. */
struct text_map *text_map_create(struct arena *arena, size_t n);

/*
 * Puts a text in that must stay where it is. -1, or the number of the same text if it is
 * there already, and nothing changes. More than n texts are refused with -2.
 */
int64_t text_map_put(struct text_map *map, struct text text, uint32_t number);

/* The number of a text, -1 if it is not there. map may be NULL. */
int64_t text_map_find(const struct text_map *map, struct text text);

size_t text_map_count(const struct text_map *map);

#endif
