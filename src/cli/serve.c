/* weir serve: the server. Signals are waited for here; everything else happens in its threads. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "cli/cli.h"
#include "policy/live.h"
#include "policy/quantity.h"
#include "server/http.h"

enum {
    CONFIG,
    RESP,
    HTTP,
    ADMIN,
    THREADS,
    CONNECTIONS,
    PER_ADDRESS,
    MAX_AGE,
    INLINE,
    DENY_STATUS,
    CLIENT_FIELD
};

static const struct cli_option options[] = {
    [CONFIG] = {"--config", "FILE|DIR", "the rules; without it a small example"},
    [RESP] = {"--resp", "ADDR:PORT", "listen for RESP there, or unix:PATH, or off"},
    [HTTP] = {"--http", "ADDR:PORT", "listen for HTTP there, or unix:PATH, or off"},
    [ADMIN] = {"--admin", "ADDR:PORT", "listen for operators there, or unix:PATH, or off"},
    [THREADS] = {"--threads", "N", "threads; default one for each processor"},
    [CONNECTIONS] = {"--connections", "N", "the most connections at once; default 10k"},
    [PER_ADDRESS] = {"--connections-per-address", "N", "of one client; default 1k"},
    [MAX_AGE] = {"--max-age", "MS", "refuse older input under overload; default 50, 0: never"},
    [INLINE] = {"--inline", NULL, "take RESP commands typed as a line"},
    [DENY_STATUS] = {"--auth-deny-status", "N", "what /v1/auth says for no; default 429"},
    [CLIENT_FIELD] = {"--client-field", "NAME", "the only header that proxies name clients by"},
};

static int run(int argc, char **argv);

const struct cli_command cli_serve =
    CLI_COMMAND("serve", "", "answer over RESP and HTTP", options, run);

/* What `weir serve` does without a rule file: enough to try it. */
static const char example_rules[] =
    "limits:\n"
    "  - {name: login, when: {method: POST, path: /login}, key: [ip], rate: 5/min, group: "
    "endpoint}\n"
    "  - name: search\n"
    "    when: {path: /search/**}\n"
    "    key: [user|ip]\n"
    "    rate: 100/min\n"
    "    tiers: {by: tier, default: free, free: {}, pro: {rate: 1k/min, burst: 2k}}\n"
    "    group: endpoint\n"
    "  - {name: api, when: {path: /**}, key: [user|ip], rate: 1000/day, group: endpoint}\n"
    "  - {name: everyone, key: [], rate: 50k/s}\n";

struct asked {
    const char *config;
    struct server_options server;
};

/* A whole number from 1 to most; CLI_USAGE after a complaint. */
static int read_number(const struct cli_args *args, int row, uint64_t most, unsigned *out)
{
    uint64_t number;
    if (count_parse(text_of(args->value), &number, NULL) != 0 || number == 0 || number > most) {
        return cli_complain(args->command, "%s is '%s', expected a whole number from 1 to %llu",
                            options[row].name, args->value, (unsigned long long)most);
    }
    *out = (unsigned)number;
    return CLI_OK;
}

static int read_status(const struct cli_args *args, unsigned *out)
{
    int code = read_number(args, DENY_STATUS, 599, out);
    return code != CLI_OK || *out >= 400
               ? code
               : cli_complain(args->command, "%s is %u, expected a status from 400 to 599",
                              options[DENY_STATUS].name, *out);
}

static int read_client_field(const struct cli_args *args, unsigned *out)
{
    for (unsigned i = 0; i < HTTP_CLIENT_FIELDS; i++) {
        if (strcasecmp(args->value, http_client_field_name(i)) == 0) {
            *out = i + 1;
            return CLI_OK;
        }
    }
    return cli_complain(args->command,
                        "%s is '%s', expected x-forwarded-for, forwarded or x-real-ip",
                        options[CLIENT_FIELD].name, args->value);
}

static int read_age(const struct cli_args *args, uint64_t *out)
{
    if (count_parse(text_of(args->value), out, NULL) != 0 || *out > 60000) {
        return cli_complain(args->command, "%s is '%s', expected milliseconds from 0 to 60000",
                            options[MAX_AGE].name, args->value);
    }
    return CLI_OK;
}

static int read_option(const struct cli_args *args, int row, struct asked *asked)
{
    switch (row) {
    case CONFIG:
        asked->config = args->value;
        return CLI_OK;
    case RESP:
        asked->server.listen[PROTOCOL_RESP] = args->value;
        return CLI_OK;
    case HTTP:
        asked->server.listen[PROTOCOL_HTTP] = args->value;
        return CLI_OK;
    case ADMIN:
        asked->server.listen[PROTOCOL_ADMIN] = args->value;
        return CLI_OK;
    case THREADS:
        return read_number(args, row, SERVER_THREADS_MAX, &asked->server.threads);
    case CONNECTIONS:
        return read_number(args, row, 1000000, &asked->server.connections);
    case PER_ADDRESS:
        return read_number(args, row, 1000000, &asked->server.connections_per_address);
    case MAX_AGE:
        return read_age(args, &asked->server.max_age_ms);
    case DENY_STATUS:
        return read_status(args, &asked->server.auth_deny_status);
    case CLIENT_FIELD:
        return read_client_field(args, &asked->server.client_field);
    case INLINE:
        asked->server.inline_commands = true;
        return CLI_OK;
    default:
        return cli_complain(args->command, "takes no arguments, found '%s'", args->value);
    }
}

