#include "server/admin/metrics.h"

#include <inttypes.h>
#include <stdio.h>

/* Where the numbers of a row are, and which label they get. */
enum scope {
    OF_LIMIT,    /* offsets in struct limit_numbers; label limit */
    OF_PROTOCOL, /* offsets of arrays in struct worker_counts; label protocol */
    OF_TIMES,    /* the array of histograms in struct worker_counts; label protocol */
    OF_ALL,      /* offsets in struct numbers */
    /* Only with a fleet: */
    OF_REMOTE,      /* as OF_LIMIT, for limits that the fleet decides */
    OF_FAILURE,     /* as OF_REMOTE, but only the series of the limit's on_store_failure */
    OF_STORE,       /* as OF_ALL */
    OF_STORE_TIMES, /* the store's histogram in struct numbers */
    OF_ENDPOINT,    /* offsets in struct fleet_endpoint_numbers; label endpoint */
    /* Always: */
    OF_VERSION /* the number 1, with the version as label */
};

#define SERIES_MAX 4

struct metric {
    const char *name;
    const char *type;
    const char *help;
    enum scope scope;
    bool seconds;      /* nanoseconds are printed as seconds */
    const char *label; /* distinguishes the series; NULL: one series without it */
    struct {
        const char *value;
        size_t offset;
    } series[SERIES_MAX]; /* ended by a value that is NULL; without a label only the first */
};

#define LIMIT(field) offsetof(struct limit_numbers, field)
#define COUNT(field) offsetof(struct worker_counts, field)
#define ALL(field) offsetof(struct numbers, field)
#define ENDPOINT(field) offsetof(struct fleet_endpoint_numbers, field)
#define ONE(offset)                                                                                \
    {                                                                                              \
        {                                                                                          \
            NULL, offset                                                                           \
        }                                                                                          \
    }

