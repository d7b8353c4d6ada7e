/*
 * A queue of bytes: appended at the end, taken from the front. It grows up to a bound. Bytes that
 * do not fit set `full` and are dropped as a whole, so that a long chain of puts needs one check at
 * its end.
 */
#ifndef WEIR_COMMON_BUFFER_H
#define WEIR_COMMON_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

struct buffer {
    char *at;
    size_t begin; /* offset of the first byte in use */
    size_t end;
    size_t size; /* allocated */
    size_t most; /* bytes that may be in use at once */
    bool full;   /* some bytes did not fit, or there was no memory */
};

void buffer_init(struct buffer *b, size_t most);
void buffer_finish(struct buffer *b);

static inline struct weir_text buffer_text(const struct buffer *b)
{
    return (struct weir_text){b->at == NULL ? "" : b->at + b->begin, b->end - b->begin};
}

static inline size_t buffer_len(const struct buffer *b)
{
    return b->end - b->begin;
}

/*
 * Makes room for n more bytes after the end, moving the bytes in use to the front if needed.
 * Returns NULL and sets `full` if there is no room.
 */
char *buffer_room(struct buffer *b, size_t n);

/* Appends n bytes that were written into the room. */
static inline void buffer_add(struct buffer *b, size_t n)
{
    b->end += n;
}

/* Removes the first n bytes. */
static inline void buffer_take(struct buffer *b, size_t n)
{
    b->begin += n;
    if (b->begin == b->end) {
        b->begin = 0;
        b->end = 0;
    }
}

/* Returns whether n bytes, at least 1, fit after the end as it is: nearly always. */
static inline bool buffer_fits(const struct buffer *b, size_t n)
{
    return !b->full && b->size - b->end >= n && b->most >= n && buffer_len(b) <= b->most - n;
}

/* Appends a text that does not fit as it is. */
void buffer_put_more(struct buffer *b, struct weir_text text);

static inline void buffer_put(struct buffer *b, struct weir_text text)
{
    if (text.len == 0) {
        return;
    }
    if (buffer_fits(b, text.len)) {
        memcpy(b->at + b->end, text.at, text.len);
        b->end += text.len;
    } else {
        buffer_put_more(b, text);
    }
}

void buffer_put_u64(struct buffer *b, uint64_t number);
void buffer_put_i64(struct buffer *b, int64_t number);

static inline void buffer_put_char(struct buffer *b, char c)
{
    if (buffer_fits(b, 1)) {
        b->at[b->end++] = c;
    } else {
        buffer_put_more(b, (struct weir_text){&c, 1});
    }
}

/* Frees the memory if the buffer is empty and has grown beyond `keep` bytes. */
void buffer_trim(struct buffer *b, size_t keep);

#endif
