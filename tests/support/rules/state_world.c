#include "support/rules/state_world.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/engine/unit_limiter.h"

int state_world_make(void **state)
{
    struct state_world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->folder = unit_folder();
    *state = w;
    return 0;
}

int state_world_remove(void **state)
{
    struct state_world *w = *state;
    state_world_close(w);
    unit_folder_remove(w->folder);
    free(w);
    return 0;
}

static void hear(void *arg, const struct weir_rules_message *message)
{
    struct state_world *w = arg;
    const char *slash = strrchr(message->file, '/');
    size_t len = strlen(w->told);
    if (message->severity == WEIR_RULES_NOTE) {
        return;
    }
    char line[16] = ""; /* files of the state have none */
    if (message->line != 0) {
        (void)snprintf(line, sizeof line, ":%u", (unsigned)message->line);
    }
    (void)snprintf(w->told + len, sizeof w->told - len, "%s%s: %s\n",
                   slash != NULL ? slash + 1 : message->file, line, message->text);
}

int state_world_try(struct state_world *w, const char *yaml)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    char folder[8192];
    (void)snprintf(folder, sizeof folder, "%s", w->folder);
    o.flags = WEIR_EXPLICIT_TIME;
    o.message = hear;
    o.message_arg = w;
    o.state = folder;
    w->told[0] = '\0';
    w->error = (struct weir_error){0};
    assert_null(w->rules);
    int e = weir_rules_open_text(&w->rules, "test", yaml, strlen(yaml), &o, &w->error);
    memset(folder, 'x', strlen(folder)); /* weir_rules_open_text() has copied it */
    return e;
}

void state_world_open(struct state_world *w, const char *yaml)
{
    if (state_world_try(w, yaml) != 0) {
        fail_msg("%s", w->error.text);
    }
}

void state_world_reload(struct state_world *w, const char *yaml)
{
    w->told[0] = '\0';
    if (weir_rules_reload_text(w->rules, "test", yaml, strlen(yaml), &w->error) != 0) {
        fail_msg("%s", w->error.text);
    }
}

void state_world_close(struct state_world *w)
{
    weir_rules_close(w->rules);
    w->rules = NULL;
}

void state_world_restart(struct state_world *w, const char *yaml)
{
    state_world_close(w);
    state_world_open(w, yaml);
}

static void show_name(const char *name, char *shown, size_t size)
{
    const char *meaning = strchr(name, '~');
    size_t n = meaning != NULL ? (size_t)(meaning - name) + 1 : strlen(name);
    (void)snprintf(shown, size, "%.*s%s", (int)n, name,
                   meaning != NULL && strlen(meaning) > 17 ? meaning + 17 : "");
}

static int no_dots(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
           strcmp(entry->d_name, ".lock") != 0;
}

const char *state_world_files(struct state_world *w)
{
    struct dirent **entries;
    int n = scandir(w->folder, &entries, no_dots, alphasort);
    size_t len = 0;
    assert_true(n >= 0);
    w->names[0] = '\0';
    for (int i = 0; i < n; i++) {
        char shown[256];
        show_name(entries[i]->d_name, shown, sizeof shown);
        len += (size_t)snprintf(w->names + len, sizeof w->names - len, "%s%s", i > 0 ? " " : "",
                                shown);
        free(entries[i]);
    }
    free(entries);
    return w->names;
}

char *state_world_path(struct state_world *w, const char *shown)
{
    struct dirent **entries;
    int n = scandir(w->folder, &entries, no_dots, alphasort);
    char *path = NULL;
    for (int i = 0; i < n; i++) {
        char name[256];
        show_name(entries[i]->d_name, name, sizeof name);
        if (strcmp(name, shown) == 0) {
            assert_null(path);
            path = unit_path(w->folder, entries[i]->d_name);
        }
        free(entries[i]);
    }
    free(entries);
    assert_non_null(path);
    return path;
}

uint64_t state_world_unusable(struct state_world *w)
{
    struct weir_rules_stats stats = {.size = sizeof stats};
    assert_int_equal(weir_rules_stats_read(w->rules, &stats), 0);
    return stats.state_unusable;
}
