#include "rules/file/adhoc.h"

#include "rules/file/consistency.h"
#include "rules/file/limits.h"

#define ADHOC(member) offsetof(struct adhoc_config, member)

static const struct field adhoc_fields[] = {
    {"max_keys", "a count of at least 1, such as 1M",
     "the number of keys in use that are never forgotten", &type_count, ADHOC(max_keys),
     .initial = "1M", .least = 1},
    {"on_full", "evict, deny or allow",
     "what happens when there is no room for a new key: another key is forgotten, or the request "
     "is denied, or it is allowed and not counted",
     &type_choice, ADHOC(on_full), .initial = "evict", .choices = limit_on_full_names},
    {"consistency", "local",
     "each node counts for itself, even with a store, because the numbers come with each call",
     &type_consistency, ADHOC(consistency), .unset = "local", .choices = limit_consistency_names},
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
        unexpected_word(r, node, "off, or a map of max_keys, on_full and consistency", &s);
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
    show_bytes(s->out, adhoc_bytes(adhoc, &quiet));
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
    if (adhoc->consistency > CONSISTENCY_LOCAL) {
        problem(problems, adhoc->place,
                "adhoc: found consistency %s, expected local: the keys of CL.THROTTLE are not "
                "shared, each node counts for itself",
                limit_consistency_names[adhoc->consistency]);
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

uint64_t adhoc_bytes(const struct adhoc_config *adhoc, struct problems *problems)
{
    struct weir_options options;
    struct weir_error error;
    uint64_t bytes = 0;
    adhoc_options(adhoc->max_keys, adhoc->on_full, &options);
    if (!adhoc->off && weir_size(&options, &bytes, &error) != 0) {
        problem(problems, adhoc->place, "adhoc: %s", error.text);
    }
    return bytes;
}
