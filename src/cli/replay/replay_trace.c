#include "cli/replay/replay_trace.h"

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "base/error.h"
#include "rules/value/quantity.h"
#include "rules/value/quote.h"

/* ---- the time, digit by digit ---- */

/*
 * A position in the text of a line. The JSON library reads 12.345 as the nearest binary
 * fraction, so the exact digits are taken from the text.
 */
struct scan {
    const char *at;
    const char *end;
};

static void skip_space(struct scan *s)
{
    while (s->at < s->end && strchr(" \t\r\n", *s->at) != NULL && *s->at != 0) {
        s->at++;
    }
}

/* Reads from after the opening quote to after the closing one. Returns the text between them. */
static struct weir_text scan_string(struct scan *s)
{
    const char *begin = s->at;
    while (s->at < s->end && *s->at != '"') {
        s->at += *s->at == '\\' && s->end - s->at > 1 ? 2 : 1;
    }
    struct weir_text inside = {begin, (size_t)(s->at - begin)};
    s->at += s->at < s->end;
    return inside;
}

/* Reads a value, up to the comma or brace after it. */
static struct weir_text scan_value(struct scan *s)
{
    const char *begin = s->at;
    int depth = 0;
    while (s->at < s->end && (depth > 0 || (*s->at != ',' && *s->at != '}'))) {
        char c = *s->at++;
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        if (c == '"') {
            (void)scan_string(s);
        }
    }
    return text_trim((struct weir_text){begin, (size_t)(s->at - begin)});
}

/*
 * Returns the text of a member's value in a line that is a JSON object; empty if its name is
 * written with escapes.
 */
static struct weir_text find_member(struct weir_text line, const char *name)
{
    struct scan s = {line.at, line.at + line.len};
    skip_space(&s);
    while (s.at < s.end && *s.at != '}') {
        s.at++; /* the opening brace, or a comma */
        skip_space(&s);
        s.at += s.at < s.end; /* the quote */
        struct weir_text found = scan_string(&s);
        skip_space(&s);
        s.at += s.at < s.end; /* the colon */
        struct weir_text value = scan_value(&s);
        if (text_is(found, name)) {
            return value;
        }
    }
    return TEXT("");
}

const struct replay_unit replay_units[] = {
    {"s", WEIR_SECOND}, {"ms", WEIR_MILLISECOND}, {"us", WEIR_MICROSECOND}, {"ns", 1}, {NULL, 0}};

static const char *unit_name(uint64_t unit_ns)
{
    const struct replay_unit *unit = replay_units;
    while (unit->ns != unit_ns) {
        unit++;
    }
    return unit->name;
}

static bool is_plain_number(struct weir_text text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] != '.' && (text.at[i] < '0' || text.at[i] > '9')) {
            return false;
        }
    }
    return text.len > 0;
}

/* Reads the time. The number followed by its unit is parsed as a duration, which is exact. */
static int read_time(const json_t *value, struct weir_text line, uint64_t unit_ns,
                     uint64_t *time_ns, struct weir_error *error)
{
    char quoted[QUOTE_MAX];
    char number[64];
    if (value == NULL) {
        return fail(error, WEIR_EINVAL, "found no \"time\", expected one");
    }
    struct weir_text text = find_member(line, "time");
    if (json_is_string(value)) {
        text = (struct weir_text){json_string_value(value), json_string_length(value)};
    }
    if (!is_plain_number(text) ||
        (size_t)snprintf(number, sizeof number, "%.*s%s", TEXT_ARGS(text), unit_name(unit_ns)) >=
            sizeof number ||
        duration_parse(text_of(number), time_ns, NULL) != 0 || *time_ns > INT64_MAX) {
        return fail(error, WEIR_EINVAL,
                    "found a \"time\" of %s, expected a number from 0 up such as 12 or 12.345, in "
                    "%s and whole nanoseconds",
                    quote(text, quoted), unit_name(unit_ns));
    }
    return 0;
}

/* ---- the rest ---- */

static int read_cost(const json_t *value, struct weir_text line, uint64_t *cost,
                     struct weir_error *error)
{
    char quoted[QUOTE_MAX];
    *cost = 0;
    if (value == NULL || json_is_null(value)) {
        return 0;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 1) {
        return fail(error, WEIR_EINVAL, "found a \"cost\" of %s, expected a whole number from 1 up",
                    quote(find_member(line, "cost"), quoted));
    }
    *cost = (uint64_t)json_integer_value(value);
    return 0;
}

static int refuse_attribute(const char *name, struct weir_text line, struct weir_error *error)
{
    char quoted[QUOTE_MAX];
    char as[QUOTE_MAX];
    return fail(error, WEIR_EINVAL, "found %s as %s, expected a text or a whole number",
                quote(find_member(line, name), quoted), quote(text_of(name), as));
}

static int add_attribute(struct replay_event *e, const char *name, const json_t *value,
                         struct weir_text line, struct weir_error *error)
{
    size_t i = e->attributes_count;
    if (i == WEIR_RULES_ATTRIBUTES_MAX) {
        return fail(error, WEIR_EINVAL, "found more than %d attributes, expected fewer",
                    WEIR_RULES_ATTRIBUTES_MAX);
    }
    struct weir_rules_attribute *a = &e->attributes[i];
    *a = (struct weir_rules_attribute){.name = name, .name_len = strlen(name)};
    if (json_is_string(value)) {
        a->value = json_string_value(value);
        a->value_len = json_string_length(value);
    } else if (json_is_integer(value)) {
        int n = snprintf(e->numbers[i], sizeof e->numbers[i], "%" JSON_INTEGER_FORMAT,
                         json_integer_value(value));
        a->value = e->numbers[i];
        a->value_len = (size_t)n;
    } else {
        return refuse_attribute(name, line, error);
    }
    e->attributes_count++;
    return 0;
}

static int read_attributes(struct replay_event *e, struct weir_text line, struct weir_error *error)
{
    const char *name;
    json_t *value;
    json_object_foreach(e->object, name, value)
    {
        if (strcmp(name, "time") == 0 || json_is_null(value)) {
            continue;
        }
        int failed = add_attribute(e, name, value, line, error);
        if (failed != 0) {
            return failed;
        }
    }
    return 0;
}

/*
 * Reports the JSON library's error. It may quote any bytes of the line, so they are made
 * printable.
 */
static int refuse_json(json_error_t *why, struct weir_error *error)
{
    for (char *c = why->text; *c != 0; c++) {
        *c = *c >= ' ' && *c < 127 ? *c : '?';
    }
    return fail(error, WEIR_EINVAL, "found no JSON object: %.120s, at byte %d; expected one",
                why->text, why->position);
}

int replay_event_parse(struct replay_event *e, struct weir_text line, uint64_t unit_ns,
                       struct weir_error *error)
{
    json_error_t why;
    e->attributes_count = 0;
    e->object = json_loadb(line.at, line.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (e->object == NULL) {
        return refuse_json(&why, error);
    }
    if (!json_is_object(e->object)) {
        replay_event_finish(e);
        return fail(error, WEIR_EINVAL, "found a JSON value that is no object, expected an object");
    }
    int failed = read_time(json_object_get(e->object, "time"), line, unit_ns, &e->time_ns, error);
    failed =
        failed != 0 ? failed : read_cost(json_object_get(e->object, "cost"), line, &e->cost, error);
    failed = failed != 0 ? failed : read_attributes(e, line, error);
    if (failed != 0) {
        replay_event_finish(e);
    }
    return failed;
}

void replay_event_finish(struct replay_event *e)
{
    json_decref(e->object);
    e->object = NULL;
}
