/* weir-bench rules: arguments, rounds, the table and the JSON object. */
#include "bench_rules.h"

#include <time.h>

#include "bench_core.h"
#include "cli/cli.h"

#define ROUNDS 9
#define OPS UINT64_C(200000)
#define QUICK_OPS UINT64_C(8192)
#define WARM_UP 8 /* 1/8 of a sample is run before the clock starts */
#define SMALL 10
#define LARGE 1000
struct asked {
    bool json;
    unsigned rounds;
    uint64_t ops;
};

#define TO(member) .to = offsetof(struct asked, member)

static int read_quick(const struct cli_value *value, void *to)
{
    struct asked *asked = to;
    (void)value;
    asked->ops = QUICK_OPS;
    asked->rounds = BENCH_ROUNDS_MIN;
    return CLI_OK;
}

static const struct cli_option options[] = {
    {"--json", NULL, "print one JSON object instead of a table", cli_read_switch, TO(json)},
    {"--rounds", "N", "how often each figure is measured, 5 to 99; default 9", cli_read_unsigned,
     TO(rounds), BENCH_ROUNDS_MIN, BENCH_ROUNDS_MAX},
    {"--quick", NULL, "short loops: a smoke test, not a measurement", .read = read_quick},
};

static int run(const struct cli_given *given, void *settings);

static const struct asked defaults = {.rounds = ROUNDS, .ops = OPS};

const struct cli_command bench_rules_command =
    CLI_COMMAND("rules", "", "measure how long it takes to find the limits of a request", options,
                defaults, run);

/*
 * One limit in ten is a glob, so ten limits cannot have all kinds of globs: there is one small
 * world for each kind.
 */
struct worlds {
    struct bench_world small[BENCH_RULES_GLOBS];
    struct bench_world large;
};

/* ---- figures ---- */

struct rules_figure {
    const char *name;
    uint64_t (*lap)(struct bench_world *world, uint64_t n);
    bool large;
    const char *floor; /* the figure that it is divided by; NULL: none */
    double at_most;    /* of the ratio; 0: no target */
};

static const struct rules_figure figures[] = {
    {"match10_ns", bench_match, false, NULL, 0},
    {"match1000_ns", bench_match, true, "match10_ns", 2},
    {"ask10_ns", bench_ask, false, NULL, 0},
    {"ask1000_ns", bench_ask, true, "ask10_ns", 0},
    {"read_ns", bench_read, true, NULL, 0},
    {"normalise_ns", bench_normalise, true, NULL, 0},
    {"normalise_odd_ns", bench_normalise_odd, true, NULL, 0},
};
#define FIGURES (sizeof figures / sizeof figures[0])

static uint64_t cpu_ns(void)
{
    struct timespec t = {0, 0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Returns the CPU time of n requests of one world; 0 after an error. */
static uint64_t time_world(const struct rules_figure *f, struct bench_world *world, uint64_t n)
{
    if (f->lap(world, n / WARM_UP) == 0) {
        return 0;
    }
    uint64_t began_ns = cpu_ns();
    uint64_t sum = f->lap(world, n);
    uint64_t ns = cpu_ns() - began_ns;
    return sum != 0 ? ns : 0;
}

/* Returns the ns per request; 0 after an error. */
static double sample(const struct rules_figure *f, struct worlds *worlds, uint64_t ops)
{
    if (f->large) {
        return (double)time_world(f, &worlds->large, ops) / (double)ops;
    }
    uint64_t sum_ns = 0;
    uint64_t each = ops / BENCH_RULES_GLOBS;
    for (unsigned i = 0; i < BENCH_RULES_GLOBS; i++) {
        uint64_t ns = time_world(f, &worlds->small[i], each);
        if (ns == 0) {
            return 0;
        }
        sum_ns += ns;
    }
    return (double)sum_ns / (double)(each * BENCH_RULES_GLOBS);
}

/*
 * Each round measures every figure once, in turn, so that a slow minute affects all of them
 * alike.
 */
static int measure(const struct asked *asked, struct worlds *worlds, struct result *results)
{
    static double samples[FIGURES][BENCH_ROUNDS_MAX];
    for (unsigned round = 0; round < asked->rounds; round++) {
        for (size_t i = 0; i < FIGURES; i++) {
            samples[i][round] = sample(&figures[i], worlds, asked->ops);
            if (!(samples[i][round] > 0)) {
                (void)fprintf(stderr, "weir-bench: %s could not be measured\n", figures[i].name);
                return -1;
            }
        }
    }
    for (size_t i = 0; i < FIGURES; i++) {
        const struct rules_figure *f = &figures[i];
        results[i] = (struct result){.name = f->name,
                                     .floor = f->floor,
                                     .relation = f->at_most > 0 ? AT_MOST : NO_TARGET,
                                     .bound = f->at_most};
        bench_summarise(&results[i], samples[i], asked->rounds, false);
    }
    return 0;
}

static void report(const struct asked *asked, const struct result *results)
{
    char text[256];
    if (asked->json) {
        (void)snprintf(text, sizeof text, "  \"requests\": %d,\n  \"rounds\": %u",
                       BENCH_RULES_REQUESTS, asked->rounds);
        bench_print_json(results, FIGURES, text);
    } else {
        (void)snprintf(text, sizeof text,
                       "%d different requests, at most %d limits match each, %u rounds",
                       BENCH_RULES_REQUESTS, BENCH_RULES_MATCHES, asked->rounds);
        bench_print_table(results, FIGURES, text);
    }
}

/* ---- the whole run ---- */

static int create_worlds(struct worlds *worlds)
{
    for (unsigned i = 0; i < BENCH_RULES_GLOBS; i++) {
        if (bench_world_create(SMALL, i, &worlds->small[i]) != 0) {
            return -1;
        }
    }
    return bench_world_create(LARGE, 0, &worlds->large);
}

static void destroy_worlds(struct worlds *worlds)
{
    for (unsigned i = 0; i < BENCH_RULES_GLOBS; i++) {
        bench_world_destroy(&worlds->small[i]);
    }
    bench_world_destroy(&worlds->large);
}

static int bench(const struct asked *asked)
{
    struct worlds worlds = {0};
    struct result results[FIGURES];
    int e = create_worlds(&worlds);
    if (e == 0) {
        e = measure(asked, &worlds, results);
    }
    if (e == 0) {
        report(asked, results);
    }
    destroy_worlds(&worlds);
    return e == 0 ? CLI_OK : CLI_FAILED;
}

static int run(const struct cli_given *given, void *settings)
{
    (void)given;
    return bench(settings);
}
