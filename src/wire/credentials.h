/*
 * The secret that a request shows: as a bearer token or a Basic password in the field
 * Authorization, or in the field Weir-Secret, which is for gateways that pass on their client's
 * Authorization and have a secret of their own.
 */
#ifndef WEIR_WIRE_CREDENTIALS_H
#define WEIR_WIRE_CREDENTIALS_H

#include <stdbool.h>

#include "common/text.h"

#define CREDENTIALS_BASIC_MAX 1088 /* bytes of a user and a password */

struct credentials {
    struct weir_text user; /* len 0: none was given */
    struct weir_text secret;
    char room[CREDENTIALS_BASIC_MAX]; /* a decoded Basic password */
};

/* Reads the values of the two fields; at == NULL: the field is absent. Returns false if there is no
 * secret, or none that could be understood. */
bool credentials_read(struct weir_text authorization, struct weir_text weir_secret,
                      struct credentials *c);

#endif
