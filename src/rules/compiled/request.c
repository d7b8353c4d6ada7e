/* Reads the attributes of a request: finds their numbers, normalises them, and derives others. */
#include "base/error.h"
#include "rules/compiled/ruleset.h"
#include "rules/value/cookie.h"
#include "rules/value/pattern.h"

#define NAME_MAX_BYTES 256

static int bad(struct weir_error *error, struct weir_text name, const char *what)
{
    return fail(error, WEIR_EATTRIBUTE, "%.*s: %s", TEXT_CUT(name, 64), what);
}

/* Finds the number of a name, -1 if there is none. Names of headers are stored in lower case. */
static int64_t find_name(const struct ruleset *set, struct weir_text name)
{
    char lower[NAME_MAX_BYTES];
    if (!text_starts(name, "header:")) {
        return text_map_find(set->names, name);
    }
    if (name.len > sizeof lower) {
        return -1;
    }
    normalize_lower(name, lower);
    return text_map_find(set->names, (struct weir_text){lower, name.len});
}

static void set_value(struct request *request, unsigned number, struct weir_text value)
{
    request->value[number] = value;
    request->present |= UINT64_C(1) << number;
}

static int set_address(struct request *request, struct weir_text value, struct weir_error *error)
{
    struct weir_error why;
    if (address_parse(value, &request->ip, &why) != 0) {
        return fail(error, WEIR_EATTRIBUTE, "ip: %.200s", why.text);
    }
    size_t len = request->ip.family == 4 ? 4 : 16;
    set_value(request, NUMBER_IP, (struct weir_text){(const char *)request->ip.bytes, len});
    return 0;
}

static int set_path(struct request *request, struct weir_text value, struct weir_error *error)
{
    struct weir_error why;
    size_t len;
    if (path_normalise(value, request->path, &len, &why) != 0) {
        return fail(error, WEIR_EATTRIBUTE, "path: %.200s", why.text);
    }
    set_value(request, NUMBER_PATH, (struct weir_text){request->path, len});
    return 0;
}

static int set_host(struct request *request, struct weir_text value, struct weir_error *error)
{
    if (value.len > HOST_MAX) {
        return bad(error, TEXT("host"), "found more than 256 bytes, expected a host");
    }
    struct weir_text host = {request->host, normalize_host(value, request->host)};
    if (!is_host(host)) {
        return fail(error, WEIR_EATTRIBUTE, "host: found '%.*s', expected a host",
                    TEXT_CUT(value, 64));
    }
    if (host.len > 0) { /* a host, not only a port */
        set_value(request, NUMBER_HOST, host);
    }
    return 0;
}

int request_put(const struct ruleset *set, struct request *request, unsigned number,
                struct weir_text value, struct weir_error *error)
{
    if (value.len > WEIR_RULES_VALUE_MAX && number != set->cookies && !request->opaque) {
        return fail(error, WEIR_EATTRIBUTE, "%.*s: found %zu bytes, expected at most %d",
                    TEXT_ARGS(set->attributes[number]), value.len, WEIR_RULES_VALUE_MAX);
    }
    switch (number) {
    case NUMBER_PATH:
        return set_path(request, value, error);
    case NUMBER_IP:
        return set_address(request, value, error);
    case NUMBER_METHOD:
        if (value.len > METHOD_MAX) {
            return bad(error, TEXT("method"), "found more than 64 bytes, expected a method");
        }
        normalize_method(value, request->method);
        set_value(request, number, (struct weir_text){request->method, value.len});
        return 0;
    case NUMBER_HOST:
        return set_host(request, value, error);
    default:
        set_value(request, number, value);
        return 0;
    }
}

/* Sets one attribute. If it cannot be read, that is an error, or the attribute of an opaque request
 * is unread. */
static int put_or_note(const struct ruleset *set, struct request *request, unsigned number,
                       struct weir_text value, struct weir_error *error)
{
    int e = request_put(set, request, number, value, request->opaque ? NULL : error);
    if (e == 0 || !request->opaque) {
        return e;
    }
    request->unread |= UINT64_C(1) << number;
    return 0;
}

#define NAME_UNUSED 1 /* returned besides 0 and WEIR_E...: no rule uses the name */

