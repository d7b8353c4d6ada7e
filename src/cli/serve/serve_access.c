/* Reads the secrets of weir serve, which decide what a client may do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/serve/serve.h"
#include "rules/live/live.h"

/*
 * Returns the folder that the rules come from, without the '/' after it; empty if the path has
 * none.
 */
static struct text folder_of(const char *config)
{
    struct stat st;
    const char *slash = strrchr(config, '/');
    if (stat(config, &st) == 0 && S_ISDIR(st.st_mode)) {
        return text_of(config);
    }
    return (struct text){config, slash != NULL ? (size_t)(slash - config) : 0};
}

char *serve_beside_config(const struct serve_settings *s, struct text path)
{
    char *joined = NULL;
    struct text folder = folder_of(s->config != NULL ? s->config : "");
    bool relative = path.at[0] != '/' && folder.len > 0;
    int n = asprintf(&joined, "%.*s%s%.*s", relative ? (int)folder.len : 0, folder.at,
                     relative ? "/" : "", TEXT_ARGS(path));
    return n < 0 ? NULL : joined;
}

/*
 * Chooses the source of a role's secrets: the flag, otherwise the variable, otherwise the rule
 * file.
 */
static int choose(struct serve_settings *s, enum role role, struct text of_file)
{
    if (s->secrets.file[role] != NULL) {
        s->secrets.text[role] = NULL;
    } else if (s->secrets.text[role] == NULL && of_file.len > 0) {
        s->secrets_path[role] = serve_beside_config(s, of_file);
        s->secrets.file[role] = s->secrets_path[role];
        return s->secrets.file[role] != NULL ? CLI_OK : cli_fail(&cli_serve, "out of memory");
    }
    return CLI_OK;
}

int serve_open_access(const struct weir_rules *rules, struct serve_settings *s)
{
    const struct server_config *from = &rules->started.server;
    struct weir_error error;
    bool any = false;
    int code = choose(s, ROLE_CHECK, from->check_secrets);
    code = code != CLI_OK ? code : choose(s, ROLE_ADMIN, from->admin_secrets);
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
