#include "server/http/http_json.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/error.h"
#include "base/hash.h"
#include "wire/jsontext.h"

/* ---- values ---- */

/* Returns what a value is, for a message; numbers as they are. */
static struct weir_text describe(struct weir_text value)
{
    switch (value.at[0]) {
    case '{':
        return TEXT("an object");
    case '[':
        return TEXT("a list");
    case '"':
        return value.len > 2 ? TEXT("a string") : TEXT("an empty string");
    default: /* true, false, null, or a number */
        return (struct weir_text){value.at, value.len < 32 ? value.len : 32};
    }
}

int http_json_bad(struct weir_error *error, struct weir_text name, struct weir_text value,
                  const char *expected)
{
    return fail(error, WEIR_EINVAL, "%.*s: found %.*s, expected %s", TEXT_CUT(name, 64),
                TEXT_ARGS(describe(value)), expected);
}

struct weir_text http_json_bytes(struct weir_text string, struct arena *arena)
{
    char *room = jsontext_has_escapes(string) ? arena_room(arena, string.len) : NULL;
    return arena->failed ? (struct weir_text){NULL, 0} : jsontext_bytes(string, room);
}

static int read_text(struct weir_text value, struct weir_text name, uint64_t least,
                     struct weir_text *out, struct arena *arena, struct weir_error *error)
{
    if (!jsontext_is(value, '"')) {
        return http_json_bad(error, name, value, "a string");
    }
    *out = http_json_bytes(value, arena);
    if (out->at == NULL) {
        return WEIR_ENOMEM;
    }
    return out->len >= least ? 0 : http_json_bad(error, name, value, "at least one character");
}

uint64_t http_number_most(const struct ask_member_row *row)
{
    return row->most < INT64_MAX ? row->most : INT64_MAX;
}

static int read_count(struct weir_text value, const struct ask_member_row *row, uint64_t *out,
                      struct weir_error *error)
{
    uint64_t most = http_number_most(row);
    uint64_t number;
    if (!jsontext_whole(value, &number) || number < row->least || number > most) {
        char expected[80];
        (void)snprintf(expected, sizeof expected, "a whole number from %" PRIu64 " to %" PRIu64,
                       row->least, most);
        return http_json_bad(error, text_of(row->name), value, expected);
    }
    *out = number;
    return 0;
}

static int read_part(struct weir_text value, struct ask *ask, struct arena *arena,
                     struct weir_error *error)
{
    struct weir_text part = {NULL, 0};
    int e = read_text(value, TEXT("key"), ask_members[ASK_KEY].least, &part, arena, error);
    if (e == 0) {
        ask->parts[ask->parts_count++] = part;
    }
    return e;
}

static int read_key(struct weir_text value, struct ask *ask, struct arena *arena,
                    struct weir_error *error)
{
    struct weir_text part;
    int e = 0;
    if (!jsontext_is(value, '[')) {
        return read_part(value, ask, arena, error);
    }
    while (e == 0 && jsontext_next_item(&value, &part)) {
        e = ask->parts_count < CONFIG_KEY_PARTS_MAX
                ? read_part(part, ask, arena, error)
                : fail(error, WEIR_EINVAL, "key: found more than 8 parts, expected at most 8");
    }
    return e;
}

/* ---- attributes ---- */

/* A set of names, by a keyed hash: clients choose the names, and must not cause collisions. */
#define SLOTS (2 * WEIR_RULES_ATTRIBUTES_MAX)

static struct hash_secret secret;

static void make_secret(void)
{
    (void)hash_secret_init(&secret); /* without random numbers the server would not have started */
}

/* Enters the last attribute into the set; false if there is one of that name. A slot holds the
 * number of an attribute plus one, or 0. */
static bool enter(const struct ask *ask, uint16_t *slots)
{
    const struct weir_rules_attribute *last = &ask->attributes[ask->attributes_count - 1];
    size_t at = hash_sip(&secret, last->name, last->name_len).low % SLOTS;
    for (; slots[at] != 0; at = (at + 1) % SLOTS) {
        const struct weir_rules_attribute *other = &ask->attributes[slots[at] - 1];
        if (other->name_len == last->name_len &&
            memcmp(other->name, last->name, last->name_len) == 0) {
            return false;
        }
    }
    slots[at] = (uint16_t)ask->attributes_count;
    return true;
}

/* Reads the value of an attribute. A whole number is the text of its digits, also if it is written
 * as 300.0 or 3e2: a client that writes a number in another way has no other key. */
static int read_attribute_value(struct weir_text value, struct weir_text name,
                                struct weir_text *out, struct arena *arena,
                                struct weir_error *error)
{
    static const char expected[] = "a string, or a whole number from 0 to 9223372036854775807";
    uint64_t number;
    if (jsontext_is(value, '"')) {
        return read_text(value, name, 0, out, arena, error);
    }
    if (!jsontext_whole(value, &number)) {
        return http_json_bad(error, name, value, expected);
    }
    char digits[21];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, number);
    *out = arena_text(arena, (struct weir_text){digits, (size_t)n});
    return out->at != NULL ? 0 : WEIR_ENOMEM;
}

