/* Names the files of the limiters, and removes those that a rule set no longer needs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/hash.h"
#include "common/folder.h"
#include "rules/compiled/ruleset.h"

/*
 * To be raised when the same request would give other bytes of a key, by normalising or composing.
 */
#define KEYS_FORM 1

#define ENDING ".weir"
#define ENDING_DRAFT ".weir.new"
/*
 * How libweir names a file while it makes it, on file systems that cannot make one without a name.
 */
#define LEFTOVER ".weir-"
#define LEFTOVER_LEN (sizeof(LEFTOVER "XXXXXX") - 1)

/* ---- names ---- */

static void mix_number(struct hash *h, uint64_t number)
{
    hash_mix(h, &number, sizeof number);
}

/*
 * Returns a hash of all fields of the limit that the bytes of its keys depend on. The hash depends
 * on the byte order; files do not move between byte orders.
 */
static uint64_t meaning_of(const struct limit_config *limit)
{
    struct hash h = {KEYS_FORM, 0};
    mix_number(&h, limit->key_parts);
    mix_number(&h, limit->ipv4_prefix);
    mix_number(&h, limit->ipv6_prefix);
    for (size_t i = 0; i < limit->key_parts; i++) {
        const struct texts *names = &limit->key[i].alternatives;
        mix_number(&h, names->count);
        for (size_t j = 0; j < names->count; j++) {
            hash_mix(&h, names->at[j].at, names->at[j].len);
        }
    }
    return h.low;
}

size_t variant_name(const struct rule *rule, const struct variant *variant, char separator,
                    char name[STATE_NAME_MAX])
{
    const struct setting *s = variant->setting;
    struct weir_text limit = rule->config->name;
    int n = snprintf(name, STATE_NAME_MAX, "%.*s", TEXT_ARGS(limit));
    if (variant >= &rule->variants[rule->override_first]) {
        n += snprintf(name + n, STATE_NAME_MAX - (size_t)n, "=%" PRIu64 "-%" PRIu64 "-%" PRIu64,
                      s->rate.count, s->rate.period_ns, s->burst);
    } else if (variant->tier.len > 0) {
        n += snprintf(name + n, STATE_NAME_MAX - (size_t)n, "%c%.*s", separator,
                      TEXT_ARGS(variant->tier));
    }
    return (size_t)n;
}

void state_name(const struct rule *rule, const struct variant *variant, char name[STATE_NAME_MAX])
{
    size_t n = variant_name(rule, variant, '@', name);
    (void)snprintf(name + n, STATE_NAME_MAX - n, "~%016" PRIx64 ENDING, meaning_of(rule->config));
}

/* Returns the name of the limit that a file belongs to; len 0: none. */
static struct weir_text limit_of(struct weir_text name)
{
    size_t n = 0;
    while (n < name.len && strchr("@=~", name.at[n]) == NULL) {
        n++;
    }
    return (struct weir_text){name.at, n < name.len ? n : 0};
}

/* ---- keeping ---- */

/* The state of looking through the folder. */
struct look {
    struct state *state;
    const struct ruleset *set;
    const struct ruleset *old;
    struct problems *problems;
    struct text_map *used; /* names of the files that the rules use */
    unsigned strangers;
    char stranger[STATE_NAME_MAX];
};

/* Makes the file of a limiter permanent, and notes its name. */
static void keep(struct look *look, struct holder *holder)
{
    if (holder == NULL) {
        return;
    }
    state_keep(look->state, &holder->file, look->problems);
    if (look->used != NULL && holder->file.name[0] != 0 && !holder->file.draft) {
        (void)text_map_put(look->used, text_of(holder->file.name), 0);
    }
}

/* Without memory for the names look->used is NULL. */
static void keep_all(struct look *look, struct arena *arena)
{
    size_t files = 1;
    for (size_t i = 0; i < look->set->rules_count; i++) {
        files += look->set->rules[i].variants_count;
    }
    look->used = text_map_create(arena, files);
    for (size_t i = 0; i < look->set->rules_count; i++) {
        for (size_t j = 0; j < look->set->rules[i].variants_count; j++) {
            keep(look, look->set->rules[i].variants[j].holder);
        }
    }
}

/* ---- clearing up ---- */

static bool has_limit(const struct ruleset *set, struct weir_text limit)
{
    return set != NULL && ruleset_find(set, limit) != NULL;
}

static void remove_file(const struct look *look, const char *name, bool tell)
{
    char path[PATH_MAX];
    state_path(look->state, name, "", path);
    struct place place = {path, 0, 0};
    if (unlink(path) != 0 && errno != ENOENT) {
        warning(look->problems, place, "is no longer needed, but cannot be removed: %s",
                strerror(errno));
    } else if (tell) {
        struct weir_text limit = limit_of(text_of(name));
        warning(look->problems, place,
                "has been removed: limit '%.*s' no longer uses it, because its key, tiers, "
                "overrides or consistency have changed",
                TEXT_ARGS(limit));
    }
}

static void look_at(struct look *look, const char *entry)
{
    struct weir_text name = text_of(entry);
    struct weir_text limit = limit_of(name);
    bool leftover = name.len == LEFTOVER_LEN && text_starts(name, LEFTOVER);
    if (leftover || text_ends(name, ENDING_DRAFT)) {
        remove_file(look, entry, false);
    } else if (!text_ends(name, ENDING) || limit.len == 0 || text_map_find(look->used, name) >= 0) {
        return;
    } else if (has_limit(look->set, limit)) {
        remove_file(look, entry, look->old == NULL);
    } else if (has_limit(look->old, limit)) {
        remove_file(look, entry, false);
    } else if (look->old == NULL && look->strangers++ == 0) {
        (void)snprintf(look->stranger, sizeof look->stranger, "%s", entry);
    }
}

static void tell_strangers(const struct look *look)
{
    if (look->strangers > 0) {
        warning(
            look->problems, (struct place){look->state->folder, 0, 0},
            "found files of limits that the rules do not have: %u, such as %s; they are left alone",
            look->strangers, look->stranger);
    }
}

/* Without memory for the names no file is removed; the next start will try again. */
void state_settle(struct state *state, struct ruleset *set, const struct ruleset *old,
                  struct problems *problems)
{
    struct look look = {.state = state, .set = set, .old = old, .problems = problems};
    struct arena arena = ARENA_INIT;
    keep_all(&look, &arena);
    DIR *folder = look.used != NULL ? folder_open(state->folder) : NULL;
    for (struct dirent *d; folder != NULL && (d = readdir(folder)) != NULL;) {
        look_at(&look, d->d_name);
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    tell_strangers(&look);
    arena_finish(&arena);
}
