/* weir simulate: the command. Reads the options into a struct sim_plan. */
#include "cli/simulate/simulate.h"

#include "base/algorithms.h"
#include "cli/cli.h"
#include "cli/replay/replay_command.h"

#define TO(member) .to = offsetof(struct sim_plan, member)

/* ---- values: these readers get the whole plan ---- */

/* Appends a number to a list, unless it is there already. */
static void add(int *list, size_t *count, int number)
{
    size_t i = 0;
    while (i < *count && list[i] != number) {
        i++;
    }
    list[i] = number;
    *count += i == *count;
}

static const char *algorithm_name(size_t row)
{
    return weir_algorithm_name((int)row + 1);
}

/* Reads names separated by commas, or "all", into a list of numbers; name_of(0) has `first`. */
static int read_list(const struct cli_value *value, const char *what,
                     const char *(*name_of)(size_t), int first, int *list, size_t *count)
{
    for (const char *at = value->text, *end; at != NULL; at = end != NULL ? end + 1 : NULL) {
        end = strchr(at, ',');
        struct weir_text word =
            text_trim((struct weir_text){at, end != NULL ? (size_t)(end - at) : strlen(at)});
        struct suggestion s = suggest_begin(word);
        bool found = false;
        for (size_t i = 0; name_of(i) != NULL; i++) {
            suggest_offer(&s, name_of(i));
            if (text_is(word, name_of(i)) || text_is(word, "all")) {
                add(list, count, (int)i + first);
                found = true;
            }
        }
        if (!found) {
            return cli_unknown(value->command, what, &s);
        }
    }
    return CLI_OK;
}

static int read_shapes(const struct cli_value *value, void *to)
{
    struct sim_plan *plan = to;
    return read_list(value, "shape", sim_shape_name, 0, plan->shapes, &plan->shapes_count);
}

static int read_algorithms(const struct cli_value *value, void *to)
{
    struct sim_plan *plan = to;
    return read_list(value, "algorithm", algorithm_name, 1, plan->algorithms,
                     &plan->algorithms_count);
}

/* Reads a number of percent, with or without the sign. */
static int read_load(const struct cli_value *value, void *to)
{
    char digits[32];
    struct cli_value without = *value;
    size_t length = strlen(value->text);
    length -= length > 0 && value->text[length - 1] == '%';
    (void)snprintf(digits, sizeof digits, "%.*s", (int)(length < 31 ? length : 31), value->text);
    without.text = digits;
    return cli_read_count(&without, to);
}

static int read_rules(const struct cli_value *value, void *to)
{
    struct sim_plan *plan = to;
    if (plan->rules_count == SIM_SUBJECTS_MAX) {
        return cli_expected(value, "at most %d files", SIM_SUBJECTS_MAX);
    }
    plan->rules[plan->rules_count++] = value->text;
    return CLI_OK;
}

static int read_attribute(const struct cli_value *value, void *to)
{
    struct sim_plan *plan = to;
    const char *equals = strchr(value->text, '=');
    if (equals == NULL || equals == value->text || equals[1] == 0) {
        return cli_expected(value, "NAME=VALUE");
    }
    if (plan->attributes_count == SIM_ATTRIBUTES_MAX) {
        return cli_expected(value, "at most %d attributes", SIM_ATTRIBUTES_MAX);
    }
    plan->attributes[plan->attributes_count++] = (struct weir_rules_attribute){
        value->text, (size_t)(equals - value->text), equals + 1, strlen(equals + 1)};
    return CLI_OK;
}

static int read_out(const struct cli_value *value, void *to)
{
    struct weir_text path = text_of(value->text);
    return text_ends(path, ".svg") || text_ends(path, ".html")
               ? cli_read_text(value, to)
               : cli_expected(value, "FILE.svg or FILE.html");
}

/* ---- the command ---- */

static const struct cli_option rows[] = {
    {"--shape", "NAME,...",
     "shapes of traffic: steady, burst, onoff, poisson, edge, herd or all; default edge",
     .read = read_shapes, .choice = sim_shape_name},
    {"--trace", "FILE", "instead of a shape: lines as 'weir replay' reads them", cli_read_text,
     TO(trace)},
    {"--unit", "s|ms|us|ns", "unit of the trace's times; default s", replay_read_unit, TO(unit_ns)},
    {"--rate", "N/PERIOD",
     "rate of each client; default 100/min, with --rules that of the limit that applies",
     cli_read_rate, TO(rate)},
    {"--burst", "N", "burst of token_bucket; default the count of --rate", cli_read_count,
     TO(burst), 1},
    {"--queue", "N", "queue of leaky_bucket; default one less than the count of --rate",
     cli_read_count, TO(queue)},
    {"--undelayed", "N", "units of that queue that need not wait; default 0", cli_read_count,
     TO(undelayed)},
    {"--algorithm", "NAME,...",
     "token_bucket (GCRA), leaky_bucket, fixed_window, sliding_window, sliding_log; default all",
     .read = read_algorithms, .choice = algorithm_name},
    {"--rules", "FILE", "a rule file to compare; may be repeated", .read = read_rules},
    {"--path", "PATH", "with --rules: path of the requests; default /", cli_read_text, TO(path)},
    {"--method", "NAME", "with --rules: method of the requests; default GET", cli_read_text,
     TO(method)},
    {"--attribute", "NAME=VALUE",
     "with --rules: one more attribute, or a value in place of user=uN or ip; may be repeated",
     .read = read_attribute},
    {"--clients", "N", "number of clients, each with a quota of its own; default 1",
     cli_read_unsigned, TO(clients), 1, SIM_CLIENTS_MAX},
    {"--load", "PERCENT", "share of its quota that each client asks for; default 150", read_load,
     TO(load), 1, 100000},
    {"--duration", "TIME", "simulated time; default four periods of the rate", cli_read_duration,
     TO(duration_ns), WEIR_MICROSECOND, SIM_DURATION_MAX},
    {"--seed", "N", "seed of the random times of poisson; default 1", cli_read_count, TO(seed)},
    {"--out", "FILE", "also draw the result: FILE.svg or FILE.html, self-contained", read_out,
     TO(out)},
    {"--ascii", NULL, "no block characters; default if the locale is not UTF-8", cli_read_switch,
     TO(ascii)},
};

