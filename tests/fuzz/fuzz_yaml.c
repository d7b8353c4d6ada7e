/*
 * Rules from arbitrary bytes: errors with a text and a place in the file, or rules. Those are
 * shown as YAML that reads back and is shown the same again, answer questions, and can be
 * reloaded, changed and ended. A text may also be a file of Envoy's reference server. The
 * files that such a text may name are in a folder of our own; the product itself keeps away
 * from pipes and devices.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir_rules.h>

#include "rules/file/config.h"
#include "rules/file/limits.h"
#include "rules/file/show.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BYTES_MOST (UINT64_C(16) << 20) /* of all tables: more takes too long */
#define T0 (UINT64_C(1767225600) * WEIR_SECOND)

static char folder[] = "/tmp/weir-fuzz-yaml-XXXXXX";
static char name[sizeof folder + 8];

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

static const struct {
    const char *name;
    const char *content;
} files[] = {
    {"allow.cidr", "10.0.0.0/8\n2001:db8::/32\n"},
    {"names.txt", "alice\nbob*\n"},
    {"tiers.csv", "user,tier\nalice,pro\n"},
    {"overrides.csv", "user,rate,burst\nalice,50/min\nbob,7/s,9\n"},
    {"bad.csv", "alice\n\"bob\n"},
};

static void remove_files(void)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[sizeof folder + 32];
        (void)snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

static void make_files(void)
{
    if (name[0] != 0) {
        return;
    }
    require(mkdtemp(folder) != NULL);
    (void)atexit(remove_files);
    (void)snprintf(name, sizeof name, "%s/rules", folder);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[sizeof folder + 32];
        (void)snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        FILE *f = fopen(path, "w");
        require(f != NULL && fputs(files[i].content, f) >= 0 && fclose(f) == 0);
    }
}

/* ---- what is told ---- */

struct listener {
    unsigned lines; /* of the text */
    unsigned errors;
};

static void listen(void *arg, const struct weir_rules_message *m)
{
    struct listener *l = arg;
    require(m->file != NULL && m->text != NULL && m->text[0] != 0);
    require((m->line == 0) == (m->column == 0));
    require(strcmp(m->file, name) != 0 || m->line <= l->lines + 1);
    for (const char *c = m->text; *c != 0; c++) { /* nothing that drives a terminal */
        require((unsigned char)*c >= ' ' && *c != 0x7f);
    }
    l->errors += m->severity == WEIR_RULES_ERROR;
}

/* YAML breaks lines at CR, LF, NEL and the two separators of Unicode. */
static unsigned count_lines(struct weir_text text)
{
    unsigned lines = 1;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        lines += c == '\n' || c == '\r' || c == 0x85 || c == 0xa8 || c == 0xa9;
    }
    return lines;
}

/* ---- what is shown ---- */

static char *show(const struct config *config)
{
    char *shown = NULL;
    size_t size;
    FILE *out = open_memstream(&shown, &size);
    require(out != NULL);
    config_show(config, NULL, out);
    require(fclose(out) == 0 && strlen(shown) == size);
    return shown;
}

static uint64_t bytes_of(const struct config *config)
{
    struct problems quiet = {0};
    uint64_t sum = 0;
    for (size_t i = 0; i < config->limits_count; i++) {
        sum += limit_bytes(config, config->limits[i], &quiet);
    }
    require(quiet.errors == 0);
    return sum;
}

static void check_shown_again(const char *shown)
{
    struct problems problems = {0};
    struct config config = {0};
    int e = config_read_text(&config, name, text_of(shown), &problems);
    problems_finish(&problems);
    require(e == 0);
    char *again = show(&config);
    require(strcmp(shown, again) == 0);
    free(again);
    config_finish(&config);
}

/* ---- what is answered ---- */

