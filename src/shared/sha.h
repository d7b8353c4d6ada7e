/*
 * SHA-1, by which Redis names scripts, and SHA-256, which replaces long keys (FIPS 180-4).
 * Neither protects a secret here.
 */
#ifndef WEIR_SHARED_SHA_H
#define WEIR_SHARED_SHA_H

#include "common/text.h"

#define SHA1_SIZE 20
#define SHA256_SIZE 32

void sha1(struct text text, unsigned char out[SHA1_SIZE]);
void sha256(struct text text, unsigned char out[SHA256_SIZE]);

/* Writes 2 n hexadecimal digits and a terminator. */
void hex_digits(const unsigned char *bytes, size_t n, char *out);

#endif
