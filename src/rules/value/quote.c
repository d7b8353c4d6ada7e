#include "rules/value/quote.h"

#include "common/utf8.h"

/*
 * After this position there is room for one more character or escape, the quote, "..." and the end.
 */
#define LAST (QUOTE_MAX - 4 - 5)

static size_t put_escape(char *to, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    to[0] = '\\';
    to[1] = 'x';
    to[2] = digits[c >> 4];
    to[3] = digits[c & 15];
    return 4;
}

const char *quote(struct text text, char *buffer)
{
    size_t n = 0;
    buffer[n++] = '\'';
    while (text.len > 0 && n < LAST) {
        uint32_t c;
        size_t bytes = utf8_next(text, &c);
        if (bytes > 0 && utf8_visible(c)) {
            memcpy(buffer + n, text.at, bytes);
            n += bytes;
        } else {
            bytes = 1;
            n += put_escape(buffer + n, (unsigned char)text.at[0]);
        }
        text = text_after(text, bytes);
    }
    buffer[n++] = '\'';
    memcpy(buffer + n, "...", 4);
    buffer[text.len > 0 ? n + 3 : n] = '\0';
    return buffer;
}
