/*
 * Names of attributes that no rule uses, but that are probably meant to be one that a rule uses:
 * "usr" for "user". A caller that sends such a name gets no error, and its limits are skipped.
 *
 * Callers may send names that no rule uses on purpose, with every request. So names that are like
 * no attribute are remembered by their hash, in a table in which each hash has one place, and are
 * not compared again until another name takes that place. Threads write it without a lock: at worst
 * a name is compared once more. A client that fills it with other names makes comparing dearer, for
 * names that no rule uses alone.
 */
#include "base/atomic.h"
#include "base/hash.h"
#include "rules/compiled/ruleset.h"
#include "rules/value/normalize.h"
#include "rules/value/suggest.h"

#define UNLIKE_NAMES 256

struct unlike {
    struct hash_secret secret;
    uint64_t hashes[UNLIKE_NAMES];
};

int misspelt_init(struct ruleset *set)
{
    set->unlike = arena_take(&set->arena, sizeof *set->unlike);
    return set->unlike == NULL ? WEIR_ENOMEM : hash_secret_init(&set->unlike->secret);
}

static bool has_name(const struct weir_rules_question *question, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < question->attributes_count; i++) {
        const struct weir_rules_attribute *a = &question->attributes[i];
        if (a->name_len == len && a->name != NULL && memcmp(a->name, name, len) == 0 &&
            a->value_len > 0) {
            return true;
        }
    }
    return false;
}

/* Writes a name in lower case, with a final 0. Returns false if it is too long to be compared. */
static bool lower(struct weir_text name, char to[MISSPELT_NAME])
{
    bool fits = name.len < MISSPELT_NAME;
    if (fits) {
        normalize_lower(name, to);
        to[name.len] = 0;
    }
    return fits;
}

/* Returns whether a name, in lower case, is like an attribute. "id" is not like "ip". */
static bool is_like(struct weir_text name, struct weir_text attribute)
{
    char known[MISSPELT_NAME];
    size_t apart = name.len > attribute.len ? name.len - attribute.len : attribute.len - name.len;
    unsigned edits = attribute.len < 3 || name.len < 3 ? 0 : 1;
    return apart <= edits && lower(attribute, known) && suggest_distance(name, known) <= edits;
}

/* Does what misspelt_find() does. Sets *like if the name is like any attribute of the rules. */
static bool find(const struct ruleset *set, const struct weir_rules_question *question,
                 struct weir_text name, char meant[MISSPELT_NAME], bool *like)
{
    char room[MISSPELT_NAME];
    bool fits = lower(name, room);
    *like = false;
    for (size_t i = 0; fits && i < set->attributes_count; i++) {
        struct weir_text attribute = set->attributes[i];
        if (attribute.len == 0 || !is_like((struct weir_text){room, name.len}, attribute)) {
            continue; /* the rules do not use this number, or this is another name */
        }
        *like = true;
        memcpy(meant, attribute.at, attribute.len);
        meant[attribute.len] = 0;
        if (!has_name(question, meant)) {
            return true;
        }
    }
    return false;
}

bool misspelt_find(const struct ruleset *set, const struct weir_rules_question *question,
                   struct weir_text name, char meant[MISSPELT_NAME])
{
    bool like;
    return find(set, question, name, meant, &like);
}

void misspelt_tell(const struct ruleset *set, const struct weir_rules_question *question,
                   struct weir_text name)
{
    char meant[MISSPELT_NAME];
    bool like;
    if (set->misspelt == NULL || name.len == 0 || name.len >= MISSPELT_NAME) {
        return;
    }
    uint64_t hash = hash_sip(&set->unlike->secret, name.at, name.len).low;
    uint64_t *place = &set->unlike->hashes[hash % UNLIKE_NAMES];
    if (load_relaxed(place) == hash) {
        return;
    }
    if (find(set, question, name, meant, &like)) {
        set->misspelt(set->misspelt_arg, name.at, name.len, meant);
    } else if (!like) {
        store_relaxed(place, hash);
    }
}
