#include "server/loop/server_fleet.h"

#include <stdio.h>

#include "base/atomic.h"
#include "common/log.h"
#include "fleet/place.h"
#include "server/record/history.h"
#include "shared/store/stores.h"

/* ---- a place on a loop ---- */

static int open_place(struct weir_fleet *fleet, uv_loop_t *loop, void **where,
                      struct weir_error *error)
{
    struct fleet_place *place = NULL;
    int e = fleet_place_open(&place, fleet, loop, error);
    *where = place;
    return e;
}

static void close_place(void *where)
{
    fleet_place_close(where);
}

/* The longest time for giving units back: a store that answers needs less, and one that is away
 * takes nothing back. */
#define LEAVE_MS 100

static uint64_t leave(struct weir_fleet *fleet, void *where)
{
    uint64_t ms = fleet->options.deadline_ns / WEIR_MILLISECOND + 1;
    return !fleet_place_leave(where) ? 0 : ms < LEAVE_MS ? ms : LEAVE_MS;
}

/* ---- numbers ---- */

static void read_histogram(const struct histogram *from, struct histogram *to)
{
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        to->counts[i] = load_relaxed(&from->counts[i]);
    }
    to->sum_ns = load_relaxed(&from->sum_ns);
}

static void read_memory(const struct endpoint_memory *m, struct fleet_endpoint_numbers *to)
{
    to->memory_bytes = m->used_bytes;
    to->memory_most = m->most_bytes;
    to->full = m->full;
    to->evicted = m->evicted;
    to->maxclients = m->maxclients;
    to->noeviction = m->policy == MEMORY_NOEVICTION;
    to->evicts_volatile = m->policy >= MEMORY_VOLATILE_TTL && m->policy < MEMORY_ALLKEYS_LRU;
    to->evicts_all = m->policy >= MEMORY_ALLKEYS_LRU;
    to->policy = memory_policy_name(m->policy);
}

/* Reads the endpoints. Returns true if at least one is worth calling. Sentinels that answer are
 * not a store while there is no master. */
static bool read_endpoints(const struct weir_fleet *fleet, struct fleet_numbers *n)
{
    struct breaker_seen seen[FLEET_ENDPOINTS];
    size_t count = breakers_see(fleet->breakers, seen, FLEET_ENDPOINTS);
    bool worth = false;
    n->endpoints_count = count < FLEET_ENDPOINTS ? count : FLEET_ENDPOINTS;
    n->full = 0;
    n->evicted = 0;
    for (size_t i = 0; i < n->endpoints_count; i++) {
        memcpy(n->endpoints[i].name, seen[i].endpoint, sizeof n->endpoints[i].name);
        n->endpoints[i].open = seen[i].open;
        read_memory(&seen[i].memory, &n->endpoints[i]);
        n->full += seen[i].memory.full;
        n->evicted += seen[i].memory.evicted;
        worth = worth || (seen[i].calls && !seen[i].open);
    }
    return worth;
}

static void read_numbers(struct weir_fleet *fleet, struct fleet_numbers *n)
{
    const struct client_metrics *m = &fleet->metrics;
    n->links = load_relaxed(&m->up);
    n->links_each = fleet->links_each;
    n->nodes = store_fleet_size(fleet->shared);
    n->calls = load_relaxed(&m->calls);
    n->replies = load_relaxed(&m->replies);
    n->unknown = load_relaxed(&m->unknown);
    n->not_run = load_relaxed(&m->not_run);
    n->resent = load_relaxed(&m->resent);
    n->late = load_relaxed(&m->late);
    n->connects = load_relaxed(&m->connects);
    n->refunds_lost = load_relaxed(&fleet->shared->refunds_lost);
    n->targets_refused = fleet_targets_refused(fleet, n->last_refused, sizeof n->last_refused);
    sync_counts(fleet->shared->keys, &n->synced);
    read_histogram(&m->took, &n->took);
    bool worth = read_endpoints(fleet, n);
    n->up = n->links > 0 && worth;
    n->certificate_ns = (uint64_t)fleet_tls_expires(fleet) * WEIR_SECOND;
    fleet_tls_trouble(fleet, &n->certificates);
    n->why.text[0] = 0;
    (void)weir_fleet_trouble(fleet, &n->why);
}

_Static_assert(sizeof((struct breaker_seen){0}.endpoint) ==
                   sizeof((struct fleet_endpoint_numbers){0}.name),
               "one name");

struct server_fleet fleet_serve(struct weir_fleet *fleet)
{
    return (struct server_fleet){.fleet = fleet,
                                 .share = fleet_share,
                                 .open = open_place,
                                 .close = close_place,
                                 .leave = leave,
                                 .read = read_numbers,
                                 .url = fleet != NULL ? fleet->options.url : NULL};
}

/* ---- the log ---- */

/* Logs once that the store is there, or that it is away, with its endpoints and open breakers, and
 * notes it for operators' pages. */
static void tell(const struct server *server, const struct fleet_numbers *n)
{
    const char *why = n->why.text[0] != 0 ? n->why.text : "no reply in time";
    char away[sizeof n->why.text + 32];
    uint64_t open = 0;
    for (size_t i = 0; i < n->endpoints_count; i++) {
        open += n->endpoints[i].open;
    }
    (void)snprintf(away, sizeof away, "the store is away: %s", why);
    history_note(server->history, HISTORY_STORE, n->up != 0 ? "the store is there" : away, NULL);
    if (n->up != 0) {
        LOG(LEVEL_INFO, "the store is there", LOG_COUNT("connections", n->links),
            LOG_COUNT("nodes", n->nodes));
    } else {
        LOG(LEVEL_WARNING, "the store is away: on_store_failure decides", LOG_STRING("why", why),
            LOG_COUNT("connections", n->links), LOG_COUNT("endpoints", n->endpoints_count),
            LOG_COUNT("breakers_open", open));
    }
}

