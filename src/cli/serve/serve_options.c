/*
 * Reads the settings of weir serve. Each option has a variable WEIR_... of the same name. A flag
 * takes precedence over a variable, and a variable over the rule file.
 */
#include "cli/serve/serve.h"

#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "cli/serve/serve_seccomp.h"
#include "rules/file/adhoc.h"
#include "rules/file/sections.h"
#include "rules/live/live.h"
#include "rules/value/address.h"
#include "server/http/http_routes.h"

static const char *const formats[] = {[LOG_AS_TEXT] = "text", [LOG_AS_JSON] = "json", NULL};
static const char *const keys[] = {[LOG_KEYS_CUT] = "cut", [LOG_KEYS_HASHED] = "hashed", NULL};
static const char *const seccomp[] = {[SECCOMP_ON] = "on", [SECCOMP_OFF] = "off", NULL};

/* ---- values ---- */

static int read_client_field(const struct cli_value *value, void *to)
{
    for (int i = 0; i < CLIENT_FIELDS; i++) {
        if (strcasecmp(value->text, client_field_names[i]) == 0) {
            *(int *)to = i;
            return CLI_OK;
        }
    }
    return cli_expected(value, "x-forwarded-for, forwarded, x-real-ip or any");
}

/* Reads the source of secrets: a flag names a file, a variable contains the secrets themselves. */
static int read_secrets(const struct cli_value *value, void *to)
{
    struct access_sources *secrets = to;
    uint64_t role = value->option->least;
    bool flag = value->from[0] == '-';
    *(flag ? &secrets->file[role] : &secrets->text[role]) = value->text;
    return CLI_OK;
}

static int read_mode(const struct cli_value *value, void *to)
{
    return mode_parse(text_of(value->text), to) ? CLI_OK : cli_expected(value, "%s", MODE_EXPECTED);
}

static int read_listen(const struct cli_value *value, void *to)
{
    struct serve_settings *settings = to;
    uint64_t protocol = value->option->least;
    bool port = port_complete(text_of(value->text), settings->address[protocol]);
    settings->server.listen[protocol] = port ? settings->address[protocol] : value->text;
    settings->listen_from[protocol] = value->from;
    return CLI_OK;
}

static int read_store(const struct cli_value *value, void *to)
{
    struct serve_settings *settings = to;
    settings->store = value->text;
    settings->store_from = value->from;
    return CLI_OK;
}

#define TO(member) .to = offsetof(struct serve_settings, member)

