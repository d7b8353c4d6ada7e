/*
 * Protocol Buffers, as far as gRPC messages need them: a reader that walks over the fields of a
 * message where it lies, and functions that append fields to a buffer. Field numbers and types are
 * the caller's; nothing is allocated.
 */
#ifndef WEIR_WIRE_PROTOBUF_H
#define WEIR_WIRE_PROTOBUF_H

#include <stdbool.h>

#include "common/buffer.h"
#include "common/text.h"

enum protobuf_type {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_BYTES = 2,
    PROTOBUF_FIXED32 = 5
};

struct protobuf_field {
    uint32_t number; /* from 1 to 2^29 - 1 */
    enum protobuf_type type;
    uint64_t value;         /* of every type but PROTOBUF_BYTES */
    struct weir_text bytes; /* of PROTOBUF_BYTES: a string, bytes, or a message */
};

/* Takes the field at the front of *rest. Returns 1; 0 at the end of the message; -1 if it is
 * malformed, cut off, or a group. */
int protobuf_next(struct weir_text *rest, struct protobuf_field *field);

/* Returns whether the text is UTF-8 without NUL, as strings of messages must be here. */
bool protobuf_is_string(struct weir_text text);

/* Append a field, unless it is 0 or empty: proto3 leaves such fields out. */
void protobuf_put_number(struct buffer *to, uint32_t number, uint64_t value);
void protobuf_put_bytes(struct buffer *to, uint32_t number, struct weir_text bytes);

/* Appends a field even if it is empty: an item of a list, or a message that is there. */
void protobuf_put_message(struct buffer *to, uint32_t number, struct weir_text message);

/* Append a message whose fields are put between the two calls. protobuf_begin() returns its place,
 * which protobuf_end() needs. */
size_t protobuf_begin(struct buffer *to, uint32_t number);
void protobuf_end(struct buffer *to, size_t place);

#endif
