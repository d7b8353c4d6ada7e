#include "server/http/http_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"

/* What a value is, for a message; numbers as they are. */
static const char *describe(const json_t *value, char *room, size_t size)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_STRING] = "a string",
        [JSON_TRUE] = "true",        [JSON_FALSE] = "false",  [JSON_NULL] = "null"};
    if (json_is_integer(value)) {
        (void)snprintf(room, size, "%" PRId64, (int64_t)json_integer_value(value));
        return room;
    }
    if (json_is_real(value)) {
        (void)snprintf(room, size, "%.6g", json_real_value(value));
        return room;
    }
    bool empty = json_is_string(value) && json_string_length(value) == 0;
    return empty ? "an empty string" : kinds[json_typeof(value)];
}

static int bad(struct weir_error *error, const char *name, const json_t *value,
               const char *expected)
{
    char room[32];
    return fail(error, WEIR_EINVAL, "%.64s: found %s, expected %s", name,
                describe(value, room, sizeof room), expected);
}

static int read_text(const json_t *value, const char *name, uint64_t least, struct text *out,
                     struct weir_error *error)
{
    if (!json_is_string(value) || json_string_length(value) < least) {
        return bad(error, name, value,
                   json_is_string(value) ? "at least one character" : "a string");
    }
    *out = (struct text){json_string_value(value), json_string_length(value)};
    return 0;
}

uint64_t http_number_most(const struct ask_member_row *row)
{
    return row->most < INT64_MAX ? row->most : INT64_MAX;
}

static int read_count(const json_t *value, const struct ask_member_row *row, uint64_t *out,
                      struct weir_error *error)
{
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    uint64_t most = http_number_most(row);
    if (number < 0 || (uint64_t)number < row->least || (uint64_t)number > most) {
        char expected[80];
        (void)snprintf(expected, sizeof expected, "a whole number from %" PRIu64 " to %" PRIu64,
                       row->least, most);
        return bad(error, row->name, value, expected);
    }
    *out = (uint64_t)number;
    return 0;
}

static int read_part(const json_t *value, struct ask *ask, struct weir_error *error)
{
    struct text part = {NULL, 0};
    int e = read_text(value, "key", ask_members[ASK_KEY].least, &part, error);
    if (e == 0) {
        ask->parts[ask->parts_count++] = (struct weir_rules_value){part.at, part.len};
    }
    return e;
}

static int read_key(const json_t *value, struct ask *ask, struct weir_error *error)
{
    if (!json_is_array(value)) {
        return read_part(value, ask, error);
    }
    if (json_array_size(value) > CONFIG_KEY_PARTS_MAX) {
        return fail(error, WEIR_EINVAL, "key: found %zu parts, expected at most 8",
                    json_array_size(value));
    }
    int e = 0;
    for (size_t i = 0; e == 0 && i < json_array_size(value); i++) {
        e = read_part(json_array_get(value, i), ask, error);
    }
    return e;
}

static int read_attributes(json_t *value, struct ask *ask, struct weir_error *error)
{
    if (!json_is_object(value) || json_object_size(value) > WEIR_RULES_ATTRIBUTES_MAX) {
        return bad(error, "attributes", value, "an object with at most 256 members");
    }
    for (void *at = json_object_iter(value); at != NULL; at = json_object_iter_next(value, at)) {
        struct text text = {NULL, 0};
        const char *name = json_object_iter_key(at);
        int e = read_text(json_object_iter_value(at), name, 0, &text, error);
        if (e != 0) {
            return e;
        }
        ask->attributes[ask->attributes_count++] =
            (struct weir_rules_attribute){name, strlen(name), text.at, text.len};
    }
    return 0;
}

static int read_value(json_t *value, unsigned member, struct ask *ask, struct weir_error *error)
{
    const struct ask_member_row *row = &ask_members[member];
    ask->given |= ASK_BIT(member);
    switch (row->kind) {
    case ASK_TEXT:
        return read_text(value, row->name, row->least, &ask->text[member], error);
    case ASK_PARTS:
        return read_key(value, ask, error);
    case ASK_PAIRS:
        return read_attributes(value, ask, error);
    default:
        if (row->endless && json_is_null(value)) {
            ask->number[member] = ASK_FOREVER;
            return 0;
        }
        return read_count(value, row, &ask->number[member], error);
    }
}

/* Writes "limit, key or tier". */
static void list_members(unsigned of, char *text, size_t size)
{
    size_t n = 0;
    for (unsigned i = 0; i < ASK_MEMBERS && n < size; i++) {
        if ((of & ASK_BIT(i)) != 0) {
            n += (size_t)snprintf(text + n, size - n, "%s%s",
                                  n == 0         ? ""
                                  : of >> i == 1 ? " or "
                                                 : ", ",
                                  ask_members[i].name);
        }
    }
}

static int read_member(const char *name, json_t *value, unsigned allowed, struct ask *ask,
                       struct weir_error *error)
{
    char expected[128] = "";
    for (unsigned i = 0; i < ASK_MEMBERS; i++) {
        if ((allowed & ASK_BIT(i)) != 0 && strcmp(ask_members[i].name, name) == 0) {
            return read_value(value, i, ask, error);
        }
    }
    list_members(allowed, expected, sizeof expected);
    return fail(error, WEIR_EINVAL, "found '%.64s', expected %s", name, expected);
}

int http_read_ask(json_t *object, const struct operation_row *row, struct ask *ask,
                  struct weir_error *error)
{
    ask_init(ask);
    if (!json_is_object(object)) {
        return fail(error, WEIR_EINVAL, "expected an object");
    }
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        int e = read_member(json_object_iter_key(at), json_object_iter_value(at), row->members, ask,
                            error);
        if (e != 0) {
            return e;
        }
    }
    unsigned missing = row->needed & ~ask->given;
    return missing == 0 ? 0
                        : fail(error, WEIR_EINVAL, "expected the member %s",
                               ask_members[__builtin_ctz(missing)].name);
}

/* Bytes of a key may be any, so "\u0000" is allowed. */
json_t *http_read_json(struct exchange *x)
{
    struct text body = x->request->body;
    json_error_t why;
    json_t *json = json_loadb(body.at, body.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (json == NULL) {
        struct weir_error error;
        (void)fail(&error, WEIR_EINVAL, "the body is not JSON: line %d, column %d: %s", why.line,
                   why.column, why.text);
        http_reply_failure(x, WEIR_EINVAL, &error);
    }
    return json;
}