static const struct metric metrics[] = {
    /* limits */
    {"weir_decisions_total",
     "counter",
     "Decisions of a limit; its tiers and overrides together. Peeks do not count.",
     OF_LIMIT,
     false,
     "verdict",
     {{"allow", LIMIT(allowed)}, {"deny", LIMIT(denied)}, {"never", LIMIT(never)}}},
    {"weir_shadow_denied_total", "counter",
     "Requests that a limit in shadow mode would have denied.", OF_LIMIT, false, NULL,
     ONE(LIMIT(shadow_denied))},
    {"weir_missing_key_total", "counter",
     "Requests to which a limit applied, but without a value for its key.", OF_LIMIT, false, NULL,
     ONE(LIMIT(missing))},
    {"weir_table_keys", "gauge",
     "Keys and blocks in the tables of a limit; of one that a fleet shares, keys that this node "
     "holds a lease of, or counts.",
     OF_LIMIT, false, NULL, ONE(LIMIT(keys))},
    {"weir_table_capacity", "gauge", "Places in the tables of a limit.", OF_LIMIT, false, NULL,
     ONE(LIMIT(capacity))},
    {"weir_table_bytes", "gauge", "Memory of the tables of a limit.", OF_LIMIT, false, NULL,
     ONE(LIMIT(bytes))},
    {"weir_blocks", "gauge", "Keys of a limit that are blocked.", OF_LIMIT, false, NULL,
     ONE(LIMIT(blocks))},
    {"weir_evictions_total",
     "counter",
     "Places that were needed: keys in use forgotten (evicted), keys as good as new forgotten "
     "(reclaimed), new keys refused or let in unseen because a table was full.",
     OF_LIMIT,
     false,
     "kind",
     {{"evicted", LIMIT(evicted)},
      {"reclaimed", LIMIT(reclaimed)},
      {"full_denied", LIMIT(full_denied)},
      {"full_allowed", LIMIT(full_allowed)}}},
    /* rules */
    {"weir_unmatched_total", "counter", "Requests that no limit applied to.", OF_ALL, false, NULL,
     ONE(ALL(rules.unmatched))},
    {"weir_listed_total",
     "counter",
     "Requests that the allow list or the block list decided.",
     OF_ALL,
     false,
     "list",
     {{"allow", ALL(rules.allow_listed)}, {"block", ALL(rules.block_listed)}}},
    {"weir_tier_unknown_total", "counter",
     "Tiers that a limit does not know: its default one counted.", OF_ALL, false, NULL,
     ONE(ALL(rules.tier_unknown))},
    {"weir_config_reloads_total",
     "counter",
     "Reloads of the rules, by what came of them.",
     OF_ALL,
     false,
     "result",
     {{"success", ALL(reloads)}, {"failure", ALL(reloads_failed)}}},
    {"weir_config_last_success_timestamp_seconds", "gauge",
     "When rules were loaded or reloaded successfully last.", OF_ALL, true, NULL,
     ONE(ALL(loaded_ns))},
    {"weir_state_files_unusable_total", "counter",
     "Files of a state that could not be used: their limits began anew.", OF_ALL, false, NULL,
     ONE(ALL(rules.state_unusable))},
    {"weir_config_generation", "gauge", "Counts every change of the rules.", OF_ALL, false, NULL,
     ONE(ALL(rules.generation))},
    /* a fleet's store */
    {"weir_degraded_total",
     "counter",
     "Answers of a limit that the store has not given, by what decided instead.",
     OF_FAILURE,
     false,
     "policy",
     {[REMOTE_FAIL_LOCAL] = {"local", LIMIT(degraded)},
      [REMOTE_FAIL_OPEN] = {"open", LIMIT(degraded)},
      [REMOTE_FAIL_CLOSED] = {"closed", LIMIT(degraded)}}},
    {"weir_denials_remembered_total", "counter",
     "Denials of a limit that the store was not asked for again.", OF_REMOTE, false, NULL,
     ONE(LIMIT(remembered))},
    {"weir_refunds_lost_total", "counter",
     "Charges of denied requests that could not be given back to the store.", OF_STORE, false, NULL,
     ONE(ALL(fleet.refunds_lost))},
    {"weir_synced_keys", "gauge", "Keys of synced limits that this node counts.", OF_STORE, false,
     NULL, ONE(ALL(fleet.synced.keys))},
    {"weir_synced_units_dropped_total", "counter",
     "Units of synced limits that the store was not told of: their window was over.", OF_STORE,
     false, NULL, ONE(ALL(fleet.synced.dropped))},
    {"weir_synced_keys_forgotten_total", "counter",
     "Keys of synced limits that made room for others before they were as good as new.", OF_STORE,
     false, NULL, ONE(ALL(fleet.synced.forgotten))},
    {"weir_synced_keys_refused_total", "counter",
     "Requests whose key of a synced limit found no room: on_store_failure decided.", OF_STORE,
     false, NULL, ONE(ALL(fleet.synced.full))},
    {"weir_store_up", "gauge",
     "1: there is a connection to the store, and an endpoint that is worth asking.", OF_STORE,
     false, NULL, ONE(ALL(fleet.up))},
    {"weir_store_connections", "gauge", "Connections to the store that stand.", OF_STORE, false,
     NULL, ONE(ALL(fleet.links))},
    {"weir_store_connects_total", "counter", "Attempts to connect to the store.", OF_STORE, false,
     NULL, ONE(ALL(fleet.connects))},
    {"weir_breaker_open", "gauge",
     "1: an endpoint of the store has failed so often that it is not asked.", OF_ENDPOINT, false,
     NULL, ONE(ENDPOINT(open))},
    {"weir_store_duration_seconds", "histogram", "Of calls to the store that got a reply.",
     OF_STORE_TIMES, true, NULL, ONE(ALL(fleet.took))},
    {"weir_store_calls_total", "counter", "Calls to the store.", OF_STORE, false, NULL,
     ONE(ALL(fleet.calls))},
    {"weir_store_ended_total",
     "counter",
     "Calls to the store that ended: with a reply, unknown (sent, and no reply in time), or proved "
     "not to have run.",
     OF_STORE,
     false,
     "result",
     {{"replied", ALL(fleet.replies)},
      {"unknown", ALL(fleet.unknown)},
      {"not_run", ALL(fleet.not_run)}}},
    {"weir_store_resent_total", "counter",
     "Calls that were sent again, because the store had proved that they did not run.", OF_STORE,
     false, NULL, ONE(ALL(fleet.resent))},
    {"weir_store_late_total", "counter", "Replies of the store behind their deadline.", OF_STORE,
     false, NULL, ONE(ALL(fleet.late))},
    {"weir_fleet_nodes", "gauge", "Nodes of the fleet, as seen or as given.", OF_STORE, false, NULL,
     ONE(ALL(fleet.nodes))},
    {"weir_deferred_total", "counter", "Requests that waited for the store.", OF_STORE, false, NULL,
     ONE(ALL(counts.deferred))},
    {"weir_deferred_abandoned_total", "counter",
     "Of them those whose client had gone when the answer came.", OF_STORE, false, NULL,
     ONE(ALL(counts.abandoned))},
    /* requests */
    {"weir_decision_duration_seconds", "histogram",
     "From a request's bytes to its reply's. Requests that arrived together count with the time of "
     "all of them.",
     OF_TIMES, true, NULL, ONE(COUNT(took))},
    {"weir_requests_total", "counter", "Requests.", OF_PROTOCOL, false, NULL, ONE(COUNT(requests))},
    {"weir_bad_requests_total", "counter", "Requests that could not be understood or answered.",
     OF_PROTOCOL, false, NULL, ONE(COUNT(bad_requests))},
    {"weir_overload_total", "counter",
     "Requests that were refused because they had waited for too long.", OF_PROTOCOL, false, NULL,
     ONE(COUNT(overloaded))},
    {"weir_access_refused_total", "counter", "Wrong secrets, and requests that need a role.",
     OF_ALL, false, NULL, ONE(ALL(counts.refused_access))},
    {"weir_forwarded_ignored_total", "counter",
     "Fields about the client from somebody who is no trusted proxy.", OF_ALL, false, NULL,
     ONE(ALL(counts.forwarded_ignored))},
    /* reservations */
    {"weir_reservations", "gauge", "Reservations that are neither settled nor expired.", OF_ALL,
     false, NULL, ONE(ALL(reservations.open))},
    {"weir_reservations_made_total", "counter", "Reservations.", OF_ALL, false, NULL,
     ONE(ALL(reservations.made))},
    {"weir_reservations_ended_total",
     "counter",
     "Reservations that ended: settled or cancelled, expired, or without their limit by then.",
     OF_ALL,
     false,
     "result",
     {{"settled", ALL(reservations.settled)},
      {"expired", ALL(reservations.expired)},
      {"lost", ALL(reservations.lost)}}},
    {"weir_reservations_refused_total", "counter", "Reservations that there was no room for.",
     OF_ALL, false, NULL, ONE(ALL(reservations.refused))},
    /* connections */
    {"weir_connections", "gauge", "Connections that are open.", OF_PROTOCOL, false, NULL,
     ONE(COUNT(open))},
    {"weir_connections_accepted_total", "counter", "Connections that came.", OF_PROTOCOL, false,
     NULL, ONE(COUNT(accepted))},
    {"weir_connections_refused_total",
     "counter",
     "Connections that were one too many: of all, or of one address.",
     OF_ALL,
     false,
     "reason",
     {{"total", ALL(counts.refused)}, {"address", ALL(counts.refused_address)}}},
    {"weir_connections_timed_out_total", "counter",
     "Connections that were idle, or slow, for too long.", OF_ALL, false, NULL,
     ONE(ALL(counts.timed_out))},
    /* the program */
    {"weir_build_info", "gauge", "1, with the version.", OF_VERSION, false, NULL, ONE(0)},
    {"process_cpu_seconds_total", "counter", "Time of processors, user and system.", OF_ALL, true,
     NULL, ONE(ALL(process.cpu_ns))},
    {"process_resident_memory_bytes", "gauge", "Resident memory.", OF_ALL, false, NULL,
     ONE(ALL(process.resident_bytes))},
    {"process_open_fds", "gauge", "Open files.", OF_ALL, false, NULL, ONE(ALL(process.open_files))},
    {"process_max_fds", "gauge", "Files that may be open.", OF_ALL, false, NULL,
     ONE(ALL(process.most_files))},
    {"process_start_time_seconds", "gauge", "When the server was started.", OF_ALL, true, NULL,
     ONE(ALL(started_ns))},
};