static const struct cli_option options[] = {
    {"--config", "FILE|DIR", "the rules, or several with : between them; default a small example",
     cli_read_text, TO(config)},
    {"--envoy-config", "FILE|DIR",
     "files for Envoy's reference rate limit server, besides --config; --grpc is 127.0.0.1:8081 "
     "then",
     cli_read_text, TO(envoy_config)},
    {"--resp", "ADDR:PORT",
     "listen for RESP at this address, a port of 127.0.0.1, unix:PATH, or off; default "
     "127.0.0.1:6380",
     read_listen, .to = 0, PROTOCOL_RESP},
    {"--http", "ADDR:PORT",
     "listen for HTTP at this address, a port of 127.0.0.1, unix:PATH, or off; default "
     "127.0.0.1:8080",
     read_listen, .to = 0, PROTOCOL_HTTP},
    {"--admin", "ADDR:PORT",
     "listen for operators at this address, a port of 127.0.0.1, unix:PATH, or off; default "
     "127.0.0.1:8082",
     read_listen, .to = 0, PROTOCOL_ADMIN},
    {"--grpc", "ADDR:PORT", "listen for gRPC, by convention on port 8081; default off", read_listen,
     .to = 0, PROTOCOL_GRPC},
    {"--metrics", "ADDR:PORT",
     "listen for /metrics and health checks alone, without secrets; default off", read_listen,
     .to = 0, PROTOCOL_METRICS},
    {"--page", "on|off", "serve a page for browsers to operators; default on", cli_read_choice,
     TO(page), .choices = page_names},
    {"--demo", NULL,
     "let everybody who may read counts play with built-in limits on the page, and print its link",
     cli_read_switch, TO(server.demo)},
    {"--state", "DIR", "keep the keys of all limits in this folder over restarts; default off",
     cli_read_text, TO(state)},
    {"--store", "URL", "share limits with other nodes through this Redis or Valkey; default off",
     .read = read_store},
    {"--threads", "N", "number of threads; default one for each processor", cli_read_unsigned,
     TO(server.threads), 1, SERVER_THREADS_MAX},
    {"--connections", "N", "the most connections at once; default 10k", cli_read_unsigned,
     TO(server.connections), 1, 1000000},
    {"--connections-per-address", "N",
     "the most connections of one client, unless server.trusted_proxies has it; default 1k",
     cli_read_unsigned, TO(server.connections_per_address), 1, 1000000},
    {"--max-age", "MS",
     "refuse requests that have waited longer, under overload; default 50, 0: never",
     cli_read_count, TO(server.max_age_ms), 0, 60000},
    {"--inline", NULL, "accept all RESP commands typed as a line, not only HELLO and PING",
     cli_read_switch, TO(server.inline_commands)},
    {"--auth-deny-status", "N", "status with which /v1/auth denies; default 429", cli_read_unsigned,
     TO(server.auth_deny_status), 400, 599},
    {"--client-field", "NAME", "the only header field in which proxies name clients; default any",
     read_client_field, TO(server.client_field), .choices = client_field_names},
    {"--check-secrets", "FILE", "clients need one of these secrets, one on each line; default none",
     read_secrets, TO(secrets), ROLE_CHECK},
    {"--admin-secrets", "FILE",
     "operators need one of these secrets; by default the server makes one", read_secrets,
     TO(secrets), ROLE_ADMIN},
    {"--tls-cert", "FILE",
     "speak TLS with this certificate, in PEM; off: plain text; default the rule file's",
     cli_read_text, TO(tls.cert)},
    {"--tls-key", "FILE", "the key of the certificate; default in the file of the certificate",
     cli_read_text, TO(tls.key)},
    {"--tls-client-ca", "FILE", "the CAs of clients' certificates; default none", cli_read_text,
     TO(tls.client_ca)},
    {"--tls-client-cert", "none|optional|required",
     "whether clients must show a certificate; default none, required with --tls-client-ca",
     cli_read_choice, TO(tls.client_cert), .choices = client_cert_names},
    {"--tls-listeners", "NAME,...", "listeners that speak TLS, such as http,resp; default all",
     cli_read_text, TO(tls.listeners), .choices = listener_names},
    {"--check-names", "NAME,...", "names in certificates that give the role check; default none",
     cli_read_text, TO(tls.names[ROLE_CHECK])},
    {"--admin-names", "NAME,...", "names in certificates that give the role admin; default none",
     cli_read_text, TO(tls.names[ROLE_ADMIN])},
    {"--socket-mode", "MODE", "mode of unix sockets, in octal; default 0660", read_mode,
     TO(server.socket_mode)},
    {"--socket-group", "GROUP", "group of unix sockets; default that of the process", cli_read_text,
     TO(server.socket_group)},
    {"--insecure", NULL, "listen without secrets where other machines can reach it",
     cli_read_switch, TO(server.insecure)},
    {"--log", "text|json", "format of the log; default text", cli_read_choice, TO(log_format),
     .choices = formats},
    {"--log-level", "LEVEL", "what is logged: error, warning, info (default) or debug",
     cli_read_choice, TO(log_level), .choices = log_level_names + LEVEL_ERROR},
    {"--log-keys", "cut|hashed", "how keys of clients are logged; default cut", cli_read_choice,
     TO(log_keys), .choices = keys},
    {"--no-watch", NULL, "reload on SIGHUP only, not when a file changes", cli_read_switch,
     TO(no_watch)},
    {"--seccomp", "on|off", "give up system calls that the server does not need; default on",
     cli_read_choice, TO(seccomp), .choices = seccomp},
};

#define OPTIONS (sizeof options / sizeof options[0])

static const struct serve_settings defaults = {
    .server = {.connections = 10000,
               .connections_per_address = 1000,
               .max_age_ms = SERVER_AGE_MS,
               .client_field = -1}, /* -1: the rule file's */
    .page = -1,                     /* likewise */
    .tls = {.client_cert = -1},     /* likewise */
    .log_level = LEVEL_INFO - LEVEL_ERROR};

