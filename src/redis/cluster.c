/*
 * Topology of redis-cluster://. There is a link for each primary. The map from slots to primaries
 * comes from the reply of any node to CLUSTER SLOTS, and from each MOVED.
 *
 * The map is asked for again when something shows that it is old: MOVED, CLUSTERDOWN, MASTERDOWN,
 * READONLY, NOREPLICAS, a connection that has ended or cannot be made, a slot without a primary.
 * Only one question is pending at a time. The next one follows 25 to 50 ms after an answer at the
 * earliest. As long as a primary cannot be reached, or its breaker is open, the question is
 * repeated at intervals that grow up to 0.8 s, each time to a node chosen at random.
 *
 * The hosts of the URL are used to begin: before there is a map, and when no node answers. They are
 * asked, and closed if they turn out not to be primaries. The nodes are known by the names that the
 * Cluster gives them. A node without slots, such as one that a slot is migrating to (ASK), is kept
 * for two seconds after it was last needed, so that calls that were sent there are answered.
 */
#include "base/maths.h"
#include "redis/link.h"
#include "redis/slots.h"

#define GAP_FIRST (50 * WEIR_MILLISECOND)
#define GAP_DOUBLINGS 4
#define STAYS (2 * WEIR_SECOND)
#define NO_NODE UINT16_MAX

struct cluster_node {
    struct client_link *link; /* NULL: this entry is free */
    unsigned slots;
};

struct topology {
    struct client *client;
    struct client_link *asked; /* node that was asked for the map; NULL: no question pending */
    bool known;                /* there is a map */
    bool stale;
    bool none_ready; /* no node was ready when the map was last needed */
    unsigned tries;  /* answers in a row without a map whose primaries can all be reached */
    uint64_t ask_ns;
    size_t count; /* entries of `nodes` that were ever used */
    struct cluster_node nodes[CLIENT_LINKS_MAX];
    uint16_t owner[SLOTS];
    uint16_t next[SLOTS]; /* a map that is being read */
};

/* ---- nodes ---- */

static unsigned free_place(struct topology *t)
{
    for (unsigned i = 0; i < t->count; i++) {
        if (t->nodes[i].link == NULL) {
            return i;
        }
    }
    return t->count < CLIENT_LINKS_MAX ? (unsigned)t->count++ : NO_NODE;
}

static unsigned place_of(const struct topology *t, const struct client_link *link)
{
    unsigned i = 0;
    while (i < t->count && t->nodes[i].link != link) {
        i++;
    }
    return i < t->count ? i : NO_NODE;
}

/* Returns the index of the node at an address, adding it if it is new; an empty host means the host
 * of `by`. A node without slots stays for two seconds from now on. NO_NODE: there is no room, or
 * client_link_open() has failed. */
static unsigned node_at(struct topology *t, struct weir_text host, unsigned port,
                        const struct client_link *by, uint64_t now_ns)
{
    struct weir_text name = host.len == 0 && by != NULL ? text_of(by->host) : host;
    struct client_link *link = client_link_open(t->client, name, port, false);
    unsigned place = link != NULL ? place_of(t, link) : NO_NODE;
    if (link != NULL && place == NO_NODE) {
        place = free_place(t);
        if (place != NO_NODE) {
            t->nodes[place] = (struct cluster_node){.link = link};
        }
    }
    if (place != NO_NODE && t->known && t->nodes[place].slots == 0) {
        client_link_retire(link, now_ns + STAYS, now_ns);
    }
    return place;
}

static void want_seeds(struct topology *t, uint64_t now_ns)
{
    const struct store_url *url = t->client->options->url;
    for (size_t i = 0; i < url->count; i++) {
        const struct store_host *h = &url->hosts[i];
        unsigned place = node_at(t, text_of(h->host), h->port, NULL, now_ns);
        if (place != NO_NODE) {
            client_link_want(t->nodes[place].link, true, now_ns);
        }
    }
}

