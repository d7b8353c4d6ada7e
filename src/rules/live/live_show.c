#include "rules/live/live_show.h"

#include <stdlib.h>

#include "rules/file/show.h"
#include "rules/live/live.h"

static void show_switched(const struct weir_rules *rules, FILE *out)
{
    const char *before = "# switched to shadow by hand: ";
    if (rules->shadow_all) {
        (void)fprintf(out, "%sany limit to come", before);
        before = ", ";
    }
    for (size_t i = 0; i < rules->set->rules_count; i++) {
        const struct rule *rule = &rules->set->rules[i];
        if (rule->switched) {
            (void)fprintf(out, "%s%.*s", before, TEXT_ARGS(rule->config->name));
            before = ", ";
        }
    }
    (void)fputs(before[0] == ',' ? "\n" : "", out);
}

/* Writes into memory first: a slow reader of the text must not delay a reload. */
int live_show(struct weir_rules *rules, const struct live_settings *in_effect, char **text,
              size_t *len)
{
    *text = NULL;
    FILE *out = open_memstream(text, len);
    if (out == NULL) {
        return WEIR_ENOMEM;
    }
    (void)pthread_mutex_lock(&rules->reload);
    struct config shown = rules->set->config;
    if (in_effect != NULL) {
        shown.server = in_effect->server;
        shown.server.memory = rules->set->config.server.memory; /* reloads apply it */
        shown.store = in_effect->store;
    }
    config_show(&shown, NULL, out);
    show_switched(rules, out);
    (void)pthread_mutex_unlock(&rules->reload);
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(*text);
        *text = NULL;
        return WEIR_ENOMEM;
    }
    return 0;
}
