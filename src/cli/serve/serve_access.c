/* Reads the secrets of weir serve, which decide what a client may do. */
#include "cli/serve/serve.h"
#include "rules/live/live.h"

/*
 * Chooses the source of a role's secrets: the flag, otherwise the variable, otherwise the rule
 * file.
 */
static int choose(struct serve_settings *s, enum role role, const struct config *config,
                  struct text of_file)
{
    if (s->secrets.file[role] != NULL) {
        s->secrets.text[role] = NULL;
    } else if (s->secrets.text[role] == NULL && of_file.len > 0) {
        s->secrets_path[role] = config_beside(config, of_file);
        s->secrets.file[role] = s->secrets_path[role];
        return s->secrets.file[role] != NULL ? CLI_OK : cli_fail(&cli_serve, "out of memory");
    }
    return CLI_OK;
}

int serve_open_access(const struct weir_rules *rules, struct serve_settings *s)
{
    const struct config *from = &rules->started;
    struct weir_error error;
    bool any = false;
    int code = choose(s, ROLE_CHECK, from, from->server.check_secrets);
    code = code != CLI_OK ? code : choose(s, ROLE_ADMIN, from, from->server.admin_secrets);
    for (int role = ROLE_CHECK; role < ROLES; role++) {
        any = any || s->secrets.file[role] != NULL || s->secrets.text[role] != NULL;
    }
    if (code != CLI_OK || !any) {
        return code;
    }
    int e = access_open(&s->server.access, &s->secrets, &error);
    return e == 0 ? CLI_OK
                  : (cli_complain(&cli_serve, "%s", error.text),
                     e == WEIR_EINVAL ? CLI_USAGE : CLI_FAILED);
}
