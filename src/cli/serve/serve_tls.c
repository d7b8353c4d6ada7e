/* Finds the settings of TLS on listeners: flags, then variables, then the rule file. */
#include <stdlib.h>

#include "cli/serve/serve.h"
#include "rules/live/live.h"

/* ---- files ---- */

/* Returns the path that was given, otherwise that of the rule file, in *memory; NULL if none. */
static const char *choose_path(const char *given, const struct config *config,
                               struct weir_text of_file, char **memory, bool *failed)
{
    if (given != NULL || of_file.len == 0) {
        return given;
    }
    *memory = config_beside(config, of_file);
    *failed = *failed || *memory == NULL;
    return *memory;
}

static int choose_files(const struct config *from, struct serve_settings *s)
{
    const struct server_tls_config *file = &from->server.tls;
    struct server_tls_options *to = &s->server.tls;
    bool failed = false;
    if (s->tls.cert != NULL && strcmp(s->tls.cert, "off") == 0) {
        return CLI_OK;
    }
    to->cert = choose_path(s->tls.cert, from, file->cert, &s->tls.path[0], &failed);
    /* The key of the rule file belongs to the certificate of the rule file. */
    to->key = choose_path(s->tls.key, from, s->tls.cert == NULL ? file->key : TEXT(""),
                          &s->tls.path[1], &failed);
    to->client_ca = choose_path(s->tls.client_ca, from, file->client_ca, &s->tls.path[2], &failed);
    to->client_cert = s->tls.client_cert >= 0    ? s->tls.client_cert
                      : s->tls.client_ca != NULL ? CLIENT_CERT_REQUIRED
                                                 : file->client_cert;
    return failed ? cli_fail(&cli_serve, "out of memory for TLS") : CLI_OK;
}

/* ---- lists ---- */

static int choose_listener(struct weir_text name, struct serve_settings *s)
{
    unsigned i = 0;
    while (i < PROTOCOLS && !text_is(name, protocol_of(i)->name)) {
        i++;
    }
    if (i == PROTOCOLS) {
        return cli_complain(&cli_serve,
                            "--tls-listeners: found '%.*s', expected names of listeners: http, "
                            "resp, grpc, admin or metrics",
                            TEXT_ARGS(name));
    }
    s->server.tls.listener[i] = true;
    return CLI_OK;
}

static int choose_listeners(const struct server_tls_config *file, struct serve_settings *s)
{
    struct weir_text rest = text_of(s->tls.listeners != NULL ? s->tls.listeners : "");
    int code = CLI_OK;
    bool all = s->tls.listeners == NULL && file->listeners.count == 0;
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        s->server.tls.listener[i] = all;
    }
    while (code == CLI_OK && rest.len > 0) {
        code = choose_listener(text_trim(text_cut(&rest, ',')), s);
    }
    for (size_t i = 0; s->tls.listeners == NULL && i < file->listeners.count; i++) {
        (void)choose_listener(file->listeners.at[i], s); /* they were checked */
    }
    return code;
}

/* Takes the names of a role from "ops.example,root.example", or from the rule file. */
static int choose_names(struct serve_settings *s, enum role role, const struct texts *file)
{
    struct texts *names = &s->tls.given[role];
    struct weir_text rest = text_of(s->tls.names[role] != NULL ? s->tls.names[role] : "");
    if (s->tls.names[role] == NULL) {
        s->server.tls.names[role] = file;
        return CLI_OK;
    }
    names->at = calloc(rest.len + 1, sizeof *names->at);
    if (names->at == NULL) {
        return cli_fail(&cli_serve, "out of memory for names");
    }
    while (rest.len > 0) {
        struct weir_text name = text_trim(text_cut(&rest, ','));
        names->at[names->count] = name;
        names->count += name.len > 0;
    }
    s->server.tls.names[role] = names;
    return CLI_OK;
}

/* ---- what must fit together ---- */

static bool has_names(const struct server_tls_options *tls)
{
    return tls->names[ROLE_CHECK]->count > 0 || tls->names[ROLE_ADMIN]->count > 0;
}

static int check(const struct server_tls_options *tls)
{
    if (tls->cert == NULL && (tls->key != NULL || tls->client_ca != NULL)) {
        return cli_complain(&cli_serve, "found %s without a certificate, expected --tls-cert FILE",
                            tls->key != NULL ? "--tls-key" : "--tls-client-ca");
    }
    if ((tls->client_ca != NULL) != (tls->client_cert != CLIENT_CERT_NONE)) {
        return cli_complain(
            &cli_serve, "found --tls-client-%s without --tls-client-%s, expected both",
            tls->client_ca != NULL ? "ca" : "cert", tls->client_ca != NULL ? "cert" : "ca");
    }
    if (has_names(tls) && tls->client_ca == NULL) {
        return cli_complain(&cli_serve,
                            "found names of certificates that give a role, but clients are not "
                            "asked for certificates; expected --tls-client-ca FILE");
    }
    return CLI_OK;
}

int serve_choose_tls(const struct weir_rules *rules, struct serve_settings *s)
{
    const struct config *from = &rules->started;
    int code = choose_files(from, s);
    code = code != CLI_OK ? code : choose_listeners(&from->server.tls, s);
    code = code != CLI_OK ? code : choose_names(s, ROLE_CHECK, &from->server.check_names);
    code = code != CLI_OK ? code : choose_names(s, ROLE_ADMIN, &from->server.admin_names);
    code = code != CLI_OK ? code : check(&s->server.tls);
    s->secrets.named = code == CLI_OK && s->server.tls.names[ROLE_CHECK]->count > 0;
    return code;
}

void serve_finish_tls(struct serve_settings *s)
{
    for (size_t i = 0; i < sizeof s->tls.path / sizeof s->tls.path[0]; i++) {
        free(s->tls.path[i]);
    }
    for (int role = 0; role < ROLES; role++) {
        free(s->tls.given[role].at);
    }
}
