/*
 * weir top: makes a report of two samples of a server, and lines of text of a report.
 *
 *   top_sample.c   what the admin listener says now
 *   top_report.c   what happened between two samples, as JSON
 *   top_store.c    the store of a fleet, in samples and reports
 *   top_view.c     a report as lines for people
 *   top_command.c  the command and its loop
 */
#ifndef WEIR_CLI_TOP_TOP_COMMAND_H
#define WEIR_CLI_TOP_TOP_COMMAND_H

#include "cli/admin_client.h"
#include "cli/top/metrics_text.h"
#include "server/status/numbers.h"

#define TOP_DENIED 10
#define TOP_OUTPUT_MAX (1u << 20)

struct top_sample {
    uint64_t at_ms;                          /* by this process's clock */
    json_t *status;                          /* /v1/status */
    json_t *limits;                          /* /v1/limits: the list */
    json_t *denied;                          /* /v1/top */
    struct metric_histogram took[PROTOCOLS]; /* from /metrics */
    json_t *store;                           /* from /metrics; NULL: there is no fleet */
    struct metric_histogram store_took;
};

/*
 * Takes a sample of the server. Returns CLI_OK, or an exit code; then *sample is empty, and `why`
 * says what went wrong, or a message if it is NULL. `minutes`: the time of the keys that were
 * denied most, an index in admin_minutes. Call top_sample_finish() in both cases.
 */
int top_sample_take(const struct admin_client *client, int minutes, struct top_sample *sample,
                    struct buffer *why);
void top_sample_finish(struct top_sample *sample);

/* Reads the durations and the store from a text of metrics. */
void top_sample_read_metrics(struct top_sample *sample, struct weir_text metrics);

/*
 * Returns a report, which the caller owns; NULL: out of memory. If `before` is an empty sample,
 * the report covers the time since the server's start.
 */
json_t *top_report(const struct top_sample *before, const struct top_sample *now);

/*
 * Returns the increase per second. A count that is lower than before has started again from 0,
 * because its server was restarted.
 */
double top_rate(double before, double now, double seconds);
/* Returns metric_quantile() as JSON, null if there were no values. */
json_t *top_quantile(const struct metric_histogram *before, const struct metric_histogram *now,
                     double share);

/* ---- top_store.c ---- */

void top_store_read(struct top_sample *sample, const struct metric_sample *m);
/*
 * Returns the report of the store; null: there is no fleet. `degraded`: degraded decisions of
 * all limits per second.
 */
json_t *top_store_report(const struct top_sample *before, const struct top_sample *now,
                         double seconds, double degraded);

/* Writes the report as at most `rows` lines of at most `width` columns; 0: no maximum. */
void top_view(const json_t *report, const char *address, unsigned width, unsigned rows,
              struct buffer *out);

#endif
