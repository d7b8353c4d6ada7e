/* weir replay: decides a recorded stream of requests again, deterministically, at its own times. */
#include "cli/replay/replay_command.h"

#include "cli/cli.h"
#include "rules/value/suggest.h"

enum { ALGORITHM, RATE, BURST, QUEUE, UNIT, EXPLAIN, RULES, QUIET };

static const struct cli_option options[] = {
    [ALGORITHM] = {"--algorithm", "NAME",
                   "token_bucket, leaky_bucket, fixed_window, sliding_window or sliding_log; else "
                   "stepped_bucket"},
    [RATE] = {"--rate", "N/PERIOD", "instead of the stream's capacity and window: 3/10, 100/min"},
    [BURST] = {"--burst", "N", "the most at once, for token_bucket; else N of the rate"},
    [QUEUE] = {"--queue", "N", "places to wait, for leaky_bucket; else 0"},
    [UNIT] = {"--unit", "s|ms|us|ns", "what a timestamp and a bare PERIOD count; else s"},
    [EXPLAIN] = {"--explain", NULL, "add remaining, retry and reset, in that unit"},
    [RULES] = {"--rules", "FILE", "replay JSON lines of attributes through a rule file"},
    [QUIET] = {"--quiet", NULL, "no summary and no progress bar on standard error"},
};

static int run(int argc, char **argv);

const struct cli_command cli_replay =
    CLI_COMMAND("replay", "[FILE]", "decide a recorded stream of requests again", options, run);

/*
 * The options' words, before they are parsed: --unit may come after an option that depends on
 * it.
 */
struct words {
    const char *given[sizeof options / sizeof options[0]]; /* NULL: not given */
    const char *operand;
};

/* Returns 0, CLI_HELP, or CLI_USAGE after a message. */
static int read_words(struct words *w, int argc, char **argv)
{
    struct cli_args args;
    cli_args_init(&args, &cli_replay, argc, argv);
    for (;;) {
        int row = cli_next(&args);
        if (row == CLI_END) {
            return 0;
        }
        if (row == CLI_HELP || row == CLI_BAD) {
            return row == CLI_HELP ? CLI_HELP : CLI_USAGE;
        }
        if (row == CLI_OPERAND && w->operand != NULL) {
            return cli_complain(&cli_replay, "takes one FILE, found '%s' and '%s'", w->operand,
                                args.value);
        }
        if (row == CLI_OPERAND) {
            w->operand = args.value;
        } else {
            w->given[row] = args.value != NULL ? args.value : "";
        }
    }
}

static int read_unit(const char *word, uint64_t *unit_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"s", WEIR_SECOND}, {"ms", WEIR_MILLISECOND}, {"us", WEIR_MICROSECOND}, {"ns", 1}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(word, units[i].name) == 0) {
            *unit_ns = units[i].ns;
            return 0;
        }
    }
    return cli_complain(&cli_replay, "--unit is '%s', expected s, ms, us or ns", word);
}

static int unknown_algorithm(const char *word)
{
    struct text name = text_of(word);
    const char *nearest = "stepped_bucket";
    unsigned best = suggest_distance(name, nearest);
    for (int i = 1; weir_algorithm_name(i) != NULL; i++) {
        unsigned distance = suggest_distance(name, weir_algorithm_name(i));
        if (distance < best) {
            best = distance;
            nearest = weir_algorithm_name(i);
        }
    }
    if (best <= suggest_limit(name)) {
        return cli_complain(&cli_replay, "--algorithm is '%s'; did you mean '%s'?", word, nearest);
    }
    return cli_complain(&cli_replay,
                        "--algorithm is '%s', expected stepped_bucket, token_bucket, leaky_bucket, "
                        "fixed_window, sliding_window or sliding_log",
                        word);
}

static int read_algorithm(const char *word, int *algorithm)
{
    *algorithm = weir_algorithm_by_name(word);
    return *algorithm != 0 || strcmp(word, "stepped_bucket") == 0 ? 0 : unknown_algorithm(word);
}

/* Reads a count that only one algorithm takes. */
static int read_count(const struct words *w, int row, int algorithm, uint64_t least,
                      const struct replay_settings *s, uint64_t *count)
{
    struct weir_error error;
    if (s->algorithm != algorithm) {
        return cli_complain(&cli_replay, "%s is for --algorithm %s only", options[row].name,
                            weir_algorithm_name(algorithm));
    }
    if (count_parse(text_of(w->given[row]), count, &error) != 0) {
        return cli_complain(&cli_replay, "%s: %s", options[row].name, error.text);
    }
    if (*count < least) {
        return cli_complain(&cli_replay, "%s is '%s', expected at least %d", options[row].name,
                            w->given[row], (int)least);
    }
    return 0;
}

static int read_rate(const char *word, struct replay_settings *s)
{
    struct weir_error error;
    s->has_rate = true;
    if (rate_parse(text_of(word), s->unit_ns, &s->rate, &error) != 0) {
        return cli_complain(&cli_replay, "--rate: %s", error.text);
    }
    return 0;
}

/* Refuses options that describe a limit, because the rule file describes the limits. */
static int check_rules(const struct words *w)
{
    for (int row = ALGORITHM; row <= QUEUE; row++) {
        if (w->given[row] != NULL) {
            return cli_complain(&cli_replay, "%s and --rules exclude each other",
                                options[row].name);
        }
    }
    return 0;
}

/* Parses the words into settings. Returns 0, or CLI_USAGE after a message. */
static int understand(const struct words *w, struct replay_settings *s)
{
    int code = 0;
    *s = (struct replay_settings){.path = w->operand, .rules = w->given[RULES]};
    s->unit_ns = WEIR_SECOND;
    s->explain = w->given[EXPLAIN] != NULL;
    s->quiet = w->given[QUIET] != NULL;
    if (s->path != NULL && strcmp(s->path, "-") == 0) {
        s->path = NULL;
    }
    code = s->rules != NULL ? check_rules(w) : 0;
    if (code == 0 && w->given[UNIT] != NULL) {
        code = read_unit(w->given[UNIT], &s->unit_ns);
    }
    if (code == 0 && w->given[ALGORITHM] != NULL) {
        code = read_algorithm(w->given[ALGORITHM], &s->algorithm);
    }
    if (code == 0 && w->given[RATE] != NULL) {
        code = read_rate(w->given[RATE], s);
    }
    if (code == 0 && w->given[BURST] != NULL) {
        code = read_count(w, BURST, WEIR_TOKEN_BUCKET, 1, s, &s->burst);
    }
    if (code == 0 && w->given[QUEUE] != NULL) {
        code = read_count(w, QUEUE, WEIR_LEAKY_BUCKET, 0, s, &s->queue);
    }
    return code;
}

static int run(int argc, char **argv)
{
    struct words words = {{NULL}, NULL};
    struct replay_settings settings;
    struct weir_error error;
    int code = read_words(&words, argc, argv);
    if (code == CLI_HELP) {
        return CLI_OK;
    }
    if (code != 0 || understand(&words, &settings) != 0) {
        return CLI_USAGE;
    }
    struct replay r = {.settings = &settings};
    if (replay_input_open(&r.input, settings.path, &error) != 0) {
        return cli_complain(&cli_replay, "%s", error.text);
    }
    code = settings.rules != NULL ? replay_rules(&r) : replay_stream(&r);
    replay_input_close(&r.input);
    return code;
}
