/* The order in which people read limits. */
#ifndef WEIR_CLI_LIMIT_ORDER_H
#define WEIR_CLI_LIMIT_ORDER_H

#include <jansson.h>

/*
 * Returns an array of the same limits, which the caller owns, in the order of the page
 * (web/limits.js): by denials per second, then by decisions per second, then as in the rule file.
 * Tiers of a limit have the same rates and stay together. Out of memory: NULL, or no limits.
 */
json_t *limits_by_denied(const json_t *limits);

#endif
