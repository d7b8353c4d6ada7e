/*
 * Bytes on their way: put in behind, taken out in front. Grows to a bound and no
 * further; what does not fit sets `full` and is dropped as a whole, so that a
 * long chain of puts needs one check at its end.
 */
#ifndef WEIR_COMMON_BUFFER_H
#define WEIR_COMMON_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

struct buffer {
    char *at;
    size_t begin; /* the first byte that counts */
    size_t end;
    size_t size; /* allocated */
    size_t most; /* bytes that may count at once */
    bool full;   /* something did not fit, or there was no memory */
};

void buffer_init(struct buffer *b, size_t most);
void buffer_finish(struct buffer *b);

static inline struct text buffer_text(const struct buffer *b)
{
    return (struct text){b->at == NULL ? "" : b->at + b->begin, b->end - b->begin};
}

static inline size_t buffer_len(const struct buffer *b)
{
    return b->end - b->begin;
}

/* Makes room for n more bytes behind the end, moving what counts to the front first; NULL and full
 * if there is none. */
char *buffer_room(struct buffer *b, size_t n);

/* n bytes that were written into the room now count. */
static inline void buffer_add(struct buffer *b, size_t n)
{
    b->end += n;
}

/* The first n bytes no longer count. */
static inline void buffer_take(struct buffer *b, size_t n)
{
    b->begin += n;
    if (b->begin == b->end) {
        b->begin = 0;
        b->end = 0;
    }
}

void buffer_put(struct buffer *b, struct text text);
void buffer_put_u64(struct buffer *b, uint64_t number);
void buffer_put_i64(struct buffer *b, int64_t number);

static inline void buffer_put_char(struct buffer *b, char c)
{
    buffer_put(b, (struct text){&c, 1});
}

/* Gives memory back when nothing counts and it has grown beyond `keep` bytes. */
void buffer_trim(struct buffer *b, size_t keep);

#endif
