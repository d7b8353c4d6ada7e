/* weir simulate: the command. Reads the options into a struct sim_plan. */
#include "cli/simulate/simulate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "rules/value/suggest.h"

static int run(int argc, char **argv);

/* Reads one word of a list. Returns CLI_OK, or CLI_USAGE after a message. */
typedef int (*word_fn)(struct sim_plan *plan, struct text word);

enum option {
    SHAPE,
    TRACE,
    UNIT,
    RATE,
    BURST,
    QUEUE,
    ALGORITHM,
    RULES,
    PATH,
    METHOD,
    ATTRIBUTE,
    CLIENTS,
    LOAD,
    DURATION,
    SEED,
    OUT,
    ASCII,
    OPTIONS
};

static const struct cli_option rows[] = {
    [SHAPE] = {"--shape", "NAME,...",
               "steady, burst, onoff, poisson, edge, herd, all; default edge"},
    [TRACE] = {"--trace", "FILE", "instead of a shape: lines as 'weir replay' reads them"},
    [UNIT] = {"--unit", "s|ms|us|ns", "of the trace's times; default s"},
    [RATE] = {"--rate", "N/PERIOD", "of each client; default 100/min, with --rules what binds"},
    [BURST] = {"--burst", "N", "of token_bucket; default as --rate says"},
    [QUEUE] = {"--queue", "N", "of leaky_bucket; default one less than --rate says"},
    [ALGORITHM] =
        {"--algorithm", "NAME,...",
         "token_bucket, leaky_bucket, fixed_window, sliding_window, sliding_log; default all"},
    [RULES] = {"--rules", "FILE", "a rule file to compare; may be repeated"},
    [PATH] = {"--path", "PATH", "with --rules: what is asked for; default /"},
    [METHOD] = {"--method", "NAME", "with --rules: how; default GET"},
    [ATTRIBUTE] = {"--attribute", "NAME=VALUE",
                   "with --rules: an attribute more, or in place of user=uN, ip; may be repeated"},
    [CLIENTS] = {"--clients", "N", "how many clients, each with a quota of its own; default 1"},
    [LOAD] = {"--load", "PERCENT", "of its quota that each client asks for; default 150"},
    [DURATION] = {"--duration", "TIME", "how long; default four periods of the rate"},
    [SEED] = {"--seed", "N", "of poisson's random times; default 1"},
    [OUT] = {"--out", "FILE", "also draw it: FILE.svg or FILE.html, self-contained"},
    [ASCII] = {"--ascii", NULL, "no block characters; default where the locale is not UTF-8"},
};
_Static_assert(sizeof rows / sizeof rows[0] == OPTIONS, "a row for each option");

const struct cli_command cli_simulate = CLI_COMMAND(
    "simulate", "", "show what algorithms or rule files do to a shape of traffic", rows, run);

/* Prints that a word is not one of the names, with the nearest name. Returns CLI_USAGE. */
static int unknown_word(const char *what, struct text word, const char *(*name_of)(size_t))
{
    const char *nearest = NULL;
    unsigned best = suggest_limit(word) + 1;
    for (size_t i = 0; name_of(i) != NULL; i++) {
        unsigned distance = suggest_distance(word, name_of(i));
        if (distance < best) {
            best = distance;
            nearest = name_of(i);
        }
    }
    if (nearest != NULL) {
        return cli_complain(&cli_simulate, "unknown %s '%.*s'; did you mean '%s'?", what,
                            TEXT_ARGS(word), nearest);
    }
    return cli_complain(&cli_simulate, "unknown %s '%.*s'; 'weir simulate --help' lists them", what,
                        TEXT_ARGS(word));
}

static void add_shape(struct sim_plan *plan, size_t shape)
{
    for (size_t i = 0; i < plan->shapes_count; i++) {
        if (plan->shapes[i] == shape) {
            return;
        }
    }
    plan->shapes[plan->shapes_count++] = shape;
}

static int read_shape(struct sim_plan *plan, struct text word)
{
    bool all = text_is(word, "all");
    bool found = all;
    for (size_t i = 0; sim_shape_name(i) != NULL; i++) {
        if (all || text_is(word, sim_shape_name(i))) {
            add_shape(plan, i);
            found = true;
        }
    }
    return found ? CLI_OK : unknown_word("shape", word, sim_shape_name);
}

static const char *algorithm_name(size_t row)
{
    return weir_algorithm_name((int)row + 1);
}

static void add_algorithm(struct sim_plan *plan, int algorithm)
{
    for (size_t i = 0; i < plan->algorithms_count; i++) {
        if (plan->algorithms[i] == algorithm) {
            return;
        }
    }
    plan->algorithms[plan->algorithms_count++] = algorithm;
}

static int read_algorithm(struct sim_plan *plan, struct text word)
{
    bool all = text_is(word, "all");
    bool found = all;
    for (size_t i = 0; algorithm_name(i) != NULL; i++) {
        if (all || text_is(word, algorithm_name(i))) {
            add_algorithm(plan, (int)i + 1);
            found = true;
        }
    }
    plan->algorithms_given = true;
    return found ? CLI_OK : unknown_word("algorithm", word, algorithm_name);
}

