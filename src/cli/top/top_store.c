/*
 * Reads the store of a fleet from the metrics: its present state, and what it did between two
 * samples.
 */
#include "cli/top/top_command.h"

/* ---- a sample ---- */

/* Metrics of one number, and their names in the sample. */
static const struct {
    const char *metric;
    const char *name;
} rows[] = {
    {"weir_store_up", "up"},
    {"weir_store_connections", "connections"},
    {"weir_fleet_nodes", "nodes"},
    {"weir_store_calls_total", "calls"},
};

/*
 * Returns the sample's store, and makes it at the first call. Without a fleet it is never
 * called, because none of these metrics has a sample.
 */
static json_t *store_of(struct top_sample *sample)
{
    if (sample->store == NULL) {
        sample->store = json_pack("{s:{}}", "breakers_open");
    }
    return sample->store;
}

static void put_breaker(json_t *store, const struct metric_sample *m)
{
    struct weir_text endpoint;
    char name[512];
    json_t *breakers = json_object_get(store, "breakers_open");
    if (metric_label(m, "endpoint", &endpoint) && endpoint.len < sizeof name) {
        memcpy(name, endpoint.at, endpoint.len);
        name[endpoint.len] = 0;
        (void)json_object_set_new(breakers, name, json_boolean(m->value != 0));
    }
}

void top_store_read(struct top_sample *sample, const struct metric_sample *m)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (text_is(m->name, rows[i].metric)) {
            (void)json_object_set_new(store_of(sample), rows[i].name, json_real(m->value));
        }
    }
    if (text_is(m->name, "weir_breaker_open")) {
        put_breaker(store_of(sample), m);
    } else if (text_is(m->name, "weir_store_duration_seconds_bucket")) {
        metric_histogram_read(&sample->store_took, m);
    }
}

/* ---- a report ---- */

json_t *top_store_report(const struct top_sample *before, const struct top_sample *now,
                         double seconds, double degraded)
{
    const struct metric_histogram *then = &before->store_took;
    const json_t *store = now->store;
    if (store == NULL) {
        return json_null();
    }
    return json_pack(
        "{s:b, s:I, s:I, s:f, s:f, s:{s:o, s:o}, s:O}", "up", json_number(store, "up") != 0,
        "connections", (json_int_t)json_number(store, "connections"), "nodes",
        (json_int_t)json_number(store, "nodes"), "calls_per_second",
        top_rate(json_number(before->store, "calls"), json_number(store, "calls"), seconds),
        "degraded_per_second", degraded, "latency_seconds", "p50",
        top_quantile(then, &now->store_took, 0.5), "p99",
        top_quantile(then, &now->store_took, 0.99), "breakers_open",
        json_object_get(store, "breakers_open"));
}
