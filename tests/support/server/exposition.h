/*
 * A strict reader of the Prometheus text format 0.0.4, for tests. A text that it accepts is
 * accepted by every other reader.
 */
#ifndef WEIR_TESTS_SUPPORT_EXPOSITION_H
#define WEIR_TESTS_SUPPORT_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>

#define EXPOSITION_SERIES 4096

struct exposition_sample {
    char series[256]; /* "name{a="b"}" as written */
    char family[128]; /* name of its metric */
    double value;
};

struct exposition {
    struct exposition_sample samples[EXPOSITION_SERIES];
    size_t count;
    size_t families;
    char complaint[256];
};

/*
 * Returns true, or false with the reason in `complaint`. Checks: HELP and TYPE come before the
 * samples of each metric, once, and all its samples are together; names and labels follow the
 * grammar, and escapes are complete; no series occurs twice; counters end in _total and are not
 * negative; the buckets of a histogram are cumulative and in ascending order, +Inf is the last and
 * equals _count.
 */
bool exposition_read(struct exposition *e, const char *text);

/* Returns NULL if there is no such series. */
const struct exposition_sample *exposition_find(const struct exposition *e, const char *series);

#endif