static int take(const struct ruleset *set, const struct weir_rules_attribute *from,
                struct request *request, struct weir_error *error)
{
    struct weir_text name = {from->name, from->name_len};
    if ((from->name == NULL && from->name_len > 0) ||
        (from->value == NULL && from->value_len > 0)) {
        return fail(error, WEIR_EINVAL,
                    "found NULL as the name or value of an attribute, expected text");
    }
    int64_t number = find_name(set, name);
    if (number < 0) {
        return NAME_UNUSED;
    }
    if (from->value_len == 0) {
        return 0;
    }
    if (request_has(request, (unsigned)number) || request_lacks(request, (unsigned)number)) {
        return request->opaque ? 0 : bad(error, name, "found a second value, expected one");
    }
    return put_or_note(set, request, (unsigned)number,
                       (struct weir_text){from->value, from->value_len}, error);
}

/* ---- derived attributes ---- */

static struct weir_text look_up(const struct attribute_source *source, struct weir_text value)
{
    int64_t row = text_map_find(source->values, value);
    return row < 0 ? TEXT("") : source->answers.at[row];
}

/* Returns the segment that the first matching pattern names; len 0 if none matches. */
static struct weir_text capture(const struct captures *captures, struct weir_text path)
{
    for (size_t i = 0; i < captures->count; i++) {
        const struct capture *c = &captures->at[i];
        if (c->pattern.len == 0 || path_pattern_match(c->pattern, path)) {
            return path_nth(path, c->segment);
        }
    }
    return TEXT("");
}

/* Sets *value to what a source gives of the attribute that it is taken from; len 0: nothing. */
static int take_from(const struct derived *derived, size_t i, struct weir_text *value,
                     struct weir_error *error)
{
    const struct attribute_source *source = &derived->config->sources[i];
    switch (source->kind) {
    case FROM_FILE:
        *value = look_up(source, *value);
        return 0;
    case FROM_PATH:
        *value = capture(&derived->captures[i], *value);
        return 0;
    case FROM_COOKIE:
        return cookie_find(*value, source->part, value)
                   ? 0
                   : bad(error, source->name, "found two values, expected one");
    default:
        return 0;
    }
}

/*
 * Sets a derived attribute that the request does not have. The first source that gives a value
 * wins. If one before it cannot be read, the attribute cannot be read either: otherwise clients
 * could choose the source.
 */
static int derive(const struct ruleset *set, const struct derived *derived, struct request *request,
                  struct weir_error *error)
{
    uint64_t own = UINT64_C(1) << derived->attribute;
    if (((request->present | request->unread) & own) != 0) {
        return 0;
    }
    for (size_t i = 0; i < derived->config->count; i++) {
        unsigned from = derived->source[i];
        if (request_lacks(request, from)) {
            request->unread |= own;
            return 0;
        }
        if (!request_has(request, from)) {
            continue;
        }
        struct weir_text value = request->value[from];
        int e = take_from(derived, i, &value, request->opaque ? NULL : error);
        if (e != 0 && request->opaque) {
            request->unread |= own;
            return 0;
        }
        if (e != 0 || value.len > 0) {
            return e != 0 ? e : put_or_note(set, request, derived->attribute, value, error);
        }
    }
    return 0;
}

int request_derive(const struct ruleset *set, struct request *request, struct weir_error *error)
{
    for (size_t i = 0; i < set->derived_count; i++) {
        int e = derive(set, &set->derived[i], request, error);
        if (e != 0) {
            return e;
        }
    }
    return 0;
}

static int read_all(const struct ruleset *set, const struct weir_rules_question *question,
                    struct request *request, struct weir_error *error)
{
    if (question->attributes_count > WEIR_RULES_ATTRIBUTES_MAX) {
        return fail(error, WEIR_EINVAL, "found %zu attributes, expected at most %d",
                    question->attributes_count, WEIR_RULES_ATTRIBUTES_MAX);
    }
    for (size_t i = 0; i < question->attributes_count; i++) {
        const struct weir_rules_attribute *a = &question->attributes[i];
        int e = take(set, a, request, error);
        if (e == NAME_UNUSED) {
            misspelt_tell(set, question, (struct weir_text){a->name, a->name_len});
        } else if (e != 0) {
            return e;
        }
    }
    return request_derive(set, request, error);
}

int request_read(const struct ruleset *set, const struct weir_rules_question *question,
                 struct request *request, struct weir_error *error)
{
    request_begin(request);
    return read_all(set, question, request, error);
}

int request_read_opaque(const struct ruleset *set, const struct weir_rules_question *question,
                        struct request *request, struct weir_error *error)
{
    request_begin(request);
    request->opaque = true;
    return read_all(set, question, request, error);
}
