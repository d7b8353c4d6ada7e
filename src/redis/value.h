/*
 * Reads any reply of a Redis as a sequence of values, for the few commands whose replies are not
 * those of scripts (ROLE, CLUSTER SLOTS, SENTINEL). An array is a value that says how many values
 * follow.
 */
#ifndef WEIR_REDIS_VALUE_H
#define WEIR_REDIS_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

#define VALUE_BYTES_MAX ((size_t)4 << 20) /* most bytes of a whole reply */
#define VALUE_DEPTH_MAX 8

struct value {
    char type;        /* '*' array, ':' integer, '$' or '+' text, '-' error, '_' nothing */
    int64_t number;   /* ':' the integer; '*' how many values follow */
    struct text text; /* '$', '+', '-' */
};

/* Sets *used to the number of bytes of the whole reply at the front. Returns STORE_REPLY,
 * STORE_MORE or STORE_BAD, as in redis/reply.h. */
int value_whole(struct text input, size_t *used);

/* Takes the next value from the front of a whole reply. False: there is none. */
bool value_next(struct text *rest, struct value *out);

/* Take the next value. value_text() returns an empty text if it is not a text; value_integer() and
 * value_array() (the length) return -1 if it is not an integer or an array. */
struct text value_text(struct text *rest);
int64_t value_integer(struct text *rest);
int64_t value_array(struct text *rest);

/* Passes over one value and all that is in it. */
void value_pass(struct text *rest);

#endif
