#include "rules/file/foreign.h"

#include <strings.h>

#include "rules/file/sections.h"
#include "rules/value/pattern.h"
#include "rules/value/quantity.h"
#include "rules/value/quote.h"

#define LINE_MAX_BYTES 160

/* ---- limit: 100, window: 60 ---- */

static const char *const counts[] = {"limit", "max", "count", "requests", "quota", "points"};

static const struct {
    const char *name;
    uint64_t bare_ns; /* the unit of a number without one */
} periods[] = {
    {"window", WEIR_SECOND},        {"period", WEIR_SECOND},
    {"interval", WEIR_SECOND},      {"duration", WEIR_SECOND},
    {"per", WEIR_SECOND},           {"window_seconds", WEIR_SECOND},
    {"unit", WEIR_SECOND},          {"window_ms", WEIR_MILLISECOND},
    {"windowMs", WEIR_MILLISECOND},
};

#define COUNTS (sizeof counts / sizeof counts[0])
#define PERIODS (sizeof periods / sizeof periods[0])

/* Returns the scalar of this key, NULL if the limit does not have one. */
static const struct node *scalar_of(const struct node *limit, const char *key)
{
    const struct node *node = node_find(limit, key);
    return node != NULL && node->kind == NODE_SCALAR ? node : NULL;
}

/* Finds a count and a period in the limit, and the rate that they make. */
static bool find_pair(const struct node *limit, size_t *count, size_t *period, struct rate *rate)
{
    char text[LINE_MAX_BYTES];
    for (*count = 0; *count < COUNTS; ++*count) {
        const struct node *n = scalar_of(limit, counts[*count]);
        for (*period = 0; n != NULL && *period < PERIODS; ++*period) {
            const struct node *p = scalar_of(limit, periods[*period].name);
            if (p != NULL &&
                (size_t)snprintf(text, sizeof text, "%.*s/%.*s", TEXT_ARGS(n->scalar),
                                 TEXT_ARGS(p->scalar)) < sizeof text &&
                rate_parse(text_of(text), periods[*period].bare_ns, rate, NULL) == 0) {
                return true;
            }
        }
    }
    return false;
}

bool foreign_rate(struct reader *r, const struct node *limit, const struct node *key)
{
    char rate[QUANTITY_MAX];
    struct rate made;
    size_t count;
    size_t period;
    if (!find_pair(limit, &count, &period, &made) ||
        !(text_is(key->scalar, counts[count]) || text_is(key->scalar, periods[period].name))) {
        return false;
    }
    problem(r->problems, key->place,
            "unknown key '%.*s' in limits[]; write 'rate: %s' in place of '%s' and '%s'",
            TEXT_ARGS(key->scalar), rate_print(made, rate), counts[count], periods[period].name);
    return true;
}

/* ---- key: ['header:X-Api-Key'] ---- */

/* Writes the attribute's name for a field: X-Api-Key -> api_key. Returns false if it has none. */
static bool name_of(struct weir_text field, char name[WEIR_RULES_NAME])
{
    size_t n = 0;
    bool prefix = field.len > 2 && (field.at[0] | 0x20) == 'x' && field.at[1] == '-';
    field = text_after(field, prefix ? 2 : 0);
    for (size_t i = 0; i < field.len && n + 1 < WEIR_RULES_NAME; i++) {
        char c = field.at[i];
        c = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c == '-' ? '_' : c);
        name[n] = c;
        n += c != '{' && c != '}';
    }
    name[n] = 0;
    return name_is_good(text_of(name)) && (name[0] < '0' || name[0] > '9');
}

/* Returns whether gateways write the client's address in this field. */
static bool is_of_address(struct weir_text field)
{
    for (int i = CLIENT_FIELD_ANY + 1; i < CLIENT_FIELDS; i++) {
        if (field.len == strlen(client_field_names[i]) &&
            strncasecmp(field.at, client_field_names[i], field.len) == 0) {
            return true;
        }
    }
    return false;
}

bool foreign_key(struct reader *r, const struct node *node, struct weir_text part)
{
    static const char *const sources[] = {"header:", "query:", "cookie:", "path:"};
    char name[WEIR_RULES_NAME];
    char found[QUOTE_MAX];
    size_t i = 0;
    while (i < sizeof sources / sizeof sources[0] && !text_starts(part, sources[i])) {
        i++;
    }
    if (i == sizeof sources / sizeof sources[0]) {
        return false;
    }
    struct weir_text field = text_after(part, strlen(sources[i]));
    if (is_of_address(field)) {
        problem(r->problems, node->place,
                "found %s, expected the name of an attribute; write 'ip', which the server takes "
                "from this field",
                quote(part, found));
        return true;
    }
    const char *known = name_of(field, name) ? name : "client";
    problem(r->problems, node->place,
            "found %s, expected the name of an attribute; write %s, and add attributes: {%s: %s}",
            quote(part, found), known, known, found);
    return true;
}

/* ---- path: /users/:id ---- */

void foreign_path(struct reader *r, struct weir_text path, struct place place)
{
    char found[QUOTE_MAX];
    char pattern[QUOTE_MAX];
    char meant[WEIR_RULES_VALUE_MAX + 1];
    size_t n = 0;
    bool placeholder = false;
    for (unsigned i = 1; path_nth(path, i).len > 0; i++) {
        struct weir_text segment = path_nth(path, i);
        bool is_one = segment.len > 1 && segment.at[0] == ':';
        placeholder = placeholder || is_one;
        n += (size_t)snprintf(meant + n, sizeof meant - n, "/%.*s", is_one ? 1 : (int)segment.len,
                              is_one ? "*" : segment.at);
    }
    if (placeholder) {
        warning(r->problems, place,
                "found the path %s, which hardly any request has; ':' begins no placeholder here, "
                "expected %s",
                quote(path, found), quote((struct weir_text){meant, n}, pattern));
    }
}
