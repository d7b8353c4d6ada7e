/* Routes about the state of the server: its status, metrics for Prometheus. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "rules/live/live.h"
#include "server/admin/admin.h"
#include "server/admin/metrics.h"
#include "server/status/notices.h"
#include "wire/resp.h"

/* ---- status ---- */

static json_t *by_listener(const uint64_t *counts)
{
    json_t *all = json_object();
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        (void)json_object_set_new(all, protocol_of(i)->name, json_integer((json_int_t)counts[i]));
    }
    return all;
}

/* Returns the requests of each listener; in *results those of each result. */
static json_t *requests(const struct numbers *n, json_t **results)
{
    static const struct {
        const char *name;
        enum request_result result;
    } rows[] = {{"allow", REQUEST_ALLOW},
                {"deny", REQUEST_DENY},
                {"error", REQUEST_ERROR},
                {"overload", REQUEST_OVERLOAD},
                {"other", REQUEST_OTHER}};
    uint64_t sums[PROTOCOLS] = {0};
    *results = json_object();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t sum = 0;
        for (unsigned listener = 0; listener < PROTOCOLS; listener++) {
            sum += n->counts.requests[rows[i].result][listener];
            sums[listener] += n->counts.requests[rows[i].result][listener];
        }
        (void)json_object_set_new(*results, rows[i].name, json_integer((json_int_t)sum));
    }
    return by_listener(sums);
}

static json_t *decisions(const struct numbers *n)
{
    json_int_t allow = 0;
    json_int_t deny = 0;
    json_int_t never = 0;
    json_int_t shadow = 0;
    for (size_t i = 0; i < n->limits_count; i++) {
        allow += (json_int_t)n->limits[i].stats.allowed;
        deny += (json_int_t)n->limits[i].stats.denied;
        never += (json_int_t)n->limits[i].stats.never;
        shadow += (json_int_t)n->limits[i].stats.shadow_denied;
    }
    return json_pack("{s:I, s:I, s:I, s:I}", "allow", allow, "deny", deny, "never", never,
                     "shadow_deny", shadow);
}

/* Returns the path of the rules, or null; a reload may change it. */
static json_t *config_of(struct weir_rules *rules)
{
    (void)pthread_mutex_lock(&rules->reload);
    json_t *path = rules->path != NULL ? json_string(rules->path) : NULL;
    (void)pthread_mutex_unlock(&rules->reload);
    return path != NULL ? path : json_null();
}

/* Returns the maxmemory-policy of the endpoints: each once, with commas; "" if none is known. */
static json_t *policy_of(const struct fleet_numbers *fleet)
{
    char names[256] = "";
    size_t len = 0;
    for (size_t i = 0; i < fleet->endpoints_count; i++) {
        const char *policy = fleet->endpoints[i].policy;
        if (policy != NULL && policy[0] != 0 && strstr(names, policy) == NULL) {
            len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", len > 0 ? "," : "",
                                    policy);
        }
    }
    return json_string(names);
}

/* Returns the state of the store that a fleet shares; null without a fleet. The text about what is
 * wrong with it names addresses, and is for the role admin. */
static json_t *store_of(const struct exchange *x, const struct fleet_numbers *fleet)
{
    const char *why = fleet->why.text;
    json_int_t open = 0;
    for (size_t i = 0; i < fleet->endpoints_count; i++) {
        open += fleet->endpoints[i].open != 0;
    }
    if (x->server->fleet.fleet == NULL) {
        return json_null();
    }
    return json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:o, s:s?}", "up", fleet->up != 0, "nodes",
                     (json_int_t)fleet->nodes, "connections", (json_int_t)fleet->links,
                     "breakers_open", open, "full", (json_int_t)fleet->full, "evicted_keys",
                     (json_int_t)fleet->evicted, "policy", policy_of(fleet), "why",
                     x->role >= ROLE_ADMIN && why[0] != 0 ? why : NULL);
}

static json_t *make_status(const struct exchange *x, const struct numbers *n)
{
    static const char *const states[] = {"starting", "ready", "draining"};
    uint64_t now = clock_unix_ns();
    uint64_t up_ns = now > n->started_ns ? now - n->started_ns : 0;
    bool shadow = weir_rules_shadow_get(x->server->rules, NULL) == 1;
    json_t *results;
    json_t *asked = requests(n, &results);
    return json_pack(
        "{s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:f, s:I}",
        "version", weir_version(), "state", states[load_acquire(&x->server->state)], "notices",
        notices_json(x->server->notices, x->role), "uptime_s", (json_int_t)(up_ns / WEIR_SECOND),
        "pid", (json_int_t)getpid(), "threads", (json_int_t)x->server->threads, "generation",
        (json_int_t)n->rules.generation, "config",
        x->role >= ROLE_ADMIN ? config_of(x->server->rules) : json_null(), "mode",
        shadow ? "shadow" : "enforce", "connections", by_listener(n->counts.open), "requests",
        asked, "results", results, "decisions", decisions(n), "store", store_of(x, &n->fleet),
        "memory_bytes", (json_int_t)n->process.resident_bytes, "cpu_seconds",
        (double)n->process.cpu_ns / 1e9, "held", (json_int_t)n->counts.holding);
}

static void run_status(struct exchange *x)
{
    struct numbers n;
    if (numbers_read(x->server, &n) == 0) {
        notices_update(x->server->notices, &n, clock_unix_ns());
        admin_reply_json(x, 200, make_status(x, &n));
    } else {
        http_reply_problem(x, 500, "out of memory");
    }
    numbers_finish(&n);
}

static void run_metrics(struct exchange *x)
{
    struct numbers n;
    if (numbers_read(x->server, &n) == 0) {
        metrics_put(&x->body, &n);
        http_reply(x, 200, METRICS_TYPE, NULL);
    } else {
        http_reply_problem(x, 500, "out of memory");
    }
    numbers_finish(&n);
}

const struct http_route admin_status_routes[] = {
    {"GET", "/metrics", HTTP_AT, ROLE_CHECK, run_metrics, .summary = "metrics for Prometheus"},
    {"GET", "/v1/status", HTTP_AT, ROLE_CHECK, run_status,
     .summary = "the program: state, requests, memory"},
    {.path = NULL},
};

/* On the listener for metrics alone. */
const struct http_route admin_metrics_routes[] = {
    {"GET", "/metrics", HTTP_AT, ROLE_NONE, run_metrics, .summary = "metrics for Prometheus"},
    {.path = NULL},
};
