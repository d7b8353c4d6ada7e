/* Decodes UTF-8, one character at a time. */
#ifndef WEIR_COMMON_UTF8_H
#define WEIR_COMMON_UTF8_H

#include <stdint.h>

#include "common/text.h"

/* Returns the length of a character by its first byte; 0: none begins so. */
static inline size_t utf8_length(unsigned char first)
{
    if (first < 0x80) {
        return 1;
    }
    if (first < 0xc0 || first > 0xf4) {
        return 0;
    }
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/*
 * Returns the length in bytes, 1 to 4, of the character that the text begins with, and sets *number
 * to its code point; 0 if the bytes are invalid.
 */
static inline size_t utf8_next(struct weir_text text, uint32_t *number)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = text.len > 0 ? (unsigned char)text.at[0] : 0xff;
    size_t n = utf8_length(first);
    if (n == 0 || n > text.len) {
        return 0;
    }
    uint32_t c = n == 1 ? first : first & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        unsigned char more = (unsigned char)text.at[i];
        if ((more & 0xc0) != 0x80) {
            return 0;
        }
        c = c << 6 | (more & 0x3f);
    }
    *number = c;
    return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

/*
 * True if a character shows itself and has no other effect: it is no control character (those of C1
 * control terminals too), line or paragraph end, byte order mark, or change of direction.
 */
static inline bool utf8_visible(uint32_t c)
{
    return c >= 0x20 && !(c >= 0x7f && c < 0xa0) && !(c >= 0x200b && c <= 0x200f) &&
           !(c >= 0x2028 && c <= 0x202e) && !(c >= 0x2066 && c <= 0x2069) && c != 0xfeff &&
           c < 0xe0000 && (c & 0xfffe) != 0xfffe;
}

/*
 * Takes the next character off the front of the text, which is not empty. A byte that belongs to no
 * character is taken by itself, and is not visible.
 */
static inline struct weir_text utf8_take(struct weir_text *rest, bool *visible)
{
    uint32_t c = 0;
    size_t n = utf8_next(*rest, &c);
    struct weir_text taken = {rest->at, n > 0 ? n : 1};
    *visible = n > 0 && utf8_visible(c);
    *rest = text_after(*rest, taken.len);
    return taken;
}

#endif
