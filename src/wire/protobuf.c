#include "wire/protobuf.h"

#include "common/utf8.h"

#define VARINT_MAX 10 /* bytes of 64 bits */
#define NUMBER_MAX ((UINT64_C(1) << 29) - 1)

/* ---- reading ---- */

static bool take_varint(struct weir_text *rest, uint64_t *value)
{
    uint64_t v = 0;
    for (size_t i = 0; i < rest->len && i < VARINT_MAX; i++) {
        unsigned char byte = (unsigned char)rest->at[i];
        if (i == VARINT_MAX - 1 && byte > 1) { /* more than 64 bits */
            return false;
        }
        v |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value = v;
            *rest = text_after(*rest, i + 1);
            return true;
        }
    }
    return false;
}

/* Takes a number of `n` bytes, the lowest first. */
static bool take_fixed(struct weir_text *rest, size_t n, uint64_t *value)
{
    if (rest->len < n) {
        return false;
    }
    *value = 0;
    for (size_t i = 0; i < n; i++) {
        *value |= (uint64_t)(unsigned char)rest->at[i] << (8 * i);
    }
    *rest = text_after(*rest, n);
    return true;
}

static bool take_bytes(struct weir_text *rest, struct weir_text *bytes)
{
    uint64_t len;
    if (!take_varint(rest, &len) || len > rest->len) {
        return false;
    }
    *bytes = (struct weir_text){rest->at, (size_t)len};
    *rest = text_after(*rest, (size_t)len);
    return true;
}

static bool take_value(struct weir_text *rest, struct protobuf_field *field)
{
    switch (field->type) {
    case PROTOBUF_VARINT:
        return take_varint(rest, &field->value);
    case PROTOBUF_FIXED64:
        return take_fixed(rest, 8, &field->value);
    case PROTOBUF_BYTES:
        return take_bytes(rest, &field->bytes);
    case PROTOBUF_FIXED32:
        return take_fixed(rest, 4, &field->value);
    default: /* groups, which proto3 does not have */
        return false;
    }
}

int protobuf_next(struct weir_text *rest, struct protobuf_field *field)
{
    uint64_t tag;
    if (rest->len == 0) {
        return 0;
    }
    if (!take_varint(rest, &tag) || tag >> 3 == 0 || tag >> 3 > NUMBER_MAX) {
        return -1;
    }
    *field = (struct protobuf_field){
        .number = (uint32_t)(tag >> 3), .type = (enum protobuf_type)(tag & 7), .bytes = {"", 0}};
    return take_value(rest, field) ? 1 : -1;
}

bool protobuf_is_string(struct weir_text text)
{
    while (text.len > 0) {
        uint32_t c = (unsigned char)text.at[0];
        size_t n = c < 0x80 ? 1 : utf8_next(text, &c);
        if (n == 0 || c == 0) {
            return false;
        }
        text = text_after(text, n);
    }
    return true;
}

/* ---- writing ---- */

static void put_varint(struct buffer *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        buffer_put_char(to, (char)(value | 0x80));
    }
    buffer_put_char(to, (char)value);
}

static void put_tag(struct buffer *to, uint32_t number, enum protobuf_type type)
{
    put_varint(to, (uint64_t)number << 3 | type);
}

void protobuf_put_number(struct buffer *to, uint32_t number, uint64_t value)
{
    if (value != 0) {
        put_tag(to, number, PROTOBUF_VARINT);
        put_varint(to, value);
    }
}

void protobuf_put_bytes(struct buffer *to, uint32_t number, struct weir_text bytes)
{
    if (bytes.len > 0) {
        protobuf_put_message(to, number, bytes);
    }
}

void protobuf_put_message(struct buffer *to, uint32_t number, struct weir_text message)
{
    put_tag(to, number, PROTOBUF_BYTES);
    put_varint(to, message.len);
    buffer_put(to, message);
}

size_t protobuf_begin(struct buffer *to, uint32_t number)
{
    put_tag(to, number, PROTOBUF_BYTES);
    buffer_put_char(to, 0); /* the length, for which one byte mostly suffices */
    return buffer_len(to);
}

void protobuf_end(struct buffer *to, size_t place)
{
    char length[VARINT_MAX];
    size_t n = 0;
    size_t bytes = to->full ? 0 : buffer_len(to) - place;
    size_t value = bytes;
    for (; value >= 0x80; value >>= 7) {
        length[n++] = (char)(value | 0x80);
    }
    length[n++] = (char)value;
    if (to->full || (n > 1 && buffer_room(to, n - 1) == NULL)) {
        return;
    }
    char *message = to->at + to->begin + place;
    memmove(message + n - 1, message, bytes);
    memcpy(message - 1, length, n);
    buffer_add(to, n - 1);
}
