#include "rules/value/quote.h"

#include <stdio.h>

#include "common/utf8.h"

/* The room for one more character or escape, the quote, "..." and the end. */
#define LAST (4 + 1 + 3 + 1)

static const char *write_quoted(struct weir_text text, bool ascii, char *buffer, size_t size)
{
    size_t n = 0;
    buffer[n++] = '\'';
    while (text.len > 0 && n + LAST <= size) {
        uint32_t c;
        size_t bytes = utf8_next(text, &c);
        if (bytes > 0 && utf8_visible(c) && (!ascii || bytes == 1)) {
            memcpy(buffer + n, text.at, bytes);
            n += bytes;
        } else {
            bytes = 1;
            n += (size_t)snprintf(buffer + n, size - n, "\\x%02x", (unsigned char)text.at[0]);
        }
        text = text_after(text, bytes);
    }
    (void)snprintf(buffer + n, size - n, text.len > 0 ? "'..." : "'");
    return buffer;
}

const char *quote(struct weir_text text, char *buffer)
{
    return write_quoted(text, false, buffer, QUOTE_MAX);
}

const char *quote_ascii(struct weir_text text, char *buffer, size_t size)
{
    return write_quoted(text, true, buffer, size);
}
