/* Prometheus text, line by line: as much of it as a program needs that reads its own. */
#ifndef WEIR_CLI_TOP_METRICS_TEXT_H
#define WEIR_CLI_TOP_METRICS_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

struct metric {
    struct text name;
    struct text labels; /* between the braces; empty: none */
    double value;
};

/* Takes the next sample off the front; comments and what cannot be read are passed over. */
bool metric_next(struct text *rest, struct metric *metric);

/* The value of a label as it is written, escapes and all; false if there is none. */
bool metric_label(const struct metric *metric, const char *name, struct text *value);

/* ---- histograms ---- */

#define METRIC_BUCKETS_MAX 64

struct metric_histogram {
    unsigned count;
    double bounds[METRIC_BUCKETS_MAX]; /* ascending; the last one may be infinite */
    double totals[METRIC_BUCKETS_MAX]; /* up to the bound */
};

/* Puts the sample of a bucket behind the others; more than fit are left out. */
void metric_histogram_put(struct metric_histogram *h, double bound, double total);

/* The same of a sample whose label `le` is the bound; others are passed over. */
void metric_histogram_read(struct metric_histogram *h, const struct metric *metric);

/*
 * The value below which a share (0 to 1) of what came between two samples lies, as far as buckets
 * tell; negative if nothing came. `before` may be NULL.
 */
double metric_quantile(const struct metric_histogram *before, const struct metric_histogram *now,
                       double share);

#endif
