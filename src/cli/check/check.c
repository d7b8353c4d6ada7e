/* The commands `weir check` and `weir ask`: options, the server's address, and printing. */
#include "cli/check/check.h"

#include <stdlib.h>

#include "cli/answer_json.h"
#include "cli/buffer_format.h"
#include "cli/port_holder.h"
#include "server/operations/answer.h"

#define HTTP_ADDRESS "127.0.0.1:8080"
#define WHY_MAX 65536

#define TO(member) .to = offsetof(struct check, member)

/* `weir ask` has those before ASK_OPTIONS only. */
enum {
    HTTP,
    RESP,
    SECRET_FILE,
    COST,
    MAX_WAIT,
    JSON,
    VERBOSE,
    TLS,
    ASK_OPTIONS = TLS + 4,
    TIER = ASK_OPTIONS,
    PEEK
};

static const struct cli_option options[] = {
    [HTTP] = {"--http", "ADDR:PORT",
              "the server's HTTP listener, with https:// before it if it speaks TLS, or unix:PATH; "
              "default WEIR_HTTP, " HTTP_ADDRESS,
              cli_read_text, TO(http)},
    [RESP] =
        {"--resp", "ADDR:PORT",
         "ask over RESP instead, at this address, with rediss:// before it if it speaks TLS, or "
         "unix:PATH; default WEIR_RESP if WEIR_HTTP is not set",
         cli_read_text, TO(resp)},
    [SECRET_FILE] = {"--secret-file", "FILE",
                     "file with a secret of the server in its first line; default "
                     "WEIR_CHECK_SECRET",
                     cli_read_text, TO(secret_file)},
    [COST] = {"--cost", "N", "units to take; default the limit's own cost, or 1", cli_read_count,
              TO(cost), 1, INT64_MAX},
    [MAX_WAIT] = {"--max-wait", "DURATION",
                  "allow the request if it has to wait no longer than this, such as 250ms",
                  cli_read_duration, TO(max_wait_ns), 1, WEIR_DAY},
    [JSON] = {"--json", NULL, "print the answer as JSON", cli_read_switch, TO(json)},
    [VERBOSE] = {"--verbose", NULL,
                 "print on standard error which server is asked, and its process if it is on this "
                 "machine",
                 cli_read_switch, TO(verbose)},
    [TLS] = CLIENT_TLS_ROWS(struct check, tls),
    [TIER] = {"--tier", "T", "tier of the key; default the limit's default tier", cli_read_text,
              TO(tier)},
    [PEEK] = {"--peek", NULL, "tell what a check would say, and take nothing", cli_read_switch,
              TO(peek)},
};

/* ---- the server ---- */

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != 0 && strcmp(value, "off") != 0 ? value : NULL;
}

/* Finds the listener: an option, otherwise a variable of the server, otherwise the default. */
static int find_server(struct check *c)
{
    if (c->http != NULL && c->resp != NULL) {
        return cli_complain(c->command, "found --http and --resp, expected one of them");
    }
    if (c->http == NULL && c->resp == NULL) {
        c->http = variable("WEIR_HTTP");
        c->resp = c->http == NULL ? variable("WEIR_RESP") : NULL;
    }
    c->http = c->http == NULL && c->resp == NULL ? HTTP_ADDRESS : c->http;
    return client_tls_open(&c->tls, c->command, c->http != NULL ? c->http : c->resp, c->address);
}

static void tell_server(const struct check *c)
{
    char holder[PORT_HOLDER_MAX];
    bool held = port_holder(c->address, holder);
    struct buffer text;
    buffer_init(&text, WHY_MAX);
    buffer_format(&text, "asking %s over %s%s%s", c->address, c->http != NULL ? "HTTP" : "RESP",
                  held ? ": " : "", holder);
    cli_complain_of(c->command, buffer_text(&text));
    buffer_finish(&text);
}

int check_unanswered(const struct check *c, int e, const char *text, struct buffer *why)
{
    const char *name = c->http != NULL ? "HTTP" : "RESP";
    buffer_format(why, "%s", text);
    if (e == WEIR_EIO) {
        buffer_format(why,
                      "; is 'weir serve' running, with its %s listener there? Name another address "
                      "with --http or --resp",
                      name);
    }
    return e == WEIR_EINVAL ? CLI_USAGE : CLI_FAILED;
}