static int read_attribute(struct weir_text name, struct weir_text value, struct ask *ask,
                          uint16_t *slots, struct arena *arena, struct weir_error *error)
{
    struct weir_text text = {NULL, 0};
    name = http_json_bytes(name, arena);
    int e = name.at == NULL ? WEIR_ENOMEM : read_attribute_value(value, name, &text, arena, error);
    if (e != 0) {
        return e;
    }
    ask->attributes[ask->attributes_count++] =
        (struct weir_rules_attribute){name.at, name.len, text.at, text.len};
    return enter(ask, slots)
               ? 0
               : fail(error, WEIR_EINVAL, "attributes: found '%.*s' twice", TEXT_CUT(name, 64));
}

static int read_attributes(struct weir_text value, struct ask *ask, struct arena *arena,
                           struct weir_error *error)
{
    static const char expected[] = "an object with at most 256 members";
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint16_t slots[SLOTS] = {0};
    struct weir_text rest = value;
    struct weir_text name;
    struct weir_text member;
    int e = jsontext_is(value, '{') ? 0 : http_json_bad(error, TEXT("attributes"), value, expected);
    (void)pthread_once(&once, make_secret);
    while (e == 0 && jsontext_next_member(&rest, &name, &member)) {
        e = ask->attributes_count < WEIR_RULES_ATTRIBUTES_MAX
                ? read_attribute(name, member, ask, slots, arena, error)
                : http_json_bad(error, TEXT("attributes"), value, expected);
    }
    return e;
}

/* ---- members ---- */

static int read_value(struct weir_text value, unsigned member, struct ask *ask, struct arena *arena,
                      struct weir_error *error)
{
    const struct ask_member_row *row = &ask_members[member];
    if ((ask->given & ASK_BIT(member)) != 0) {
        return fail(error, WEIR_EINVAL, "found '%s' twice", row->name);
    }
    ask->given |= ASK_BIT(member);
    switch (row->kind) {
    case ASK_TEXT:
        return read_text(value, text_of(row->name), row->least, &ask->text[member], arena, error);
    case ASK_PARTS:
        return read_key(value, ask, arena, error);
    case ASK_PAIRS:
        return read_attributes(value, ask, arena, error);
    default:
        if (row->endless && jsontext_is(value, 'n')) {
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

int http_read_member(struct weir_text name, struct weir_text value, unsigned allowed,
                     struct ask *ask, struct arena *arena, struct weir_error *error)
{
    char expected[128] = "";
    name = http_json_bytes(name, arena);
    if (name.at == NULL) {
        return WEIR_ENOMEM;
    }
    for (unsigned i = 0; i < ASK_MEMBERS; i++) {
        if ((allowed & ASK_BIT(i)) != 0 && text_is(name, ask_members[i].name)) {
            return read_value(value, i, ask, arena, error);
        }
    }
    list_members(allowed, expected, sizeof expected);
    return fail(error, WEIR_EINVAL, "found '%.*s', expected %s", TEXT_CUT(name, 64), expected);
}

int http_read_ask(struct weir_text object, const struct operation_row *row, struct ask *ask,
                  struct arena *arena, struct weir_error *error)
{
    struct weir_text name;
    struct weir_text value;
    int e = 0;
    ask_init(ask);
    error->text[0] = 0;
    if (!jsontext_is(object, '{')) {
        return fail(error, WEIR_EINVAL, "found %.*s, expected an object",
                    TEXT_ARGS(describe(object)));
    }
    while (e == 0 && jsontext_next_member(&object, &name, &value)) {
        e = http_read_member(name, value, row->members, ask, arena, error);
    }
    unsigned missing = row->needed & ~ask->given;
    return e != 0 || missing == 0
               ? e
               : fail(error, WEIR_EINVAL, "found no member '%s', which is required",
                      ask_members[__builtin_ctz(missing)].name);
}

/* ---- bodies ---- */

int http_parse_json(const struct exchange *x, size_t values_most, struct weir_text *value,
                    struct weir_error *error)
{
    struct jsontext_flaw flaw;
    *value = x->request->body;
    return jsontext_check(value, values_most, &flaw)
               ? 0
               : fail(error, WEIR_EINVAL,
                      "the body is not JSON with at most %zu values and names: line %u, column %u: "
                      "%s",
                      values_most, flaw.line, flaw.column, flaw.words);
}

bool http_check_json(struct exchange *x, size_t values_most, struct weir_text *value)
{
    struct weir_error error;
    int e = http_parse_json(x, values_most, value, &error);
    if (e != 0) {
        http_reply_failure(x, e, &error);
    }
    return e == 0;
}

/* Bytes of a key may be any, so "\u0000" is allowed. */
json_t *http_read_json(struct exchange *x)
{
    struct weir_text body;
    json_error_t why;
    if (!http_check_json(x, HTTP_JSON_VALUES, &body)) {
        return NULL;
    }
    json_t *json = json_loadb(body.at, body.len,
                              JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &why);
    if (json == NULL) {
        struct weir_error error;
        (void)fail(&error, WEIR_EINVAL, "the body is not JSON: line %d, column %d: %s", why.line,
                   why.column, why.text);
        http_reply_failure(x, WEIR_EINVAL, &error);
    }
    return json;
}
