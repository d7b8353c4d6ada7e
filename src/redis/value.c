#include "redis/value.h"

#include "redis/reply.h"
#include "wire/resp.h"

/* Reads one value from the front: the line of it; for an array or a bulk string that is its
 * length. */
static int read_one(struct text input, size_t *used, struct value *out)
{
    const char *end = input.len != 0 ? memchr(input.at, '\r', input.len) : NULL;
    if (end == NULL || end + 1 == input.at + input.len) {
        return input.len > STORE_TEXT_MAX ? STORE_BAD : STORE_MORE;
    }
    size_t len = (size_t)(end - input.at);
    struct text line = {input.at + 1, len - 1};
    if (len == 0 || end[1] != '\n') {
        return STORE_BAD;
    }
    *out = (struct value){.type = input.at[0], .text = {"", 0}};
    *used = len + 2;
    switch (out->type) {
    case '+':
    case '-':
        out->text = line;
        return STORE_REPLY;
    case '_':
        return line.len == 0 ? STORE_REPLY : STORE_BAD;
    case ':':
    case '*':
    case '$':
        return resp_to_i64(line, &out->number) ? STORE_REPLY : STORE_BAD;
    default:
        return STORE_BAD;
    }
}

/* Reads the bytes of a bulk string. A length of -1 is a null value, for arrays too. */
static int finish_one(struct text input, size_t *used, struct value *out)
{
    if (out->type != '$' && out->type != '*') {
        return STORE_REPLY;
    }
    if (out->number < 0) {
        out->type = '_';
        return out->number == -1 ? STORE_REPLY : STORE_BAD;
    }
    if (out->number > (int64_t)VALUE_BYTES_MAX) {
        return STORE_BAD;
    }
    if (out->type == '*') {
        return STORE_REPLY;
    }
    size_t len = (size_t)out->number;
    if (input.len - *used < len + 2) {
        return STORE_MORE;
    }
    out->text = (struct text){input.at + *used, len};
    *used += len + 2;
    return memcmp(out->text.at + len, "\r\n", 2) == 0 ? STORE_REPLY : STORE_BAD;
}

static int take(struct text *rest, struct value *out)
{
    size_t used = 0;
    int e = read_one(*rest, &used, out);
    e = e == STORE_REPLY ? finish_one(*rest, &used, out) : e;
    if (e == STORE_REPLY) {
        *rest = text_after(*rest, used);
    }
    return e;
}

int value_whole(struct text input, size_t *used)
{
    int64_t left[VALUE_DEPTH_MAX + 1] = {1}; /* values that follow, at each depth */
    size_t depth = 0;
    struct text rest = input;
    while (depth > 0 || left[0] > 0) {
        struct value v;
        if (left[depth] == 0) {
            depth--;
            continue;
        }
        int e = take(&rest, &v);
        if (e != STORE_REPLY) {
            return e == STORE_MORE && input.len > VALUE_BYTES_MAX ? STORE_BAD : e;
        }
        left[depth]--;
        if (v.type == '*') {
            if (++depth > VALUE_DEPTH_MAX) {
                return STORE_BAD;
            }
            left[depth] = v.number;
        }
    }
    *used = input.len - rest.len;
    return STORE_REPLY;
}

bool value_next(struct text *rest, struct value *out)
{
    return take(rest, out) == STORE_REPLY;
}

struct text value_text(struct text *rest)
{
    struct value v;
    bool is = value_next(rest, &v) && (v.type == '$' || v.type == '+');
    return is ? v.text : (struct text){"", 0};
}

static int64_t number_of(struct text *rest, char type)
{
    struct value v;
    return value_next(rest, &v) && v.type == type ? v.number : -1;
}

int64_t value_integer(struct text *rest)
{
    return number_of(rest, ':');
}

int64_t value_array(struct text *rest)
{
    return number_of(rest, '*');
}

void value_pass(struct text *rest)
{
    size_t used = 0;
    if (value_whole(*rest, &used) == STORE_REPLY) {
        *rest = text_after(*rest, used);
    } else {
        rest->len = 0;
    }
}
