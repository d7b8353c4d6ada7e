/* Warns of rules that are read without error but probably do not do what was meant. */
#include "rules/file/limits.h"
#include "rules/value/normalize.h"
#include "rules/value/pattern.h"

/* ---- keys that clients write ---- */

/*
 * How a client influences a part of a key: it makes up the value, it chooses one of those that the
 * application has (path, method, host), the value is its address, or it is given: by a program that
 * asks, or by a file.
 */
enum part_source { PART_MADE_UP, PART_CHOSEN, PART_ADDRESS, PART_GIVEN, PART_SOURCES };

/* Returns the first source of the attribute whose kind is from `first` to `last`, or NULL. */
static const struct attribute_source *source_among(const struct config *config,
                                                   struct weir_text name, enum source_kind first,
                                                   enum source_kind last)
{
    for (size_t i = 0; i < config->attributes_count; i++) {
        const struct attribute_config *a = &config->attributes[i];
        for (size_t j = 0; text_equal(a->name, name) && j < a->count; j++) {
            if (a->sources[j].kind >= first && a->sources[j].kind <= last) {
                return &a->sources[j];
            }
        }
    }
    return NULL;
}

/*
 * Finds what a client can do about a part; a source that it writes is set in *source. A segment of
 * the path is chosen as the path is; a lookup in a file gives only values of the file. A gateway
 * always knows the address, so alternatives after `ip` are never used.
 */
static enum part_source source_of_part(const struct config *config, const struct texts *names,
                                       const struct attribute_source **source)
{
    for (size_t i = 0; i < names->count; i++) {
        const struct attribute_source *written =
            source_among(config, names->at[i], FROM_HEADER, FROM_COOKIE);
        enum attribute_kind kind = attribute_kind_of(names->at[i]);
        if (written != NULL) {
            *source = written;
            return PART_MADE_UP;
        }
        if (kind == ATTRIBUTE_IP) {
            return PART_ADDRESS;
        }
        if (kind != ATTRIBUTE_PLAIN ||
            source_among(config, names->at[i], FROM_PATH, FROM_PATH) != NULL) {
            return PART_CHOSEN;
        }
    }
    return PART_GIVEN;
}

/* ---- limits that no request reaches ---- */

/* Conditions with more values are taken to cover nothing and to be covered by nothing. */
#define COMPARED_MAX 64

static bool network_covers(const struct cidr *wide, const struct cidr *narrow)
{
    struct address cut = narrow->network;
    address_cut(&cut, wide->prefix, wide->prefix);
    return wide->network.family == cut.family && wide->prefix <= narrow->prefix &&
           memcmp(wide->network.bytes, cut.bytes, sizeof cut.bytes) == 0;
}

/* True if the pattern is PREFIX and "**" without another wildcard, and `narrow` begins with PREFIX.
 */
static bool rest_covers(struct weir_text wide, struct weir_text narrow)
{
    struct weir_text prefix = {wide.at, wide.len < 2 ? 0 : wide.len - 2};
    return text_ends(wide, "/**") && !pattern_has_wildcard(prefix) && narrow.len >= prefix.len &&
           memcmp(narrow.at, prefix.at, prefix.len) == 0;
}

/*
 * True if every text that matches `narrow` matches `wide`; false also if this is not easily seen.
 * A wildcard of `narrow` is compared as the letter '*', which only a wildcard of `wide` matches.
 */
static bool pattern_covers(bool path, struct weir_text wide, struct weir_text narrow, bool exact)
{
    if (text_equal(wide, narrow) || (path && rest_covers(wide, narrow))) {
        return true;
    }
    if (memchr(wide.at, '\\', wide.len) != NULL ||
        (!exact && memmem(narrow.at, narrow.len, "**", 2) != NULL)) {
        return false;
    }
    return path ? path_pattern_match(wide, narrow) : segment_match(wide, narrow);
}

