#include "base/clock.h"
#include "cli/top/top_command.h"

/* ---- durations ---- */

static void read_duration(struct top_sample *sample, const struct metric_sample *m)
{
    struct weir_text listener;
    for (unsigned i = 0; metric_label(m, "listener", &listener) && i < PROTOCOLS; i++) {
        if (text_is(listener, protocol_of(i)->name)) {
            metric_histogram_read(&sample->took[i], m);
        }
    }
}

void top_sample_read_metrics(struct top_sample *sample, struct weir_text metrics)
{
    struct metric_sample m;
    while (metric_next(&metrics, &m)) {
        if (text_is(m.name, "weir_decision_duration_seconds_bucket")) {
            read_duration(sample, &m);
        } else {
            top_store_read(sample, &m);
        }
    }
}

/* ---- asking ---- */

static int fetch_json(const struct admin_client *client, const char *target, json_t **out,
                      struct buffer *why)
{
    struct http_call call = {.method = "GET", .target = target};
    int code = admin_call_json(client, &call, out, NULL, why);
    char text[128];
    (void)snprintf(text, sizeof text, "%s: found another answer, expected a JSON object", target);
    return code == CLI_OK && !json_is_object(*out) ? admin_fail(client, text_of(text), why) : code;
}

/* Fetches the list that is a member of the server's answer. */
static int fetch_list(const struct admin_client *client, const char *target, const char *member,
                      json_t **out, struct buffer *why)
{
    json_t *said = NULL;
    int code = fetch_json(client, target, &said, why);
    *out = json_incref(json_object_get(said, member));
    json_decref(said);
    return code;
}

static int fetch_metrics(const struct admin_client *client, struct top_sample *sample,
                         struct buffer *why)
{
    struct http_call call = {.method = "GET", .target = "/metrics"};
    struct http_result result;
    int code = admin_call(client, &call, &result, why);
    if (code == CLI_OK) {
        top_sample_read_metrics(sample, result.response.body);
    }
    http_result_finish(&result);
    return code;
}

int top_sample_take(const struct admin_client *client, int minutes, struct top_sample *sample,
                    struct buffer *why)
{
    char target[64];
    admin_put_top(target, sizeof target, minutes, TOP_DENIED);
    *sample = (struct top_sample){.at_ms = clock_monotonic_ns() / WEIR_MILLISECOND};
    int code = fetch_json(client, "/v1/status", &sample->status, why);
    if (code == CLI_OK) {
        code = fetch_list(client, "/v1/limits", "limits", &sample->limits, why);
    }
    if (code == CLI_OK) {
        code = fetch_json(client, target, &sample->denied, why);
    }
    if (code == CLI_OK) {
        code = fetch_metrics(client, sample, why);
    }
    if (code != CLI_OK) {
        top_sample_finish(sample);
    }
    return code;
}

void top_sample_finish(struct top_sample *sample)
{
    json_decref(sample->status);
    json_decref(sample->limits);
    json_decref(sample->denied);
    json_decref(sample->store);
    *sample = (struct top_sample){.at_ms = 0};
}