static int read_list(struct sim_plan *plan, const char *value, word_fn read_word)
{
    struct text rest = text_of(value);
    for (;;) {
        const char *comma = memchr(rest.at, ',', rest.len);
        struct text word = {rest.at, comma != NULL ? (size_t)(comma - rest.at) : rest.len};
        if (read_word(plan, text_trim(word)) != CLI_OK) {
            return CLI_USAGE;
        }
        if (comma == NULL) {
            return CLI_OK;
        }
        rest = text_after(rest, word.len + 1);
    }
}

/* Prints the error of a reader of rules/value/quantity.h, if e is one. Returns the exit code. */
static int checked(enum option o, int e, const struct weir_error *error)
{
    return e == 0 ? CLI_OK : cli_complain(&cli_simulate, "%s: %s", rows[o].name, error->text);
}

static int read_number(enum option o, const char *value, uint64_t least, uint64_t most,
                       uint64_t *out)
{
    struct weir_error error;
    int e = count_parse(text_of(value), out, &error);
    if (e == 0 && (*out < least || *out > most)) {
        return cli_complain(&cli_simulate,
                            "%s: expected a number from %" PRIu64 " to %" PRIu64 ", found '%s'",
                            rows[o].name, least, most, value);
    }
    return checked(o, e, &error);
}

static int read_load(struct sim_plan *plan, const char *value)
{
    char digits[32];
    size_t length = strlen(value);
    length -= length > 0 && value[length - 1] == '%';
    (void)snprintf(digits, sizeof digits, "%.*s", (int)(length < 31 ? length : 31), value);
    return read_number(LOAD, digits, 1, 100000, &plan->load);
}

static int read_clients(struct sim_plan *plan, const char *value)
{
    uint64_t clients;
    int code = read_number(CLIENTS, value, 1, SIM_CLIENTS_MAX, &clients);
    plan->clients = code == CLI_OK ? (uint32_t)clients : 1;
    return code;
}

static int read_duration(struct sim_plan *plan, const char *value)
{
    struct weir_error error;
    int e = duration_parse(text_of(value), &plan->duration_ns, &error);
    return checked(DURATION, e, &error);
}

static int read_rate(struct sim_plan *plan, const char *value)
{
    struct weir_error error;
    int e = rate_parse(text_of(value), 0, &plan->rate, &error);
    return checked(RATE, e, &error);
}

static int read_unit(struct sim_plan *plan, const char *value)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"s", WEIR_SECOND}, {"ms", WEIR_MILLISECOND}, {"us", WEIR_MICROSECOND}, {"ns", 1}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(value, units[i].name) == 0) {
            plan->unit_ns = units[i].ns;
            return CLI_OK;
        }
    }
    return cli_complain(&cli_simulate, "--unit: expected s, ms, us or ns, found '%s'", value);
}

static int read_rules(struct sim_plan *plan, const char *value)
{
    if (plan->rules_count == SIM_SUBJECTS_MAX) {
        return cli_complain(&cli_simulate, "--rules: expected at most %d files", SIM_SUBJECTS_MAX);
    }
    plan->rules[plan->rules_count++] = value;
    return CLI_OK;
}

static int read_attribute(struct sim_plan *plan, const char *value)
{
    const char *equals = strchr(value, '=');
    if (equals == NULL || equals == value || equals[1] == 0) {
        return cli_complain(&cli_simulate, "--attribute: expected NAME=VALUE, found '%s'", value);
    }
    if (plan->attributes_count == SIM_ATTRIBUTES_MAX) {
        return cli_complain(&cli_simulate, "--attribute: expected at most %d", SIM_ATTRIBUTES_MAX);
    }
    plan->attributes[plan->attributes_count++] = (struct weir_rules_attribute){
        value, (size_t)(equals - value), equals + 1, strlen(equals + 1)};
    return CLI_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text);
    return n > strlen(end) && strcmp(text + n - strlen(end), end) == 0;
}

static int read_out(struct sim_plan *plan, const char *value)
{
    plan->out = value;
    return ends_with(value, ".svg") || ends_with(value, ".html")
               ? CLI_OK
               : cli_complain(&cli_simulate, "--out: expected FILE.svg or FILE.html, found '%s'",
                              value);
}

static int read_option(struct sim_plan *plan, enum option o, const char *value)
{
    switch (o) {
    case SHAPE:
        return read_list(plan, value, read_shape);
    case TRACE:
        plan->trace = value;
        return CLI_OK;
    case UNIT:
        return read_unit(plan, value);
    case RATE:
        return read_rate(plan, value);
    case BURST:
        return read_number(o, value, 1, UINT64_MAX, &plan->burst);
    case QUEUE:
        plan->queue_given = true;
        return read_number(o, value, 0, UINT64_MAX, &plan->queue);
    case ALGORITHM:
        return read_list(plan, value, read_algorithm);
    case RULES:
        return read_rules(plan, value);
    case PATH:
        plan->path = value;
        return CLI_OK;
    case METHOD:
        plan->method = value;
        return CLI_OK;
    case ATTRIBUTE:
        return read_attribute(plan, value);
    case CLIENTS:
        return read_clients(plan, value);
    case LOAD:
        return read_load(plan, value);
    case DURATION:
        return read_duration(plan, value);
    case SEED:
        return read_number(o, value, 0, UINT64_MAX, &plan->seed);
    case OUT:
        return read_out(plan, value);
    case ASCII:
    case OPTIONS:
        plan->ascii = true;
        return CLI_OK;
    }
    return CLI_OK;
}

