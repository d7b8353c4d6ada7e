/* weir ctl: sends commands and questions to a running server. */
#include "cli/ctl/ctl.h"

#include <limits.h>
#include <stdlib.h>

#include "rules/value/suggest.h"

enum { ADMIN, SECRET_FILE, JSON, TIER, FOR, UNITS };

static const struct cli_option options[] = {
    [ADMIN] = {"--admin", "ADDR:PORT",
               "the server's admin listener, or unix:PATH; default WEIR_ADMIN, " ADMIN_ADDRESS},
    [SECRET_FILE] = {"--secret-file", "FILE",
                     "a secret of the server, in its first line; default WEIR_ADMIN_SECRET"},
    [JSON] = {"--json", NULL, "print what the server says, as JSON"},
    [TIER] = {"--tier", "T", "of the key; default the limit's default tier"},
    [FOR] = {"--for", "DURATION", "how long a block lasts: 1h, 7day, forever (the default)"},
    [UNITS] = {"--units", "N", "how many units to refund or to take; default 1"},
};

static int run(int argc, char **argv);
static const struct cli_word *word_at(size_t i);

const struct cli_command cli_ctl = {"ctl",
                                    "COMMAND",
                                    "tell a running server what to do, and ask it how it is",
                                    options,
                                    sizeof options / sizeof options[0],
                                    run,
                                    word_at};

/* ---- rows ---- */

static const struct ctl_row *row_at(size_t i)
{
    static const struct ctl_row *const all[] = {ctl_limit_rows, ctl_key_rows, ctl_server_rows};
    for (size_t list = 0; list < sizeof all / sizeof all[0]; list++) {
        for (const struct ctl_row *row = all[list]; row->name != NULL; row++) {
            if (i-- == 0) {
                return row;
            }
        }
    }
    return NULL;
}

static const struct cli_word *word_at(size_t i)
{
    const struct ctl_row *row = row_at(i);
    return row != NULL ? &row->word : NULL;
}

/* Returns how many of the operands are the name of this row; 0 if they are not. */
static int words_of(const struct ctl_row *row, const struct ctl *ctl)
{
    const char *second = strchr(row->name, ' ');
    struct text first = {row->name, strcspn(row->name, " ")};
    if (ctl->count < (second != NULL ? 2 : 1) || !text_is(first, ctl->operands[0])) {
        return 0;
    }
    return second == NULL ? 1 : strcmp(second + 1, ctl->operands[1]) == 0 ? 2 : 0;
}

static const struct ctl_row *find(struct ctl *ctl)
{
    const struct ctl_row *row;
    for (size_t i = 0; (row = row_at(i)) != NULL; i++) {
        int words = words_of(row, ctl);
        if (words > 0) {
            ctl->operands += words;
            ctl->count -= words;
            return row;
        }
    }
    return NULL;
}

/* Prints that the command is unknown ("limts", "key gett", "key") and suggests the nearest one. */
static int unknown(const struct ctl *ctl)
{
    char said[128];
    const char *nearest = NULL;
    const struct ctl_row *row;
    const char *first = ctl->operands[0] != NULL ? ctl->operands[0] : "";
    bool two = ctl->count > 1 && strcmp(first, "key") == 0;
    (void)snprintf(said, sizeof said, "%s%s%s", first, two ? " " : "", two ? ctl->operands[1] : "");
    unsigned best = suggest_limit(text_of(said)) + 1;
    for (size_t i = 0; (row = row_at(i)) != NULL; i++) {
        unsigned distance = suggest_distance(text_of(said), row->name);
        if (distance < best) {
            best = distance;
            nearest = row->name;
        }
    }
    return nearest != NULL
               ? cli_complain(&cli_ctl, "unknown command '%s'; did you mean '%s'?", said, nearest)
               : cli_complain(&cli_ctl, "unknown command '%s'; 'weir ctl --help' lists them", said);
}

/* ---- arguments ---- */

struct given {
    const char *admin;
    const char *secret_file;
};

