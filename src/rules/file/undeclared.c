/* Warns of attributes that rules use although /v1/auth cannot send them. */
#include <ctype.h>

#include "common/buffer.h"
#include "rules/envoy/envoy.h"
#include "rules/file/limits.h"
#include "rules/value/normalize.h"
#include "rules/value/pattern.h"

#define USERS_TOLD 3 /* limits and lists that the message names; it counts the others */
/* Bytes of a message with the section of CONFIG_ATTRIBUTES_MAX names of the greatest length. */
#define MESSAGE_BYTES 8192

struct undeclared_name {
    struct weir_text text;
    bool for_gateways; /* a limit that they can meet uses it */
    bool cost;
};

/* The names that are not declared, and what uses them. */
struct undeclared {
    struct undeclared_name names[CONFIG_ATTRIBUTES_MAX]; /* as many as a section can declare */
    size_t names_count;
    bool has_more_names;
    bool used;           /* since it was set to false, a name that gateways need was noted */
    struct buffer users; /* "limit 'search', limit 'api', list 'block'" */
    size_t users_count;
    struct place place; /* of the first user */
};

/* ---- finding them ---- */

/* Notes a name. Path, method, host and ip, and what Envoy's descriptors have, need no section. */
static void note(struct undeclared *u, struct weir_text name, bool for_gateways, bool cost)
{
    size_t i = 0;
    if (name.len == 0 || attribute_kind_of(name) != ATTRIBUTE_PLAIN || envoy_has_attribute(name)) {
        return;
    }
    u->used = u->used || for_gateways;
    while (i < u->names_count && !text_equal(u->names[i].text, name)) {
        i++;
    }
    if (i == CONFIG_ATTRIBUTES_MAX) {
        u->has_more_names = true;
        return;
    }
    u->names_count += i == u->names_count;
    struct undeclared_name *noted = &u->names[i];
    noted->text = name;
    noted->for_gateways = noted->for_gateways || for_gateways;
    noted->cost = noted->cost || cost;
}

static void note_conditions(struct undeclared *u, const struct conditions *conditions,
                            bool for_gateways)
{
    for (size_t i = 0; i < conditions->count; i++) {
        note(u, conditions->at[i].attribute, for_gateways, false);
    }
}

static void note_list(struct undeclared *u, const struct list_config *list, bool for_gateways)
{
    for (size_t i = 0; i < list->count; i++) {
        note_conditions(u, &list->entries[i], for_gateways);
    }
}

/* Returns whether only calls of Envoy's rate limit service can meet the limit. */
static bool is_for_envoy(const struct limit_config *limit)
{
    size_t i = 0;
    while (i < limit->when.count && !envoy_has_attribute(limit->when.at[i].attribute)) {
        i++;
    }
    return i < limit->when.count;
}

/* The attributes of `shard_by` are among those of the key. */
static void note_limit(struct undeclared *u, const struct limit_config *limit)
{
    bool for_gateways = !is_for_envoy(limit);
    for (size_t i = 0; i < limit->key_parts; i++) {
        for (size_t j = 0; j < limit->key[i].alternatives.count; j++) {
            note(u, limit->key[i].alternatives.at[j], for_gateways, false);
        }
    }
    note_conditions(u, &limit->when, for_gateways);
    note_list(u, &limit->unless, for_gateways);
    note(u, limit->tier_by, for_gateways, false);
    note(u, limit->overrides.by, for_gateways, false);
    note(u, limit->cost_attribute, for_gateways, true);
}

static void add_user(struct undeclared *u, const char *kind, struct weir_text name,
                     struct place place)
{
    if (u->users_count == 0) {
        u->place = place;
    }
    if (u->users_count++ < USERS_TOLD) {
        buffer_put(&u->users, u->users_count > 1 ? TEXT(", ") : TEXT(""));
        buffer_put(&u->users, text_of(kind));
        buffer_put(&u->users, TEXT(" '"));
        buffer_put(&u->users, name);
        buffer_put(&u->users, TEXT("'"));
    }
}

static void look_at_limit(struct undeclared *u, const struct limit_config *limit)
{
    u->used = false;
    note_limit(u, limit);
    if (u->used) {
        add_user(u, "limit", limit->name, limit->place);
    }
}

static void look_at_list(struct undeclared *u, const struct list_config *list, const char *name)
{
    u->used = false;
    note_list(u, list, true);
    if (u->used) {
        add_user(u, "list", text_of(name), list->entries[0].place);
    }
}

/* ---- telling them ---- */

/* Puts the field that a gateway usually has for an attribute: X-User-Id, X-Api-Key of api_key,
 * or of X-Api-Key. */
