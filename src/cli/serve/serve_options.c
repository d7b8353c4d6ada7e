/*
 * Reads the settings of weir serve. Each option has a variable WEIR_... of the same name. A flag
 * takes precedence over a variable, and a variable over the rule file.
 */
#include "cli/serve/serve.h"

#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "rules/live/live.h"
#include "rules/value/quantity.h"
#include "rules/value/suggest.h"
#include "server/http/http_routes.h"

const struct cli_option serve_options[SERVE_OPTIONS] = {
    [SERVE_CONFIG] = {"--config", "FILE|DIR", "the rules; without it a small example"},
    [SERVE_RESP] = {"--resp", "ADDR:PORT", "listen for RESP there, or unix:PATH, or off"},
    [SERVE_HTTP] = {"--http", "ADDR:PORT", "listen for HTTP there, or unix:PATH, or off"},
    [SERVE_ADMIN] = {"--admin", "ADDR:PORT", "listen for operators there, or unix:PATH, or off"},
    [SERVE_STATE] = {"--state", "DIR", "keep the limits there over restarts, or off"},
    [SERVE_STORE] = {"--store", "URL", "share the limits of a fleet by this Redis, or off"},
    [SERVE_THREADS] = {"--threads", "N", "threads; default one for each processor"},
    [SERVE_CONNECTIONS] = {"--connections", "N", "the most connections at once; default 10k"},
    [SERVE_PER_ADDRESS] = {"--connections-per-address", "N", "of one client; default 1k"},
    [SERVE_MAX_AGE] = {"--max-age", "MS",
                       "refuse older input under overload; default 50, 0: never"},
    [SERVE_INLINE] = {"--inline", NULL, "take RESP commands typed as a line"},
    [SERVE_DENY_STATUS] = {"--auth-deny-status", "N", "what /v1/auth says for no; default 429"},
    [SERVE_CLIENT_FIELD] = {"--client-field", "NAME",
                            "the only header that proxies name clients by"},
    [SERVE_CHECK_SECRETS] = {"--check-secrets", "FILE",
                             "who asks needs one of these, one on each line"},
    [SERVE_ADMIN_SECRETS] = {"--admin-secrets", "FILE", "who changes things needs one of these"},
    [SERVE_INSECURE] = {"--insecure", NULL, "listen beyond this machine without secrets"},
    [SERVE_LOG_FORMAT] = {"--log", "text|json", "how the log is written; default text"},
    [SERVE_LOG_LEVEL] = {"--log-level", "LEVEL", "error, warning, info (default) or debug"},
    [SERVE_LOG_KEYS] = {"--log-keys", "cut|hashed", "how keys of clients are logged; default cut"},
    [SERVE_NO_WATCH] = {"--no-watch", NULL, "reload on SIGHUP only, not when a file changes"},
};

static const char *const formats[] = {[LOG_AS_TEXT] = "text", [LOG_AS_JSON] = "json", NULL};
static const char *const keys[] = {[LOG_KEYS_CUT] = "cut", [LOG_KEYS_HASHED] = "hashed", NULL};
static const char *const levels[] = {"error", "warning", "info", "debug", NULL};
_Static_assert(LEVEL_ERROR == 1 && LEVEL_DEBUG == 4, "levels[] begins with LEVEL_ERROR");

struct row;

/* The value of an option, and where it comes from. */
struct given {
    const char *value; /* NULL: not given; "" for a switch */
    const char *from;  /* "--threads", "WEIR_THREADS" */
};

/* Reads the value into the settings' member `to`. Returns CLI_OK, or CLI_USAGE after a message. */
typedef int (*read_fn)(const struct row *row, const struct given *given, void *to);

struct row {
    read_fn read;
    size_t offset; /* of the member in struct serve_settings */
    uint64_t least;
    uint64_t most;
    const char *const *choices;
    int first; /* value of choices[0]; for secrets, the role */
};

static int read_string(const struct row *row, const struct given *given, void *to)
{
    (void)row;
    *(const char **)to = given->value;
    return CLI_OK;
}

/* Reads a number into a member of 64 bits. */
static int read_wide(const struct row *row, const struct given *given, void *to)
{
    uint64_t number;
    if (count_parse(text_of(given->value), &number, NULL) != 0 || number < row->least ||
        number > row->most) {
        return cli_complain(&cli_serve, "%s is '%s', expected a whole number from %llu to %llu",
                            given->from, given->value, (unsigned long long)row->least,
                            (unsigned long long)row->most);
    }
    *(uint64_t *)to = number;
    return CLI_OK;
}

static int read_number(const struct row *row, const struct given *given, void *to)
{
    uint64_t number = 0;
    int code = read_wide(row, given, &number);
    if (code == CLI_OK) {
        *(unsigned *)to = (unsigned)number;
    }
    return code;
}

