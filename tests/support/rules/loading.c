#include "support/rules/loading.h"

#include <stdio.h>
#include <stdlib.h>

#include "rules/file/config.h"
#include "rules/file/show.h"
#include "support/engine/unit_limiter.h"

void loading_message(void *arg, const struct weir_rules_message *message)
{
    struct loading *l = arg;
    bool warned = message->severity == WEIR_RULES_WARNING;
    size_t room = sizeof l->told - l->len;
    if (message->severity == WEIR_RULES_NOTE) {
        return;
    }
    int n = snprintf(l->told + l->len, room, "%u:%u: %s%s\n", message->line, message->column,
                     warned ? "warning: " : "", message->text);
    l->len = (size_t)n < room ? l->len + (size_t)n : sizeof l->told - 1;
    l->warnings += warned;
    l->errors += !warned;
}

static struct loading last;

static struct weir_rules_options listening(void)
{
    struct weir_rules_options options = WEIR_RULES_OPTIONS_INIT;
    memset(&last, 0, sizeof last);
    options.message = loading_message;
    options.message_arg = &last;
    return options;
}

/* Requires that errors, and only errors, keep the rules from being made, and that *error has the
 * first. */
static const char *end(int e, struct weir_rules *rules, const struct weir_error *error)
{
    assert_int_equal(e, last.errors > 0 ? WEIR_ERULES : 0);
    assert_true((e == 0) == (rules != NULL));
    if (e != 0) {
        assert_int_equal(error->code, WEIR_ERULES);
        assert_true(error->text[0] != 0);
    }
    weir_rules_close(rules);
    return last.told;
}

const char *loading_told(struct weir_text yaml)
{
    struct weir_rules_options options = listening();
    struct weir_error error;
    struct weir_rules *rules;
    int e = weir_rules_open_text(&rules, "rules", yaml.at, yaml.len, &options, &error);
    return end(e, rules, &error);
}

const char *loading_told_of(const char *yaml)
{
    return loading_told(text_of(yaml));
}

const char *loading_told_file(const char *path)
{
    struct weir_rules_options options = listening();
    struct weir_error error;
    struct weir_rules *rules;
    int e = weir_rules_open(&rules, path, &options, &error);
    return end(e, rules, &error);
}

static char *show(struct config *config)
{
    char *shown = NULL;
    size_t size;
    FILE *out = open_memstream(&shown, &size);
    assert_non_null(out);
    config_show(config, NULL, out);
    (void)fclose(out);
    config_finish(config);
    return shown;
}

static struct problems quiet(void)
{
    memset(&last, 0, sizeof last);
    return (struct problems){.tell = loading_message, .arg = &last};
}

static void require_good(int e, struct problems *problems)
{
    problems_finish(problems);
    if (e != 0) {
        fail_msg("the rules cannot be read: %d\n%s", e, last.told);
    }
}

char *loading_show(struct weir_text yaml)
{
    struct problems problems = quiet();
    struct config config = {0};
    require_good(config_read_text(&config, "rules", yaml, &problems), &problems);
    return show(&config);
}

char *loading_show_of(const char *yaml)
{
    return loading_show(text_of(yaml));
}

char *loading_show_file(const char *path)
{
    struct problems problems = quiet();
    struct config config = {0};
    require_good(config_read(&config, path, &problems), &problems);
    return show(&config);
}

bool loading_has_line(const char *shown, const char *line)
{
    size_t n = strlen(line);
    for (const char *at = shown; (at = strstr(at, line)) != NULL; at++) {
        const char *begin = at;
        while (begin > shown && begin[-1] == ' ') {
            begin--;
        }
        if ((begin == shown || begin[-1] == '\n') && (at[n] == '\n' || at[n] == 0)) {
            return true;
        }
    }
    return false;
}

void loading_write(const char *folder, const char *name, const char *content)
{
    char *path = unit_path(folder, name);
    unit_write_file(path, content, strlen(content));
    free(path);
}