const struct cli_command cli_serve = CLI_COMMAND(
    "serve", "", "answer clients over RESP, HTTP and gRPC", options, defaults, serve_command);

/* ---- flags and variables ---- */

#define VARIABLE_BYTES 40

/* "--auth-deny-status" -> "WEIR_AUTH_DENY_STATUS" */
static const char *variable_of(size_t row)
{
    static char names[OPTIONS][VARIABLE_BYTES];
    (void)snprintf(names[row], VARIABLE_BYTES, "WEIR_%s", options[row].name + 2);
    for (char *c = names[row]; *c != '\0'; c++) {
        *c = (char)(*c == '-' ? '_' : *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    }
    return names[row];
}

/* An empty variable counts as not set: this is how a container file unsets one. */
int serve_read_variables(const struct cli_given *given, struct serve_settings *settings)
{
    int code = CLI_OK;
    for (size_t row = 0; code == CLI_OK && row < OPTIONS; row++) {
        const char *text = getenv(variable_of(row));
        struct cli_value value = {&cli_serve, &options[row], variable_of(row), text};
        if ((given->options >> row & 1) == 0 && text != NULL && text[0] != '\0') {
            code = cli_read_value(&value, settings);
        }
    }
    return code;
}

int serve_join_config(struct serve_settings *s)
{
    if (s->envoy_config == NULL) {
        return CLI_OK;
    }
    if (s->config == NULL) {
        s->config = s->envoy_config;
        return CLI_OK;
    }
    if (asprintf(&s->joined_config, "%s:%s", s->config, s->envoy_config) < 0) {
        s->joined_config = NULL;
        return cli_fail(&cli_serve, "out of memory");
    }
    s->config = s->joined_config;
    return CLI_OK;
}

/* ---- misspelt variables ---- */

static void check_variable(struct weir_text name)
{
    struct suggestion s = suggest_begin(text_after(name, strlen("WEIR_")));
    for (size_t row = 0; row < OPTIONS; row++) {
        suggest_offer(&s, variable_of(row) + strlen("WEIR_"));
    }
    if (s.nearest != NULL && s.distance > 0) {
        LOG(LEVEL_WARNING, "unknown variable", LOG_TEXT("name", name),
            LOG_STRING("meant_perhaps", s.nearest - strlen("WEIR_")));
    }
}

void serve_check_environment(void)
{
    for (char **entry = environ; *entry != NULL; entry++) {
        if (strncmp(*entry, "WEIR_", strlen("WEIR_")) == 0) {
            check_variable((struct weir_text){*entry, strcspn(*entry, "=")});
        }
    }
}

/* ---- the rule file ---- */

static int take_address(struct serve_settings *s, enum server_protocol protocol,
                        struct weir_text from)
{
    static const char *const settings[PROTOCOLS] = {"server.resp", "server.http", "server.grpc",
                                                    "server.admin", "server.metrics"};
    if (s->listen_from[protocol] != NULL) {
        return CLI_OK;
    }
    if (protocol == PROTOCOL_GRPC && s->envoy_config != NULL && text_is(from, "off")) {
        s->server.listen[protocol] = GRPC_ADDRESS;
        s->listen_from[protocol] = "--envoy-config";
        return CLI_OK;
    }
    if (from.len >= sizeof s->address[protocol]) {
        return cli_complain(&cli_serve, "%s: found %zu bytes, expected fewer than %zu",
                            settings[protocol], from.len, sizeof s->address[protocol]);
    }
    memcpy(s->address[protocol], from.at, from.len);
    s->server.listen[protocol] = s->address[protocol];
    s->listen_from[protocol] =
        text_is(from, protocol_of(protocol)->address) ? "the default" : settings[protocol];
    return CLI_OK;
}

static int take_trusted(struct serve_settings *s, const struct server_config *from)
{
    if (from->trusted.given &&
        cidr_set_create(from->trusted.at, from->trusted.count, &s->trusted) != 0) {
        return cli_fail(&cli_serve, "out of memory for trusted_proxies");
    }
    s->server.trusted = s->trusted;
    return CLI_OK;
}

int serve_take_file(const struct weir_rules *rules, struct serve_settings *s)
{
    const struct server_config *from = &rules->started.server;
    const struct adhoc_config *adhoc = &rules->started.adhoc;
    s->server.headers = from->headers;
    s->server.client_field =
        s->server.client_field >= 0 ? s->server.client_field : from->client_field;
    s->server.no_page = (s->page >= 0 ? s->page : from->page) == PAGE_OFF;
    s->server.hosts = &from->hosts;
    s->server.reservation_ttl_ms = from->reservation_ttl_ns / WEIR_MILLISECOND;
    s->server.adhoc_keys = adhoc->off ? 0 : adhoc->max_keys;
    s->server.adhoc_on_full = adhoc->on_full;
    s->server.adhoc_shared = adhoc_is_shared(&rules->started);
    s->server.adhoc_on_failure = adhoc->on_store_failure;
    s->server.socket_mode = s->server.socket_mode != 0 ? s->server.socket_mode : from->socket_mode;
    if (s->server.socket_group == NULL && from->socket_group.len > 0) {
        s->server.socket_group = from->socket_group.at; /* followed by a NUL byte */
    }
    const struct weir_text listen[PROTOCOLS] = {from->resp, from->http, from->grpc, from->admin,
                                                from->metrics};
    int code = take_trusted(s, from);
    for (int i = 0; code == CLI_OK && i < PROTOCOLS; i++) {
        code = take_address(s, (enum server_protocol)i, listen[i]);
    }
    return code;
}

/* Returns true if both listeners have the same address. Port 0 is a different port each time. */
static bool is_one_address(const char *a, const char *b)
{
    size_t n = strlen(a);
    return strcmp(a, b) == 0 && strcmp(a, "off") != 0 && !(n > 2 && strcmp(a + n - 2, ":0") == 0);
}

int serve_check_listeners(const struct serve_settings *s)
{
    const char *const *listen = s->server.listen;
    unsigned off = 0;
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        off += strcmp(listen[i], "off") == 0;
        for (unsigned j = 0; j < i; j++) {
            if (is_one_address(listen[i], listen[j])) {
                return cli_complain(&cli_serve,
                                    "found %s for both %s (from %s) and %s (from %s), expected an "
                                    "address for each",
                                    listen[i], protocol_of(j)->name, s->listen_from[j],
                                    protocol_of(i)->name, s->listen_from[i]);
            }
        }
    }
    return off < PROTOCOLS
               ? CLI_OK
               : cli_complain(&cli_serve,
                              "found every listener off, expected one of "
                              "--resp, --http, --grpc, --admin and --metrics to listen");
}