#define METRICS (sizeof metrics / sizeof metrics[0])

const char *metrics_name(size_t i, const char **type, const char **help)
{
    if (i >= METRICS) {
        return NULL;
    }
    *type = metrics[i].type;
    *help = metrics[i].help;
    return metrics[i].name;
}

/* ---- the text ---- */

static void put_string(struct buffer *out, const char *text)
{
    buffer_put(out, text_of(text));
}

/* Puts name="value", with quotes, backslashes and line ends escaped. */
static void put_label(struct buffer *out, const char *name, const char *value)
{
    put_string(out, name);
    put_string(out, "=\"");
    for (; *value != 0; value++) {
        if (*value == '\n') {
            put_string(out, "\\n");
            continue;
        }
        if (*value == '"' || *value == '\\') {
            buffer_put_char(out, '\\');
        }
        buffer_put_char(out, *value);
    }
    buffer_put_char(out, '"');
}

static void put_number(struct buffer *out, uint64_t number, bool seconds)
{
    char text[48];
    (void)snprintf(text, sizeof text, seconds ? "%" PRIu64 ".%09" PRIu64 "\n" : "%" PRIu64 "\n",
                   seconds ? number / WEIR_SECOND : number, number % WEIR_SECOND);
    put_string(out, text);
}

/* One line, name{scope="of",label="value"} number. A label whose name is NULL is left out. */
struct sample {
    const char *suffix;
    const char *scope, *of;
    const char *label, *value;
    uint64_t number;
    bool seconds;
};

