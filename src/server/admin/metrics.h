/*
 * The server's metrics in the text format of Prometheus (0.0.4). Each metric is a row of a table.
 * Labels are names of limits, of the store's endpoints, and fixed words, never keys, so that the
 * number of series does not grow with the number of keys.
 */
#ifndef WEIR_SERVER_ADMIN_METRICS_H
#define WEIR_SERVER_ADMIN_METRICS_H

#include "common/buffer.h"
#include "server/status/numbers.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

#define METRICS_SERIES_MAX 8

/* The description of a metric, for the manual. */
struct metrics_about {
    const char *name;
    const char *type;
    const char *help;
    const char *of;                         /* "each limit": what it is counted for */
    const char *scope;                      /* the label that names it; NULL: none */
    const char *label;                      /* distinguishes the series; NULL: there is one */
    const char *values[METRICS_SERIES_MAX]; /* of that label; NULL after the last */
};

/* Describes the i-th metric. Returns false after the last. */
bool metrics_describe(size_t i, struct metrics_about *about);

void metrics_put(struct buffer *out, const struct numbers *numbers);

#endif
