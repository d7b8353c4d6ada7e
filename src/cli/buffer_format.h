/* Appends formatted text to a buffer. */
#ifndef WEIR_CLI_BUFFER_FORMAT_H
#define WEIR_CLI_BUFFER_FORMAT_H

#include "common/buffer.h"

/* Appends as printf() prints. */
void buffer_format(struct buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