static bool value_covers(bool path, const struct value *wide, const struct value *narrow)
{
    switch (wide->kind) {
    case VALUE_NETWORK:
        return network_covers(&wide->network, &narrow->network);
    case VALUE_PATTERN:
        return pattern_covers(path, wide->text, narrow->text, narrow->kind == VALUE_EXACT);
    default:
        return narrow->kind == VALUE_EXACT && text_equal(wide->text, narrow->text);
    }
}

/* True if `wide` holds for every request for which `narrow`, of the same attribute, holds. */
static bool condition_covers(const struct condition *wide, const struct condition *narrow)
{
    bool path = attribute_kind_of(wide->attribute) == ATTRIBUTE_PATH;
    if (wide->count > COMPARED_MAX || narrow->count > COMPARED_MAX) {
        return false;
    }
    for (size_t i = 0; i < narrow->count; i++) {
        size_t j = 0;
        while (j < wide->count && !value_covers(path, &wide->values[j], &narrow->values[i])) {
            j++;
        }
        if (j == wide->count) {
            return false;
        }
    }
    return true;
}

static bool conditions_cover(const struct conditions *wide, const struct conditions *narrow)
{
    for (size_t i = 0; i < wide->count; i++) {
        size_t j = 0;
        while (j < narrow->count && !(text_equal(wide->at[i].attribute, narrow->at[j].attribute) &&
                                      condition_covers(&wide->at[i], &narrow->at[j]))) {
            j++;
        }
        if (j == narrow->count) {
            return false;
        }
    }
    return true;
}

/* True if one of the names is always present: the listeners know path, method, host and ip. */
static bool part_is_present(const struct texts *names)
{
    size_t i = 0;
    while (i < names->count && attribute_kind_of(names->at[i]) == ATTRIBUTE_PLAIN) {
        i++;
    }
    return i < names->count;
}

/* True if a request that has the part `narrow` of a key also has the part `wide`. */
static bool part_covers(const struct texts *wide, const struct texts *narrow)
{
    for (size_t i = 0; i < narrow->count; i++) {
        size_t j = 0;
        while (j < wide->count && !text_equal(wide->at[j], narrow->at[i])) {
            j++;
        }
        if (j == wide->count) {
            return false;
        }
    }
    return true;
}

/* True if a request that has the key of `later` also has that of `first`: a limit whose key is
 * missing leaves its place in the group to the next one. */
static bool key_covers(const struct limit_config *first, const struct limit_config *later)
{
    for (size_t i = 0; i < first->key_parts; i++) {
        const struct texts *part = &first->key[i].alternatives;
        size_t j = 0;
        while (j < later->key_parts && !part_covers(part, &later->key[j].alternatives)) {
            j++;
        }
        if (j == later->key_parts && !part_is_present(part)) {
            return false;
        }
    }
    return true;
}

/* Returns the limit of the same group that applies whenever limit i does and comes before it. */
static const struct limit_config *hidden_by(const struct config *config, size_t i)
{
    const struct limit_config *limit = config->limits[i];
    for (size_t j = 0; limit->group.len > 0 && j < i; j++) {
        const struct limit_config *first = config->limits[j];
        if (first->shadow == limit->shadow && text_equal(first->group, limit->group) &&
            first->unless.count == 0 && conditions_cover(&first->when, &limit->when) &&
            key_covers(first, limit)) {
            return first;
        }
    }
    return NULL;
}

static bool list_covers(const struct list_config *list, const struct conditions *when)
{
    size_t i = 0;
    while (i < list->count && !conditions_cover(&list->entries[i], when)) {
        i++;
    }
    return i < list->count;
}

/* Returns why no request reaches the limit, as far as it does not depend on its group; or NULL. */
static const char *unreachable(const struct config *config, const struct limit_config *limit)
{
    for (size_t i = 0; i < limit->when.count; i++) {
        if (limit->when.at[i].count == 0) {
            return "a file in 'when' has no values";
        }
    }
    if (list_covers(&limit->unless, &limit->when)) {
        return "'unless' excludes every request that it is for";
    }
    if (list_covers(&config->block, &limit->when)) {
        return "'block' denies every request that it is for";
    }
    if (list_covers(&config->allow, &limit->when)) {
        return "'allow' lets every request pass that it is for";
    }
    return NULL;
}

