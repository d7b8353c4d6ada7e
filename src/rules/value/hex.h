/* Hexadecimal digits, in addresses and after a percent sign. */
#ifndef WEIR_RULES_VALUE_HEX_H
#define WEIR_RULES_VALUE_HEX_H

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

#endif
