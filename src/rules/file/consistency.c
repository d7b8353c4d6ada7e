#include "rules/file/consistency.h"

#include "rules/file/limits.h"
#include "rules/file/yaml_write.h"
#include "rules/value/quote.h"

/* ---- fields ---- */

bool limit_is_shared(const struct show *s)
{
    return config_consistency(s->config, s->limit->consistency) != CONSISTENCY_LOCAL;
}

bool limit_is_synced(const struct show *s)
{
    return config_consistency(s->config, s->limit->consistency) == CONSISTENCY_SYNCED;
}

static void show_consistency(const struct show *s, const void *value)
{
    char said[SHOW_NOTE_MAX];
    int consistency = config_consistency(s->config, *(const int *)value);
    field_show_choice(s, &consistency);
    if (s->limit != NULL && s->note != NULL && s->note(s->config, s->limit, said)) {
        (void)fprintf(s->out, " # %s", said);
    }
}

static bool same_consistency(const void *a, const void *b)
{
    return *(const int *)a == *(const int *)b;
}

/* Reads the names. That each is a part of the key is checked when all fields have been read. */
static void read_shard(struct reader *r, const struct field *f, const struct node *node,
                       void *value)
{
    const struct node *const *items;
    size_t n = scalars_of(r, node, f->expects, &items);
    *(struct texts *)value = texts_of(r, items, n);
}

/* Without a size, because 0, the default, is shown too. */
const struct field_type type_consistency = {
    .read = field_read_choice, .show = show_consistency, .same = same_consistency};
const struct field_type type_shard = {.size = sizeof(struct texts),
                                      .read = read_shard,
                                      .show = field_show_texts,
                                      .shape = SHAPE_SCALARS};

/* ---- checks ---- */

/* True if the key has a part that is this attribute without alternatives. */
static bool is_part(const struct limit_config *limit, struct weir_text attribute)
{
    for (size_t i = 0; i < limit->key_parts; i++) {
        const struct texts *names = &limit->key[i].alternatives;
        if (names->count == 1 && text_equal(names->at[0], attribute)) {
            return true;
        }
    }
    return false;
}

static bool is_before(const struct texts *texts, size_t i)
{
    size_t j = 0;
    while (j < i && !text_equal(texts->at[j], texts->at[i])) {
        j++;
    }
    return j < i;
}

/* Checks shard_by: all requests of one key must go to the same shard. */
void shared_check_fields(struct reader *r, const struct node *node,
                         const struct limit_config *limit)
{
    const struct texts *shard = &limit->shard_by;
    for (size_t i = 0; i < shard->count; i++) {
        struct place place = node_find(node, "shard_by")->place;
        char found[QUOTE_MAX];
        if (!is_part(limit, shard->at[i])) {
            problem(r->problems, place,
                    "found %s in shard_by, expected an attribute that is a part of the key without "
                    "alternatives",
                    quote(shard->at[i], found));
        } else if (is_before(shard, i)) {
            problem(r->problems, place, "found %s twice in shard_by, expected it once",
                    quote(shard->at[i], found));
        }
    }
}

/* What an algorithm must have for a consistency; 0: nothing. */
static const unsigned consistency_traits[] = {
    [CONSISTENCY_LEASED] = CAN_BE_LEASED,
    [CONSISTENCY_SYNCED] = CAN_BE_SYNCED,
};

void shared_check_limit(const struct config *config, const struct limit_config *limit,
                        struct problems *problems)
{
    int mode = limit->consistency;
    if (mode > CONSISTENCY_LOCAL && !config_has_store(config)) {
        problem(problems, limit->consistency_place,
                "limit '%.*s': found consistency %s without a store, expected a store, or "
                "'consistency: local'",
                TEXT_ARGS(limit->name), limit_consistency_names[mode]);
    }
    unsigned traits = consistency_traits[mode];
    if (traits != 0 && !algorithm_has(limit->algorithm, traits)) {
        char names[ALGORITHM_LIST_MAX];
        problem(problems, limit->consistency_place,
                "limit '%.*s': found consistency %s with %s, expected %s", TEXT_ARGS(limit->name),
                limit_consistency_names[mode], weir_algorithm_name(limit->algorithm),
                algorithm_list(traits, names));
    }
    if (limit->sync_place.line > 0 && mode != CONSISTENCY_SYNCED) {
        warning(problems, limit->sync_place,
                "limit '%.*s': found sync, but only 'consistency: synced' uses it",
                TEXT_ARGS(limit->name));
    }
}
