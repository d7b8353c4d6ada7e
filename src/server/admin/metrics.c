#include "server/admin/metrics.h"

#include <inttypes.h>
#include <stdio.h>

/* Where the numbers of a row are, and which label they get. */
enum scope {
    OF_LIMIT,    /* offsets in struct limit_numbers; label limit */
    OF_LISTENER, /* offsets of arrays in struct worker_counts; label listener */
    OF_ALL,      /* offsets in struct numbers */
    OF_VERSION,  /* the number 1, with the version as label */
    /* Only with a fleet: */
    OF_REMOTE,  /* as OF_LIMIT, for limits that the fleet decides */
    OF_FAILURE, /* as OF_REMOTE, but only the series of the limit's on_store_failure */
    OF_STORE,   /* as OF_ALL */
    OF_ENDPOINT /* offsets in struct fleet_endpoint_numbers; label endpoint */
};

struct metric {
    /* ..._total is a counter, ..._duration_seconds a histogram; ..._seconds... is counted in ns. */
    const char *name;
    enum scope scope;
    const char *help;
    const char *label; /* distinguishes the series; NULL: one series without it */
    struct {
        const char *value;
        size_t offset;
    } series
        [METRICS_SERIES_MAX]; /* ended by a value that is NULL; without a label only the first */
};

