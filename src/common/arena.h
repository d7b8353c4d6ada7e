/*
 * Memory that is taken piece by piece and given back all at once: for what
 * belongs together and ends together, such as a rule file and all that was
 * read from it. For one thread. Out of memory is remembered, so that a long
 * chain of calls needs one check at its end.
 */
#ifndef WEIR_COMMON_ARENA_H
#define WEIR_COMMON_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "common/text.h"

struct arena_block;

struct arena {
    struct arena_block *blocks;
    size_t left; /* bytes in the newest block */
    bool failed; /* some call returned NULL */
};

#define ARENA_INIT                                                                                 \
    {                                                                                              \
        NULL, 0, false                                                                             \
    }

/* Zeroed, aligned for everything; NULL when out of memory. */
void *arena_take(struct arena *arena, size_t bytes);

/* Room for n elements, NULL also when n * size does not fit. */
void *arena_array(struct arena *arena, size_t n, size_t size);

/* A copy, terminated behind its length; at == NULL when out of memory. */
struct text arena_text(struct arena *arena, struct text text);

/* A terminated string after a format. */
const char *arena_format(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts *item (size bytes) behind the n that *array holds; grows by doubling. */
void *arena_append(struct arena *arena, void *array, size_t n, size_t size, const void *item);

/* Gives everything back; the arena is empty again. */
void arena_finish(struct arena *arena);

#endif
