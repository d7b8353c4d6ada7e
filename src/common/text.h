/* Functions of struct weir_text. */
#ifndef WEIR_COMMON_TEXT_H
#define WEIR_COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir.h>

#define TEXT(literal) ((struct weir_text){(literal), sizeof(literal) - 1})

/* For printf: "%.*s" with TEXT_ARGS(t). */
#define TEXT_ARGS(t) (int)(t).len, (t).at

/* As TEXT_ARGS(), for a text of a client in a message: at most `most` bytes of it. */
#define TEXT_CUT(t, most) (int)((t).len > (most) ? (most) : (t).len), (t).at

static inline struct weir_text text_of(const char *string)
{
    return (struct weir_text){string, strlen(string)};
}

static inline bool text_equal(struct weir_text a, struct weir_text b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static inline bool text_is(struct weir_text a, const char *string)
{
    return text_equal(a, text_of(string));
}

static inline bool text_starts(struct weir_text a, const char *prefix)
{
    size_t n = strlen(prefix);
    return a.len >= n && memcmp(a.at, prefix, n) == 0;
}

/* Compares in upper or lower case; the word itself is given in upper case. */
static inline bool text_is_word(struct weir_text a, const char *upper)
{
    if (a.len != strlen(upper)) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        char c = (char)(a.at[i] >= 'a' && a.at[i] <= 'z' ? a.at[i] - 'a' + 'A' : a.at[i]);
        if (c != upper[i]) {
            return false;
        }
    }
    return true;
}

/* True if the text ends with the suffix, and is longer. */
static inline bool text_ends(struct weir_text a, const char *suffix)
{
    size_t n = strlen(suffix);
    return a.len > n && memcmp(a.at + a.len - n, suffix, n) == 0;
}

/* True for an ASCII letter, a digit, or one of the others. */
static inline bool text_is_plain(char c, const char *others)
{
    char lower = (char)(c | 0x20);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr(others, c) != NULL);
}

/* True if the text has nothing but ASCII letters, digits and the others; false if it is empty. */
static inline bool text_is_made_of(struct weir_text a, const char *others)
{
    size_t i = 0;
    while (i < a.len && text_is_plain(a.at[i], others)) {
        i++;
    }
    return a.len > 0 && i == a.len;
}

/* Returns the text without its first n bytes. */
static inline struct weir_text text_after(struct weir_text a, size_t n)
{
    return (struct weir_text){a.at + n, a.len - n};
}

/* Returns the text before the first byte c; all of it if there is none. */
static inline struct weir_text text_before(struct weir_text a, char c)
{
    const char *found = a.len > 0 ? memchr(a.at, c, a.len) : NULL;
    return (struct weir_text){a.at, found != NULL ? (size_t)(found - a.at) : a.len};
}

/* Takes the text before the first byte c off the front, and that byte; returns the text. */
static inline struct weir_text text_cut(struct weir_text *rest, char c)
{
    struct weir_text part = text_before(*rest, c);
    *rest = text_after(*rest, part.len + (part.len < rest->len));
    return part;
}

/* Reads decimal digits. Returns false for anything else, and for more than 64 bits. */
static inline bool text_to_u64(struct weir_text a, uint64_t *number)
{
    uint64_t n = 0;
    for (size_t i = 0; i < a.len; i++) {
        unsigned digit = (unsigned)(unsigned char)a.at[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, digit, &n)) {
            return false;
        }
    }
    *number = n;
    return a.len > 0;
}

/* Writes a number in decimal digits, at most 20, and returns the end. */
static inline char *text_put_u64(char *to, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    memcpy(to, digits + at, sizeof digits - at);
    return to + sizeof digits - at;
}

/* Returns the value of a hexadecimal digit; 16 if it is none. */
static inline unsigned text_hex_digit(char c)
{
    char lower = (char)(c | 0x20);
    return c >= '0' && c <= '9'           ? (unsigned)(c - '0')
           : lower >= 'a' && lower <= 'f' ? (unsigned)(lower - 'a') + 10
                                          : 16;
}

/* Returns the byte that the two hexadecimal digits at this place stand for; -1: there are none. */
static inline int text_hex_byte(struct weir_text a, size_t at)
{
    unsigned high = a.len > at + 1 ? text_hex_digit(a.at[at]) : 16;
    unsigned low = high < 16 ? text_hex_digit(a.at[at + 1]) : 16;
    return low < 16 ? (int)(high << 4 | low) : -1;
}

/* Returns the byte that "%XX" at this place stands for; -1: there is none. */
static inline int text_percent_byte(struct weir_text a, size_t at)
{
    return a.at[at] == '%' ? text_hex_byte(a, at + 1) : -1;
}

/* Returns the text without spaces, tabs and line ends around it. */
static inline struct weir_text text_trim(struct weir_text a)
{
    while (a.len > 0 && strchr(" \t\r\n", a.at[0]) != NULL && a.at[0] != 0) {
        a = text_after(a, 1);
    }
    while (a.len > 0 && strchr(" \t\r\n", a.at[a.len - 1]) != NULL && a.at[a.len - 1] != 0) {
        a.len--;
    }
    return a;
}

#endif
