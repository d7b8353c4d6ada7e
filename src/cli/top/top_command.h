/*
 * weir top: two samples of a server become a report, a report becomes lines.
 *
 *   top_sample.c  what the admin listener says now
 *   top_report.c  what happened between two samples, as JSON
 *   top_store.c   the store of a fleet in both
 *   top_view.c    a report as lines for people
 *   top.c         the command, the loop
 */
#ifndef WEIR_CLI_TOP_TOP_COMMAND_H
#define WEIR_CLI_TOP_TOP_COMMAND_H

#include "cli/admin_client.h"
#include "cli/top/metrics_text.h"

#define TOP_PROTOCOLS_MAX 8
#define TOP_DENIED 10
#define TOP_OUTPUT_MAX (1u << 20)

struct top_sample {
    uint64_t at_ms; /* of our clock */
    json_t *status; /* /v1/status */
    json_t *limits; /* /v1/limits: the list */
    json_t *denied; /* /v1/top: the list */
    struct {
        char name[32];
        struct metric_histogram took;
    } protocols[TOP_PROTOCOLS_MAX]; /* of /metrics */
    unsigned protocols_count;
    json_t *store; /* of /metrics; NULL: there is no fleet */
    struct metric_histogram store_took;
};

/*
 * Asks the server. CLI_OK; else an exit code, what went wrong in `why`, and *sample is empty.
 * top_sample_finish() in both cases.
 */
int top_sample_take(const struct admin_client *client, struct top_sample *sample,
                    struct buffer *why);
void top_sample_finish(struct top_sample *sample);

/* Takes the durations and the store out of a text of metrics. */
void top_sample_read_metrics(struct top_sample *sample, struct text metrics);

/* The caller's; NULL: no memory. `before` may be an empty sample: then it is since the start. */
json_t *top_report(const struct top_sample *before, const struct top_sample *now);

/* A count for each second; a count that went back began again, with its server. */
double top_rate(double before, double now, double seconds);
/* metric_quantile(), null if nothing came. */
json_t *top_quantile(const struct metric_histogram *before, const struct metric_histogram *now,
                     double share);

/* ---- top_store.c ---- */

void top_store_read(struct top_sample *sample, const struct metric *m);
/* `degraded`: of all limits, for each second. null: there is no fleet. */
json_t *top_store_report(const struct top_sample *before, const struct top_sample *now,
                         double seconds, double degraded);

/* Lines of at most `width` places and at most `rows` of them; 0: as many as there are. */
void top_view(const json_t *report, const char *address, unsigned width, unsigned rows,
              struct buffer *out);

#endif
