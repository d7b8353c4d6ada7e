/*
 * Composes the key that a limit counts for a request.
 *
 * A key of one attribute is its value. In a key with several parts or alternatives each part states
 * its length and, if it has alternatives, which one it is: "5:alice3:get", "user=5:alice". So no
 * two different requests have the same key: not the user "1.2.3.4" and the address, not ("ab", "c")
 * and ("a", "bc"). An address is a byte 4 or 6, then its 4 or 16 bytes: key_text.c shows it as an
 * address.
 *
 * The values of an opaque request may have any length. One that does not fit stands in the key as a
 * NUL and its SHA-256, on every node. If several values do not fit together, all that are longer
 * than that do. No value that is used as it is begins with a NUL: one that does is replaced too,
 * unless it is that NUL alone, which stands for an empty value (rules/envoy). So clients cannot
 * send a short value that has the key of a long one.
 */
#include "base/error.h"
#include "common/sha256.h"
#include "rules/compiled/ruleset.h"

/* Returns the number of the first alternative that is present; NO_ATTRIBUTE if none is. */
static unsigned present_of(const unsigned char *alternatives, const struct request *request)
{
    while (*alternatives != NO_ATTRIBUTE && !request_has(request, *alternatives)) {
        alternatives++;
    }
    return *alternatives;
}

bool key_is_there(const struct rule *rule, const struct request *request)
{
    for (size_t i = 0; i < rule->key_parts; i++) {
        if ((rule->key_bits[i] & request->present) == 0) {
            return false;
        }
    }
    return true;
}

struct writer {
    char *to;
    size_t longest; /* longer values of an opaque request are replaced */
    size_t len;
    bool full;
};

/* What a value takes that is made for the key: of an address, or in place of a long one. */
#define MADE_BYTES SHA256_MARKED
_Static_assert(MADE_BYTES >= 1 + 16 && CONFIG_KEY_PARTS_MAX * 512 <= WEIR_KEY_MAX,
               "replaced values of all parts fit, with their lengths and names");

static void write_bytes(struct writer *w, const void *from, size_t len)
{
    if (len > WEIR_KEY_MAX - w->len) {
        w->full = true;
        return;
    }
    memcpy(w->to + w->len, from, len);
    w->len += len;
}

/* Writes the length and the bytes of a value: "5:alice". */
static void write_value(struct writer *w, struct weir_text value)
{
    char head[21];
    char *end = text_put_u64(head, value.len);
    *end++ = ':';
    write_bytes(w, head, (size_t)(end - head));
    write_bytes(w, value.at, value.len);
}

/* Returns the value that is counted: for an address, only the bits that identify the client. */
static struct weir_text value_of(const struct rule *rule, const struct request *request,
                                 unsigned attribute, struct address *cut)
{
    if (attribute != NUMBER_IP) {
        return request->value[attribute];
    }
    *cut = request->ip;
    address_cut(cut, rule->config->ipv4_prefix, rule->config->ipv6_prefix);
    return (struct weir_text){(const char *)cut->bytes, cut->family == 4 ? 4 : 16};
}

static bool is_replaced(const struct writer *w, const struct request *request,
                        struct weir_text value)
{
    return request->opaque && (value.len > w->longest || (value.len > 1 && value.at[0] == 0));
}

/* Returns the same value as it is written into a key. */
static struct weir_text key_value(const struct writer *w, const struct rule *rule,
                                  const struct request *request, unsigned attribute,
                                  char room[MADE_BYTES])
{
    struct address cut;
    struct weir_text value = value_of(rule, request, attribute, &cut);
    if (attribute != NUMBER_IP && is_replaced(w, request, value)) {
        sha256_mark(value, room);
        return (struct weir_text){room, SHA256_MARKED};
    }
    if (attribute != NUMBER_IP) {
        return value;
    }
    room[0] = (char)cut.family;
    memcpy(room + 1, value.at, value.len);
    return (struct weir_text){room, 1 + value.len};
}

