/*
 * What was found, for an error text. A value of a request is anybody's bytes: an
 * error that ends on a terminal or in a log must not carry its control characters.
 */
#ifndef WEIR_RULES_VALUE_QUOTE_H
#define WEIR_RULES_VALUE_QUOTE_H

#include "common/text.h"

#define QUOTE_MAX 80

/*
 * The text between single quotes, bytes that do not belong to a visible character as
 * \xNN, a long text cut and ended by '...; buffer of QUOTE_MAX bytes, which is returned.
 */
const char *quote(struct text text, char *buffer);

#endif