#define LIMIT(field) offsetof(struct limit_numbers, field)
#define COUNT(field) offsetof(struct worker_counts, field)
#define ALL(field) offsetof(struct numbers, field)
#define ENDPOINT(field) offsetof(struct fleet_endpoint_numbers, field)
#define SERIES(name, scope, help, label, ...)                                                      \
    {                                                                                              \
        name, scope, help, label,                                                                  \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define ONE(name, scope, offset, help) SERIES(name, scope, help, NULL, {NULL, offset})

static const struct metric metrics[] = {
    /* limits */
    SERIES("weir_decisions_total", OF_LIMIT,
           "Decisions of a limit, with its tiers and overrides. shadow_deny: the limit would have "
           "denied, but was in shadow mode, so that the request passed. Peeks are not counted.",
           "verdict", {"allow", LIMIT(stats.allowed)}, {"deny", LIMIT(stats.denied)},
           {"never", LIMIT(stats.never)}, {"shadow_deny", LIMIT(stats.shadow_denied)}),
    ONE("weir_missing_key_total", OF_LIMIT, LIMIT(missing),
        "Requests that a limit applied to, but that had no value for its key."),
    ONE("weir_missing_key_uncovered_total", OF_LIMIT, LIMIT(uncovered),
        "Of weir_missing_key_total: requests that the limit skipped, and to which no other limit "
        "of "
        "its group applied."),
    ONE("weir_denials_not_logged_total", OF_LIMIT, LIMIT(left_out),
        "Denials of a limit with `log` that got no line in the log."),
    ONE("weir_table_keys", OF_LIMIT, LIMIT(stats.keys),
        "Keys and blocks in the tables of a limit; for a leased or synced limit, the keys that "
        "this node holds."),
    ONE("weir_table_capacity", OF_LIMIT, LIMIT(stats.capacity),
        "Keys that fit into the tables of a limit."),
    ONE("weir_table_bytes", OF_LIMIT, LIMIT(stats.bytes),
        "Memory or files of the tables of a limit, in bytes."),
    ONE("weir_kill_switch", OF_LIMIT, LIMIT(switched),
        "1 if an operator has switched a limit to shadow mode, otherwise 0."),
    ONE("weir_blocks", OF_LIMIT, LIMIT(stats.blocks),
        "Keys of a limit that are blocked, banned ones included."),
    SERIES("weir_bans_total", OF_LIMIT,
           "Keys of a limit that this node has banned (made), or could not ban, because max_blocks "
           "keys are blocked or the store does not answer (failed).",
           "result", {"made", LIMIT(bans)}, {"failed", LIMIT(bans_failed)}),
    ONE("weir_ban_denials_forgotten_total", OF_LIMIT, LIMIT(denials_evicted),
        "Keys of a limit with a ban whose denials were forgotten, because max_keys keys had some."),
    SERIES(
        "weir_evictions_total", OF_LIMIT,
        "New keys of a limit that needed the slot of another key, by what happened: a key in use "
        "was forgotten (evicted), a fresh key was forgotten (reclaimed), or the table "
        "was full and the new key was denied (full_denied) or allowed without a charge "
        "(full_allowed). Of a shared limit: keys that a full store does not have, denied or "
        "allowed "
        "by this node.",
        "kind", {"evicted", LIMIT(stats.evicted)}, {"reclaimed", LIMIT(stats.reclaimed)},
        {"full_denied", LIMIT(stats.full_denied)}, {"full_allowed", LIMIT(stats.full_allowed)}),
    /* rules */
    ONE("weir_unmatched_total", OF_ALL, ALL(rules.unmatched),
        "Requests that no limit applied to, apart from limits in shadow mode."),
    SERIES("weir_listed_total", OF_ALL, "Requests that the allow list or the block list decided.",
           "list", {"allow", ALL(rules.allow_listed)}, {"block", ALL(rules.block_listed)}),
    ONE("weir_tier_unknown_total", OF_ALL, ALL(rules.tier_unknown),
        "Requests whose tier a limit does not have, so that its default tier was used."),
    SERIES("weir_config_reloads_total", OF_ALL, "Reloads of the rules, by their result.", "result",
           {"success", ALL(reloads)}, {"failure", ALL(reloads_failed)}),
    ONE("weir_config_last_success_timestamp_seconds", OF_ALL, ALL(loaded_ns),
        "Unix time of the last successful load or reload of the rules."),
    ONE("weir_state_files_unusable_total", OF_ALL, ALL(rules.state_unusable),
        "Files of the state folder that could not be used: their limits started without keys."),
    ONE("weir_config_generation", OF_ALL, ALL(rules.generation),
        "Number of changes of the rules since the start."),
    /* a fleet's store */
    SERIES("weir_degraded_total", OF_FAILURE,
           "Answers of a limit that were given without the store, by the on_store_failure policy "
           "that decided them.",
           "policy", [REMOTE_FAIL_LOCAL] = {"local", LIMIT(degraded)},
           [REMOTE_FAIL_OPEN] = {"open", LIMIT(degraded)},
           [REMOTE_FAIL_CLOSED] = {"closed", LIMIT(degraded)}),
    ONE("weir_denials_remembered_total", OF_REMOTE, LIMIT(remembered),
        "Denials of a limit that were answered from memory, without asking the store again."),
    ONE("weir_refunds_lost_total", OF_STORE, ALL(fleet.refunds_lost),
        "Charges of denied requests that could not be given back to the store."),
    ONE("weir_synced_keys", OF_STORE, ALL(fleet.synced.keys),
        "Keys of synced limits that this node counts."),
    ONE("weir_synced_units_dropped_total", OF_STORE, ALL(fleet.synced.dropped),
        "Units of synced limits that were not reported to the store before their window ended."),
    ONE("weir_synced_keys_forgotten_total", OF_STORE, ALL(fleet.synced.forgotten),
        "Keys of synced limits that were replaced by other keys while they were still in use."),
    ONE("weir_synced_keys_refused_total", OF_STORE, ALL(fleet.synced.full),
        "Requests that on_store_failure decided, because a synced limit had no room for the key."),
    ONE("weir_store_up", OF_STORE, ALL(fleet.up),
        "1 if there is a connection to the store and an endpoint whose breaker is closed, "
        "otherwise 0."),
    ONE("weir_store_connections", OF_STORE, ALL(fleet.links),
        "Connections to the store that are ready for calls."),
    ONE("weir_store_connects_total", OF_STORE, ALL(fleet.connects),
        "Attempts to connect to the store."),
    ONE("weir_store_certificate_expiry_timestamp_seconds", OF_STORE, ALL(fleet.certificate_ns),
        "Unix time at which this node's certificate for the store ends; 0 without one."),
    ONE("weir_store_targets_refused_total", OF_STORE, ALL(fleet.targets_refused),
        "Addresses that a Sentinel or a node announced and that are not used, because they are "
        "outside of store.networks."),
    ONE("weir_breaker_open", OF_ENDPOINT, ENDPOINT(open),
        "1 if the breaker of an endpoint is open, so that no calls are sent to it, otherwise 0."),
    ONE("weir_store_memory_bytes", OF_ENDPOINT, ENDPOINT(memory_bytes),
        "Memory that an endpoint uses; 0 if it is not known."),
    ONE("weir_store_memory_max_bytes", OF_ENDPOINT, ENDPOINT(memory_most),
        "Memory that an endpoint may use (maxmemory); 0 if that is unlimited or not known."),
    ONE("weir_store_full", OF_ENDPOINT, ENDPOINT(full),
        "1 if an endpoint uses more than store.memory_high of its memory, so that this node "
        "decides keys that it does not have, as on_full of their limit says; otherwise 0."),
    ONE("weir_store_evicted_keys", OF_ENDPOINT, ENDPOINT(evicted),
        "Keys that an endpoint has evicted since it started, because its memory was full."),
    SERIES("weir_store_policy", OF_ENDPOINT,
           "1 for the kind of maxmemory-policy that an endpoint has: it evicts no keys "
           "(noeviction, recommended), keys that expire (volatile), or any (allkeys). All are 0 if "
           "it is not known.",
           "policy", {"noeviction", ENDPOINT(noeviction)}, {"volatile", ENDPOINT(evicts_volatile)},
           {"allkeys", ENDPOINT(evicts_all)}),
    ONE("weir_store_duration_seconds", OF_STORE, ALL(fleet.took),
        "Time from a call of the store to its reply."),
    ONE("weir_store_calls_total", OF_STORE, ALL(fleet.calls), "Calls of the store."),
    SERIES("weir_store_ended_total", OF_STORE,
           "Calls of the store that have ended: with a reply (replied), without a reply in time "
           "after they were sent (unknown), or without having run (not_run).",
           "result", {"replied", ALL(fleet.replies)}, {"unknown", ALL(fleet.unknown)},
           {"not_run", ALL(fleet.not_run)}),
    ONE("weir_store_resent_total", OF_STORE, ALL(fleet.resent),
        "Calls that were sent again after a reply that proves that they had not run."),
    ONE("weir_store_late_total", OF_STORE, ALL(fleet.late),
        "Replies of the store that came after the deadline of their call."),
    ONE("weir_fleet_nodes", OF_STORE, ALL(fleet.nodes),
        "Nodes of the fleet, as counted in the store or as given by fleet_size."),
    ONE("weir_pending_total", OF_STORE, ALL(counts.pending),
        "Requests that waited for an answer of the store."),
    ONE("weir_pending_abandoned_total", OF_STORE, ALL(counts.abandoned),
        "Requests that waited for the store and whose client closed the connection before the "
        "answer."),
    /* requests */
    ONE("weir_decision_duration_seconds", OF_LISTENER, COUNT(took),
        "Time from the arrival of a request to the end of its reply. Each of several requests that "
        "arrive together counts with the time of all of them."),
    SERIES("weir_requests_total", OF_LISTENER,
           "Requests that were answered, each counted once however many limits applied, by what "
           "the reply said: the request may pass (allow) or not (deny), it was malformed, refused "
           "or could not be answered (error), it was refused because it had waited for longer than "
           "--max-age (overload), or it asked for no decision (other). Each question of a batch is "
           "a request.",
           "result", {"allow", COUNT(requests[REQUEST_ALLOW])},
           {"deny", COUNT(requests[REQUEST_DENY])}, {"error", COUNT(requests[REQUEST_ERROR])},
           {"overload", COUNT(requests[REQUEST_OVERLOAD])},
           {"other", COUNT(requests[REQUEST_OTHER])}),
    SERIES("weir_denied_total", OF_ALL,
           "Requests of clients that were denied, by why: the units of a limit (limit), a ban, a "
           "block of the key (blocked), the block list, a key without value and on_missing: deny "
           "(missing), a store that does not answer and on_store_failure: closed (store), a full "
           "table or queue (overload), or a call that could not be decided (other).",
           "reason", {"limit", ALL(counts.denied[WEIR_REASON_LIMIT])},
           {"ban", ALL(counts.denied[WEIR_REASON_BAN])},
           {"blocked", ALL(counts.denied[WEIR_REASON_BLOCKED])},
           {"block_list", ALL(counts.denied[WEIR_REASON_BLOCK_LIST])},
           {"missing", ALL(counts.denied[WEIR_REASON_MISSING])},
           {"store", ALL(counts.denied[WEIR_REASON_STORE])},
           {"overload", ALL(counts.denied[WEIR_REASON_OVERLOAD])},
           {"other", ALL(counts.denied[WEIR_REASON_UNMATCHED])}),
    SERIES("weir_negative_hits_total", OF_ALL,
           "Limits whose units a call of Envoy's rate limit service wanted to give back "
           "(is_negative_hits), by what happened: they were given back (given), or not, because "
           "the caller may not do so (withheld).",
           "result", {"given", ALL(counts.hits_given)}, {"withheld", ALL(counts.hits_withheld)}),
    SERIES("weir_bad_calls_total", OF_ALL,
           "Calls of Envoy's rate limit service that could not be decided because of what was in "
           "them, by the answer that they got: an error, for which Envoy lets the request pass "
           "unless failure_mode_deny is true (error), or OVER_LIMIT, with on_bad_call: deny "
           "(deny).",
           "answer", {"error", ALL(counts.bad_calls)}, {"deny", ALL(counts.bad_calls_denied)}),
    SERIES("weir_unread_total", OF_ALL,
           "Calls of Envoy's rate limit service with an attribute of the rules that could not be "
           "read, so that on_missing decided (value), or with such a cost, so that 1 was charged "
           "(cost).",
           "what", {"value", ALL(counts.calls_unread_value)},
           {"cost", ALL(counts.calls_unread_cost)}),
    ONE("weir_access_refused_total", OF_ALL, ALL(counts.refused_access),
        "Requests that were refused because of a wrong secret or a missing role."),
    ONE("weir_access_delayed_total", OF_ALL, ALL(counts.delayed),
        "Refusals of wrong secrets that were delayed, because their address had sent many."),
    ONE("weir_held_replies", OF_ALL, ALL(counts.holding),
        "Replies of /v1/auth that are held back for the delay of a limit."),
    ONE("weir_held_total", OF_ALL, ALL(counts.held), "Replies of /v1/auth that were held back."),
    ONE("weir_held_abandoned_total", OF_ALL, ALL(counts.held_abandoned),
        "Held replies whose client closed the connection before they were sent."),
    ONE("weir_held_refused_total", OF_ALL, ALL(counts.unheld),
        "Questions of gateways that came while too many replies were held, so that they could not "
        "be "
        "delayed, only allowed or denied."),
    ONE("weir_forwarded_ignored_total", OF_ALL, ALL(counts.forwarded_ignored),
        "Requests whose fields about the client were ignored, because no trusted proxy sent "
        "them."),
    ONE("weir_forwarded_refused_total", OF_ALL, ALL(counts.forwarded_refused),
        "Requests that were refused because their fields named different clients, or no client "
        "although the rules use its address."),
    /* reservations */
    ONE("weir_reservations", OF_ALL, ALL(reservations.open),
        "Reservations that are neither settled nor cancelled nor expired."),
    ONE("weir_reservations_made_total", OF_ALL, ALL(reservations.made),
        "Reservations that were made."),
    SERIES(
        "weir_reservations_ended_total", OF_ALL,
        "Reservations that have ended: settled or cancelled (settled), not in time (expired), or "
        "when their limit no longer existed (lost).",
        "result", {"settled", ALL(reservations.settled)}, {"expired", ALL(reservations.expired)},
        {"lost", ALL(reservations.lost)}),
    SERIES("weir_reservations_refused_total", OF_ALL,
           "Reservations that were refused because there was no room for them: for any client "
           "(total), for this limit (limit), or for this client (client).",
           "reason", {"total", ALL(reservations.refused[ROOM_NOT_OF_ALL])},
           {"limit", ALL(reservations.refused[ROOM_NOT_OF_LIMIT])},
           {"client", ALL(reservations.refused[ROOM_NOT_OF_CLIENT])}),
    /* connections */
    ONE("weir_connections", OF_LISTENER, COUNT(open), "Connections that are open."),
    ONE("weir_connections_accepted_total", OF_LISTENER, COUNT(accepted),
        "Connections that were accepted."),
    SERIES("weir_connections_refused_total", OF_ALL,
           "Connections that were refused because of the bound for all clients (total) or for one "
           "address (address).",
           "reason", {"total", ALL(counts.refused)}, {"address", ALL(counts.refused_address)}),
    SERIES("weir_connections_replaced_total", OF_ALL,
           "Connections that were closed to make room for others: because of the bound for all "
           "clients (total) or for one address (address), or because of the bounds on bytes of "
           "requests, handshakes and replies (bytes).",
           "reason", {"total", ALL(counts.replaced)}, {"address", ALL(counts.replaced_address)},
           {"bytes", ALL(counts.replaced_bytes)}),
    ONE("weir_connections_timed_out_total", OF_ALL, ALL(counts.timed_out),
        "Connections that were closed because they were idle or slow for too long."),
    SERIES("weir_tls_handshakes_total", OF_ALL,
           "Handshakes of TLS with clients, by their result. Those that took too long are among "
           "weir_connections_timed_out_total.",
           "result", {"success", ALL(counts.handshakes)},
           {"failure", ALL(counts.handshakes_failed)}),
    SERIES("weir_tls_renewals_total", OF_ALL,
           "Times that the certificate was read again because its files had changed, by the "
           "result. After a failure the old one stays.",
           "result", {"success", ALL(renewals)}, {"failure", ALL(renewals_failed)}),
    ONE("weir_tls_certificate_expiry_timestamp_seconds", OF_ALL, ALL(certificate_ns),
        "Unix time at which the certificate of the listeners ends; 0 without TLS."),
    ONE("weir_event_streams", OF_ALL, ALL(counts.streams),
        "Streams of events (/v1/events) that are open."),
    ONE("weir_event_streams_dropped_total", OF_ALL, ALL(counts.streams_dropped),
        "Streams of events that were ended because their client did not fetch them fast enough, or "
        "its secret was withdrawn."),
    /* the program */
    ONE("weir_build_info", OF_VERSION, 0, "The number 1, with the version as label."),
    ONE("process_cpu_seconds_total", OF_ALL, ALL(process.cpu_ns),
        "User and system CPU time that the process has used."),
    ONE("process_resident_memory_bytes", OF_ALL, ALL(process.resident_bytes),
        "Resident memory of the process."),
    ONE("process_open_fds", OF_ALL, ALL(process.open_files), "Open file descriptors."),
    ONE("process_max_fds", OF_ALL, ALL(process.most_files),
        "Largest number of open file descriptors."),
    ONE("process_start_time_seconds", OF_ALL, ALL(started_ns),
        "Unix time at which the server was started."),
};

#define METRICS (sizeof metrics / sizeof metrics[0])

static bool is_histogram(const struct metric *m)
{
    return strstr(m->name, "_duration_seconds") != NULL;
}

static const char *type_of(const struct metric *m)
{
    return is_histogram(m) ? "histogram" : strstr(m->name, "_total") != NULL ? "counter" : "gauge";
}

bool metrics_describe(size_t i, struct metrics_about *about)
{
    static const struct {
        const char *of;
        const char *label;
    } scopes[] = {[OF_LIMIT] = {"each limit", "limit"},
                  [OF_LISTENER] = {"each listener", "listener"},
                  [OF_ALL] = {"the server", NULL},
                  [OF_VERSION] = {"the server", "version"},
                  [OF_REMOTE] = {"each limit that a store decides", "limit"},
                  [OF_FAILURE] = {"each limit that a store decides", "limit"},
                  [OF_STORE] = {"the store", NULL},
                  [OF_ENDPOINT] = {"each endpoint of the store", "endpoint"}};
    if (i >= METRICS) {
        return false;
    }
    const struct metric *m = &metrics[i];
    *about = (struct metrics_about){
        m->name,  type_of(m), m->help, scopes[m->scope].of, scopes[m->scope].label,
        m->label, {NULL}};
    for (size_t j = 0; m->label != NULL && j < METRICS_SERIES_MAX; j++) {
        about->values[j] = m->series[j].value;
    }
    return true;
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

/* Puts one series of a row, whose number is in the struct at `base`. */
static void put_one(struct buffer *out, const struct metric *m, unsigned i, struct sample s,
                    const char *base)
{
    memcpy(&s.number, base + m->series[i].offset, sizeof s.number);
    s.label = m->label;
    s.value = m->series[i].value;
    s.seconds = strstr(m->name, "_seconds") != NULL;
    put_sample(out, m, &s);
}

/* Puts a histogram. The last bucket (+Inf) counts the times above all bounds. */
static void put_times(struct buffer *out, const struct metric *m, struct sample s,
                      const struct histogram *h)
{
    struct sample sum = s;
    s.suffix = "_bucket";
    s.label = "le";
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        char bound[32] = "+Inf";
        if (i + 1 < HISTOGRAM_BUCKETS) {
            uint64_t ns = UINT64_C(1) << (HISTOGRAM_FIRST + i);
            (void)snprintf(bound, sizeof bound, "%.10g", (double)ns / 1e9);
        }
        s.number += h->counts[i];
        s.value = bound;
        put_sample(out, m, &s);
    }
    sum.suffix = "_sum";
    sum.number = h->sum_ns;
    sum.seconds = true;
    put_sample(out, m, &sum);
    s.suffix = "_count";
    s.label = NULL;
    put_sample(out, m, &s);
}

/* Puts all series of a row for one limit, listener, endpoint or the server. */
static void put_series(struct buffer *out, const struct metric *m, struct sample s,
                       const char *base)
{
    if (is_histogram(m)) {
        put_times(out, m, s, (const struct histogram *)(const void *)(base + m->series[0].offset));
        return;
    }
    for (unsigned i = 0; i < METRICS_SERIES_MAX && (i == 0 || m->series[i].value != NULL); i++) {
        put_one(out, m, i, s, base);
    }
}

static void put_limits(struct buffer *out, const struct metric *m, const struct numbers *n)
{
    for (size_t i = 0; i < n->limits_count; i++) {
        const struct limit_numbers *limit = &n->limits[i];
        struct sample s = {.scope = "limit", .of = limit->name};
        if (m->scope == OF_FAILURE && limit->remote) {
            put_one(out, m, (unsigned)limit->on_store_failure, s, (const char *)limit);
        } else if (m->scope == OF_LIMIT || (m->scope == OF_REMOTE && limit->remote)) {
            put_series(out, m, s, (const char *)limit);
        }
    }
}

static void put_listeners(struct buffer *out, const struct metric *m, const struct numbers *n)
{
    size_t each = is_histogram(m) ? sizeof(struct histogram) : sizeof(uint64_t);
    for (unsigned p = 0; p < PROTOCOLS; p++) {
        struct sample s = {.scope = "listener", .of = protocol_of(p)->name};
        put_series(out, m, s, (const char *)&n->counts + p * each);
    }
}

static void put_endpoints(struct buffer *out, const struct metric *m, const struct numbers *n)
{
    for (size_t i = 0; i < n->fleet.endpoints_count; i++) {
        const struct fleet_endpoint_numbers *endpoint = &n->fleet.endpoints[i];
        struct sample s = {.scope = "endpoint", .of = endpoint->name};
        put_series(out, m, s, (const char *)endpoint);
    }
}

static void put_metric(struct buffer *out, const struct metric *m, const struct numbers *n)
{
    char head[1024];
    (void)snprintf(head, sizeof head, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name,
                   type_of(m));
    put_string(out, head);
    switch (m->scope) {
    case OF_LIMIT:
    case OF_REMOTE:
    case OF_FAILURE:
        put_limits(out, m, n);
        break;
    case OF_LISTENER:
        put_listeners(out, m, n);
        break;
    case OF_ENDPOINT:
        put_endpoints(out, m, n);
        break;
    case OF_VERSION:
        put_sample(out, m,
                   &(struct sample){.label = "version", .value = weir_version(), .number = 1});
        break;
    case OF_ALL:
    case OF_STORE:
    default:
        if (m->scope == OF_ALL || n->server->fleet.fleet != NULL) {
            put_series(out, m, (struct sample){0}, (const char *)n);
        }
        break;
    }
}

void metrics_put(struct buffer *out, const struct numbers *numbers)
{
    for (size_t i = 0; i < METRICS; i++) {
        put_metric(out, &metrics[i], numbers);
    }
}
