/*
 * A strict reader of the Prometheus text format 0.0.4, for tests: what it does not complain about,
 * nobody else does.
 */
#ifndef WEIR_TESTS_SUPPORT_EXPOSITION_H
#define WEIR_TESTS_SUPPORT_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>

#define EXPOSITION_SERIES 4096

struct exposition_sample {
    char series[256]; /* "name{a="b"}" as written */
    char family[128]; /* its metric */
    double value;
};

struct exposition {
    struct exposition_sample samples[EXPOSITION_SERIES];
    size_t count;
    size_t families;
    char complaint[256];
};

/*
 * True, or what is wrong in complaint: HELP and TYPE before the samples of each metric, once, and
 * all samples of it together; names and labels by the grammar, escapes closed; no series twice;
 * counters end in _total and are not negative; buckets of a histogram cumulative in ascending
 * order, +Inf the last and equal to _count.
 */
bool exposition_read(struct exposition *e, const char *text);

/* NULL: there is none. */
const struct exposition_sample *exposition_find(const struct exposition *e, const char *series);

#endif