static void put_field(struct buffer *out, struct weir_text name)
{
    bool first = true;
    bool is_field = name.len > 2 && (name.at[0] | 0x20) == 'x' && strchr("-_", name.at[1]) != NULL;
    buffer_put(out, is_field ? TEXT("") : TEXT("X-"));
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i] == '_' || name.at[i] == '.' ? '-' : name.at[i];
        buffer_put_char(out, first ? (char)toupper((unsigned char)c) : c);
        first = c == '-';
    }
    buffer_put(out, text_is(name, "user") ? TEXT("-Id") : TEXT(""));
}

struct braces {
    struct weir_text name;
    bool found;
};

static void look_for_name(void *arg, const struct value *path)
{
    struct braces *b = arg;
    b->found = b->found || path_pattern_find(path->named, b->name) > 0;
}

/*
 * Puts the place where a gateway's question has the attribute: the path, if a path of the rules has
 * the name in braces; otherwise a field. A cost is not taken from a field: a client that could
 * write it would choose what it pays. Names of which gateways need nothing are sent by callers,
 * too.
 */
static void put_source(struct buffer *out, const struct config *config,
                       const struct undeclared_name *name)
{
    struct braces b = {.name = name->text};
    config_each_named(config, look_for_name, &b);
    if (name->cost || !name->for_gateways) {
        buffer_put(out, TEXT("request"));
    } else if (b.found) {
        buffer_put(out, TEXT("'path:{"));
        buffer_put(out, name->text);
        buffer_put(out, TEXT("}'"));
    } else {
        buffer_put(out, TEXT("'header:"));
        put_field(out, name->text);
        buffer_put(out, TEXT("'"));
    }
}

/* Puts the section that declares all of the names. */
static void put_section(struct buffer *out, const struct config *config, const struct undeclared *u)
{
    for (size_t i = 0; i < u->names_count; i++) {
        buffer_put(out, i > 0 ? TEXT(", ") : TEXT("{"));
        buffer_put(out, u->names[i].text);
        buffer_put(out, TEXT(": "));
        put_source(out, config, &u->names[i]);
    }
    buffer_put(out, TEXT("}"));
}

/* Puts the names that gateways would need: 'user', 'tier' and 'plan'. */
static void put_names(struct buffer *out, const struct undeclared *u)
{
    size_t last = u->names_count;
    while (last > 0 && !u->names[last - 1].for_gateways) {
        last--;
    }
    for (size_t i = 0; i < last; i++) {
        if (u->names[i].for_gateways) {
            bool first = buffer_len(out) == 0;
            buffer_put(out, first ? TEXT("'") : i + 1 < last ? TEXT(", '") : TEXT(" and '"));
            buffer_put(out, u->names[i].text);
            buffer_put(out, TEXT("'"));
        }
    }
}

static void tell(const struct config *config, const struct undeclared *u, struct problems *problems)
{
    struct weir_text users = buffer_text(&u->users);
    struct buffer names;
    struct buffer section;
    char more[32] = "";
    buffer_init(&names, MESSAGE_BYTES);
    buffer_init(&section, MESSAGE_BYTES);
    put_names(&names, u);
    put_section(&section, config, u);
    if (u->users_count > USERS_TOLD) {
        (void)snprintf(more, sizeof more, " and %zu more", u->users_count - USERS_TOLD);
    }
    warning(
        problems, u->place,
        "%.*s%s: /v1/auth cannot send %.*s; add attributes: %.*s%s; the gateway must set or "
        "remove such fields; write 'request' for a name that only callers of the API send",
        TEXT_ARGS(users), more, TEXT_ARGS(buffer_text(&names)), TEXT_ARGS(buffer_text(&section)),
        u->has_more_names ? ", and use fewer names, because a section has no room for more" : "");
    buffer_finish(&names);
    buffer_finish(&section);
}

void config_warn_undeclared(const struct config *config, const struct limit_config *only,
                            struct problems *problems)
{
    struct undeclared u = {0};
    if (config->declared != NULL) {
        return; /* a name that the section does not have is an error */
    }
    buffer_init(&u.users, MESSAGE_BYTES);
    for (size_t i = 0; i < config->limits_count; i++) {
        if (only == NULL || only == config->limits[i]) {
            look_at_limit(&u, config->limits[i]);
        }
    }
    if (only == NULL) {
        look_at_list(&u, &config->allow, "allow");
        look_at_list(&u, &config->block, "block");
    }
    if (u.users_count > 0) {
        tell(config, &u, problems);
    }
    buffer_finish(&u.users);
}