static void read_option(int row, const char *value, struct given *given, struct ctl *ctl)
{
    switch (row) {
    case ADMIN:
        given->admin = value;
        break;
    case SECRET_FILE:
        given->secret_file = value;
        break;
    case JSON:
        ctl->json = true;
        break;
    case TIER:
        ctl->tier = value;
        break;
    case FOR:
        ctl->until = value;
        break;
    case UNITS:
        ctl->units = value;
        break;
    default:
        ctl->operands[ctl->count++] = (char *)(uintptr_t)value; /* an element of argv */
        break;
    }
}

static int read_arguments(int argc, char **argv, struct given *given, struct ctl *ctl)
{
    struct cli_args args;
    cli_args_init(&args, &cli_ctl, argc, argv);
    for (int row; (row = cli_next(&args)) != CLI_END;) {
        if (row == CLI_HELP || row == CLI_BAD) {
            return row == CLI_HELP ? CLI_HELP : CLI_USAGE;
        }
        read_option(row, args.value, given, ctl);
    }
    return ctl->count > 0
               ? CLI_OK
               : cli_complain(&cli_ctl, "expected a command; 'weir ctl --help' lists them");
}

static int check_row(const struct ctl_row *row, const struct ctl *ctl)
{
    const struct {
        const char *value;
        unsigned bit;
        int option;
    } some[] = {
        {ctl->tier, CTL_TIER, TIER}, {ctl->until, CTL_FOR, FOR}, {ctl->units, CTL_UNITS, UNITS}};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        if (some[i].value != NULL && (row->takes & some[i].bit) == 0) {
            return cli_complain(&cli_ctl, "%s has no %s", row->name, options[some[i].option].name);
        }
    }
    int most = row->most < 0 ? 0 : row->most > 0 ? row->most : INT_MAX;
    if (ctl->count < row->least || ctl->count > most) {
        return cli_complain(&cli_ctl, "expected: weir ctl %s", row->word.usage);
    }
    return CLI_OK;
}

static int run_row(struct ctl *ctl, const struct given *given)
{
    const struct ctl_row *row = find(ctl);
    if (row == NULL) {
        return unknown(ctl);
    }
    int code = check_row(row, ctl);
    if (code == CLI_OK) {
        code = admin_open(&ctl->client, &cli_ctl, given->admin, given->secret_file);
    }
    return code == CLI_OK ? row->run(ctl) : code;
}

static int run(int argc, char **argv)
{
    struct given given = {NULL, NULL};
    struct ctl ctl = {.json = false};
    char **operands = calloc((size_t)argc + 1, sizeof *operands);
    if (operands == NULL) {
        return cli_complain(&cli_ctl, "out of memory"), CLI_FAILED;
    }
    ctl.operands = operands;
    int code = read_arguments(argc, argv, &given, &ctl);
    code = code == CLI_HELP ? CLI_OK : code == CLI_OK ? run_row(&ctl, &given) : code;
    free(operands);
    return code;
}

/* ---- shared functions ---- */

void ctl_print_json(const json_t *value)
{
    if (value != NULL) {
        (void)json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
        (void)putchar('\n');
    }
}

void ctl_print(const struct buffer *text)
{
    (void)fwrite(buffer_text(text).at, 1, buffer_len(text), stdout);
}

void ctl_print_line(struct text name, const char *what)
{
    struct buffer line;
    buffer_init(&line, CTL_TARGET_MAX);
    safe_put(&line, name, false);
    (void)printf("%.*s: %s\n", TEXT_ARGS(buffer_text(&line)), what);
    buffer_finish(&line);
}

const char *ctl_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

uint64_t ctl_count(const json_t *object, const char *name)
{
    json_int_t number = json_integer_value(json_object_get(object, name));
    return number > 0 ? (uint64_t)number : 0;
}

int ctl_send_json(const struct ctl *ctl, const char *method, const char *target, json_t *body,
                  json_t **out)
{
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    *out = NULL;
    if (text == NULL) {
        return cli_complain(&cli_ctl, "out of memory"), CLI_FAILED;
    }
    struct http_call call = {method, target, "application/json", text_of(text)};
    int code = admin_call_json(&ctl->client, &call, out);
    free(text);
    return code;
}
