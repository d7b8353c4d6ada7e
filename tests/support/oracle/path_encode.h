/* Spells normalised paths, for tests of path_normalise(). */
#ifndef WEIR_TESTS_SUPPORT_PATH_ENCODE_H
#define WEIR_TESTS_SUPPORT_PATH_ENCODE_H

#include "rules/value/path.h"

/*
 * Writes the canonical spelling of a normalised path into out (3 * PATH_BYTES_MAX bytes) and
 * returns its length: bytes other than unreserved characters, '/' and !$&'()*+,:=@ are written as
 * %XX. path_normalise() turns it into the same path again, unless it has become too long.
 */
static inline size_t path_encode(struct weir_text path, char *out)
{
    static const char kept[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "-._~/!$&'()*+,:=@";
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.at[i];
        if (c != 0 && strchr(kept, c) != NULL) {
            out[n++] = (char)c;
            continue;
        }
        out[n++] = '%';
        out[n++] = digits[c >> 4];
        out[n++] = digits[c & 15];
    }
    return n;
}

#endif