/* Wants a node that has slots. One without is closed, but only after a while. */
static void want_node(const struct topology *t, unsigned place, uint64_t now_ns)
{
    struct client_link *link = t->nodes[place].link;
    bool needed = t->nodes[place].slots > 0;
    client_link_want(link, needed, now_ns);
    client_link_retire(link, needed ? UINT64_MAX : min_u64(link->retire_ns, now_ns + STAYS),
                       now_ns);
}

static void give_slot(struct topology *t, unsigned slot, unsigned to)
{
    unsigned from = t->owner[slot];
    if (from != NO_NODE) {
        t->nodes[from].slots--;
    }
    if (to != NO_NODE) {
        t->nodes[to].slots++;
    }
    t->owner[slot] = (uint16_t)to;
}

/* ---- the map ---- */

static bool read_map(struct topology *t, const struct client_link *by, struct weir_text reply,
                     uint64_t now_ns)
{
    struct slots_reader reader;
    struct slots_range range;
    int e = slots_begin(&reader, reply) ? 1 : -1;
    bool any = false;
    for (size_t i = 0; i < SLOTS; i++) {
        t->next[i] = NO_NODE;
    }
    while (e == 1 && (e = slots_next(&reader, &range)) == 1) {
        unsigned place =
            range.host.at != NULL ? node_at(t, range.host, range.port, by, now_ns) : NO_NODE;
        for (unsigned slot = range.first; slot <= range.last; slot++) {
            t->next[slot] = (uint16_t)place;
        }
        any = any || place != NO_NODE;
    }
    return e == 0 && any;
}

static bool take_map(struct topology *t, uint64_t now_ns)
{
    bool changed = !t->known;
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (t->owner[slot] != t->next[slot]) {
            changed = true;
            give_slot(t, slot, t->next[slot]);
        }
    }
    t->known = true;
    for (size_t i = 0; i < t->count; i++) {
        if (t->nodes[i].link != NULL) {
            want_node(t, (unsigned)i, now_ns);
        }
    }
    return changed;
}

static bool all_can_be_reached(const struct topology *t)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->nodes[i].slots > 0 && client_link_is_hopeless(t->nodes[i].link)) {
            return false;
        }
    }
    return true;
}

/* Sets the time before which the map is not asked for again. */
static void set_gap(struct topology *t, uint64_t now_ns)
{
    uint64_t gap = GAP_FIRST << min_u64(t->tries, GAP_DOUBLINGS);
    t->ask_ns = client_jitter(t->client, now_ns, gap);
    client_tick_by(t->client, t->ask_ns);
}

static void on_map(void *arg, struct client_link *link, const struct store_reply *reply,
                   uint64_t now_ns)
{
    struct topology *t = arg;
    t->asked = NULL;
    bool read = reply != NULL && read_map(t, link, reply->whole, now_ns);
    if (reply != NULL && !read) {
        client_complain(
            t->client, "%s: names no primary with slots%s, expected a node of a Cluster",
            link->name, t->client->options->permits != NULL ? " in the store's networks" : "");
    }
    bool changed = read && take_map(t, now_ns);
    bool good = read && all_can_be_reached(t);
    t->stale = t->stale || !good;
    t->tries = good ? 0 : t->tries + 1;
    set_gap(t, now_ns);
    if (changed) {
        client_reroute_all(t->client, now_ns);
    } else {
        client_reroute(t->client, now_ns);
    }
}

/* Returns a link that is ready, or NULL. The search begins at a random node, so that a node with an
 * old map is not asked every time. */
static struct client_link *any_ready(struct topology *t)
{
    size_t begin = (size_t)client_random(t->client, t->count);
    for (size_t i = 0; i < t->count; i++) {
        struct client_link *link = t->nodes[(begin + i) % t->count].link;
        if (link != NULL && link->state == LINK_READY) {
            return link;
        }
    }
    return NULL;
}

/* Marks the map as old and asks a node for a new one: now, or as soon as the gap has passed and a
 * node is ready. */
