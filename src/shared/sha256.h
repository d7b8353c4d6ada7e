/* SHA-256 (FIPS 180-4), which replaces long keys. It protects no secret here. */
#ifndef WEIR_SHARED_SHA256_H
#define WEIR_SHARED_SHA256_H

#include "common/text.h"

#define SHA256_SIZE 32

void sha256(struct text text, unsigned char out[SHA256_SIZE]);

#endif
