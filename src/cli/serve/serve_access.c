/* Reads the secrets of weir serve, which decide what a client may do. */
#include <string.h>
#include <unistd.h>

#include "cli/serve/serve.h"
#include "cli/serve/serve_signals.h"
#include "rules/live/live.h"

/*
 * Chooses the source of a role's secrets: the flag, otherwise the variable, otherwise the rule
 * file.
 */
static int choose(struct serve_settings *s, enum role role, const struct config *config,
                  struct weir_text of_file)
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

/* Makes a secret for operators if none is given. */
static int make_secret(struct serve_settings *s)
{
    if (s->secrets.file[ROLE_ADMIN] != NULL || s->secrets.text[ROLE_ADMIN] != NULL) {
        return CLI_OK;
    }
    if (!secret_make(s->made_secret)) {
        return cli_fail(&cli_serve, "no random numbers for the admin secret: %m");
    }
    s->secrets.text[ROLE_ADMIN] = s->made_secret;
    s->server.secret_made = true;
    return CLI_OK;
}

int serve_open_access(const struct weir_rules *rules, struct serve_settings *s)
{
    const struct config *from = &rules->started;
    struct weir_error error;
    int code = choose(s, ROLE_CHECK, from, from->server.check_secrets);
    code = code != CLI_OK ? code : choose(s, ROLE_ADMIN, from, from->server.admin_secrets);
    code = code != CLI_OK ? code : make_secret(s);
    if (code != CLI_OK) {
        return code;
    }
    int e = access_open(&s->server.access, &s->secrets, &error);
    return e == 0 ? CLI_OK
                  : (cli_complain(&cli_serve, "%s", error.text),
                     e == WEIR_EINVAL ? CLI_USAGE : CLI_FAILED);
}

/* ---- the file of the secret that was made ---- */

/* Returns the listener whose address is in the file's name: the operators', otherwise that of RESP,
 * which takes their commands too; PROTOCOLS if neither listens. */
static unsigned listener_of(const struct server *server)
{
    const char *const *listen = server->options.listen;
    return strcmp(listen[PROTOCOL_ADMIN], "off") != 0  ? PROTOCOL_ADMIN
           : strcmp(listen[PROTOCOL_RESP], "off") != 0 ? PROTOCOL_RESP
                                                       : PROTOCOLS;
}

void serve_write_secret(const struct server *server, struct serve_settings *s)
{
    char address[SERVER_ADDRESS_MAX];
    unsigned listener = listener_of(server);
    const struct state *state = server->rules->state;
    if (s->made_secret[0] == 0 || listener == PROTOCOLS) {
        return;
    }
    (void)server_address(server, (enum server_protocol)listener, address, sizeof address);
    if (secret_file_write(address, state != NULL ? state->folder : NULL, s->made_secret,
                          s->secret_path)) {
        serve_signals_remove(s->secret_path);
    } else {
        s->secret_path[0] = 0;
        LOG(LEVEL_WARNING, "weir ctl cannot make changes: found no folder for the admin secret",
            LOG_STRING("expected",
                       "--admin-secrets FILE, or one of RUNTIME_DIRECTORY, XDG_RUNTIME_DIR, HOME "
                       "(root: /run) and --state that only this user can write to"));
    }
}

void serve_remove_secret(struct serve_settings *s)
{
    serve_signals_remove(NULL);
    if (s->secret_path[0] != 0) {
        (void)unlink(s->secret_path);
        s->secret_path[0] = 0;
    }
}
