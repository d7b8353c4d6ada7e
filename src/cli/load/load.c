/* weir bench load: arguments. load.h explains what is measured and how. */
#include "cli/load/load.h"

#include "base/error.h"
#include "cli/cli.h"
#include "rules/value/quantity.h"

#define WORDS_MAX 64

enum {
    RESP,
    HTTP,
    RATE,
    ARRIVALS,
    CONNECTIONS,
    DEPTH,
    THREADS,
    KEYS,
    ORDER,
    DURATION,
    WARMUP,
    REQUESTS,
    BODY,
    WITHIN,
    SEED,
    SPIN,
    JSON
};

static const struct cli_option options[] = {
    [RESP] = {"--resp", "ADDR:PORT", "a server that speaks RESP, there or at unix:PATH"},
    [HTTP] = {"--http", "ADDR:PORT", "a server that speaks HTTP/1.1, there or at unix:PATH"},
    [RATE] = {"--rate", "N|max", "requests per second; max: as fast as replies come; else 1000"},
    [ARRIVALS] = {"--arrivals", "HOW", "constant or poisson, else constant"},
    [CONNECTIONS] = {"--connections", "N", "1 to 20000, else 50"},
    [DEPTH] = {"--depth", "N", "requests in flight on each connection: 1 to 4096, else 1"},
    [THREADS] = {"--threads", "N", "that make requests: 1 to 16, else 1"},
    [KEYS] = {"--keys", "N", "different keys: up to 100M, else 1M"},
    [ORDER] = {"--order", "HOW", "of keys: uniform, zipf or sequential, else uniform"},
    [DURATION] = {"--duration", "TIME", "how long requests are made and counted; else 10s"},
    [WARMUP] = {"--warmup", "TIME", "before that: sent, not counted; else 0s"},
    [REQUESTS] = {"--requests", "N", "end after as many instead"},
    [BODY] = {"--body", "TEXT", "of an HTTP request"},
    [WITHIN] = {"--within", "TIME", "also count the replies that came in this time; else 100ms"},
    [SEED] = {"--seed", "N", "of keys and arrivals; else 1"},
    [SPIN] = {"--spin", NULL, "never sleep: for a processor that nobody else needs"},
    [JSON] = {"--json", NULL, "one object instead of a table"},
};

static int run(int argc, char **argv);

const struct cli_command cli_bench_load = CLI_COMMAND(
    "bench load", "[WORD ...]", "send requests on schedule and measure the wait", options, run);

/* The request if no words are given. */
static const char *const default_resp[] = {"CL.THROTTLE", "{key}", "99", "1000", "60"};
static const char *const default_http[] = {"GET",
                                           "/v1/auth",
                                           "X-Original-Method: GET",
                                           "X-Original-URI: /search",
                                           "X-Forwarded-For: 192.0.2.7",
                                           "X-User-Id: {key}"};

struct asked {
    struct load_plan plan;
    bool wire_given;
    bool duration_given;
    bool json;
    const char *body;
    const char *words[WORDS_MAX];
    unsigned words_count;
};

/* ---- values ---- */

/* Reads a whole number from min to max. Returns CLI_OK, or CLI_USAGE after a message. */
static int read_count(const struct cli_args *args, int row, uint64_t min, uint64_t max,
                      uint64_t *out)
{
    uint64_t number;
    if (count_parse(text_of(args->value), &number, NULL) != 0 || number < min || number > max) {
        return cli_complain(args->command, "%s is '%s', expected a whole number from %llu to %llu",
                            options[row].name, args->value, (unsigned long long)min,
                            (unsigned long long)max);
    }
    *out = number;
    return CLI_OK;
}

static int read_small(const struct cli_args *args, int row, uint64_t max, unsigned *out)
{
    uint64_t number = *out;
    int code = read_count(args, row, 1, max, &number);
    *out = (unsigned)number;
    return code;
}

static int read_time(const struct cli_args *args, int row, uint64_t *ns)
{
    if (duration_parse(text_of(args->value), ns, NULL) != 0 || *ns > WEIR_DAY) {
        return cli_complain(args->command, "%s is '%s', expected a time such as 10s or 200ms",
                            options[row].name, args->value);
    }
    return CLI_OK;
}

static int read_rate(const struct cli_args *args, double *rate)
{
    uint64_t number = 0;
    int code = CLI_OK;
    if (strcmp(args->value, "max") != 0) {
        code = read_count(args, RATE, 1, 100000000, &number);
    }
    *rate = (double)number;
    return code;
}

/*
 * Sets *which to the index of the value among the words. Returns CLI_OK, or CLI_USAGE after a
 * message.
 */
static int read_word(const struct cli_args *args, int row, const char *const *words, unsigned n,
                     unsigned *which)
{
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(args->value, words[i]) == 0) {
            *which = i;
            return CLI_OK;
        }
    }
    return cli_complain(args->command, "%s is '%s', expected %s", options[row].name, args->value,
                        options[row].help);
}

static int read_arrivals(const struct cli_args *args, bool *poisson)
{
    static const char *const words[] = {"constant", "poisson"};
    unsigned which = 0;
    int code = read_word(args, ARRIVALS, words, 2, &which);
    *poisson = which == 1;
    return code;
}

