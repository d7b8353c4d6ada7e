#include "cli/buffer_format.h"

#include <stdarg.h>
#include <stdio.h>

void buffer_format(struct buffer *b, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *room = n >= 0 ? buffer_room(b, (size_t)n + 1) : NULL;
    if (room != NULL) {
        va_start(list, format);
        (void)vsnprintf(room, (size_t)n + 1, format, list);
        va_end(list);
        buffer_add(b, (size_t)n);
    }
}