/* Refuses options that need another one which is missing, or that exclude each other. */
static int check_combination(const struct sim_plan *plan, const struct cli_given *given)
{
    static const struct {
        const char *option, *other;
        bool needs; /* false: excludes */
    } pairs[] = {
        {"--trace", "--shape", false},    {"--trace", "--clients", false},
        {"--trace", "--load", false},     {"--trace", "--duration", false},
        {"--trace", "--seed", false},     {"--unit", "--trace", true},
        {"--path", "--rules", true},      {"--method", "--rules", true},
        {"--attribute", "--rules", true},
    };
    static const struct {
        const char *option;
        unsigned traits; /* of the algorithms that have this option */
    } owners[] = {{"--burst", HAS_BURST}, {"--queue", HAS_QUEUE}, {"--undelayed", HAS_QUEUE}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        bool needs = pairs[i].needs;
        if (cli_is_given(given, pairs[i].option) && cli_is_given(given, pairs[i].other) != needs) {
            return cli_complain(&cli_simulate, "found %s %s %s, expected %s", pairs[i].option,
                                needs ? "without" : "and", pairs[i].other,
                                needs ? "both" : "one of them");
        }
    }
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        char names[ALGORITHM_LIST_MAX];
        bool compared = false;
        for (size_t j = 0; j < plan->algorithms_count; j++) {
            compared |= algorithm_has(plan->algorithms[j], owners[i].traits);
        }
        if (cli_is_given(given, owners[i].option) && !compared) {
            return cli_complain(
                &cli_simulate,
                "found %s, which is for %s only, expected that algorithm to be compared",
                owners[i].option, algorithm_list(owners[i].traits, names));
        }
    }
    return CLI_OK;
}

/*
 * Selects the shape edge if none is given, and all algorithms if neither algorithms nor rules are
 * given. Those that are not buckets come first: fixed_window, which can admit twice the quota
 * around a window's edge, and next to it the algorithms that avoid this.
 */
static void default_subjects(struct sim_plan *plan)
{
    bool all = !plan->algorithms_given && plan->rules_count == 0;
    for (int i = 1; all && i < ALGORITHMS_END; i++) {
        if (!algorithm_has(i, IS_BUCKET)) {
            add(plan->algorithms, &plan->algorithms_count, i);
        }
    }
    for (int i = 1; all && i < ALGORITHMS_END; i++) {
        if (algorithm_has(i, IS_BUCKET)) {
            add(plan->algorithms, &plan->algorithms_count, i);
        }
    }
    if (plan->shapes_count == 0) {
        while (strcmp(sim_shape_name((size_t)plan->shapes[0]), "edge") != 0) {
            plan->shapes[0]++;
        }
        plan->shapes_count = 1;
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
    uint64_t period = plan->rate.period_ns;
    if (period == WEIR_MONTH) {
        return cli_complain(&cli_simulate, "found a rate per calendar month, expected a period of "
                                           "a fixed length, such as 30day");
    }
    if (plan->duration_ns == 0) {
        plan->duration_ns = period > SIM_DURATION_MAX ? period : 4 * period;
    }
    if (plan->duration_ns < WEIR_MICROSECOND || plan->duration_ns > SIM_DURATION_MAX) {
        return cli_complain(&cli_simulate,
                            "found four periods of the rate that take %s, expected a --duration "
                            "from 1us to 30 years",
                            plan->duration_ns < WEIR_MICROSECOND ? "less than 1us"
                                                                 : "more than 30 years");
    }
    return CLI_OK;
}

static int run(const struct cli_given *given, void *settings)
{
    struct sim_plan *plan = settings;
    plan->algorithms_given = cli_is_given(given, "--algorithm");
    plan->queue_given = cli_is_given(given, "--queue");
    default_subjects(plan);
    int code = check_combination(plan, given);
    return code == CLI_OK ? sim_report(plan) : code;
}

static const struct sim_plan defaults = {
    .unit_ns = WEIR_SECOND, .path = "/", .method = "GET", .clients = 1, .load = 150, .seed = 1};

const struct cli_command cli_simulate =
    CLI_COMMAND("simulate", "", "show what algorithms or rule files do to a shape of traffic", rows,
                defaults, run);
