/* weir ctl: sends commands and questions to a running server. */
#include "cli/ctl/ctl.h"
#include "rules/value/quantity.h"

/* Reads the duration of a block, rounded up to milliseconds, in which the server counts it. */
static int read_for(const struct cli_value *value, void *to)
{
    uint64_t *ns = to;
    *ns = 0;
    int code = strcmp(value->text, "forever") == 0 ? CLI_OK : cli_read_duration(value, ns);
    *ns = (*ns + WEIR_MILLISECOND - 1) / WEIR_MILLISECOND * WEIR_MILLISECOND;
    return code;
}

#define TO(member) .to = offsetof(struct ctl, member)

static const struct cli_option options[CTL_OPTIONS] = {
    [CTL_ADMIN] = {"--admin", "ADDR:PORT", ADMIN_HELP, cli_read_text, TO(to.admin)},
    [CTL_SECRET_FILE] = {"--secret-file", "FILE", ADMIN_SECRET_HELP, cli_read_text,
                         TO(to.secret_file)},
    [CTL_JSON] = {"--json", NULL, "print the server's answer as JSON", cli_read_switch, TO(json)},
    [CTL_TLS] = CLIENT_TLS_ROWS(struct ctl, to.tls),
    [CTL_TIER] = {"--tier", "T", "tier of the key; default the limit's default tier", cli_read_text,
                  TO(tier)},
    [CTL_BY] = {"--by", "ATTRIBUTE",
                "for a key such as user|ip: KEY is the value of this later alternative, such as ip",
                cli_read_text, TO(by)},
    [CTL_FOR] = {"--for", "DURATION", "how long a block lasts, such as 1h or 7day; default forever",
                 read_for, TO(block_ns), 1, INT64_MAX},
    [CTL_UNITS] = {"--units", "N", "how many units to refund or to take; default 1", cli_read_count,
                   TO(units), 1, INT64_MAX},
    [CTL_WHY] = {"--why", "TEXT", "why a key is blocked, for the list of blocks", cli_read_text,
                 TO(why)},
    [CTL_KEEP] = {"--keep", "FILE",
                  "a rule file of the server that keeps the limit over reloads and restarts; put "
                  "writes it",
                  cli_read_text, TO(keep)},
    [CTL_MINUTES] = {"--minutes", "N", ADMIN_MINUTES_HELP, cli_read_choice, TO(minutes),
                     .choices = admin_minutes},
};

/* ---- rows ---- */

static const struct ctl_row *row_at(size_t i)
{
    static const struct ctl_row *const all[] = {ctl_limit_rows, ctl_key_rows, ctl_block_rows,
                                                ctl_explain_rows, ctl_server_rows};
    for (size_t list = 0; list < sizeof all / sizeof all[0]; list++) {
        for (const struct ctl_row *row = all[list]; row->name != NULL; row++) {
            if (i-- == 0) {
                return row;
            }
        }
    }
    return NULL;
}

static bool word_at(size_t i, struct cli_word *word)
{
    const struct ctl_row *row = row_at(i);
    if (row != NULL) {
        *word = (struct cli_word){row->usage, row->help, row->takes | (CTL_TAKES(CTL_TIER) - 1)};
    }
    return row != NULL;
}

static const struct ctl_row *find(struct ctl *ctl)
{
    const struct ctl_row *row;
    for (size_t i = 0; (row = row_at(i)) != NULL; i++) {
        int words = cli_words(row->name, ctl->count, ctl->operands);
        if (words > 0) {
            ctl->operands += words;
            ctl->count -= words;
            return row;
        }
    }
    return NULL;
}

/* Returns whether a word begins a command of two words, as key does. */
static bool is_first_of_two(const char *word)
{
    const struct ctl_row *row;
    size_t n = strlen(word);
    for (size_t i = 0; (row = row_at(i)) != NULL; i++) {
        if (strncmp(row->name, word, n) == 0 && row->name[n] == ' ') {
            return true;
        }
    }
    return false;
}

/*
 * Suggests the nearest command ("limts", "key gett"). If none is near, lists those of the first
 * word ("key", "key x").
 */
static int unknown(const struct ctl *ctl)
{
    char said[128];
    const struct ctl_row *row;
    const char *first = ctl->operands[0];
    bool group = is_first_of_two(first);
    bool two = group && ctl->count > 1;
    (void)snprintf(said, sizeof said, "%s%s%s", first, two ? " " : "", two ? ctl->operands[1] : "");
    struct suggestion s = suggest_begin(text_of(said));
    for (size_t i = 0; (row = row_at(i)) != NULL; i++) {
        suggest_offer(&s, row->name);
    }
    return group && s.nearest == NULL
               ? cli_list_words(&cli_ctl, text_of(first), two ? ctl->operands[1] : NULL)
               : cli_unknown(&cli_ctl, "command", &s);
}

/* ---- arguments ---- */

static int check_row(const struct ctl *ctl, uint64_t given)
{
    const struct ctl_row *row = ctl->row;
    for (int i = CTL_TIER; i < CTL_OPTIONS; i++) {
        if ((given & ~row->takes & CTL_TAKES(i)) != 0) {
            return cli_complain(&cli_ctl, "%s has no %s", row->name, options[i].name);
        }
    }
    return ctl->count >= row->least && ctl->count <= row->most
               ? CLI_OK
               : cli_complain(&cli_ctl, "found %d argument%s for %s, expected: weir ctl %s",
                              ctl->count, ctl->count == 1 ? "" : "s", row->name, row->usage);
}

static int run(const struct cli_given *given, void *settings)
{
    struct ctl *ctl = settings;
    ctl->operands = given->operands;
    ctl->count = given->count;
    ctl->row = find(ctl);
    if (ctl->row == NULL) {
        return unknown(ctl);
    }
    int code = check_row(ctl, given->options);
    if (code == CLI_OK) {
        code = admin_open(&ctl->client, &cli_ctl, &ctl->to);
    }
    if (code != CLI_OK) {
        return code;
    }
    return ctl->row->run != NULL ? ctl->row->run(ctl)
                                 : ctl_call(ctl, &ctl->row->call, ctl->row->print);
}

static const struct ctl defaults = {.units = 1, .minutes = ADMIN_MINUTES_DEFAULT};

const struct cli_command cli_ctl = {"ctl",
                                    "COMMAND...",
                                    "operate a running server",
                                    options,
                                    CTL_OPTIONS,
                                    &defaults,
                                    sizeof defaults,
                                    run,
                                    word_at,
                                    false};