/* Refuses options that need another one which is missing, or that exclude each other. */
static int check_combination(const struct sim_plan *plan, uint32_t given)
{
    static const struct {
        enum option option, other;
        bool needs; /* false: excludes */
    } pairs[] = {
        {TRACE, SHAPE, false},    {TRACE, CLIENTS, false}, {TRACE, LOAD, false},
        {TRACE, DURATION, false}, {TRACE, SEED, false},    {UNIT, TRACE, true},
        {PATH, RULES, true},      {METHOD, RULES, true},   {ATTRIBUTE, RULES, true},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        bool other = given >> pairs[i].other & 1;
        if ((given >> pairs[i].option & 1) != 0 && other != pairs[i].needs) {
            return cli_complain(&cli_simulate, "%s %s %s", rows[pairs[i].option].name,
                                pairs[i].needs ? "needs" : "does not go with",
                                rows[pairs[i].other].name);
        }
    }
    bool bucket = false;
    bool queue = false;
    for (size_t i = 0; i < plan->algorithms_count; i++) {
        bucket |= plan->algorithms[i] == WEIR_TOKEN_BUCKET;
        queue |= plan->algorithms[i] == WEIR_LEAKY_BUCKET;
    }
    if (plan->burst != 0 && !bucket) {
        return cli_complain(&cli_simulate, "--burst is token_bucket's, which is not compared");
    }
    if (plan->queue_given && !queue) {
        return cli_complain(&cli_simulate, "--queue is leaky_bucket's, which is not compared");
    }
    return CLI_OK;
}

/*
 * Selects all algorithms if neither algorithms nor rules are given. fixed_window, which can
 * admit twice the quota around a window's edge, comes first; next to it are the algorithms that
 * avoid this.
 */
static void default_algorithms(struct sim_plan *plan)
{
    static const int all[] = {WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW, WEIR_SLIDING_LOG,
                              WEIR_TOKEN_BUCKET, WEIR_LEAKY_BUCKET};
    if (!plan->algorithms_given && plan->rules_count == 0) {
        plan->algorithms_count = sizeof all / sizeof all[0];
        memcpy(plan->algorithms, all, sizeof all);
    }
}

static int default_rate(struct sim_plan *plan, const struct sim_traffic *trace)
{
    struct weir_error error;
    plan->rate = (struct rate){100, WEIR_MINUTE};
    return plan->algorithms_count > 0 || sim_rules_rate(plan, trace, &plan->rate, &error) == 0
               ? CLI_OK
               : cli_complain(&cli_simulate, "%s", error.text);
}

int sim_plan_settle(struct sim_plan *plan, const struct sim_traffic *trace)
{
    if (plan->rate.count == 0 && default_rate(plan, trace) != CLI_OK) {
        return CLI_USAGE;
    }
    if (plan->duration_ns == 0) {
        uint64_t period = plan->rate.period_ns;
        plan->duration_ns = period > SIM_DURATION_MAX ? period : 4 * period;
    }
    if (plan->duration_ns < WEIR_MICROSECOND) {
        return cli_complain(&cli_simulate, "--duration: expected at least 1 us");
    }
    if (plan->duration_ns > SIM_DURATION_MAX) {
        return cli_complain(&cli_simulate, "--duration: expected at most 30 years");
    }
    return CLI_OK;
}

/* Returns CLI_END if the plan is to be run, otherwise the exit code. */
static int read_plan(int argc, char **argv, struct sim_plan *plan)
{
    struct cli_args args;
    uint32_t given = 0;
    int next;
    cli_args_init(&args, &cli_simulate, argc, argv);
    while ((next = cli_next(&args)) != CLI_END) {
        if (next == CLI_OPERAND) {
            return cli_complain(&cli_simulate, "takes only options, found '%s'", args.value);
        }
        if (next < 0) {
            return next == CLI_HELP ? CLI_OK : CLI_USAGE;
        }
        given |= UINT32_C(1) << next;
        if (read_option(plan, (enum option)next, args.value) != CLI_OK) {
            return CLI_USAGE;
        }
    }
    default_algorithms(plan);
    if (plan->shapes_count == 0) {
        (void)read_shape(plan, TEXT("edge"));
    }
    return check_combination(plan, given) == CLI_OK ? CLI_END : CLI_USAGE;
}

static int run(int argc, char **argv)
{
    struct sim_plan plan = {
        .unit_ns = WEIR_SECOND,
        .path = "/",
        .method = "GET",
        .clients = 1,
        .load = 150,
        .seed = 1,
    };
    int code = read_plan(argc, argv, &plan);
    return code == CLI_END ? sim_report(&plan) : code;
}
