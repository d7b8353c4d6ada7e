/*
 * Quotes values for error texts. The values of a request are chosen by its sender: an error that is
 * shown on a terminal or in a log must not contain their control characters.
 */
#ifndef WEIR_RULES_VALUE_QUOTE_H
#define WEIR_RULES_VALUE_QUOTE_H

#include "common/text.h"

#define QUOTE_MAX 80

/*
 * Writes the text between single quotes into a buffer of QUOTE_MAX bytes, and returns the buffer.
 * Bytes that do not belong to a visible character become \xNN; a long text is cut and ended by '...
 */
const char *quote(struct weir_text text, char *buffer);

/*
 * Does the same into `size` bytes, at least 16, with all but printable ASCII as \xNN: for texts in
 * which a digit of another alphabet must not look like one of ours.
 */
const char *quote_ascii(struct weir_text text, char *buffer, size_t size);

#endif
