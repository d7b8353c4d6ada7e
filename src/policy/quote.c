#include "policy/quote.h"

/* The opening quote before; the longest escape, "..., and the end behind. */
#define LAST (QUOTE_MAX - 4 - 5)

const char *quote(struct text text, char *buffer)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    size_t i = 0;
    buffer[n++] = '"';
    for (; i < text.len && n < LAST; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c >= 0x20 && c < 0x7f) {
            buffer[n++] = (char)c;
            continue;
        }
        buffer[n++] = '\\';
        buffer[n++] = 'x';
        buffer[n++] = digits[c >> 4];
        buffer[n++] = digits[c & 15];
    }
    buffer[n++] = '"';
    memcpy(buffer + n, "...", 4);
    buffer[i < text.len ? n + 3 : n] = '\0';
    return buffer;
}
