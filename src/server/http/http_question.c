/* Reads the members of questions in JSON, for all routes. */
#include "server/http/http_question.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "server/ask/reservations.h"

/* ---- members ---- */

/* Describes a value for a message: its kind, or the number itself. */
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
    return kinds[json_typeof(value)];
}

static int bad(struct weir_error *error, const char *name, const json_t *value,
               const char *expected)
{
    char room[32];
    return fail(error, WEIR_EINVAL, "%.64s: found %s, expected %s", name,
                describe(value, room, sizeof room), expected);
}

static int read_text(const json_t *value, const char *name, struct text *out,
                     struct weir_error *error)
{
    if (!json_is_string(value)) {
        return bad(error, name, value, "a string");
    }
    *out = (struct text){json_string_value(value), json_string_length(value)};
    return 0;
}

static int read_count(const json_t *value, const char *name, uint64_t least, uint64_t most,
                      uint64_t *out, struct weir_error *error)
{
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    if (number < 0 || (uint64_t)number < least || (uint64_t)number > most) {
        char expected[80];
        (void)snprintf(expected, sizeof expected, "a whole number from %" PRIu64 " to %" PRIu64,
                       least, most);
        return bad(error, name, value, expected);
    }
    *out = (uint64_t)number;
    return 0;
}

static int read_limit(const json_t *value, struct http_question *q, struct weir_error *error)
{
    return read_text(value, "limit", &q->limit, error);
}

static int read_tier(const json_t *value, struct http_question *q, struct weir_error *error)
{
    return read_text(value, "tier", &q->tier, error);
}

static int read_cost(const json_t *value, struct http_question *q, struct weir_error *error)
{
    return read_count(value, "cost", 1, INT64_MAX, &q->cost, error);
}

static int read_max_wait(const json_t *value, struct http_question *q, struct weir_error *error)
{
    return read_count(value, "max_wait_ms", 0, INT64_MAX / WEIR_MILLISECOND, &q->max_wait_ms,
                      error);
}

static int read_part(const json_t *value, struct http_question *q, struct weir_error *error)
{
    struct text part = {NULL, 0};
    int e = read_text(value, "key", &part, error);
    if (e == 0) {
        q->parts[q->parts_count++] = (struct weir_rules_value){part.at, part.len};
    }
    return e;
}

static int read_key(const json_t *value, struct http_question *q, struct weir_error *error)
{
    if (!json_is_array(value)) {
        return read_part(value, q, error);
    }
    if (json_array_size(value) > CONFIG_KEY_PARTS_MAX) {
        return fail(error, WEIR_EINVAL, "key: found %zu parts, expected at most 8",
                    json_array_size(value));
    }
    int e = 0;
    for (size_t i = 0; e == 0 && i < json_array_size(value); i++) {
        e = read_part(json_array_get(value, i), q, error);
    }
    return e;
}

static int read_attributes(const json_t *value, struct http_question *q, struct weir_error *error)
{
    json_t *all = (json_t *)(uintptr_t)value; /* the iterator only looks */
    if (!json_is_object(value) || json_object_size(value) > WEIR_RULES_ATTRIBUTES_MAX) {
        return bad(error, "attributes", value, "an object with at most 256 members");
    }
    for (void *at = json_object_iter(all); at != NULL; at = json_object_iter_next(all, at)) {
        struct text text = {NULL, 0};
        const char *name = json_object_iter_key(at);
        int e = read_text(json_object_iter_value(at), name, &text, error);
        if (e != 0) {
            return e;
        }
        q->attributes[q->attributes_count++] =
            (struct weir_rules_attribute){name, strlen(name), text.at, text.len};
    }
    return 0;
}

static int read_ttl(const json_t *value, struct http_question *q, struct weir_error *error)
{
    return read_count(value, "ttl_ms", 1, RESERVATION_TTL_MAX_MS, &q->ttl_ms, error);
}

static int read_reservation(const json_t *value, struct http_question *q, struct weir_error *error)
{
    return read_text(value, "reservation", &q->reservation, error);
}

static int read_actual(const json_t *value, struct http_question *q, struct weir_error *error)
{
    return read_count(value, "actual", 0, INT64_MAX, &q->actual, error);
}

static const struct {
    const char *name;
    int (*read)(const json_t *value, struct http_question *q, struct weir_error *error);
} members[HTTP_MEMBERS] = {
    [HTTP_LIMIT] = {"limit", read_limit},
    [HTTP_KEY] = {"key", read_key},
    [HTTP_TIER] = {"tier", read_tier},
    [HTTP_COST] = {"cost", read_cost},
    [HTTP_MAX_WAIT] = {"max_wait_ms", read_max_wait},
    [HTTP_ATTRIBUTES] = {"attributes", read_attributes},
    [HTTP_TTL] = {"ttl_ms", read_ttl},
    [HTTP_RESERVATION] = {"reservation", read_reservation},
    [HTTP_ACTUAL] = {"actual", read_actual},
};

/* Lists members for a message: "limit, key or tier". */
static void list_members(unsigned of, char *text, size_t size)
{
    size_t n = 0;
    for (unsigned i = 0; i < HTTP_MEMBERS && n < size; i++) {
        if ((of >> i & 1) != 0) {
            n += (size_t)snprintf(text + n, size - n, "%s%s",
                                  n == 0         ? ""
                                  : of >> i == 1 ? " or "
                                                 : ", ",
                                  members[i].name);
        }
    }
}

static int read_member(const char *name, const json_t *value, unsigned allowed,
                       struct http_question *q, struct weir_error *error)
{
    char expected[128] = "";
    for (unsigned i = 0; i < HTTP_MEMBERS; i++) {
        if ((allowed >> i & 1) != 0 && strcmp(members[i].name, name) == 0) {
            q->given |= 1u << i;
            return members[i].read(value, q, error);
        }
    }
    list_members(allowed, expected, sizeof expected);
    return fail(error, WEIR_EINVAL, "found '%.64s', expected %s", name, expected);
}

int http_read_question(const json_t *object, unsigned allowed, unsigned needed,
                       struct http_question *q, struct weir_error *error)
{
    q->parts_count = 0;
    q->attributes_count = 0;
    q->cost = 0;
    q->max_wait_ms = 0;
    q->ttl_ms = 0;
    q->actual = 0;
    q->given = 0;
    q->tier = (struct text){"", 0};
    if (!json_is_object(object)) {
        return fail(error, WEIR_EINVAL, "expected an object");
    }
    json_t *all = (json_t *)(uintptr_t)object; /* the iterator only looks */
    for (void *at = json_object_iter(all); at != NULL; at = json_object_iter_next(all, at)) {
        int e =
            read_member(json_object_iter_key(at), json_object_iter_value(at), allowed, q, error);
        if (e != 0) {
            return e;
        }
    }
    unsigned missing = needed & ~q->given;
    for (unsigned i = 0; missing != 0 && i < HTTP_MEMBERS; i++) {
        if ((missing >> i & 1) != 0) {
            return fail(error, WEIR_EINVAL, "expected the member %s", members[i].name);
        }
    }
    return 0;
}

struct weir_rules_key http_key_of(const struct http_question *q)
{
    return (struct weir_rules_key){.limit = {q->limit.at, q->limit.len},
                                   .parts = q->parts,
                                   .parts_count = q->parts_count,
                                   .tier = {q->tier.at, q->tier.len}};
}