static void put_sample(struct buffer *out, const struct metric *m, const struct sample *s)
{
    put_string(out, m->name);
    put_string(out, s->suffix != NULL ? s->suffix : "");
    if (s->scope != NULL || s->label != NULL) {
        buffer_put_char(out, '{');
        if (s->scope != NULL) {
            put_label(out, s->scope, s->of);
        }
        if (s->label != NULL) {
            put_string(out, s->scope != NULL ? "," : "");
            put_label(out, s->label, s->value);
        }
        buffer_put_char(out, '}');
    }
    buffer_put_char(out, ' ');
    put_number(out, s->number, s->seconds);
}

static uint64_t number_at(const void *base, size_t offset)
{
    uint64_t n;
    memcpy(&n, (const char *)base + offset, sizeof n);
    return n;
}

static void put_one(struct buffer *out, const struct metric *m, unsigned i, const char *scope,
                    const char *of, const void *base)
{
    put_sample(out, m,
               &(struct sample){.scope = scope,
                                .of = of,
                                .label = m->label,
                                .value = m->series[i].value,
                                .number = number_at(base, m->series[i].offset),
                                .seconds = m->seconds});
}

/* Puts all series of a row for one limit, protocol, endpoint or the server. */
static void put_series(struct buffer *out, const struct metric *m, const char *scope,
                       const char *of, const void *base)
{
    for (unsigned i = 0; i < SERIES_MAX && (i == 0 || m->series[i].value != NULL); i++) {
        put_one(out, m, i, scope, of, base);
    }
}

