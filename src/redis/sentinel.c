/*
 * Topology of redis-sentinel://. Calls go to the node that the Sentinels name as the master, after
 * that node has confirmed it (ROLE).
 *
 * While the master is connected, one Sentinel is asked about it every 0.5 to 1 s. In doubt (the
 * master is not known, its connection has ended, it has replied READONLY or NOREPLICAS, that
 * Sentinel's connection has ended, or that Sentinel names another master) all Sentinels are asked
 * at once, every 50 to 100 ms, until a master is connected, takes calls, and is named by one of
 * them.
 *
 * The Sentinels are polled; +switch-master is not subscribed to. A message can be missed (a
 * connection breaks, a Sentinel is cut off), so polling would be needed all the same; and a
 * connection that has subscribed takes no questions, so each thread of each node would need two.
 * The cost of polling: a master that was replaced while its own connection stayed open is used for
 * up to a second more. That can only happen to a master that the Sentinels do not reach, since
 * Redis ends the connections of clients when it is made a replica; and such a master stops by
 * itself, with min-replicas-to-write, soon after min-replicas-max-lag
 * (docs/explanation/fleet-bounds.md).
 *
 * A Sentinel that is cut off may name an old master. So answers are votes: of the answers since the
 * doubt began, those that name another master count against those that name the present one. The
 * present master is replaced if the other has more votes and, as long as its connection stands,
 * only if more than half of all Sentinels name the other.
 */
#include "base/maths.h"
#include "redis/link.h"
#include "redis/slots.h"

#define ASK_AGAIN WEIR_SECOND
#define ASK_IN_DOUBT (100 * WEIR_MILLISECOND)
#define DOUBT_AFTER_REFUSAL WEIR_SECOND

struct watcher {
    struct client_link *link;
    struct store_host
        named; /* its answer since a reply made the topology doubtful; port 0: none yet */
    bool asked;
};

struct topology {
    struct client *client;
    struct watcher watchers[STORE_HOSTS_MAX];
    size_t count;
    struct watcher *keeper; /* the only one that is asked; NULL: in doubt, all are asked */
    uint64_t doubt_ns;      /* the doubt lasts at least until then */
    uint64_t ask_ns;
};

static struct watcher *watcher_of(struct topology *t, const struct client_link *link)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->watchers[i].link == link) {
            return &t->watchers[i];
        }
    }
    return NULL;
}

static bool is_at(const struct store_host *named, const char *host, unsigned port)
{
    return named->port == port && strcmp(named->host, host) == 0;
}

static bool names(const struct watcher *w, const struct client_link *link)
{
    return link != NULL && is_at(&w->named, link->host, link->port);
}

static bool stands(const struct topology *t)
{
    return t->client->master != NULL && t->client->master->state == LINK_READY;
}

/* ---- asking the Sentinels ---- */

static void on_named(void *arg, struct client_link *link, const struct store_reply *reply,
                     uint64_t now_ns);

static void ask(struct topology *t, struct watcher *w)
{
    struct weir_text master = text_of(t->client->options->url->master);
    struct weir_text words[] = {TEXT("SENTINEL"), TEXT("get-master-addr-by-name"), master};
    if (!w->asked && w->link->state == LINK_READY) {
        w->asked = client_ask(w->link, words, 3, on_named, t) == 0;
    }
}

/* Asks the keeper, or in doubt all Sentinels, and sets the time of the next question. */
static void ask_all(struct topology *t, uint64_t now_ns)
{
    uint64_t gap = t->keeper != NULL ? ASK_AGAIN : ASK_IN_DOUBT;
    for (size_t i = 0; i < t->count; i++) {
        if (t->keeper == NULL || t->keeper == &t->watchers[i]) {
            ask(t, &t->watchers[i]);
        }
    }
    t->ask_ns = client_jitter(t->client, now_ns, gap);
    client_tick_by(t->client, t->ask_ns);
}

static void forget_answers(struct topology *t)
{
    for (size_t i = 0; i < t->count; i++) {
        t->watchers[i].named.port = 0;
    }
}

