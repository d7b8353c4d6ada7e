/*
 * The server's metrics in the text format of Prometheus (0.0.4). Each metric is a row of a table.
 * Labels are names of limits, of the store's endpoints, and fixed words, never keys, so that the
 * number of series does not grow with the number of keys.
 */
#ifndef WEIR_SERVER_ADMIN_METRICS_H
#define WEIR_SERVER_ADMIN_METRICS_H

#include "common/buffer.h"
#include "server/admin/numbers.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Returns the name of the i-th metric, or NULL after the last. */
const char *metrics_name(size_t i, const char **type, const char **help);

void metrics_put(struct buffer *out, const struct numbers *numbers);

#endif
