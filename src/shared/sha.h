/*
 * SHA-1, by which Redis names scripts, and SHA-256, which stands for long keys (FIPS 180-4).
 * Neither guards a secret here.
 */
#ifndef WEIR_SHARED_SHA_H
#define WEIR_SHARED_SHA_H

#include "common/text.h"

#define SHA1_SIZE 20
#define SHA256_SIZE 32

void sha1(struct text text, unsigned char out[SHA1_SIZE]);
void sha256(struct text text, unsigned char out[SHA256_SIZE]);

/* 2 n digits and a terminator. */
void hex_digits(const unsigned char *bytes, size_t n, char *out);

#endif
