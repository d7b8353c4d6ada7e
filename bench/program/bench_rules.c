/* weir-bench rules: arguments, rounds, the table and the JSON object. */
#include "bench_rules.h"

#include <stdlib.h>
#include <time.h>

#include "bench_core.h"
#include "cli/cli.h"

#define ROUNDS 9
#define OPS UINT64_C(200000)
#define QUICK_OPS UINT64_C(8192)
#define WARM_UP 8 /* 1/8 of a sample is run before the clock starts */
#define SMALL 10
#define LARGE 1000
#define TARGET 2.0

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

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

static int run(int argc, char **argv);

const struct cli_command bench_rules_command = CLI_COMMAND(
    "rules", "", "measure how long it takes to find the limits of a request", options, run);

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
};

static const struct rules_figure figures[] = {
    {"match10_ns", bench_match, false, NULL},
    {"match1000_ns", bench_match, true, "match10_ns"},
    {"ask10_ns", bench_ask, false, NULL},
    {"ask1000_ns", bench_ask, true, "ask10_ns"},
    {"read_ns", bench_read, true, NULL},
    {"normalise_ns", bench_normalise, true, NULL},
    {"normalise_odd_ns", bench_normalise_odd, true, NULL},
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

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct result summarise(double *samples, unsigned n)
{
    qsort(samples, n, sizeof *samples, by_value);
    return (struct result){(samples[(n - 1) / 2] + samples[n / 2]) / 2, samples[0], samples[n - 1]};
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
        results[i] = summarise(samples[i], asked->rounds);
    }
    return 0;
}

/* ---- the report ---- */

static double ratio_of(size_t i, const struct result *results)
{
    for (size_t j = 0; j < FIGURES; j++) {
        if (figures[i].floor != NULL && strcmp(figures[j].name, figures[i].floor) == 0) {
            return results[i].value / results[j].value;
        }
    }
    return 0;
}

/* Only this figure has a target. */
static bool has_target(size_t i)
{
    return strcmp(figures[i].name, "match1000_ns") == 0;
}

static void print_table(const struct asked *asked, const struct result *results)
{
    struct machine m;
    bench_read_machine(&m);
    (void)printf("weir %s, %s, %d processors, %s %s\n", weir_version(), m.cpu, m.cpus,
                 m.system.sysname, m.system.release);
    (void)printf("%d different requests, at most %d limits match each, %u rounds\n\n",
                 BENCH_RULES_REQUESTS, BENCH_RULES_MATCHES, asked->rounds);
    (void)printf("%-28s %9s %9s %9s  %-24s %-8s %s\n", "figure", "median", "min", "max", "ratio",
                 "target", "met");
    for (size_t i = 0; i < FIGURES; i++) {
        char against[64] = "";
        double ratio = ratio_of(i, results);
        if (figures[i].floor != NULL) {
            (void)snprintf(against, sizeof against, "%.2f x %s", ratio, figures[i].floor);
        }
        (void)printf("%-28s %9.2f %9.2f %9.2f  %-24s %-8s %s\n", figures[i].name, results[i].value,
                     results[i].min, results[i].max, against, has_target(i) ? "<= 2" : "",
                     !has_target(i)    ? ""
                     : ratio <= TARGET ? "yes"
                                       : "NO");
    }
}

static void print_json(const struct asked *asked, const struct result *results)
{
    struct machine m;
    bench_read_machine(&m);
    (void)printf("{\n");
    for (size_t i = 0; i < FIGURES; i++) {
        (void)printf("  \"%s\": %.3f,\n", figures[i].name, results[i].value);
    }
    (void)printf("  \"targets\": {");
    for (size_t i = 0; i < FIGURES; i++) {
        double ratio = ratio_of(i, results);
        if (has_target(i)) {
            (void)printf("\n    \"%s/%s\": {\"value\": %.4f, \"at_most\": %g, \"met\": %s}",
                         figures[i].name, figures[i].floor, ratio, TARGET,
                         ratio <= TARGET ? "true" : "false");
        }
    }
    (void)printf("\n  },\n  \"spread\": {\n");
    for (size_t i = 0; i < FIGURES; i++) {
        (void)printf("    \"%s\": [%.3f, %.3f]%s\n", figures[i].name, results[i].min,
                     results[i].max, i + 1 < FIGURES ? "," : "");
    }
    (void)printf("  },\n  \"machine\": {\"cpu\": \"%s\", \"cpus\": %d, \"kernel\": \"%s %s\", "
                 "\"arch\": \"%s\", \"compiler\": \"%s\"},\n",
                 m.cpu, m.cpus, m.system.sysname, m.system.release, m.system.machine, COMPILER);
    (void)printf("  \"version\": \"%s\",\n  \"requests\": %d,\n  \"rounds\": %u\n}\n",
                 weir_version(), BENCH_RULES_REQUESTS, asked->rounds);
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
    if (e == 0 && asked->json) {
        print_json(asked, results);
    } else if (e == 0) {
        print_table(asked, results);
    }
    destroy_worlds(&worlds);
    return e == 0 ? CLI_OK : CLI_FAILED;
}

static int run(int argc, char **argv)
{
    struct asked asked = {.rounds = ROUNDS, .ops = OPS};
    int code = cli_read(&bench_rules_command, argc, argv, &asked, NULL);
    return code == CLI_END ? bench(&asked) : code;
}