static void begin_to_doubt(struct topology *t, uint64_t now_ns)
{
    t->keeper = NULL;
    for (size_t i = 0; i < t->count; i++) {
        client_link_want(t->watchers[i].link, true, now_ns);
    }
    ask_all(t, now_ns);
}

static void doubt(struct topology *t, uint64_t now_ns)
{
    if (t->keeper != NULL) {
        forget_answers(t);
        begin_to_doubt(t, now_ns);
    }
}

/* Ends the doubt if the master is connected and takes calls, and a Sentinel names it: that Sentinel
 * alone is asked from now on. */
static void settle(struct topology *t, uint64_t now_ns)
{
    bool good = stands(t) && !client_link_is_hopeless(t->client->master);
    if (t->keeper != NULL || !good || now_ns < t->doubt_ns) {
        return;
    }
    for (size_t i = 0; i < t->count && t->keeper == NULL; i++) {
        bool sure =
            t->watchers[i].link->state == LINK_READY && names(&t->watchers[i], t->client->master);
        t->keeper = sure ? &t->watchers[i] : NULL;
    }
    for (size_t i = 0; i < t->count && t->keeper != NULL; i++) {
        if (t->keeper != &t->watchers[i]) {
            client_link_want(t->watchers[i].link, false, now_ns);
            client_link_drop(t->watchers[i].link, NULL, now_ns);
        }
    }
    t->ask_ns = t->keeper != NULL ? now_ns + ASK_AGAIN : t->ask_ns;
}

/* ---- following their answers ---- */

/* Stops sending calls to a former master. Its connection is kept for one deadline more, so that
 * calls that were sent there may still be answered. */
static void retire(struct topology *t, struct client_link *link, uint64_t now_ns)
{
    client_link_retire(link, add_sat(now_ns, t->client->options->deadline_ns), now_ns);
    client_link_want(link, false, now_ns);
    client_link_reroute(link, now_ns);
}

static void follow(struct topology *t, const struct store_host *host, uint64_t now_ns)
{
    struct client_link *link = client_link_open(t->client, text_of(host->host), host->port, false);
    struct client_link *before = t->client->master;
    if (link == NULL || watcher_of(t, link) != NULL) {
        char room[LINK_SHOWN_MAX];
        struct weir_text named =
            redact_write(t->client->options->redact, text_of(host->host), room, sizeof room);
        client_complain(t->client,
                        "the Sentinels name %.*s:%u as the master, but it is a Sentinel, not a "
                        "valid address, or outside of the store's networks",
                        TEXT_ARGS(named), host->port);
        return;
    }
    t->client->master = link;
    client_link_retire(link, UINT64_MAX, now_ns); /* it may be a former master */
    client_link_want(link, true, now_ns);
    if (before != NULL) {
        retire(t, before, now_ns);
    }
    client_reroute(t->client, now_ns);
}

static size_t votes_for(const struct topology *t, const char *host, unsigned port)
{
    size_t votes = 0;
    for (size_t i = 0; i < t->count; i++) {
        votes += is_at(&t->watchers[i].named, host, port);
    }
    return votes;
}

/* Replaces the master by the one that this Sentinel names, if the votes are enough. */
static void weigh(struct topology *t, const struct watcher *w, uint64_t now_ns)
{
    if (w->named.port == 0 || names(w, t->client->master)) {
        return;
    }
    size_t votes = votes_for(t, w->named.host, w->named.port);
    bool more = t->client->master == NULL ||
                votes > votes_for(t, t->client->master->host, t->client->master->port);
    if (more && (!stands(t) || 2 * votes > t->count)) {
        follow(t, &w->named, now_ns);
    }
}

/* Counts all votes again. Votes that were not enough against a connected master may be enough after
 * its connection has ended. */
static void weigh_all(struct topology *t, uint64_t now_ns)
{
    for (size_t i = 0; i < t->count; i++) {
        weigh(t, &t->watchers[i], now_ns);
    }
}

/* Reads the reply to get-master-addr-by-name. Returns false if it is not an address. */
static bool read_address(struct weir_text reply, struct store_host *host)
{
    struct weir_text rest = reply;
    bool two = value_array(&rest) == 2;
    struct weir_text name = value_text(&rest);
    if (!two || name.len == 0 || !slots_is_host(name) ||
        !store_port_read(value_text(&rest), &host->port)) {
        return false;
    }
    memcpy(host->host, name.at, name.len);
    host->host[name.len] = 0;
    return true;
}