static void warn_of_unreachable(const struct config *config, struct problems *problems)
{
    for (size_t i = 0; i < config->limits_count; i++) {
        const struct limit_config *limit = config->limits[i];
        const char *why = unreachable(config, limit);
        const struct limit_config *first = why == NULL ? hidden_by(config, i) : NULL;
        if (why != NULL) {
            warning(problems, limit->place, "limit '%.*s' never applies: %s",
                    TEXT_ARGS(limit->name), why);
        } else if (first != NULL) {
            warning(problems, limit->place,
                    "limit '%.*s' never applies: limit '%.*s' of its group comes first and applies "
                    "to the same requests",
                    TEXT_ARGS(limit->name), TEXT_ARGS(first->name));
        }
    }
}

/* ---- limits whose keys clients make up ---- */

/* Returns whether the limit's key is the address, which the server always knows. */
static bool counts_addresses(const struct config *config, const struct limit_config *limit)
{
    const struct attribute_source *source = NULL;
    const struct texts *names = &limit->key[0].alternatives;
    return limit->key_parts == 1 && names->count > 0 &&
           attribute_kind_of(names->at[0]) == ATTRIBUTE_IP &&
           source_of_part(config, names, &source) == PART_ADDRESS;
}

/* Returns whether each limit of the group counts addresses: then it does not matter which one
 * applies. */
static bool group_counts_addresses(const struct config *config, struct weir_text group)
{
    for (size_t i = 0; group.len > 0 && i < config->limits_count; i++) {
        const struct limit_config *one = config->limits[i];
        if (text_equal(one->group, group) && !counts_addresses(config, one)) {
            return false;
        }
    }
    return true;
}

/* Returns whether a limit counts every address that asks, if its condition holds. */
static bool bounds_addresses(const struct config *config, const struct limit_config *limit)
{
    return limit->unless.count == 0 && counts_addresses(config, limit) &&
           group_counts_addresses(config, limit->group);
}

/*
 * Returns whether one of the limits for which `bounds` says so applies whenever `limit` does. One
 * in shadow denies nothing, so it bounds only limits that are in shadow themselves.
 */
static bool has_address_beside(const struct config *config, const bool *bounds,
                               const struct limit_config *limit)
{
    size_t i = 0;
    while (i < config->limits_count &&
           !(bounds[i] && (limit->shadow || !config->limits[i]->shadow) &&
             conditions_cover(&config->limits[i]->when, &limit->when))) {
        i++;
    }
    return i < config->limits_count;
}

/*
 * Warns of limits whose key clients can make up: one such part is enough, because each of its
 * values makes a new key, also together with the address. A part that is given prevents that: a
 * request without it does not meet the limit. A limit by address beside it bounds what made-up
 * values gain, but then a client may still get others banned, unless the address is in the key.
 */
static void warn_of_written(const struct config *config, struct problems *problems)
{
    bool bounds[CONFIG_LIMITS_MAX]; /* found once, because it takes a look at all limits */
    for (size_t i = 0; i < config->limits_count; i++) {
        bounds[i] = bounds_addresses(config, config->limits[i]);
    }
    for (size_t i = 0; i < config->limits_count; i++) {
        const struct limit_config *limit = config->limits[i];
        const struct attribute_source *source = NULL;
        size_t parts[PART_SOURCES] = {0};
        for (size_t j = 0; j < limit->key_parts; j++) {
            parts[source_of_part(config, &limit->key[j].alternatives, &source)]++;
        }
        bool bans = limit->ban.denials > 0 && parts[PART_ADDRESS] == 0;
        if (parts[PART_MADE_UP] > 0 && parts[PART_GIVEN] == 0 &&
            (bans || !has_address_beside(config, bounds, limit))) {
            warning(
                problems, limit->place,
                "limit '%.*s': clients can make up its key, which comes from %.*s, and get a "
                "new quota with each value%s; expected a limit with 'key: [ip]' beside it, or a "
                "gateway that sets or removes what clients write there",
                TEXT_ARGS(limit->name), TEXT_ARGS(source->name),
                bans ? ", or get the keys of others banned" : "");
        }
    }
}

