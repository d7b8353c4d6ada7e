#include "cli/config/config_secrets.h"

#include <stdlib.h>

#include "server/access/access.h"

static void warn(void *arg, const struct access_warning *w)
{
    struct problems *problems = arg;
    warning(problems, (struct place){w->where, w->line, w->line > 0}, "%s: found %s, expected %s",
            w->what, w->found, w->expected);
}

void config_check_secrets(const struct config *config, const char *path, struct problems *problems)
{
    const struct weir_text named[ROLES] = {
        [ROLE_CHECK] = config->server.check_secrets, [ROLE_ADMIN] = config->server.admin_secrets};
    struct access_sources from = {.warn = warn, .warn_arg = problems};
    struct access *access = NULL;
    struct weir_error error;
    char *file[ROLES] = {NULL};
    for (int role = ROLE_CHECK; role < ROLES; role++) {
        file[role] = named[role].len > 0 ? config_beside(config, named[role]) : NULL;
        from.file[role] = file[role];
    }
    if ((from.file[ROLE_CHECK] != NULL || from.file[ROLE_ADMIN] != NULL) &&
        access_open(&access, &from, &error) != 0) {
        warning(problems, (struct place){path, 0, 0}, "the secrets cannot be used: %s", error.text);
    }
    access_close(access);
    for (int role = ROLE_CHECK; role < ROLES; role++) {
        free(file[role]);
    }
}
