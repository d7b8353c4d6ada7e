/*
 * What there is to measure, as Prometheus reads it (text format 0.0.4). Metrics are rows; their
 * labels are names of limits and fixed words, never keys, so there are as many series as there are
 * limits and no more.
 */
#ifndef WEIR_SERVER_ADMIN_METRICS_H
#define WEIR_SERVER_ADMIN_METRICS_H

#include "common/buffer.h"
#include "server/admin/numbers.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* The i-th of them, NULL behind the last. */
const char *metrics_name(size_t i, const char **type, const char **help);

void metrics_put(struct buffer *out, const struct numbers *numbers);

#endif
