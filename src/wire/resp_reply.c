#include "wire/resp.h"

#include <stdarg.h>
#include <stdio.h>

#define HEAD_BYTES 23                          /* of a type, a number and CR LF at most */
#define INTEGER_BYTES (HEAD_BYTES + 1)         /* the same with a sign */
#define BULK_INTEGER_BYTES (5 + INTEGER_BYTES) /* with its length before it: "$20" CR LF */

/* Returns whether n bytes fit now, without growing or moving anything. */
static inline bool has_room(const struct buffer *b, size_t n)
{
    return !b->full && n <= b->size - b->end && n <= b->most - buffer_len(b);
}

/* Returns room for a whole reply; NULL if it does not fit, or an earlier one did not. */
static inline char *room(struct buffer *b, size_t n)
{
    return has_room(b, n) ? b->at + b->end : b->full ? NULL : buffer_room(b, n);
}

static inline void end_line(char *at)
{
    at[0] = '\r';
    at[1] = '\n';
}

/* Counts the decimal digits. Most numbers of replies are short and need no division. */
static inline size_t digits_of(uint64_t number)
{
    size_t n = 1;
    if (number < 10) {
        return n;
    }
    while (number >= 1000) {
        number /= 1000;
        n += 3;
    }
    return n + (number >= 10) + (number >= 100);
}

/*
 * Length of a type, a number and CR LF: a whole integer, or the beginning of a value with a length.
 */
static inline size_t head_len(uint64_t number)
{
    return 1 + digits_of(number) + 2;
}

/* Writes the n digits of a number, and CR LF. */
static inline char *write_digits(char *at, size_t n, uint64_t number)
{
    for (size_t i = n; i > 1; i--) {
        at[i - 1] = (char)('0' + number % 10);
        number /= 10;
    }
    at[0] = (char)('0' + number);
    end_line(at + n);
    return at + n + 2;
}

static inline char *write_head(char *at, char type, uint64_t number)
{
    at[0] = type;
    return write_digits(at + 1, digits_of(number), number);
}

/* As put_head(), if the room may not be enough. */
static __attribute__((noinline)) void put_head_near_bound(struct buffer *b, char type,
                                                          uint64_t number)
{
    char text[HEAD_BYTES];
    buffer_put(b, (struct weir_text){text, (size_t)(write_head(text, type, number) - text)});
}

static inline void put_head(struct buffer *b, char type, uint64_t number)
{
    if (!has_room(b, HEAD_BYTES)) {
        put_head_near_bound(b, type, number);
        return;
    }
    char *at = b->at + b->end;
    buffer_add(b, (size_t)(write_head(at, type, number) - at));
}

void resp_put_array(struct buffer *b, size_t n)
{
    put_head(b, '*', n);
}

void resp_put_map(struct buffer *b, int proto, size_t n)
{
    put_head(b, proto >= 3 ? '%' : '*', proto >= 3 ? n : 2 * n);
}

void resp_put_set(struct buffer *b, int proto, size_t n)
{
    put_head(b, proto >= 3 ? '~' : '*', n);
}

static inline uint64_t size_of(int64_t number)
{
    return number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
}

static inline size_t integer_len(int64_t number)
{
    return (number < 0) + head_len(size_of(number));
}

static inline char *write_integer(char *at, int64_t number)
{
    at[0] = ':';
    return write_head(at + (number < 0), number < 0 ? '-' : ':', size_of(number));
}

static __attribute__((noinline)) void put_negative(struct buffer *b, int64_t number)
{
    char text[INTEGER_BYTES];
    buffer_put(b, (struct weir_text){text, (size_t)(write_integer(text, number) - text)});
}

void resp_put_integer(struct buffer *b, int64_t number)
{
    if (number < 0) {
        put_negative(b, number);
    } else {
        put_head(b, ':', (uint64_t)number);
    }
}

/*
 * Returns the room for n integers: exactly if the buffer's bound is near, otherwise their maximum.
 */
static size_t integers_room(const struct buffer *b, const int64_t *numbers, size_t n)
{
    size_t most = INTEGER_BYTES * (n + 1);
    if (most <= b->most - buffer_len(b)) {
        return most;
    }
    size_t len = head_len(n);
    for (size_t i = 0; i < n; i++) {
        len += integer_len(numbers[i]);
    }
    return len;
}

void resp_put_integers(struct buffer *b, const int64_t *numbers, size_t n)
{
    char *begin = room(b, integers_room(b, numbers, n));
    if (begin == NULL) {
        return;
    }
    char *at = write_head(begin, '*', n);
    for (size_t i = 0; i < n; i++) {
        at = write_integer(at, numbers[i]);
    }
    buffer_add(b, (size_t)(at - begin));
}

static inline char *write_bulk_integer(char *at, int64_t number)
{
    size_t n = digits_of(size_of(number));
    at = write_head(at, '$', n + (number < 0));
    *at = '-';
    return write_digits(at + (number < 0), n, size_of(number));
}

void resp_put_bulk_integers(struct buffer *b, const int64_t *numbers, size_t n)
{
    char *begin = room(b, n * BULK_INTEGER_BYTES);
    if (begin == NULL) {
        return;
    }
    char *at = begin;
    for (size_t i = 0; i < n; i++) {
        at = write_bulk_integer(at, numbers[i]);
    }
    buffer_add(b, (size_t)(at - begin));
}

/* Writes <type><length of mark and text> CR LF <mark><text> CR LF. */
static void put_blob(struct buffer *b, char type, struct weir_text mark, struct weir_text text)
{
    size_t content = mark.len + text.len;
    size_t len = head_len(content) + content + 2;
    char *at = room(b, len);
    if (at == NULL) {
        return;
    }
    at = write_head(at, type, content);
    if (mark.len > 0) {
        memcpy(at, mark.at, mark.len);
    }
    if (text.len > 0) {
        memcpy(at + mark.len, text.at, text.len);
    }
    end_line(at + content);
    buffer_add(b, len);
}

void resp_put_bulk(struct buffer *b, struct weir_text text)
{
    put_blob(b, '$', TEXT(""), text);
}

void resp_put_verbatim(struct buffer *b, int proto, struct weir_text text)
{
    if (proto >= 3) {
        put_blob(b, '=', TEXT("txt:"), text);
    } else {
        resp_put_bulk(b, text);
    }
}

static void put_line(struct buffer *b, char type, struct weir_text text)
{
    char *at = room(b, text.len + 3);
    if (at == NULL) {
        return;
    }
    *at++ = type;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        at[i] = (char)(c < ' ' || c == 127 ? ' ' : c);
    }
    end_line(at + text.len);
    buffer_add(b, text.len + 3);
}

void resp_put_simple(struct buffer *b, struct weir_text text)
{
    put_line(b, '+', text);
}

void resp_put_error(struct buffer *b, struct weir_text text)
{
    put_line(b, '-', text);
}

void resp_put_errorf(struct buffer *b, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    resp_put_error(b, n < 0 ? TEXT("ERR") : text_of(text));
}

void resp_put_null(struct buffer *b, int proto)
{
    buffer_put(b, proto >= 3 ? TEXT("_\r\n") : TEXT("$-1\r\n"));
}

void resp_put_string(struct buffer *b, int proto, const char *string)
{
    if (string[0] != 0) {
        resp_put_bulk(b, text_of(string));
    } else {
        resp_put_null(b, proto);
    }
}