static int read_arguments(int argc, char **argv, struct asked *asked)
{
    struct cli_args args;
    cli_args_init(&args, &cli_serve, argc, argv);
    for (int row; (row = cli_next(&args)) != CLI_END;) {
        if (row == CLI_HELP || row == CLI_BAD) {
            return row == CLI_HELP ? CLI_HELP : CLI_USAGE;
        }
        int code = read_option(&args, row, asked);
        if (code != CLI_OK) {
            return code;
        }
    }
    return CLI_OK;
}

/* ---- rules ---- */

static int open_rules(const char *path, struct weir_rules **rules)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error;
    o.message = cli_tell_rules;
    int e = path != NULL ? weir_rules_open(rules, path, &o, &error)
                         : weir_rules_open_text(rules, "example", example_rules,
                                                sizeof example_rules - 1, &o, &error);
    if (e == WEIR_ERULES) {
        return CLI_USAGE; /* everything has been told */
    }
    return e == 0 ? CLI_OK : (cli_complain(&cli_serve, "%s", error.text), CLI_FAILED);
}

/* What the file says under `server`. *trusted is the caller's. */
static int take_settings(const struct weir_rules *rules, struct server_options *to,
                         struct cidr_set **trusted)
{
    const struct server_config *from = &rules->started.server;
    to->headers = from->headers;
    *trusted = NULL;
    if (from->trusted_given && cidr_set_create(from->trusted, from->trusted_count, trusted) != 0) {
        return cli_complain(&cli_serve, "out of memory for trusted_proxies"), CLI_FAILED;
    }
    to->trusted = *trusted;
    return CLI_OK;
}

static void reload(struct weir_rules *rules, const char *path)
{
    struct weir_error error;
    if (path == NULL) {
        (void)fprintf(stderr, "weir serve: nothing to reload, there is no --config\n");
    } else if (weir_rules_reload(rules, NULL, &error) != 0) {
        (void)fprintf(stderr, "weir serve: the old rules stay: %s\n", error.text);
    } else {
        (void)fprintf(stderr, "weir serve: rules reloaded from %s\n", path);
    }
}

/* Returns when it is time to end. */
static void wait_for_signals(const sigset_t *signals, struct weir_rules *rules, const char *path)
{
    for (;;) {
        int number = 0;
        if (sigwait(signals, &number) == 0 && number == SIGHUP) {
            reload(rules, path);
        } else if (number == SIGTERM || number == SIGINT) {
            return;
        }
    }
}

/* ---- the program ---- */

static void announce(const struct server *server, const char *config)
{
    static const char *const names[PROTOCOLS] = {"resp", "http", "admin"};
    char text[128];
    (void)printf("weir %s serves %s with %u thread%s\n", weir_version(),
                 config != NULL ? config : "an example rule set (--config FILE for your own)",
                 server->workers_count, server->workers_count == 1 ? "" : "s");
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        (void)printf("  %-6s %s\n", names[i],
                     server_address(server, (enum server_protocol)i, text, sizeof text));
    }
    (void)fflush(stdout);
}

static int serve_rules(struct server *server, const char *config, const sigset_t *signals)
{
    struct weir_error error;
    int e = server_start(server, &error);
    if (e != 0) {
        (void)cli_complain(&cli_serve, "%s", error.text);
        return e == WEIR_EINVAL ? CLI_USAGE : CLI_FAILED;
    }
    announce(server, config);
    wait_for_signals(signals, server->rules, config);
    server_stop(server);
    return CLI_OK;
}

static int serve(struct asked *asked, const sigset_t *signals)
{
    struct server server = {.options = asked->server};
    struct cidr_set *trusted = NULL;
    int code = open_rules(asked->config, &server.rules);
    if (code != CLI_OK) {
        return code;
    }
    code = take_settings(server.rules, &server.options, &trusted);
    if (code == CLI_OK) {
        code = serve_rules(&server, asked->config, signals);
    }
    weir_rules_close(server.rules);
    cidr_set_destroy(trusted);
    return code;
}

static int run(int argc, char **argv)
{
    struct asked asked = {.server = {.listen = {[PROTOCOL_RESP] = "127.0.0.1:6380",
                                                [PROTOCOL_HTTP] = "127.0.0.1:8080",
                                                [PROTOCOL_ADMIN] = "off"},
                                     .connections = 10000,
                                     .connections_per_address = 1000,
                                     .max_age_ms = SERVER_AGE_MS,
                                     .adhoc_keys = 1000000}};
    sigset_t signals;
    int code = read_arguments(argc, argv, &asked);
    if (code != CLI_OK) {
        return code == CLI_HELP ? CLI_OK : code;
    }
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGHUP);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before any thread: they inherit it */
    (void)signal(SIGPIPE, SIG_IGN);
    return serve(&asked, &signals);
}
