/* Checks rules as a reload would, and tells what would change, without using them. */
#include <stdlib.h>

#include "base/error.h"
#include "rules/file/diff.h"
#include "rules/live/live.h"

/* Returns a copy of the path that a reload would read; NULL without one, or out of memory. */
static char *copy_path(struct weir_rules *rules, int *e, struct weir_error *error)
{
    (void)pthread_mutex_lock(&rules->reload);
    char *path = rules->path != NULL ? strdup(rules->path) : NULL;
    bool none = rules->path == NULL;
    (void)pthread_mutex_unlock(&rules->reload);
    *e = path != NULL ? 0
         : none ? fail(error, WEIR_EINVAL, "the rules came from a text: there is no file to check")
                : WEIR_ENOMEM;
    return path;
}

static void tell_limits(const struct config *config, const struct rules_check_told *tell, void *arg)
{
    for (size_t i = 0; i < config->limits_count; i++) {
        const struct limit_config *limit = config->limits[i];
        char name[WEIR_RULES_NAME];
        memcpy(name, limit->name.at, limit->name.len); /* it fits: name_is_good() */
        name[limit->name.len] = 0;
        tell->limit(arg, name, limit->place.line);
    }
}

/* Compares with the rules in use. */
static int tell_changes(struct weir_rules *rules, const struct config *next, const char *name,
                        const struct rules_check_told *tell, void *arg, struct problems *problems)
{
    (void)pthread_mutex_lock(&rules->reload);
    config_compare(&rules->started, next, name, problems);
    int changes = config_diff(&rules->set->config, next, tell->change, arg);
    (void)pthread_mutex_unlock(&rules->reload);
    return changes < 0 ? changes : 0;
}

/* Makes the checks that need the rules as a whole, and takes *config over. `e` is 0 or WEIR_ERULES:
 * with errors, the remaining checks are made all the same, so that all problems are told. */
static int check_whole(struct weir_rules *rules, int e, struct config *config, const char *name,
                       const struct rules_check_told *tell, void *arg, struct problems *problems)
{
    struct ruleset *set = NULL;
    config_warn(config, name, problems);
    tell_limits(config, tell, arg);
    int compiled = ruleset_create(config, NULL, NULL, NULL, problems, &set, NULL);
    e = compiled == 0 || compiled == WEIR_ERULES ? e : compiled;
    e = e == 0 && problems->errors > 0 ? WEIR_ERULES : e;
    if (e == 0) {
        e = tell_changes(rules, &set->config, name, tell, arg, problems);
    }
    ruleset_destroy(set);
    return e;
}

int rules_check(struct weir_rules *rules, const struct weir_text *yaml,
                const struct rules_check_told *tell, void *arg, struct weir_error *error)
{
    struct problems problems = {.tell = tell->message, .arg = arg};
    struct config config = {.fleet = rules->options.fleet != NULL ? FLEET_GIVEN : FLEET_NONE,
                            .no_files = yaml != NULL};
    char *path = NULL;
    int e = 0;
    if (yaml != NULL) {
        e = config_read_text(&config, RULES_TEXT, *yaml, &problems);
    } else if ((path = copy_path(rules, &e, error)) != NULL) {
        e = config_read(&config, path, &problems);
    }
    if (e == 0 || e == WEIR_ERULES) {
        e = check_whole(rules, e, &config, path != NULL ? path : RULES_TEXT, tell, arg, &problems);
    }
    problems_finish(&problems);
    config_finish(&config);
    free(path);
    return e;
}
