#include "common/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK_BYTES 16384 /* if the arena names no size */
#define ALIGN 16

struct arena_block {
    struct arena_block *next;
    size_t size;
    _Alignas(ALIGN) unsigned char bytes[];
};

static struct arena_block *new_block(struct arena *arena, size_t bytes)
{
    struct arena_block *block = malloc(sizeof *block + bytes);
    if (block == NULL) {
        arena->failed = true;
        return NULL;
    }
    block->next = NULL;
    block->size = bytes;
    arena->bytes += bytes;
    return block;
}

/* Makes a block of its own, second in the list: the rest of the newest block stays in use. */
static void *take_large(struct arena *arena, size_t bytes)
{
    struct arena_block *block = new_block(arena, bytes);
    if (block == NULL) {
        return NULL;
    }
    block->next = arena->blocks->next;
    arena->blocks->next = block;
    return block->bytes;
}

void *arena_room(struct arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 4) {
        arena->failed = true;
        return NULL;
    }
    size_t usual = arena->block_bytes != 0 ? arena->block_bytes : BLOCK_BYTES;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes > arena->left && bytes > usual / 4 && arena->blocks != NULL) {
        return take_large(arena, bytes);
    }
    if (arena->blocks == NULL || bytes > arena->left) {
        size_t size = bytes > usual ? bytes : usual;
        struct arena_block *block = new_block(arena, size);
        if (block == NULL) {
            return NULL;
        }
        block->next = arena->blocks;
        arena->blocks = block;
        arena->left = size;
    }
    arena->left -= bytes;
    return arena->blocks->bytes + (arena->blocks->size - arena->left - bytes);
}

void *arena_take(struct arena *arena, size_t bytes)
{
    void *room = arena_room(arena, bytes);
    return room != NULL ? memset(room, 0, bytes) : NULL;
}

void *arena_array(struct arena *arena, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        arena->failed = true;
        return NULL;
    }
    return arena_take(arena, bytes);
}

struct weir_text arena_text(struct arena *arena, struct weir_text text)
{
    char *copy = arena_room(arena, text.len + 1);
    if (copy != NULL && text.len > 0) {
        memcpy(copy, text.at, text.len);
    }
    if (copy != NULL) {
        copy[text.len] = 0;
    }
    return (struct weir_text){copy, copy != NULL ? text.len : 0};
}

const char *arena_format(struct arena *arena, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *text = arena_take(arena, (size_t)n + 1);
    if (text != NULL) {
        va_start(list, format);
        (void)vsnprintf(text, (size_t)n + 1, format, list);
        va_end(list);
    }
    return text;
}

bool arena_append(struct arena *arena, void *array, size_t *count, size_t size, const void *item)
{
    size_t n = *count;
    char *items;
    memcpy(&items, array, sizeof items); /* a pointer to any type */
    if ((n & (n - 1)) == 0) {            /* 0, 1, 2, 4, ...: the array is full */
        char *grown = arena_array(arena, n == 0 ? 1 : 2 * n, size);
        if (grown == NULL) {
            return false;
        }
        if (n > 0) {
            memcpy(grown, items, n * size);
        }
        items = grown;
        memcpy(array, &items, sizeof items);
    }
    memcpy(items + n * size, item, size);
    *count = n + 1;
    return true;
}

/* Frees all blocks but one, which may be NULL. */
static void free_but(struct arena *arena, const struct arena_block *kept)
{
    for (struct arena_block *block = arena->blocks; block != NULL;) {
        struct arena_block *next = block->next;
        if (block != kept) {
            free(block);
        }
        block = next;
    }
}

void arena_finish(struct arena *arena)
{
    free_but(arena, NULL);
    *arena = (struct arena)ARENA_INIT;
}

struct arena_mark arena_mark(const struct arena *arena)
{
    return (struct arena_mark){arena->blocks, arena->left};
}

void arena_rewind(struct arena *arena, struct arena_mark mark)
{
    if (arena->blocks != mark.block || mark.block->next != NULL) {
        free_but(arena, mark.block);
        mark.block->next = NULL;
        arena->blocks = mark.block;
        arena->bytes = mark.block->size;
    }
    arena->left = mark.left;
    arena->failed = false;
}
