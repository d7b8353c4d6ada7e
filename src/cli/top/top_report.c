#include "cli/top/top_command.h"

double top_rate(double before, double now, double seconds)
{
    double n = now >= before ? now - before : now;
    return seconds > 0 ? n / seconds : 0;
}

/* Returns the increase per second of a member that is a count. */
static double rate(const json_t *before, const json_t *now, const char *name, double seconds)
{
    return top_rate(json_number(before, name), json_number(now, name), seconds);
}

/* Returns {"resp": 12.5, ...}: the rate of each member of an object of counts. */
static json_t *rates_of(const json_t *before, const json_t *now, double seconds)
{
    json_t *all = (json_t *)(uintptr_t)now; /* the iterator does not change it */
    json_t *out = json_object();
    for (void *at = json_object_iter(all); at != NULL; at = json_object_iter_next(all, at)) {
        const char *name = json_object_iter_key(at);
        (void)json_object_set_new(out, name, json_real(rate(before, now, name, seconds)));
    }
    return out;
}

static bool is_same(const json_t *one, const json_t *two)
{
    return strcmp(json_text(one, "name"), json_text(two, "name")) == 0 &&
           strcmp(json_text(one, "tier"), json_text(two, "tier")) == 0 &&
           strcmp(json_text(one, "rate"), json_text(two, "rate")) == 0;
}

/*
 * Returns the same limit, tier and rate in the earlier sample; NULL if it was not there. Unless
 * the rules have changed, it is at the same place.
 */
static const json_t *find(const json_t *limits, size_t place, const json_t *limit)
{
    if (is_same(json_array_get(limits, place), limit)) {
        return json_array_get(limits, place);
    }
    for (size_t i = 0; i < json_array_size(limits); i++) {
        if (is_same(json_array_get(limits, i), limit)) {
            return json_array_get(limits, i);
        }
    }
    return NULL;
}

static const char *rate_in(const json_t *limit)
{
    return json_is_null(json_object_get(limit, "rate")) ? "by call" : json_text(limit, "rate");
}

/* Returns the share of a table that is in use; null: the limit has no table on this server. */
static json_t *fill_of(const json_t *limit)
{
    double capacity = json_number(limit, "capacity");
    if (json_is_null(json_object_get(limit, "capacity"))) {
        return json_null();
    }
    return json_real(capacity > 0 ? json_number(limit, "keys") / capacity : 0.0);
}

/*
 * Reports one limit. A member is null if its value is in the store of a fleet. "shadow" is what the
 * limit would have denied while it was in shadow mode.
 */
static json_t *report_limit(const json_t *before, const json_t *now, double seconds)
{
    json_t *evicted = json_is_null(json_object_get(now, "evicted"))
                          ? json_null()
                          : json_real(rate(before, now, "evicted", seconds));
    return json_pack(
        "{ss ss ss ss ss sf sf sf sf sO? sO? so so sf sf sf}", "name", json_text(now, "name"),
        "tier", json_text(now, "tier"), "rate", rate_in(now), "mode", json_text(now, "mode"),
        "consistency", json_text(now, "consistency"), "allow",
        rate(before, now, "allowed", seconds), "deny", rate(before, now, "denied", seconds),
        "never", rate(before, now, "never", seconds), "shadow",
        rate(before, now, "shadow_denied", seconds), "keys", json_object_get(now, "keys"),
        "capacity", json_object_get(now, "capacity"), "fill", fill_of(now), "evicted", evicted,
        "degraded", rate(before, now, "degraded", seconds), "denied_rate",
        json_number(now, "denied_rate"), "decided_rate", json_number(now, "decided_rate"));
}

static json_t *report_limits(const json_t *before, const json_t *now, double seconds)
{
    json_t *out = json_array();
    for (size_t i = 0; i < json_array_size(now); i++) {
        const json_t *limit = json_array_get(now, i);
        (void)json_array_append_new(out, report_limit(find(before, i, limit), limit, seconds));
    }
    return out;
}

static double sum_of(const json_t *limits, const char *name)
{
    double sum = 0;
    for (size_t i = 0; i < json_array_size(limits); i++) {
        sum += json_number(json_array_get(limits, i), name);
    }
    return sum;
}

/* Adds up the decisions of all limits, "shadow" included. */
static json_t *report_decisions(const json_t *limits)
{
    static const char *const names[] = {"allow", "deny", "never", "shadow"};
    json_t *out = json_object();
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        (void)json_object_set_new(out, names[n], json_real(sum_of(limits, names[n])));
    }
    return out;
}

json_t *top_quantile(const struct metric_histogram *before, const struct metric_histogram *now,
                     double share)
{
    double value = metric_quantile(before, now, share);
    return value >= 0 ? json_real(value) : json_null();
}

static json_t *report_latency(const struct top_sample *before, const struct top_sample *now)
{
    json_t *out = json_object();
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        if (now->took[i].count > 0) {
            (void)json_object_set_new(
                out, protocol_of(i)->name,
                json_pack("{so so}", "p50", top_quantile(&before->took[i], &now->took[i], 0.5),
                          "p99", top_quantile(&before->took[i], &now->took[i], 0.99)));
        }
    }
    return out;
}

static json_t *copy(const json_t *object, const char *name)
{
    json_t *member = json_object_get(object, name);
    return member != NULL ? json_incref(member) : json_null();
}

json_t *top_report(const struct top_sample *before, const struct top_sample *now)
{
    static const char *const kept[] = {"version", "state",       "uptime_s",     "generation",
                                       "mode",    "connections", "memory_bytes", "threads",
                                       "held",    "notices"};
    double seconds = before->status != NULL ? (double)(now->at_ms - before->at_ms) / 1000
                                            : json_number(now->status, "uptime_s");
    json_t *limits = report_limits(before->limits, now->limits, seconds);
    json_t *out = json_object();
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        (void)json_object_set_new(out, kept[i], copy(now->status, kept[i]));
    }
    (void)json_object_set_new(out, "seconds", json_real(seconds));
    (void)json_object_set_new(out, "decisions_per_second", report_decisions(limits));
    (void)json_object_set_new(out, "requests_per_second",
                              rates_of(json_object_get(before->status, "requests"),
                                       json_object_get(now->status, "requests"), seconds));
    (void)json_object_set_new(out, "results_per_second",
                              rates_of(json_object_get(before->status, "results"),
                                       json_object_get(now->status, "results"), seconds));
    (void)json_object_set_new(out, "latency_seconds", report_latency(before, now));
    double cpu = rate(before->status, now->status, "cpu_seconds", seconds);
    (void)json_object_set_new(out, "cpu_percent", json_real(100 * cpu));
    (void)json_object_set_new(out, "store",
                              top_store_report(before, now, seconds, sum_of(limits, "degraded")));
    (void)json_object_set_new(out, "limits", limits);
    (void)json_object_set_new(out, "denied", copy(now->denied, "denied"));
    (void)json_object_set_new(out, "denied_minutes", copy(now->denied, "minutes"));
    (void)json_object_set_new(out, "denied_others", copy(now->denied, "others"));
    return out;
}
