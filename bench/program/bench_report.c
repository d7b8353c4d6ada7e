/* Prints the results as a table or a JSON object. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench_core.h"

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

static const char *const relation_text[] = {"", "<=", ">=", "="};
static const char *const relation_key[] = {"", "at_most", "at_least", "exactly"};

static double value_of(const char *name, const struct result *results)
{
    for (unsigned i = 0; i < bench_figure_count; i++) {
        if (strcmp(bench_figures[i].name, name) == 0) {
            return results[i].value;
        }
    }
    return 0;
}

static double ratio_of(unsigned i, const struct result *results)
{
    const char *floor = bench_figures[i].floor;
    return floor == NULL ? results[i].value : results[i].value / value_of(floor, results);
}

static bool met(const struct figure *f, double ratio)
{
    switch (f->relation) {
    case AT_MOST:
        return ratio <= f->bound;
    case AT_LEAST:
        return ratio >= f->bound;
    case EXACTLY:
        return !(ratio < f->bound) && !(ratio > f->bound);
    case NO_TARGET:
        break;
    }
    return true;
}

/* ---- table ---- */

static void print_row(unsigned i, const struct result *results)
{
    const struct figure *f = &bench_figures[i];
    const struct result *r = &results[i];
    double ratio = ratio_of(i, results);
    char against[64] = "";
    char target[32] = "";
    if (f->floor != NULL) {
        (void)snprintf(against, sizeof against, "%.2f x %s", ratio, f->floor);
    }
    if (f->relation != NO_TARGET) {
        (void)snprintf(target, sizeof target, "%s %g", relation_text[f->relation], f->bound);
    }
    (void)printf("%-32s %9.2f %9.2f %9.2f  %-31s %-8s %s\n", f->name, r->value, r->min, r->max,
                 against, target,
                 f->relation == NO_TARGET ? ""
                 : met(f, ratio)          ? "yes"
                                          : "NO");
}

void bench_print_table(const struct bench *b, const struct result *results)
{
    struct machine m;
    bench_read_machine(&m);
    (void)printf("weir %s, %s, %d processors, %s %s, pages of %ld bytes\n", weir_version(), m.cpu,
                 m.cpus, m.system.sysname, m.system.release, m.page_bytes);
    (void)printf("%" PRIu64 " keys of 16 bytes, %u rounds, %u samples disturbed\n\n",
                 b->options.keys, b->options.rounds, b->disturbed);
    (void)printf("%-32s %9s %9s %9s  %-31s %-8s %s\n", "figure", "median", "min", "max", "ratio",
                 "target", "met");
    for (unsigned i = 0; i < bench_figure_count; i++) {
        print_row(i, results);
    }
}

/* ---- JSON ---- */

static void print_targets(const struct result *results)
{
    const char *comma = "";
    (void)printf("  \"targets\": {");
    for (unsigned i = 0; i < bench_figure_count; i++) {
        const struct figure *f = &bench_figures[i];
        double ratio = ratio_of(i, results);
        if (f->relation == NO_TARGET) {
            continue;
        }
        (void)printf("%s\n    \"%s%s%s\": {\"value\": %.4f, \"%s\": %g, \"met\": %s}", comma,
                     f->name, f->floor != NULL ? "/" : "", f->floor != NULL ? f->floor : "", ratio,
                     relation_key[f->relation], f->bound, met(f, ratio) ? "true" : "false");
        comma = ",";
    }
    (void)printf("\n  },\n");
}

static void print_spread(const struct result *results)
{
    (void)printf("  \"spread\": {\n");
    for (unsigned i = 0; i < bench_figure_count; i++) {
        (void)printf("    \"%s\": [%.3f, %.3f]%s\n", bench_figures[i].name, results[i].min,
                     results[i].max, i + 1 < bench_figure_count ? "," : "");
    }
    (void)printf("  },\n");
}

static void print_machine(const struct bench *b)
{
    struct machine m;
    bench_read_machine(&m);
    (void)printf("  \"machine\": {\"cpu\": \"%s\", \"cpus\": %d, \"kernel\": \"%s %s\", \"arch\": "
                 "\"%s\", \"compiler\": \"%s\"},\n",
                 m.cpu, m.cpus, m.system.sysname, m.system.release, m.system.machine, COMPILER);
    (void)printf("  \"version\": \"%s\",\n  \"keys\": %" PRIu64 ",\n  \"rounds\": %u,\n",
                 weir_version(), b->options.keys, b->options.rounds);
    (void)printf("  \"page_bytes\": %ld,\n  \"disturbed_samples\": %u\n", m.page_bytes,
                 b->disturbed);
}

void bench_print_json(const struct bench *b, const struct result *results)
{
    (void)printf("{\n");
    for (unsigned i = 0; i < bench_figure_count; i++) {
        (void)printf("  \"%s\": %.3f,\n", bench_figures[i].name, results[i].value);
    }
    print_targets(results);
    print_spread(results);
    print_machine(b);
    (void)printf("}\n");
}
