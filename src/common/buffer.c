#include "common/buffer.h"

#include <stdlib.h>

#define FIRST 512

void buffer_init(struct buffer *b, size_t most)
{
    *b = (struct buffer){.most = most};
}

void buffer_finish(struct buffer *b)
{
    free(b->at);
    *b = (struct buffer){.most = b->most};
}

static bool grow(struct buffer *b, size_t needed)
{
    size_t size = b->size > 0 ? b->size : FIRST;
    while (size < needed) {
        size *= 2;
    }
    char *grown = realloc(b->at, size);
    if (grown == NULL) {
        return false;
    }
    b->at = grown;
    b->size = size;
    return true;
}

char *buffer_room(struct buffer *b, size_t n)
{
    size_t len = buffer_len(b);
    if (n > b->most || len > b->most - n) {
        b->full = true;
        return NULL;
    }
    if (b->size - b->end < n && b->begin > 0) {
        memmove(b->at, b->at + b->begin, len);
        b->begin = 0;
        b->end = len;
    }
    if ((b->at == NULL || b->size - b->end < n) && !grow(b, len + n)) {
        b->full = true;
        return NULL;
    }
    return b->at + b->end;
}

void buffer_put_more(struct buffer *b, struct weir_text text)
{
    if (b->full) {
        return;
    }
    char *to = buffer_room(b, text.len);
    if (to != NULL) {
        memcpy(to, text.at, text.len);
        b->end += text.len;
    }
}

void buffer_put_u64(struct buffer *b, uint64_t number)
{
    char digits[20];
    buffer_put(b, (struct weir_text){digits, (size_t)(text_put_u64(digits, number) - digits)});
}

void buffer_put_i64(struct buffer *b, int64_t number)
{
    char digits[21] = "-";
    bool negative = number < 0;
    uint64_t size = negative ? 0 - (uint64_t)number : (uint64_t)number;
    const char *end = text_put_u64(digits + negative, size);
    buffer_put(b, (struct weir_text){digits, (size_t)(end - digits)});
}

void buffer_trim(struct buffer *b, size_t keep)
{
    if (buffer_len(b) == 0 && b->size > keep) {
        free(b->at);
        b->at = NULL;
        b->begin = 0;
        b->end = 0;
        b->size = 0;
    }
}