int serve_check_demo(const struct serve_settings *s)
{
    bool listens = strcmp(s->server.listen[PROTOCOL_ADMIN], "off") != 0;
    if (!s->server.demo || (listens && !s->server.no_page)) {
        return CLI_OK;
    }
    return cli_complain(&cli_serve,
                        "found --demo and %s, expected both an admin listener and the page: the "
                        "demo is a part of the page",
                        listens ? "no page (--page or server.page)"
                                : "no admin listener (--admin or server.admin)");
}

int serve_check_client(struct weir_rules *rules, const struct serve_settings *s)
{
    if (!http_lacks_client(&s->server, rules)) {
        return CLI_OK;
    }
    return cli_complain(&cli_serve,
                        "found %s for http (from %s) and rules that use 'ip', expected "
                        "--client-field NAME or server.client_field: a unix socket does not show "
                        "the client's address, so name the header field in which your gateway "
                        "writes it, such as x-forwarded-for",
                        s->server.listen[PROTOCOL_HTTP], s->listen_from[PROTOCOL_HTTP]);
}

void serve_finish_settings(struct serve_settings *settings)
{
    cidr_set_destroy(settings->trusted);
    free(settings->joined_config);
    serve_finish_tls(settings);
    access_close(settings->server.access);
    explicit_bzero(settings->made_secret, sizeof settings->made_secret);
    for (int role = 0; role < ROLES; role++) {
        free(settings->secrets_path[role]);
    }
}
