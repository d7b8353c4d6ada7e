#include "rules/file/ban.h"

#define BAN(member) offsetof(struct ban_config, member)
#define DURATION "a duration from 1s to 365day, such as "

static const struct field ban_fields[] = {
    {"denials", "a count from 1 to 1M, such as 20",
     "the number of denials that ban a key; calls that are blocked, shadow limits, peeks, verdicts "
     "`never`, full tables and failures of the store do not count",
     &type_count, BAN(denials), .required = true, .least = 1, .most = 1000000},
    {"within", DURATION "1min",
     "the window in which they are counted, on each node; windows begin at multiples of it",
     &type_duration, BAN(within_ns), .required = true, .least = WEIR_SECOND,
     .most = 365 * WEIR_DAY},
    {"for", DURATION "10min",
     "how long the key is blocked then, on all nodes that share the limit; calls meanwhile do not "
     "extend it",
     &type_duration, BAN(for_ns), .required = true, .least = WEIR_SECOND, .most = 365 * WEIR_DAY},
};

const struct section section_ban = SECTION("ban", "a ban", ban_fields);

static void read_ban(struct reader *r, const struct field *f, const struct node *node, void *value)
{
    if (node->kind == NODE_MAP) {
        field_read_map(r, f, node, value);
    } else {
        unexpected(r, node, f->expects);
    }
}

static void show_ban(const struct show *s, const void *value)
{
    (void)fputs(" {", s->out);
    fields_show(s, s->field->section, value, ", ");
    (void)fputs("}", s->out);
}

const struct field_type type_ban = {
    .size = sizeof(struct ban_config), .read = read_ban, .show = show_ban};

void ban_check(struct reader *r, const struct limit_config *limit)
{
    if (limit->ban.denials > 0 && limit->key_parts == 0) {
        warning(r->problems, limit->ban_place,
                "found a ban with 'key: []', which bans all requests together, expected a key that "
                "tells clients apart");
    }
}

void ban_options(const struct limit_config *limit, const struct setting *setting,
                 struct weir_options *options)
{
    config_options(limit, setting, options); /* for max_keys */
    uint64_t max_keys = options->max_keys;
    *options = (struct weir_options)WEIR_OPTIONS_INIT;
    options->algorithm = WEIR_FIXED_WINDOW;
    options->count = limit->ban.denials;
    options->period_ns = limit->ban.within_ns;
    options->max_keys = max_keys;
    options->max_blocks = 1;
}

bool ban_counts_same(const struct ban_config *a, const struct ban_config *b)
{
    return a->denials == b->denials && a->within_ns == b->within_ns;
}