void check_put_access(const struct check *c, struct buffer *why)
{
    if (c->secret.source == NULL) {
        buffer_format(why, "; give a secret with --secret-file FILE or WEIR_CHECK_SECRET");
    } else {
        buffer_format(why, "; the secret is from %s", c->secret.source);
    }
}

/* ---- the answer ---- */

/* Returns the exit status that tells the verdict. */
static int status_of(const json_t *said)
{
    static const int codes[WEIR_NEVER + 1] = {
        [WEIR_ALLOW] = CLI_OK, [WEIR_DENY] = CLI_DENIED, [WEIR_NEVER] = CLI_NEVER};
    const char *verdict = json_string_value(json_object_get(said, "verdict"));
    for (int i = WEIR_ALLOW; verdict != NULL && i <= WEIR_NEVER; i++) {
        if (strcmp(verdict, answer_verdict_names[i]) == 0) {
            return codes[i];
        }
    }
    return -1;
}

static int put_question(const struct check *c, struct buffer *why)
{
    json_t *said = NULL;
    int code = (c->http != NULL ? check_over_http : check_over_resp)(c, &said, why);
    int verdict = code == CLI_OK ? status_of(said) : 0;
    if (verdict < 0) {
        buffer_format(why, "%s: found an answer without a verdict, expected that of weir serve",
                      c->address);
        code = CLI_FAILED;
    }
    if (code == CLI_OK && c->json) {
        (void)json_dumpf(said, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII);
        (void)putchar('\n');
    } else if (code == CLI_OK) {
        answer_print(said);
    }
    json_decref(said);
    if (code != CLI_OK) {
        cli_complain_of(c->command, buffer_text(why));
        return code;
    }
    return verdict;
}

/* ---- the commands ---- */

/* Returns whether an attribute has the name of one before it. */
static bool is_repeated(const struct check *c, int at)
{
    struct weir_text name = text_before(text_of(c->words[at]), '=');
    int i = 0;
    while (i < at && !text_equal(name, text_before(text_of(c->words[i]), '='))) {
        i++;
    }
    return i < at;
}

static int check_attributes(const struct check *c)
{
    for (int i = 0; i < c->count; i++) {
        const char *equals = strchr(c->words[i], '=');
        if (equals == NULL || equals == c->words[i]) {
            return cli_complain(c->command,
                                "found '%s', expected NAME=VALUE, such as path=/search or "
                                "user=alice",
                                c->words[i]);
        }
        if (is_repeated(c, i)) {
            return cli_complain(c->command, "found '%.*s' twice, expected each attribute once",
                                (int)(equals - c->words[i]), c->words[i]);
        }
    }
    return CLI_OK;
}

static int run(const struct cli_given *given, void *settings)
{
    static const char *const variables[] = {"WEIR_CHECK_SECRET", "WEIR_CHECK_SECRETS", NULL};
    struct check *c = settings;
    struct buffer why;
    c->command = given->command;
    c->words = given->operands;
    c->count = given->count;
    c->by_attributes = given->command == &cli_ask;
    int code = c->by_attributes ? check_attributes(c) : CLI_OK;
    code = code == CLI_OK ? find_server(c) : code;
    code = code == CLI_OK ? given_secret_read(&c->secret, c->command, c->secret_file, variables)
                          : code;
    if (code == CLI_OK && c->verbose) {
        tell_server(c);
    }
    if (code == CLI_OK) {
        buffer_init(&why, WHY_MAX);
        code = put_question(c, &why);
        buffer_finish(&why);
    }
    return code;
}

static const struct check defaults;

const struct cli_command cli_check = CLI_COMMAND(
    "check", "LIMIT KEY...", "ask a running server about a key of a limit", options, defaults, run);
const struct cli_command cli_ask = {"ask",
                                    "NAME=VALUE...",
                                    "ask a running server about a request, by its attributes",
                                    options,
                                    ASK_OPTIONS,
                                    &defaults,
                                    sizeof defaults,
                                    run,
                                    NULL,
                                    false};