static int read_order(const struct cli_args *args, enum load_order *order)
{
    unsigned which = 0;
    int code = read_word(args, ORDER, load_order_names, LOAD_ORDERS, &which);
    *order = (enum load_order)which;
    return code;
}

static int read_address(const struct cli_args *args, int row, struct asked *asked)
{
    if (asked->wire_given) {
        return cli_complain(args->command, "expected one server, found another with %s",
                            options[row].name);
    }
    asked->wire_given = true;
    asked->plan.wire = row == RESP ? LOAD_RESP : LOAD_HTTP;
    asked->plan.address = args->value;
    return CLI_OK;
}

static int add_word(const struct cli_args *args, struct asked *asked)
{
    if (asked->words_count == WORDS_MAX) {
        return cli_complain(args->command, "expected at most %d words", WORDS_MAX);
    }
    asked->words[asked->words_count++] = args->value;
    return CLI_OK;
}

static int read_option(const struct cli_args *args, int row, struct asked *asked)
{
    struct load_plan *p = &asked->plan;
    switch (row) {
    case RESP:
    case HTTP:
        return read_address(args, row, asked);
    case RATE:
        return read_rate(args, &p->rate);
    case ARRIVALS:
        return read_arrivals(args, &p->poisson);
    case CONNECTIONS:
        return read_small(args, row, LOAD_CONNECTIONS_MAX, &p->connections);
    case DEPTH:
        return read_small(args, row, LOAD_DEPTH_MAX, &p->depth);
    case THREADS:
        return read_small(args, row, LOAD_THREADS_MAX, &p->threads);
    case KEYS:
        return read_count(args, row, 1, LOAD_KEYS_MAX, &p->keys);
    case ORDER:
        return read_order(args, &p->order);
    case DURATION:
        asked->duration_given = true;
        return read_time(args, row, &p->duration_ns);
    case WARMUP:
        return read_time(args, row, &p->warmup_ns);
    case REQUESTS:
        return read_count(args, row, 1, UINT64_C(1000000000000), &p->requests);
    case BODY:
        asked->body = args->value;
        return CLI_OK;
    case WITHIN:
        return read_time(args, row, &p->within_ns);
    case SEED:
        return read_count(args, row, 0, UINT32_MAX, &p->seed);
    case SPIN:
        p->spin = true;
        return CLI_OK;
    case JSON:
        asked->json = true;
        return CLI_OK;
    default:
        return add_word(args, asked);
    }
}

static int read_arguments(int argc, char **argv, struct asked *asked)
{
    struct cli_args args;
    cli_args_init(&args, &cli_bench_load, argc, argv);
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

/* ---- defaults and combinations ---- */

static void set_defaults(struct asked *asked)
{
    struct load_plan *p = &asked->plan;
    if (asked->words_count == 0 && p->wire == LOAD_RESP) {
        memcpy(asked->words, default_resp, sizeof default_resp);
        asked->words_count = sizeof default_resp / sizeof default_resp[0];
    } else if (asked->words_count == 0) {
        memcpy(asked->words, default_http, sizeof default_http);
        asked->words_count = sizeof default_http / sizeof default_http[0];
    }
    if (p->requests > 0 && !asked->duration_given) {
        p->duration_ns = UINT64_MAX;
    }
}

static int check(struct asked *asked)
{
    struct load_plan *p = &asked->plan;
    if (!asked->wire_given) {
        return cli_complain(&cli_bench_load, "expected a server: --resp or --http ADDR:PORT");
    }
    if (p->threads > p->connections) {
        return cli_complain(&cli_bench_load, "%u threads need as many connections, found %u",
                            p->threads, p->connections);
    }
    if (p->duration_ns == 0) {
        return cli_complain(&cli_bench_load, "--duration is 0, expected a time such as 10s");
    }
    set_defaults(asked);
    return CLI_OK;
}

static int load(struct asked *asked)
{
    static struct load_result result; /* too large for the stack */
    struct load_plan *p = &asked->plan;
    struct weir_error error;
    if (load_request_make(&p->request, p->wire, asked->words, asked->words_count, asked->body,
                          &error) != 0) {
        return cli_complain(&cli_bench_load, "%s", error.text);
    }
    int e = load_run(p, &result, &error);
    load_request_finish(&p->request);
    if (e != 0) {
        (void)cli_complain(&cli_bench_load, "%s", error.text);
        return e == WEIR_EINVAL ? CLI_USAGE : CLI_FAILED;
    }
    if (asked->json) {
        load_print_json(p, &result);
    } else {
        load_print_table(p, &result);
    }
    return CLI_OK;
}

static int run(int argc, char **argv)
{
    struct asked asked = {.plan = {.connections = 50,
                                   .depth = 1,
                                   .threads = 1,
                                   .rate = 1000,
                                   .keys = 1000000,
                                   .duration_ns = 10 * WEIR_SECOND,
                                   .within_ns = 100 * WEIR_MILLISECOND,
                                   .seed = 1}};
    int code = read_arguments(argc, argv, &asked);
    if (code != CLI_OK) {
        return code == CLI_HELP ? CLI_OK : code;
    }
    code = check(&asked);
    return code == CLI_OK ? load(&asked) : code;
}