static int read_choice(const struct row *row, const struct given *given, void *to)
{
    char expected[64] = "";
    for (int i = 0; row->choices[i] != NULL; i++) {
        if (strcmp(row->choices[i], given->value) == 0) {
            *(int *)to = row->first + i;
            return CLI_OK;
        }
        size_t n = strlen(expected);
        (void)snprintf(expected + n, sizeof expected - n, "%s%s",
                       i == 0                        ? ""
                       : row->choices[i + 1] == NULL ? " or "
                                                     : ", ",
                       row->choices[i]);
    }
    return cli_complain(&cli_serve, "%s is '%s', expected %s", given->from, given->value, expected);
}

static int read_client_field(const struct row *row, const struct given *given, void *to)
{
    (void)row;
    for (unsigned i = 0; i < HTTP_CLIENT_FIELDS; i++) {
        if (strcasecmp(given->value, http_client_field_name(i)) == 0) {
            *(unsigned *)to = i + 1;
            return CLI_OK;
        }
    }
    return cli_complain(&cli_serve, "%s is '%s', expected x-forwarded-for, forwarded or x-real-ip",
                        given->from, given->value);
}

/* Reads a switch: a flag means on; a variable says on or off. */
static int read_switch(const struct row *row, const struct given *given, void *to)
{
    static const char *const words[] = {"off", "on", "0", "1", "no", "yes", "false", "true"};
    (void)row;
    if (given->value[0] == '\0') {
        *(bool *)to = true;
        return CLI_OK;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i], given->value) == 0) {
            *(bool *)to = i % 2 == 1;
            return CLI_OK;
        }
    }
    return cli_complain(&cli_serve, "%s is '%s', expected on or off", given->from, given->value);
}

/* Reads the source of secrets: a flag names a file, a variable contains the secrets themselves. */
static int read_secrets(const struct row *row, const struct given *given, void *to)
{
    struct access_sources *secrets = to;
    bool flag = given->from[0] == '-';
    *(flag ? &secrets->file[row->first] : &secrets->text[row->first]) = given->value;
    return CLI_OK;
}

#define TO(member) offsetof(struct serve_settings, member)

static const struct row rows[SERVE_OPTIONS] = {
    [SERVE_CONFIG] = {read_string, TO(config), 0, 0, NULL, 0},
    [SERVE_RESP] = {read_string, TO(server.listen[PROTOCOL_RESP]), 0, 0, NULL, 0},
    [SERVE_HTTP] = {read_string, TO(server.listen[PROTOCOL_HTTP]), 0, 0, NULL, 0},
    [SERVE_ADMIN] = {read_string, TO(server.listen[PROTOCOL_ADMIN]), 0, 0, NULL, 0},
    [SERVE_STATE] = {read_string, TO(state), 0, 0, NULL, 0},
    [SERVE_STORE] = {read_string, TO(store), 0, 0, NULL, 0},
    [SERVE_THREADS] = {read_number, TO(server.threads), 1, SERVER_THREADS_MAX, NULL, 0},
    [SERVE_CONNECTIONS] = {read_number, TO(server.connections), 1, 1000000, NULL, 0},
    [SERVE_PER_ADDRESS] = {read_number, TO(server.connections_per_address), 1, 1000000, NULL, 0},
    [SERVE_MAX_AGE] = {read_wide, TO(server.max_age_ms), 0, 60000, NULL, 0},
    [SERVE_INLINE] = {read_switch, TO(server.inline_commands), 0, 0, NULL, 0},
    [SERVE_DENY_STATUS] = {read_number, TO(server.auth_deny_status), 400, 599, NULL, 0},
    [SERVE_CLIENT_FIELD] = {read_client_field, TO(server.client_field), 0, 0, NULL, 0},
    [SERVE_CHECK_SECRETS] = {read_secrets, TO(secrets), 0, 0, NULL, ROLE_CHECK},
    [SERVE_ADMIN_SECRETS] = {read_secrets, TO(secrets), 0, 0, NULL, ROLE_ADMIN},
    [SERVE_INSECURE] = {read_switch, TO(server.insecure), 0, 0, NULL, 0},
    [SERVE_LOG_FORMAT] = {read_choice, TO(log_format), 0, 0, formats, LOG_AS_TEXT},
    [SERVE_NO_WATCH] = {read_switch, TO(no_watch), 0, 0, NULL, 0},
    [SERVE_LOG_LEVEL] = {read_choice, TO(log_level), 0, 0, levels, LEVEL_ERROR},
    [SERVE_LOG_KEYS] = {read_choice, TO(log_keys), 0, 0, keys, LOG_KEYS_CUT},
};

/* ---- flags and variables ---- */

#define VARIABLE_BYTES 40