/* How many calls of fleet_watch() lie between two warnings about refused calls. A store that is
 * there may still refuse calls: a permission or disk space is missing, or a part of it is away. The
 * warning is repeated only when the reason changes, and not more often than this. */
#define LOOKS_APART 30

static void tell_refusals(struct store_log *told, const struct fleet_numbers *n)
{
    bool is_new = n->why.text[0] != 0 && strcmp(n->why.text, told->why.text) != 0;
    if (log_again_after(LOOKS_APART, &told->refusals_pause, n->up != 0 && is_new)) {
        told->why = n->why;
        LOG(LEVEL_WARNING, "the store does not answer all calls: on_store_failure decides those",
            LOG_STRING("why", n->why.text));
    }
}

/* Warns that the store has announced addresses outside of its networks, as rarely as above. */
static void tell_targets(struct store_log *told, const struct fleet_numbers *n)
{
    uint64_t refused = n->targets_refused;
    if (log_again_after(LOOKS_APART, &told->targets_pause, refused > told->targets)) {
        LOG(LEVEL_WARNING, "the store announced an address outside of store.networks: not used",
            LOG_STRING("address", n->last_refused), LOG_COUNT("times", refused - told->targets));
        told->targets = refused;
    }
}

/* Warns once that the files with certificates have changed, but cannot be used. */
static void tell_certificates(struct store_log *told, const struct fleet_numbers *n)
{
    if (strcmp(n->certificates.text, told->certificates.text) != 0) {
        told->certificates = n->certificates;
        if (n->certificates.text[0] != 0) {
            LOG(LEVEL_WARNING, "the new certificates for the store are not used: the old ones stay",
                LOG_STRING("why", n->certificates.text));
        } else {
            log_event(LEVEL_INFO, "the new certificates for the store are used", NULL, 0);
        }
    }
}

/* Returns an endpoint that would evict keys if its memory were full, or NULL. Without maxmemory a
 * policy has no effect. */
static const struct fleet_endpoint_numbers *evicting(const struct fleet_numbers *n)
{
    for (size_t i = 0; i < n->endpoints_count; i++) {
        const struct fleet_endpoint_numbers *e = &n->endpoints[i];
        if (e->memory_most != 0 && (e->evicts_volatile | e->evicts_all) != 0) {
            return e;
        }
    }
    return NULL;
}

/* Warns once of a policy by which keys of limits may be evicted, when keys were evicted, and when
 * the store becomes full, as rarely as above. */
static void tell_memory(struct store_log *told, const struct fleet_numbers *n)
{
    const struct fleet_endpoint_numbers *e = evicting(n);
    bool worse = n->evicted > told->evicted || (n->full != 0 && !told->full);
    if (e != NULL && log_once(&told->policy)) {
        LOG(LEVEL_WARNING,
            "the store evicts keys when its memory is full, and their limits begin anew; "
            "recommended is maxmemory-policy noeviction",
            LOG_STRING("endpoint", e->name), LOG_STRING("policy", e->policy));
    }
    if (log_again_after(LOOKS_APART, &told->memory_pause, worse)) {
        LOG(LEVEL_WARNING,
            "the memory of the store is nearly full: on_full decides keys that are not in it",
            LOG_COUNT("endpoints", n->full), LOG_COUNT("evicted_keys", n->evicted));
    }
    told->full = n->full != 0;
    told->evicted = n->evicted;
}

/* Warns once if all nodes, with as many connections as this one, make more connections to an
 * endpoint than it takes. */
static void tell_connections(struct store_log *told, const struct fleet_numbers *n)
{
    for (size_t i = 0; i < n->endpoints_count; i++) {
        const struct fleet_endpoint_numbers *e = &n->endpoints[i];
        if (e->maxclients != 0 && n->nodes * n->links_each > e->maxclients &&
            log_once(&told->maxclients)) {
            LOG(LEVEL_WARNING,
                "the store takes fewer connections than the fleet makes: raise its maxclients, or "
                "lower store.connections",
                LOG_STRING("endpoint", e->name), LOG_COUNT("maxclients", e->maxclients),
                LOG_COUNT("nodes", n->nodes), LOG_COUNT("connections_of_each", n->links_each));
        }
    }
}

void fleet_watch(struct server *server)
{
    static struct fleet_numbers n; /* large; used by one thread only */
    struct store_log *told = &server->store_log;
    if (server->fleet.fleet == NULL || load_relaxed(&server->state) == SERVER_DRAINING) {
        return;
    }
    n.endpoints_count = 0;
    server->fleet.read(server->fleet.fleet, &n);
    if (told->state != (n.up != 0 ? STORE_THERE : STORE_AWAY)) {
        told->state = n.up != 0 ? STORE_THERE : STORE_AWAY;
        told->why = n.up != 0 ? told->why : n.why;
        tell(server, &n);
    }
    tell_refusals(told, &n);
    tell_targets(told, &n);
    tell_certificates(told, &n);
    tell_memory(told, &n);
    tell_connections(told, &n);
}