/* Puts a histogram. The last bucket (+Inf) counts the times above all bounds. */
static void put_times(struct buffer *out, const struct metric *m, const char *protocol,
                      const struct histogram *h)
{
    uint64_t sum = 0;
    const char *scope = protocol != NULL ? "protocol" : NULL;
    struct sample s = {.suffix = "_bucket", .scope = scope, .of = protocol, .label = "le"};
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        char bound[32] = "+Inf";
        if (i + 1 < HISTOGRAM_BUCKETS) {
            uint64_t ns = UINT64_C(1) << (HISTOGRAM_FIRST + i);
            (void)snprintf(bound, sizeof bound, "%.10g", (double)ns / 1e9);
        }
        sum += h->counts[i];
        s.value = bound;
        s.number = sum;
        put_sample(out, m, &s);
    }
    s = (struct sample){
        .suffix = "_sum", .scope = scope, .of = protocol, .number = h->sum_ns, .seconds = true};
    put_sample(out, m, &s);
    s = (struct sample){.suffix = "_count", .scope = scope, .of = protocol, .number = sum};
    put_sample(out, m, &s);
}

static void put_limits(struct buffer *out, const struct metric *m, const struct numbers *n)
{
    for (size_t i = 0; i < n->limits_count; i++) {
        const struct limit_numbers *limit = &n->limits[i];
        if (m->scope == OF_FAILURE && limit->remote) {
            put_one(out, m, (unsigned)limit->on_store_failure, "limit", limit->name, limit);
        } else if (m->scope == OF_LIMIT || (m->scope == OF_REMOTE && limit->remote)) {
            put_series(out, m, "limit", limit->name, limit);
        }
    }
}

static void put_store(struct buffer *out, const struct metric *m, const struct numbers *n)
{
    if (n->server->fleet.fleet == NULL) {
        return;
    }
    if (m->scope == OF_STORE_TIMES) {
        put_times(out, m, NULL, &n->fleet.took);
    } else if (m->scope == OF_STORE) {
        put_series(out, m, NULL, NULL, n);
    }
    for (size_t i = 0; m->scope == OF_ENDPOINT && i < n->fleet.endpoints_count; i++) {
        put_series(out, m, "endpoint", n->fleet.endpoints[i].name, &n->fleet.endpoints[i]);
    }
}

static void put_protocols(struct buffer *out, const struct metric *m, const struct numbers *n)
{
    for (unsigned p = 0; p < PROTOCOLS; p++) {
        const char *base = (const char *)&n->counts;
        if (m->scope == OF_TIMES) {
            put_times(out, m, protocol_names[p], &n->counts.took[p]);
        } else {
            put_series(out, m, "protocol", protocol_names[p], base + p * sizeof(uint64_t));
        }
    }
}

static void put_metric(struct buffer *out, const struct metric *m, const struct numbers *n)
{
    put_string(out, "# HELP ");
    put_string(out, m->name);
    buffer_put_char(out, ' ');
    put_string(out, m->help);
    put_string(out, "\n# TYPE ");
    put_string(out, m->name);
    buffer_put_char(out, ' ');
    put_string(out, m->type);
    buffer_put_char(out, '\n');
    switch (m->scope) {
    case OF_LIMIT:
    case OF_REMOTE:
    case OF_FAILURE:
        put_limits(out, m, n);
        break;
    case OF_STORE:
    case OF_STORE_TIMES:
    case OF_ENDPOINT:
        put_store(out, m, n);
        break;
    case OF_PROTOCOL:
    case OF_TIMES:
        put_protocols(out, m, n);
        break;
    case OF_VERSION:
        put_sample(out, m,
                   &(struct sample){.label = "version", .value = weir_version(), .number = 1});
        break;
    case OF_ALL:
    default:
        put_series(out, m, NULL, NULL, n);
        break;
    }
}

void metrics_put(struct buffer *out, const struct numbers *numbers)
{
    for (size_t i = 0; i < METRICS; i++) {
        put_metric(out, &metrics[i], numbers);
    }
}