/* "--auth-deny-status" -> "WEIR_AUTH_DENY_STATUS" */
static const char *variable_of(int row)
{
    static char names[SERVE_OPTIONS][VARIABLE_BYTES];
    (void)snprintf(names[row], VARIABLE_BYTES, "WEIR_%s", serve_options[row].name + 2);
    for (char *c = names[row]; *c != '\0'; c++) {
        *c = (char)(*c == '-' ? '_' : *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    }
    return names[row];
}

static int read_flags(int argc, char **argv, struct given *given)
{
    struct cli_args args;
    cli_args_init(&args, &cli_serve, argc, argv);
    for (int row; (row = cli_next(&args)) != CLI_END;) {
        if (row == CLI_HELP || row == CLI_BAD) {
            return row == CLI_HELP ? CLI_HELP : CLI_USAGE;
        }
        if (row == CLI_OPERAND) {
            return cli_complain(&cli_serve, "takes no arguments, found '%s'", args.value);
        }
        given[row].value = args.value != NULL ? args.value : "";
        given[row].from = serve_options[row].name;
    }
    return CLI_OK;
}

/* An empty variable counts as not set: this is how a container file unsets one. */
static void read_variables(struct given *given)
{
    for (int row = 0; row < SERVE_OPTIONS; row++) {
        const char *value = getenv(variable_of(row));
        if (given[row].from == NULL && value != NULL && value[0] != '\0') {
            given[row] = (struct given){value, variable_of(row)};
        }
    }
}

int serve_read_options(int argc, char **argv, struct serve_settings *settings)
{
    static const int listeners[PROTOCOLS] = {SERVE_RESP, SERVE_HTTP, SERVE_ADMIN};
    struct given given[SERVE_OPTIONS] = {{NULL, NULL}};
    int code = read_flags(argc, argv, given);
    read_variables(given);
    for (int row = 0; code == CLI_OK && row < SERVE_OPTIONS; row++) {
        if (given[row].from != NULL) {
            code = rows[row].read(&rows[row], &given[row], (char *)settings + rows[row].offset);
        }
    }
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        settings->listen_from[i] = given[listeners[i]].from;
    }
    settings->store_from = given[SERVE_STORE].from;
    return code;
}

/* ---- misspelt variables ---- */

static void check_variable(struct text name)
{
    const char *nearest = NULL;
    struct text word = text_after(name, strlen("WEIR_"));
    unsigned best = suggest_limit(word) + 1;
    for (int row = 0; row < SERVE_OPTIONS; row++) {
        unsigned distance = suggest_distance(word, variable_of(row) + strlen("WEIR_"));
        if (distance < best) {
            best = distance;
            nearest = variable_of(row);
        }
    }
    if (nearest != NULL && best > 0) {
        LOG(LEVEL_WARNING, "a variable that is not read", LOG_TEXT("name", name),
            LOG_STRING("meant_perhaps", nearest));
    }
}

void serve_check_environment(void)
{
    for (char **entry = environ; *entry != NULL; entry++) {
        if (strncmp(*entry, "WEIR_", strlen("WEIR_")) == 0) {
            check_variable((struct text){*entry, strcspn(*entry, "=")});
        }
    }
}

/* ---- the rule file ---- */

static int take_address(struct serve_settings *s, enum server_protocol protocol, struct text from,
                        const char *name, const char *otherwise)
{
    if (s->listen_from[protocol] != NULL) {
        return CLI_OK;
    }
    if (from.len >= sizeof s->address[protocol]) {
        return cli_complain(&cli_serve, "%s has %zu bytes, expected fewer than %zu", name, from.len,
                            sizeof s->address[protocol]);
    }
    memcpy(s->address[protocol], from.at, from.len);
    s->server.listen[protocol] = s->address[protocol];
    s->listen_from[protocol] = text_is(from, otherwise) ? "the default" : name;
    return CLI_OK;
}

static int take_trusted(struct serve_settings *s, const struct server_config *from)
{
    if (from->trusted_given &&
        cidr_set_create(from->trusted, from->trusted_count, &s->trusted) != 0) {
        return cli_complain(&cli_serve, "out of memory for trusted_proxies"), CLI_FAILED;
    }
    s->server.trusted = s->trusted;
    return CLI_OK;
}

int serve_take_file(const struct weir_rules *rules, struct serve_settings *s)
{
    const struct server_config *from = &rules->started.server;
    const struct adhoc_config *adhoc = &rules->started.adhoc;
    s->server.headers = from->headers;
    s->server.adhoc_keys = adhoc->off ? 0 : adhoc->max_keys;
    s->server.adhoc_on_full = adhoc->on_full;
    int code = take_trusted(s, from);
    code = code != CLI_OK
               ? code
               : take_address(s, PROTOCOL_RESP, from->resp, "server.resp", "127.0.0.1:6380");
    code = code != CLI_OK
               ? code
               : take_address(s, PROTOCOL_HTTP, from->http, "server.http", "127.0.0.1:8080");
    return code != CLI_OK
               ? code
               : take_address(s, PROTOCOL_ADMIN, from->admin, "server.admin", "127.0.0.1:8082");
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
                                    listen[i], serve_protocol_names[j], s->listen_from[j],
                                    serve_protocol_names[i], s->listen_from[i]);
            }
        }
    }
    return off < PROTOCOLS ? CLI_OK
                           : cli_complain(&cli_serve, "found every listener off, expected one of "
                                                      "--resp, --http and --admin to listen");
}

void serve_finish_settings(struct serve_settings *settings)
{
    cidr_set_destroy(settings->trusted);
    access_close(settings->server.access);
    for (int role = 0; role < ROLES; role++) {
        free(settings->secrets_path[role]);
    }
}