static void ask(struct weir_rules *rules)
{
    static const struct weir_rules_attribute all[] = {
        WEIR_RULES_ATTRIBUTE("path", "/login"),
        WEIR_RULES_ATTRIBUTE("path", "/a/b?c"),
        WEIR_RULES_ATTRIBUTE("method", "POST"),
        WEIR_RULES_ATTRIBUTE("host", "a.example:80"),
        WEIR_RULES_ATTRIBUTE("ip", "10.1.2.3"),
        WEIR_RULES_ATTRIBUTE("ip", "2001:db8::1"),
        WEIR_RULES_ATTRIBUTE("user", "alice"),
        WEIR_RULES_ATTRIBUTE("tier", "pro"),
        WEIR_RULES_ATTRIBUTE("api_key", "k"),
        WEIR_RULES_ATTRIBUTE("tokens", "3"),
        WEIR_RULES_ATTRIBUTE("header:X-User-Id", "bob"),
        WEIR_RULES_ATTRIBUTE("query:api_key", "q"),
        WEIR_RULES_ATTRIBUTE("domain", "d"), /* as a call of Envoy's service has them */
        WEIR_RULES_ATTRIBUTE("domain", "edge"),
        WEIR_RULES_ATTRIBUTE("descriptor", "k"),
        WEIR_RULES_ATTRIBUTE("descriptor", "path/user"),
        WEIR_RULES_ATTRIBUTE("value_1", "v"),
        WEIR_RULES_ATTRIBUTE("value_1", "/login"),
        WEIR_RULES_ATTRIBUTE("value_2", "alice"),
        WEIR_RULES_ATTRIBUTE("value_2", "bob"),
    };
    static const unsigned firsts[] = {0, 1, 2, 3, 5, 8, 12, 13};
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        struct weir_rules_attribute with[7];
        struct weir_rules_question q = {.attributes = with, .cost = i};
        for (size_t j = firsts[i]; j < sizeof all / sizeof all[0] && q.attributes_count < 4;
             j += 2) {
            with[q.attributes_count++] = all[j];
        }
        struct weir_rules_answer a;
        struct weir_error error = {0, ""};
        int e = weir_rules_ask_at(rules, &q, T0 + i, &a, &error);
        if (e == 0) {
            require(a.answer.verdict >= WEIR_ALLOW && a.answer.verdict <= WEIR_NEVER);
            bool by_list = a.reason == WEIR_REASON_ALLOW_LIST || a.reason == WEIR_REASON_BLOCK_LIST;
            require(a.reason >= WEIR_REASON_UNMATCHED && a.reason <= WEIR_REASON_DEGRADED);
            require((a.applied > 0 && !by_list) == (a.limit[0] != 0) ||
                    a.reason == WEIR_REASON_MISSING);
        } else {
            require(e == WEIR_EATTRIBUTE || e == WEIR_EINVAL || e == WEIR_ETIME ||
                    e == WEIR_ENOTSUP || e == WEIR_ECOST);
            require(error.code == e && error.text[0] != 0);
        }
    }
}

static void use(struct weir_rules *rules, struct weir_text text, const struct config *config)
{
    static const char limit[] = "{name: one-more, key: [user], rate: 5/min, max_keys: 1}";
    struct weir_error error;
    struct weir_rules_stats stats = {.size = sizeof stats};
    ask(rules);
    require(weir_rules_reload_text(rules, name, text.at, text.len, &error) == 0);
    ask(rules);
    int e = weir_rules_put(rules, limit, strlen(limit), &error);
    require(e == 0 || e == WEIR_ERULES);
    for (size_t i = 0; i < config->limits_count && i < 4; i++) {
        char *removed = strndup(config->limits[i]->name.at, config->limits[i]->name.len);
        require(removed != NULL && weir_rules_remove(rules, removed, &error) == 0);
        require(weir_rules_remove(rules, removed, &error) == WEIR_ENOLIMIT);
        free(removed);
    }
    ask(rules);
    require(weir_rules_stats_read(rules, &stats) == 0 && stats.generation >= 2);
}

static void check_rules(struct weir_text text, const struct config *config, struct listener *l)
{
    struct weir_rules_options options = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error = {0, ""};
    struct weir_rules *rules;
    options.flags = WEIR_EXPLICIT_TIME;
    options.message = listen;
    options.message_arg = l;
    int e = weir_rules_open_text(&rules, name, text.at, text.len, &options, &error);
    require((e == 0) == (rules != NULL));
    if (e == 0) {
        require(l->errors == 0 && config != NULL);
        use(rules, text, config);
        weir_rules_close(rules);
    } else {
        require(e == WEIR_ERULES && error.code == e && error.text[0] != 0 && l->errors > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_text text = {(const char *)data, size};
    struct listener l = {.lines = count_lines(text)};
    struct problems problems = {0};
    struct config config = {0};
    make_files();
    int e = config_read_text(&config, name, text, &problems);
    problems_finish(&problems);
    require((e == 0) == (problems.errors == 0) && (e == 0 || e == WEIR_ERULES));
    if (e == 0) {
        char *shown = show(&config);
        check_shown_again(shown);
        free(shown);
    }
    if (e != 0 || bytes_of(&config) < BYTES_MOST) {
        check_rules(text, e == 0 ? &config : NULL, &l);
    }
    config_finish(&config);
    return 0;
}