/* ---- queues that gateways do not wait for ---- */

/* Returns the numbers of a limit that can delay a request by more than most_ns; NULL: there are
 * none. */
static const struct setting *slow_setting(const struct limit_config *limit, uint64_t most_ns)
{
    const struct overrides *o = &limit->overrides;
    if (limit->tier_default.len == 0 && limit_wait_ns(limit, &limit->base, most_ns) != 0) {
        return &limit->base;
    }
    for (size_t i = 0; i < limit->tiers_count; i++) {
        if (limit_wait_ns(limit, &limit->tiers[i].setting, most_ns) != 0) {
            return &limit->tiers[i].setting;
        }
    }
    for (size_t i = 0; i < o->settings_count; i++) {
        if (limit_wait_ns(limit, &o->settings[i], most_ns) != 0) {
            return &o->settings[i];
        }
    }
    return NULL;
}

static void warn_of_slow(const struct config *config, struct problems *problems)
{
    uint64_t most_ns = config->server.hold_max_ns;
    char rate[QUANTITY_MAX];
    char most[QUANTITY_MAX];
    for (size_t i = 0; i < config->limits_count; i++) {
        const struct limit_config *limit = config->limits[i];
        const struct setting *slow = slow_setting(limit, most_ns);
        if (slow != NULL) {
            warning(problems, limit->place,
                    "limit '%.*s': found a queue of %llu at %s, which can delay a request by more "
                    "than server.hold_max (%s): /v1/auth denies such requests; raise hold_max, and "
                    "the time for which the gateway waits, or shorten the queue",
                    TEXT_ARGS(limit->name), (unsigned long long)slow->burst,
                    rate_print(slow->rate, rate),
                    most_ns > 0 ? quantity_duration.print(most_ns, most) : "off");
        }
    }
}

/* ---- names in paths that nothing uses ---- */

struct unused {
    const struct config *config;
    struct weir_text name; /* the first that is found; len 0: none so far */
};

static bool is_taken(const struct config *config, struct weir_text name)
{
    for (size_t i = 0; i < config->attributes_count; i++) {
        const struct attribute_config *a = &config->attributes[i];
        for (size_t j = 0; j < a->count; j++) {
            if (a->sources[j].kind == FROM_PATH && text_equal(a->sources[j].part, name)) {
                return true;
            }
        }
    }
    return false;
}

static void look_for_unused(void *arg, const struct value *path)
{
    struct unused *u = arg;
    for (unsigned n = 1; path_nth(path->named, n).len > 0; n++) {
        struct weir_text name = path_pattern_name(path_nth(path->named, n));
        if (u->name.len == 0 && name.len > 0 && !is_taken(u->config, name)) {
            u->name = name;
        }
    }
}

static void warn_of_unused(const struct config *config, struct place place,
                           struct problems *problems)
{
    struct unused u = {.config = config};
    if (config->declared == NULL) { /* otherwise its author knows the section */
        config_each_named(config, look_for_unused, &u);
    }
    if (u.name.len > 0) {
        warning(problems, place,
                "found {%.*s} in a path, but no attribute takes it; expected a source such as "
                "'attributes: {%.*s: \"path:{%.*s}\"}', or * in the path",
                TEXT_ARGS(u.name), TEXT_ARGS(u.name), TEXT_ARGS(u.name));
    }
}

void config_warn(const struct config *config, const char *name, struct problems *problems)
{
    warn_of_written(config, problems);
    warn_of_unused(config, (struct place){name, 0, 0}, problems);
    warn_of_unreachable(config, problems);
    warn_of_slow(config, problems);
    if (!text_is(config->server.http, "off")) {
        config_warn_undeclared(config, NULL, problems);
    }
}
