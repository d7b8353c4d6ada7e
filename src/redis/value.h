/*
 * Any reply of a Redis, read as a row of values: what the few commands need whose replies are not those
 * of scripts (ROLE, CLUSTER SLOTS, SENTINEL). An array is a value that says how many follow.
 */
#ifndef WEIR_REDIS_VALUE_H
#define WEIR_REDIS_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

#define VALUE_BYTES_MAX ((size_t)4 << 20) /* of a whole reply */
#define VALUE_DEPTH_MAX 8

struct value {
    char type;        /* '*' array, ':' integer, '$' or '+' text, '-' error, '_' nothing */
    int64_t number;   /* ':' itself; '*' how many follow */
    struct text text; /* '$', '+', '-' */
};

/* How many bytes one whole reply takes. STORE_REPLY, STORE_MORE, STORE_BAD: as redis/reply.h. */
int value_whole(struct text input, size_t *used);

/* Takes the next value from the front of a whole reply. False: there is none. */
bool value_next(struct text *rest, struct value *out);

/* The next value if it is a text, or else an empty one; an integer or an array's length, or else -1. */
struct text value_text(struct text *rest);
int64_t value_integer(struct text *rest);
int64_t value_array(struct text *rest);

/* Passes over one value and all that is in it. */
void value_pass(struct text *rest);

#endif
