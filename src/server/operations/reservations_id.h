/* The id of a reservation: 128 random bits, written as 32 hex digits. */
#ifndef WEIR_SERVER_OPERATIONS_RESERVATIONS_ID_H
#define WEIR_SERVER_OPERATIONS_RESERVATIONS_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

struct id {
    uint64_t word[2];
};

void id_print(struct id id, char *text); /* writes RESERVATION_ID bytes */
bool id_parse(struct weir_text text, struct id *id);
bool id_random(struct id *id);

#endif
