#include "reference.h"

#include <stdio.h>

#include "server/admin/metrics.h"

const struct section *const reference_sections[] = {
    &section_top,       &section_server, &section_server_tls, &section_store, &section_store_tls,
    &section_adhoc,     &section_envoy,  &section_limit,      &section_tiers, &section_tier,
    &section_overrides, &section_ban,    &section_deny,       &section_log,   NULL};

/* Puts text into a cell of a table, where |, * and < are special. */
static void put(FILE *f, const char *text)
{
    bool code = false;
    for (; *text != 0; text++) {
        const char plain[2] = {*text, 0};
        code ^= *text == '`';
        (void)fputs(*text == '|'            ? "\\|"
                    : *text == '*' && !code ? "\\*"
                    : *text == '<' && !code ? "&lt;"
                                            : plain,
                    f);
    }
}

/* ---- metrics ---- */

static const char metrics_head[] =
    "<!-- Generated from the server's rows by `make reference`; do not edit. -->\n"
    "# Metrics\n"
    "\n"
    "`/metrics` of the admin listener, and of `--metrics`, serves these in the text format of\n"
    "Prometheus. Labels are names of limits, listeners and endpoints, and fixed words, never\n"
    "keys: the number of series does not grow with the number of keys. Counters begin at 0 when\n"
    "the server starts. A histogram has `_bucket`, `_sum` and `_count`.\n";

static void put_labels(FILE *f, const struct metrics_about *about)
{
    if (about->scope != NULL) {
        (void)fprintf(f, "`%s`", about->scope);
    }
    if (about->label != NULL) {
        (void)fprintf(f, "%s`%s`:", about->scope != NULL ? "; " : "", about->label);
        for (size_t i = 0; i < METRICS_SERIES_MAX && about->values[i] != NULL; i++) {
            (void)fprintf(f, "%s %s", i > 0 ? "," : "", about->values[i]);
        }
    }
}

/* Puts the metrics that are counted for one thing, after the first of them. */
static void put_metrics_of(FILE *f, const char *of, size_t i)
{
    struct metrics_about about;
    (void)fprintf(f, "\n## Of %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", of);
    for (; metrics_describe(i, &about); i++) {
        if (strcmp(about.of, of) == 0) {
            (void)fprintf(f, "| `%s` | %s | ", about.name, about.type);
            put_labels(f, &about);
            (void)fputs(" | ", f);
            put(f, about.help);
            (void)fputs(" |\n", f);
        }
    }
}

/* True if no metric before the i-th is counted for the same. */
static bool is_first(size_t i, const char *of)
{
    struct metrics_about about;
    for (size_t j = 0; j < i && metrics_describe(j, &about); j++) {
        if (strcmp(about.of, of) == 0) {
            return false;
        }
    }
    return true;
}

char *reference_metrics(void)
{
    struct metrics_about about;
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (f == NULL) {
        return NULL;
    }
    (void)fputs(metrics_head, f);
    for (size_t i = 0; metrics_describe(i, &about); i++) {
        if (is_first(i, about.of)) {
            put_metrics_of(f, about.of, i);
        }
    }
    return fclose(f) == 0 ? text : NULL;
}

/* ---- rules ---- */

static const char rules_head[] =
    "<!-- Generated from the rows of the rule file by `make reference`; do not edit. -->\n"
    "# Keys of the rule file\n"
    "\n"
    "Every key, with its value and its default. weir.yaml(5) has the same lists and says how the\n"
    "keys work together. `weir config check FILE` finds the mistakes of a file, and\n"
    "`weir config show FILE` prints it with all defaults.\n";

static void put_field(FILE *f, const struct field *field)
{
    (void)fprintf(f, "| `%s` | ", field->name);
    put(f, field->expects);
    (void)fputs(" | ", f);
    if (field->required) {
        (void)fputs("must be given", f);
    } else {
        put(f, field->initial != NULL ? field->initial : field->unset);
    }
    (void)fputs(" | ", f);
    put(f, field->help);
    (void)fputs(" |\n", f);
}

char *reference_rules(void)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (f == NULL) {
        return NULL;
    }
    (void)fputs(rules_head, f);
    for (size_t i = 0; reference_sections[i] != NULL; i++) {
        const struct section *section = reference_sections[i];
        const char *mark = strchr(section->name, ' ') == NULL ? "`" : ""; /* "the file" is no key */
        (void)fprintf(f, "\n## %s%s%s\n\n", mark, section->name, mark);
        (void)fputs("| key | value | default | meaning |\n|---|---|---|---|\n", f);
        for (size_t j = 0; j < section->count; j++) {
            put_field(f, &section->fields[j]);
        }
    }
    return fclose(f) == 0 ? text : NULL;
}
