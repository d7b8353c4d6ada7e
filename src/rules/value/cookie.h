/* Finds a cookie in the value of a header field Cookie (RFC 6265): "sid=31d4; lang=en". */
#ifndef WEIR_RULES_VALUE_COOKIE_H
#define WEIR_RULES_VALUE_COOKIE_H

#include <stdbool.h>

#include "common/text.h"

/* True for a name that a cookie can have: a token of RFC 9110. */
bool cookie_name_is_good(struct weir_text name);

/*
 * Sets *value to the value of the cookie, without quotes around it; len 0 if there is none. Upper
 * and lower case of names differ. Returns false if the field has the cookie twice with different
 * values: servers disagree on which of them counts.
 */
bool cookie_find(struct weir_text field, struct weir_text name, struct weir_text *value);

#endif
