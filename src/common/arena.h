/*
 * Memory that is taken piece by piece and freed all at once, for things that end together, such as
 * a rule file and all that was read from it. For one thread. An arena remembers that it ran out of
 * memory, so that a long chain of calls needs one check at its end.
 */
#ifndef WEIR_COMMON_ARENA_H
#define WEIR_COMMON_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "common/text.h"

struct arena_block;

struct arena {
    struct arena_block *blocks;
    size_t left;        /* bytes left in the newest block */
    size_t block_bytes; /* size of a block, without its head; 0: 16384 */
    bool failed;        /* some call returned NULL */
    size_t bytes;       /* size of all blocks */
};

#define ARENA_INIT                                                                                 \
    {                                                                                              \
        NULL, 0, 0, false, 0                                                                       \
    }

/* Returns memory that is aligned for every type, or NULL. arena_take() zeroes it. */
void *arena_room(struct arena *arena, size_t bytes);
void *arena_take(struct arena *arena, size_t bytes);

/* Returns room for n elements; NULL also if n * size overflows. */
void *arena_array(struct arena *arena, size_t n, size_t size);

/* Returns a copy, followed by a NUL byte; at == NULL when out of memory. */
struct weir_text arena_text(struct arena *arena, struct weir_text text);

/* Returns a formatted, terminated string; NULL when out of memory. */
const char *arena_format(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Appends *item (size bytes) to an array of *count items, which grows by doubling and may move.
 * `array` is the address of the pointer to its first item. False when out of memory: the array and
 * *count are as they were.
 */
bool arena_append(struct arena *arena, void *array, size_t *count, size_t size, const void *item);

/* Frees everything; the arena is empty again. */
void arena_finish(struct arena *arena);

/* A place to go back to: arena_rewind() frees what was taken since arena_mark(), which is called
 * while the arena has one block. */
struct arena_mark {
    struct arena_block *block;
    size_t left;
};

struct arena_mark arena_mark(const struct arena *arena);
void arena_rewind(struct arena *arena, struct arena_mark mark);

#endif