static void refresh(struct topology *t, uint64_t now_ns)
{
    static const struct weir_text words[] = {{"CLUSTER", 7}, {"SLOTS", 5}};
    t->stale = true;
    if (t->asked != NULL) {
        return;
    }
    client_tick_by(t->client, t->ask_ns);
    if (now_ns < t->ask_ns) {
        return;
    }
    struct client_link *link = any_ready(t);
    if (link == NULL) {
        want_seeds(t, now_ns);
        t->none_ready = true;
        t->ask_ns = now_ns + GAP_FIRST;
    } else if (client_ask(link, words, 2, on_map, t) == 0) {
        t->asked = link;
        t->stale = false;
    } else {
        set_gap(t, now_ns);
    }
}

/* ---- topology_ops ---- */

static int create(struct topology *t, struct client *c, uint64_t now_ns)
{
    t->client = c;
    t->stale = true;
    t->none_ready = true;
    for (size_t i = 0; i < SLOTS; i++) {
        t->owner[i] = NO_NODE;
    }
    want_seeds(t, now_ns);
    return t->count > 0 ? 0 : WEIR_ENOMEM;
}

static struct client_link *route(struct topology *t, unsigned slot, uint64_t now_ns, bool *hope)
{
    unsigned owner = t->owner[slot % SLOTS];
    if (owner != NO_NODE) {
        return t->nodes[owner].link;
    }
    if (t->known) {
        refresh(t, now_ns);
    }
    *hope = t->known ? t->asked != NULL : !client_is_hopeless(t->client);
    return NULL;
}

static void ready(struct topology *t, struct client_link *link, uint64_t now_ns)
{
    (void)link;
    if (t->none_ready) {
        t->none_ready = false;
        t->ask_ns = now_ns;
    }
    if (t->stale) {
        refresh(t, now_ns);
    }
}

static void gone(struct topology *t, struct client_link *link, uint64_t now_ns)
{
    unsigned place = place_of(t, link);
    if (place != NO_NODE && t->nodes[place].slots > 0) {
        refresh(t, now_ns);
    }
    client_reroute(t->client, now_ns);
}

static void forgot(struct topology *t, const struct client_link *link)
{
    unsigned place = place_of(t, link);
    if (place != NO_NODE) {
        t->nodes[place].link = NULL;
    }
}

static enum topology_next moved(struct topology *t, const struct redirect *to, unsigned place,
                                uint64_t now_ns)
{
    if (t->owner[to->slot] != place) {
        give_slot(t, to->slot, place);
        want_node(t, place, now_ns);
    }
    refresh(t, now_ns);
    return TOPOLOGY_NOW;
}

static enum topology_next redirected(struct topology *t, const struct client_link *link,
                                     const struct store_reply *reply, uint64_t now_ns,
                                     struct client_link **to)
{
    struct redirect r;
    unsigned place = redirect_read(reply->text, &r) ? node_at(t, r.host, r.port, link, now_ns)
                                                    : (unsigned)NO_NODE;
    if (place == NO_NODE) {
        refresh(t, now_ns);
        return TOPOLOGY_PAUSE;
    }
    if (reply->refusal == STORE_MOVED) {
        return moved(t, &r, place, now_ns);
    }
    *to = t->nodes[place].link;
    return TOPOLOGY_ASKING;
}

static enum topology_next refused(struct topology *t, struct client_link *link,
                                  const struct store_reply *reply, uint64_t now_ns,
                                  struct client_link **to)
{
    switch (reply->refusal) {
    case STORE_MOVED:
    case STORE_ASK:
        return redirected(t, link, reply, now_ns, to);
    case STORE_CLUSTERDOWN:
    case STORE_READONLY:
    case STORE_MASTERDOWN:
    case STORE_NOREPLICAS: /* it may be cut off, and no longer the primary without knowing it */
        refresh(t, now_ns);
        return TOPOLOGY_PAUSE;
    default:
        return TOPOLOGY_PAUSE;
    }
}

static uint64_t tick(struct topology *t, uint64_t now_ns)
{
    if (t->stale && t->asked == NULL && now_ns >= t->ask_ns) {
        refresh(t, now_ns);
    }
    return t->stale && t->asked == NULL ? t->ask_ns : UINT64_MAX;
}

const struct topology_ops topology_cluster = {
    .size = sizeof(struct topology),
    .create = create,
    .route = route,
    .ready = ready,
    .gone = gone,
    .forgot = forgot,
    .refused = refused,
    .tick = tick,
};
