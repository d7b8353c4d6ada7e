/* SHA-256 (FIPS 180-4), which replaces long keys. It protects no secret here. */
#ifndef WEIR_COMMON_SHA256_H
#define WEIR_COMMON_SHA256_H

#include "common/text.h"

#define SHA256_SIZE 32

void sha256(struct weir_text text, unsigned char out[SHA256_SIZE]);

/*
 * Writes what stands for a text that is too long to be used as it is: a NUL and its SHA-256. So
 * that no other text gives the same bytes, those that begin with a NUL must be replaced too.
 */
#define SHA256_MARKED (1 + SHA256_SIZE)
void sha256_mark(struct weir_text text, char out[SHA256_MARKED]);

#endif
