/* weir replay: decides a recorded stream of requests again, deterministically, at its own times. */
#include "cli/replay/replay_command.h"

#include "base/algorithms.h"
#include "cli/replay/replay_trace.h"

#define PROGRESS_LINES 4096 /* between two looks at the progress bar and at errors of writing */

#define TO(member) .to = offsetof(struct replay_settings, member)

int replay_read_unit(const struct cli_value *value, void *to)
{
    for (size_t i = 0; replay_units[i].name != NULL; i++) {
        if (strcmp(value->text, replay_units[i].name) == 0) {
            *(uint64_t *)to = replay_units[i].ns;
            return CLI_OK;
        }
    }
    return cli_expected(value, "s, ms, us or ns");
}

/* Returns the name of an algorithm by number, NULL after the last. */
static const char *algorithm_name(size_t i)
{
    return i == 0 ? "stepped_bucket" : weir_algorithm_name((int)i);
}

static int read_algorithm(const struct cli_value *value, void *to)
{
    int *algorithm = to;
    struct suggestion s = suggest_begin(text_of(value->text));
    bool gcra = strcmp(value->text, "gcra") == 0; /* as others call the same arithmetic */
    *algorithm = gcra ? WEIR_TOKEN_BUCKET : weir_algorithm_by_name(value->text);
    if (*algorithm != 0 || strcmp(value->text, "stepped_bucket") == 0) {
        return CLI_OK;
    }
    for (size_t i = 0; algorithm_name(i) != NULL; i++) {
        suggest_offer(&s, algorithm_name(i));
    }
    return cli_unknown(value->command, "algorithm", &s);
}

static const struct cli_option options[] = {
    {"--algorithm", "NAME", ALGORITHMS_EXPECTED "; default stepped_bucket", read_algorithm,
     TO(limit.algorithm), .choice = algorithm_name},
    {"--rate", "N/PERIOD", "in place of the stream's capacity and window: 3/10, 100/min",
     cli_read_text, TO(rate_text)},
    {"--burst", "N", "burst of token_bucket; default the count of the rate", cli_read_count,
     TO(limit.burst), 1},
    {"--queue", "N", "queue of leaky_bucket; default 0", cli_read_count, TO(limit.queue)},
    {"--undelayed", "N", "units of that queue that need not wait; default 0", cli_read_count,
     TO(limit.undelayed)},
    {"--unit", "s|ms|us|ns", "unit of timestamps and of a PERIOD that is a bare number; default s",
     replay_read_unit, TO(limit.unit_ns)},
    {"--explain", NULL, "add remaining, retry and reset, in that unit", cli_read_switch,
     TO(explain)},
    {"--rules", "FILE", "replay JSON lines of attributes through a rule file", cli_read_text,
     TO(rules)},
    {"--quiet", NULL, "print no summary and no progress bar", cli_read_switch, TO(quiet)},
};

/* Refuses options that do not go together. Returns CLI_OK, or CLI_USAGE after a message. */
static int check(const struct replay_settings *s, const struct cli_given *given)
{
    static const struct {
        const char *option;
        unsigned traits; /* of the algorithms that have this option; 0: all */
    } limit[] = {{"--algorithm", 0},
                 {"--rate", 0},
                 {"--burst", HAS_BURST},
                 {"--queue", HAS_QUEUE},
                 {"--undelayed", HAS_QUEUE}};
    for (size_t i = 0; i < sizeof limit / sizeof limit[0]; i++) {
        unsigned traits = limit[i].traits;
        char owners[ALGORITHM_LIST_MAX];
        if (cli_is_given(given, limit[i].option) && s->rules != NULL) {
            return cli_complain(&cli_replay, "found %s and --rules, expected one of them",
                                limit[i].option);
        }
        if (cli_is_given(given, limit[i].option) && traits != 0 &&
            !algorithm_has(s->limit.algorithm, traits)) {
            return cli_complain(&cli_replay, "found %s without --algorithm %s, expected both",
                                limit[i].option, algorithm_list(traits, owners));
        }
    }
    return CLI_OK;
}

/* Reads --rate once all options are read, because a bare number in it depends on --unit. */
static int read_rate(struct replay_settings *s)
{
    struct weir_error error;
    return s->rate_text == NULL ||
                   rate_parse(text_of(s->rate_text), s->limit.unit_ns, &s->limit.rate, &error) == 0
               ? CLI_OK
               : cli_complain(&cli_replay, "--rate: %s", error.text);
}

int replay_each_line(struct replay *r, int (*take)(void *arg, int outcome, struct weir_text line),
                     void *arg)
{
    struct replay_input *in = &r->input;
    struct weir_error error;
    struct weir_text line;
    for (;;) {
        int outcome = replay_input_next(in, &line, &error);
        if (outcome < 0) {
            return cli_fail(&cli_replay, "%s", error.text);
        }
        if (outcome == REPLAY_MORE) {
            return 0;
        }
        int code = take(arg, outcome, line);
        if (code != 0) {
            return code;
        }
        if (in->reader.line % PROGRESS_LINES == 0) {
            if (ferror(stdout) != 0) {
                return CLI_FAILED; /* main() reports it */
            }
            replay_progress(r);
        }
    }
}

static int run(const struct cli_given *given, void *settings)
{
    struct replay_settings *s = settings;
    struct replay r = {.settings = s};
    struct weir_error error;
    bool standard = given->count == 0 || strcmp(given->operands[0], "-") == 0;
    if (check(s, given) != CLI_OK || read_rate(s) != CLI_OK) {
        return CLI_USAGE;
    }
    if (replay_input_open(&r.input, standard ? NULL : given->operands[0], &error) != 0) {
        return cli_complain(&cli_replay, "%s", error.text);
    }
    int code = s->rules != NULL ? replay_rules(&r) : replay_stream(&r);
    replay_input_close(&r.input);
    return code;
}

static const struct replay_settings defaults = {.limit = {.unit_ns = WEIR_SECOND}};

const struct cli_command cli_replay = CLI_COMMAND(
    "replay", "[FILE]", "decide a recorded stream of requests again", options, defaults, run);
