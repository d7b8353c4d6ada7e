/* Prints results as a table or a JSON object. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_core.h"

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

static const char *const relation_text[] = {"", "<=", ">=", "="};
static const char *const relation_key[] = {"", "at_most", "at_least", "exactly"};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_summarise(struct result *result, double *samples, unsigned rounds, bool worst)
{
    qsort(samples, rounds, sizeof *samples, by_value);
    double median = (samples[(rounds - 1) / 2] + samples[rounds / 2]) / 2;
    result->value = worst ? samples[rounds - 1] : median;
    result->min = samples[0];
    result->max = samples[rounds - 1];
}

/* Returns the value of result i divided by that of its floor, if it has one. */
static double ratio_of(const struct result *results, size_t n, size_t i)
{
    for (size_t j = 0; results[i].floor != NULL && j < n; j++) {
        if (strcmp(results[j].name, results[i].floor) == 0) {
            return results[i].value / results[j].value;
        }
    }
    return results[i].value;
}

static bool met(const struct result *r, double ratio)
{
    switch (r->relation) {
    case AT_MOST:
        return ratio <= r->bound;
    case AT_LEAST:
        return ratio >= r->bound;
    case EXACTLY:
        return !(ratio < r->bound) && !(ratio > r->bound);
    case NO_TARGET:
        break;
    }
    return true;
}

/* ---- table ---- */

static void print_row(const struct result *r, double ratio)
{
    char against[64] = "";
    char target[32] = "";
    if (r->floor != NULL) {
        (void)snprintf(against, sizeof against, "%.2f x %s", ratio, r->floor);
    }
    if (r->relation != NO_TARGET) {
        (void)snprintf(target, sizeof target, "%s %g", relation_text[r->relation], r->bound);
    }
    (void)printf("%-32s %9.2f %9.2f %9.2f  %-31s %-8s %s\n", r->name, r->value, r->min, r->max,
                 against, target,
                 r->relation == NO_TARGET ? ""
                 : met(r, ratio)          ? "yes"
                                          : "NO");
}

void bench_print_table(const struct result *results, size_t n, const char *about)
{
    struct machine m;
    bench_read_machine(&m);
    (void)printf("weir %s, %s, %d processors, %s %s, pages of %ld bytes\n%s\n\n", weir_version(),
                 m.cpu, m.cpus, m.system.sysname, m.system.release, m.page_bytes, about);
    (void)printf("%-32s %9s %9s %9s  %-31s %-8s %s\n", "figure", "median", "min", "max", "ratio",
                 "target", "met");
    for (size_t i = 0; i < n; i++) {
        print_row(&results[i], ratio_of(results, n, i));
    }
}

/* ---- JSON ---- */

static void print_targets(const struct result *results, size_t n)
{
    const char *comma = "";
    (void)printf("  \"targets\": {");
    for (size_t i = 0; i < n; i++) {
        const struct result *r = &results[i];
        double ratio = ratio_of(results, n, i);
        if (r->relation == NO_TARGET) {
            continue;
        }
        (void)printf("%s\n    \"%s%s%s\": {\"value\": %.4f, \"%s\": %g, \"met\": %s}", comma,
                     r->name, r->floor != NULL ? "/" : "", r->floor != NULL ? r->floor : "", ratio,
                     relation_key[r->relation], r->bound, met(r, ratio) ? "true" : "false");
        comma = ",";
    }
    (void)printf("\n  },\n");
}

void bench_print_json(const struct result *results, size_t n, const char *facts)
{
    struct machine m;
    bench_read_machine(&m);
    (void)printf("{\n");
    for (size_t i = 0; i < n; i++) {
        (void)printf("  \"%s\": %.3f,\n", results[i].name, results[i].value);
    }
    print_targets(results, n);
    (void)printf("  \"spread\": {\n");
    for (size_t i = 0; i < n; i++) {
        (void)printf("    \"%s\": [%.3f, %.3f]%s\n", results[i].name, results[i].min,
                     results[i].max, i + 1 < n ? "," : "");
    }
    (void)printf("  },\n  \"machine\": {\"cpu\": \"%s\", \"cpus\": %d, \"kernel\": \"%s %s\", "
                 "\"arch\": \"%s\", \"compiler\": \"%s\"},\n",
                 m.cpu, m.cpus, m.system.sysname, m.system.release, m.system.machine, COMPILER);
    (void)printf("  \"version\": \"%s\",\n%s\n}\n", weir_version(), facts);
}