static void complain(struct topology *t, const struct client_link *link,
                     const struct store_reply *reply)
{
    char room[LINK_SHOWN_MAX];
    struct weir_text said = reply->type == '-' ? link_shown_error(link, reply->text, room)
                                               : TEXT("knows no master named");
    if (!stands(t)) {
        client_complain(t->client, "%s: %.*s '%s'", link->name, TEXT_ARGS(said),
                        t->client->options->url->master);
    }
}

static void on_named(void *arg, struct client_link *link, const struct store_reply *reply,
                     uint64_t now_ns)
{
    struct topology *t = arg;
    struct watcher *w = watcher_of(t, link);
    struct store_host named = {.port = 0};
    w->asked = false;
    if (reply == NULL) {
        return;
    }
    if (!read_address(reply->whole, &named)) {
        complain(t, link, reply);
        named.port = 0;
    }
    w->named = named;
    if (!names(w, t->client->master) && t->keeper != NULL) {
        doubt(t, now_ns);
        w->named = named;
    }
    weigh(t, w, now_ns);
    settle(t, now_ns);
}

/* ---- topology_ops ---- */

static int create(struct topology *t, struct client *c, uint64_t now_ns)
{
    const struct store_url *url = c->options->url;
    t->client = c;
    for (size_t i = 0; i < url->count; i++) {
        struct client_link *link =
            client_link_open(c, text_of(url->hosts[i].host), url->hosts[i].port, true);
        if (link == NULL) {
            return WEIR_ENOMEM;
        }
        if (watcher_of(t, link) == NULL) {
            t->watchers[t->count++].link = link;
        }
    }
    begin_to_doubt(t, now_ns);
    return 0;
}

static void ask_role(struct client_link *link)
{
    client_link_ask_role(link, "is not a master, although a Sentinel names it");
}

static void greet(struct topology *t, struct client_link *link)
{
    if (link == t->client->master) {
        ask_role(link);
    }
}

static void ready(struct topology *t, struct client_link *link, uint64_t now_ns)
{
    struct watcher *w = watcher_of(t, link);
    if (w != NULL) {
        ask(t, w);
    } else if (link == t->client->master) {
        if (t->keeper == NULL) {
            ask_all(t, now_ns); /* the master may have been replaced while it was greeted */
        }
        settle(t, now_ns);
        client_reroute(t->client, now_ns);
    }
}

static void gone(struct topology *t, struct client_link *link, uint64_t now_ns)
{
    struct watcher *w = watcher_of(t, link);
    if (w != NULL) {
        w->named.port = 0;
    }
    if (link == t->client->master || (w != NULL && w == t->keeper)) {
        doubt(t, now_ns);
    }
    if (link == t->client->master) {
        weigh_all(t, now_ns);
    }
    client_reroute(t->client, now_ns);
}

static enum topology_next refused(struct topology *t, struct client_link *link,
                                  const struct store_reply *reply, uint64_t now_ns,
                                  struct client_link **to)
{
    (void)to;
    if (client_link_is_of_cluster(link, reply)) {
        return TOPOLOGY_END;
    }
    /* A master without replicas may be cut off from them, together with the one Sentinel that is
     * asked. */
    bool doubtful = reply->refusal == STORE_READONLY || reply->refusal == STORE_NOREPLICAS;
    if (doubtful && link == t->client->master) {
        t->doubt_ns = now_ns + DOUBT_AFTER_REFUSAL;
        ask_role(link);
        doubt(t, now_ns);
    }
    return TOPOLOGY_PAUSE;
}

static uint64_t tick(struct topology *t, uint64_t now_ns)
{
    if (now_ns >= t->ask_ns) {
        ask_all(t, now_ns);
    }
    return t->ask_ns;
}

const struct topology_ops topology_sentinel = {
    .size = sizeof(struct topology),
    .create = create,
    .greet = greet,
    .ready = ready,
    .gone = gone,
    .refused = refused,
    .tick = tick,
};
