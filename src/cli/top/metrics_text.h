/* Reads Prometheus text line by line: only as much of the format as weir itself writes. */
#ifndef WEIR_CLI_TOP_METRICS_TEXT_H
#define WEIR_CLI_TOP_METRICS_TEXT_H

#include <stdbool.h>

#include "common/text.h"

struct metric_sample {
    struct weir_text name;
    struct weir_text labels; /* text between the braces; empty: none */
    double value;
};

/*
 * Takes the next sample from *rest. Comments and lines that cannot be read are skipped. Returns
 * false at the end.
 */
bool metric_next(struct weir_text *rest, struct metric_sample *metric);

/* Finds the value of a label, with its escapes as written. Returns false if there is none. */
bool metric_label(const struct metric_sample *metric, const char *name, struct weir_text *value);

/* ---- histograms ---- */

#define METRIC_BUCKETS_MAX 64

struct metric_histogram {
    unsigned count;
    double bounds[METRIC_BUCKETS_MAX]; /* ascending; the last one may be infinite */
    double totals[METRIC_BUCKETS_MAX]; /* number of values up to the bound */
};

/* Appends a bucket. It is dropped if there are METRIC_BUCKETS_MAX already. */
void metric_histogram_put(struct metric_histogram *h, double bound, double total);

/* Appends the bucket of a sample whose label `le` is the bound. Other samples are ignored. */
void metric_histogram_read(struct metric_histogram *h, const struct metric_sample *metric);

/*
 * Returns the value below which a share (0 to 1) of the values between two samples lies,
 * interpolated within a bucket; negative if there were none. `before` may be NULL: then all
 * values count.
 */
double metric_quantile(const struct metric_histogram *before, const struct metric_histogram *now,
                       double share);

#endif