static void write_part(struct writer *w, const struct ruleset *set, const struct rule *rule,
                       const struct request *request, size_t part)
{
    char room[MADE_BYTES];
    const unsigned char *alternatives = rule->key[part];
    unsigned attribute = present_of(alternatives, request);
    struct weir_text value = key_value(w, rule, request, attribute, room);
    if (alternatives[1] != NO_ATTRIBUTE) {
        write_bytes(w, set->attributes[attribute].at, set->attributes[attribute].len);
        write_bytes(w, "=", 1);
    }
    write_value(w, value);
}

static void write_key(struct writer *w, const struct ruleset *set, const struct rule *rule,
                      const struct request *request)
{
    char room[MADE_BYTES];
    size_t parts = rule->key_parts;
    if (parts == 0) {
        write_bytes(w, "*", 1);
    } else if (parts == 1 && rule->key[0][1] == NO_ATTRIBUTE) {
        struct weir_text value = key_value(w, rule, request, rule->key[0][0], room);
        write_bytes(w, value.at, value.len);
    } else {
        for (size_t i = 0; i < parts; i++) {
            write_part(w, set, rule, request, i);
        }
    }
}

int key_compose(const struct ruleset *set, const struct rule *rule, const struct request *request,
                char *to, size_t *len, struct weir_error *error)
{
    struct writer w = {.to = to, .longest = WEIR_RULES_VALUE_MAX};
    write_key(&w, set, rule, request);
    if (w.full && request->opaque) {
        w = (struct writer){.to = to, .longest = SHA256_MARKED};
        write_key(&w, set, rule, request);
    }
    *len = w.len;
    return w.full ? fail(error, WEIR_EATTRIBUTE,
                         "the key of limit '%.*s' is too long, expected at most %d bytes, "
                         "including the lengths of its parts",
                         TEXT_ARGS(rule->config->name), WEIR_KEY_MAX)
                  : 0;
}

/* Writes the values as the parts of a key, without anything else that is in the key: two limits
 * that shard by the same attributes must get the same bytes. */
static void write_shard(struct writer *w, const struct rule *rule, const struct request *request)
{
    char room[MADE_BYTES];
    bool one = rule->shard[0] != NO_ATTRIBUTE && rule->shard[1] == NO_ATTRIBUTE;
    for (const unsigned char *a = rule->shard; *a != NO_ATTRIBUTE; a++) {
        struct weir_text value = key_value(w, rule, request, *a, room);
        if (one) {
            write_bytes(w, value.at, value.len);
        } else {
            write_value(w, value);
        }
    }
}

size_t shard_compose(const struct rule *rule, const struct request *request, char *to)
{
    struct writer w = {.to = to, .longest = WEIR_RULES_VALUE_MAX};
    write_shard(&w, rule, request);
    if (w.full && request->opaque) {
        w = (struct writer){.to = to, .longest = SHA256_MARKED};
        write_shard(&w, rule, request);
    }
    return w.len;
}

/*
 * An override takes precedence over a tier; an unknown tier means the default one. Overrides by
 * address use the bits that identify the client, as keys do.
 */
const struct variant *rule_variant(const struct rule *rule, const struct request *request,
                                   bool *unknown)
{
    if (request_has(request, rule->override_attribute)) {
        struct address cut;
        int64_t setting = text_map_find(rule->config->overrides.values,
                                        value_of(rule, request, rule->override_attribute, &cut));
        if (setting >= 0) {
            return &rule->variants[rule->override_first + (unsigned)setting];
        }
    }
    if (request_has(request, rule->tier_attribute)) {
        int64_t tier = text_map_find(rule->tiers, request->value[rule->tier_attribute]);
        if (tier >= 0) {
            return &rule->variants[tier];
        }
        *unknown = true;
    }
    return &rule->variants[rule->variant_default];
}

bool rule_is_shared(const struct rule *rule, const struct request *request)
{
    bool unknown;
    return rule->mode != REMOTE_LOCAL &&
           (!rule->partly_here || rule_variant(rule, request, &unknown)->kind == RATE_COUNTS);
}
