#include "rules/file/adhoc.h"

#include "rules/file/consistency.h"
#include "rules/file/limits.h"

#define ADHOC(member) offsetof(struct adhoc_config, member)

bool adhoc_is_shared(const struct config *config)
{
    return !config->adhoc.off && config->fleet != FLEET_NONE && config_has_store(config) &&
           config_consistency(config, config->adhoc.consistency) != CONSISTENCY_LOCAL;
}

static bool show_failure(const struct show *s)
{
    return adhoc_is_shared(s->config);
}

static const struct field adhoc_fields[] = {
    {"max_keys", "a count of at least 1, such as 1M",
     "the number of keys in use that are never forgotten", &type_count, ADHOC(max_keys),
     .initial = "1M", .least = 1},
    {"on_full", "evict, deny or allow",
     "what happens when there is no room for a new key: another key is forgotten, or the request "
     "is denied, or it is allowed and not counted",
     &type_choice, ADHOC(on_full), .initial = "evict", .choices = limit_on_full_names},
    {"consistency", "local or exact",
     "whether each node counts for itself, or the fleet counts in its store", &type_consistency,
     ADHOC(consistency), .unset = "exact with a store, otherwise local",
     .choices = limit_consistency_names},
    {"on_store_failure", "local, open or closed", "what happens while the store does not answer",
     &type_choice, ADHOC(on_store_failure), .initial = "local", .choices = limit_failure_names,
     .applies = show_failure},
};

const struct section section_adhoc = SECTION("adhoc", NULL, adhoc_fields);

static void read_adhoc(struct reader *r, const struct field *f, const struct node *node,
                       void *value)
{
    struct adhoc_config *adhoc = value;
    struct suggestion s = suggest_begin(node->kind == NODE_SCALAR ? node->scalar : TEXT(""));
    suggest_offer(&s, "off");
    adhoc->place = node->place;
    if (node->kind == NODE_SCALAR && text_is(node->scalar, "off")) {
        adhoc->off = true;
    } else if (node->kind != NODE_MAP) {
        unexpected_word(r, node,
                        "off, or a map of max_keys, on_full, consistency and on_store_failure", &s);
    } else {
        field_read_map(r, f, node, adhoc);
    }
}

static void show_adhoc(const struct show *s, const void *value)
{
    const struct adhoc_config *adhoc = value;
    struct problems quiet = {0};
    if (adhoc->off) {
        (void)fputs(" off", s->out);
        return;
    }
    (void)fputs(" {", s->out);
    fields_show(s, s->field->section, adhoc, ", ");
    (void)fputs("} # ", s->out);
    if (adhoc_is_shared(s->config)) {
        (void)fputs("in the store", s->out);
    } else {
        show_bytes(s->out, adhoc_bytes(s->config, &quiet));
    }
}

const struct field_type type_adhoc = {
    .read = read_adhoc, .show = show_adhoc, .shape = SHAPE_SCALAR_OR_MAP};

void adhoc_check(const struct config *config, struct problems *problems)
{
    const struct adhoc_config *adhoc = &config->adhoc;
    if (adhoc->off) {
        return;
    }
    for (size_t i = 0; i < config->limits_count; i++) {
        if (text_is(config->limits[i]->name, "adhoc")) {
            problem(problems, config->limits[i]->place,
                    "found a limit named 'adhoc', expected another name, or 'adhoc: off' to switch "
                    "off the built-in one");
        }
    }
    if (adhoc->consistency > CONSISTENCY_EXACT) {
        problem(problems, adhoc->place,
                "adhoc: found consistency %s, expected exact or local: each call of CL.THROTTLE "
                "has numbers of its own",
                limit_consistency_names[adhoc->consistency]);
    } else if (adhoc->consistency == CONSISTENCY_EXACT && !config_has_store(config)) {
        problem(problems, adhoc->place,
                "adhoc: found consistency exact without a store, expected a store, or "
                "'consistency: local'");
    }
}

void adhoc_options(uint64_t max_keys, int on_full, struct weir_options *options)
{
    *options = (struct weir_options)WEIR_OPTIONS_INIT;
    options->algorithm = WEIR_TOKEN_BUCKET;
    options->count = 1;
    options->period_ns = 365 * WEIR_DAY;
    options->burst = ADHOC_YEARS;
    options->max_keys = max_keys;
    options->on_full = on_full;
}

uint64_t adhoc_bytes(const struct config *config, struct problems *problems)
{
    const struct adhoc_config *adhoc = &config->adhoc;
    struct weir_options options;
    struct weir_error error;
    uint64_t bytes = 0;
    adhoc_options(adhoc->max_keys, adhoc->on_full, &options);
    if (!adhoc->off && weir_size(&options, &bytes, &error) != 0) {
        problem(problems, adhoc->place, "adhoc: %s", error.text);
    }
    return adhoc_is_shared(config) ? 0 : bytes;
}
