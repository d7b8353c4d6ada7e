/* Percent-encoded bytes. */
#ifndef WEIR_RULES_VALUE_HEX_H
#define WEIR_RULES_VALUE_HEX_H

#include "common/text.h"

/* Returns 0 to 15, or -1. */
static inline int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Returns the byte that "%XX" at this place of the text stands for; -1: there is none. */
static inline int hex_percent(struct text text, size_t at)
{
    int high = text.at[at] == '%' && text.len - at > 2 ? hex_value(text.at[at + 1]) : -1;
    int low = high >= 0 ? hex_value(text.at[at + 2]) : -1;
    return low >= 0 ? high << 4 | low : -1;
}

#endif
