/*
 * Topology of redis://: a single store. If the URL has several hosts, the first one that answers as
 * a master is used; the others are tried again when its connection has ended. As long as no master
 * is known all hosts are tried, each with its own backoff and breaker.
 */
#include <stdlib.h>

#include "redis/topology.h"

struct topology {
    struct client *client;
    struct client_link *links[STORE_HOSTS_MAX];
    size_t count;
    struct client_link *master; /* NULL: not known */
    bool asked;                 /* ROLE was asked again; the answer is pending */
};

static void want_all(struct topology *t, uint64_t now_ns)
{
    for (size_t i = 0; i < t->count; i++) {
        client_link_want(t->links[i], true, now_ns);
    }
}

static int add(struct topology *t, const struct store_host *host)
{
    struct client_link *link = client_link_open(t->client, text_of(host->host), host->port, 0);
    if (link == NULL) {
        return WEIR_ENOMEM;
    }
    for (size_t i = 0; i < t->count; i++) {
        if (t->links[i] == link) {
            return 0;
        }
    }
    t->links[t->count++] = link;
    return 0;
}

static int create(struct client *c, uint64_t now_ns, struct topology **out)
{
    const struct store_url *url = client_options_of(c)->url;
    struct topology *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return WEIR_ENOMEM;
    }
    t->client = c;
    for (size_t i = 0; i < url->count; i++) {
        if (add(t, &url->hosts[i]) != 0) {
            free(t);
            return WEIR_ENOMEM;
        }
    }
    t->master = t->count == 1 ? t->links[0] : NULL;
    want_all(t, now_ns);
    *out = t;
    return 0;
}

static void destroy(struct topology *t)
{
    free(t);
}

static struct client_link *route(struct topology *t, unsigned slot, uint64_t now_ns, bool *hope)
{
    (void)slot;
    (void)now_ns;
    *hope = false;
    for (size_t i = 0; t->master == NULL && i < t->count; i++) {
        *hope = *hope || !client_link_is_hopeless(t->links[i]);
    }
    return t->master;
}

/* ---- finding the master ---- */

static void on_role(void *arg, struct client_link *link, const struct text *reply, uint64_t now_ns)
{
    struct topology *t = arg;
    t->asked = false;
    client_link_judge(link, reply, "not a master", now_ns);
}

static void greet(struct topology *t, struct client_link *link, uint64_t now_ns)
{
    (void)now_ns;
    if (t->count > 1) {
        (void)client_ask(link, &TEXT("ROLE"), 1, on_role, t);
    }
}

static void ready(struct topology *t, struct client_link *link, uint64_t now_ns)
{
    if (t->count > 1 && t->master != NULL) {
        client_link_drop(link, NULL, now_ns);
        return;
    }
    t->master = link;
    for (size_t i = 0; i < t->count; i++) {
        if (t->links[i] != link) {
            client_link_want(t->links[i], false, now_ns);
            client_link_drop(t->links[i], NULL, now_ns);
        }
    }
    client_reroute(t->client, now_ns);
}

static void gone(struct topology *t, struct client_link *link, uint64_t now_ns)
{
    if (t->count > 1 && t->master == link) {
        t->master = NULL;
        t->asked = false;
        want_all(t, now_ns);
    }
    client_reroute(t->client, now_ns);
}

/* Asks the master for its role again. The question follows the calls that were sent, so they are
 * answered before its answer can close the connection. */
static void ask_role_again(struct topology *t, struct client_link *link)
{
    if (t->count > 1 && t->master == link && !t->asked) {
        t->asked = client_ask(link, &TEXT("ROLE"), 1, on_role, t) == 0;
    }
}

static enum topology_next refused(struct topology *t, struct client_link *link, unsigned slot,
                                  const struct store_reply *reply, uint64_t now_ns,
                                  struct client_link **to)
{
    (void)slot;
    (void)now_ns;
    (void)to;
    if (reply->refusal == STORE_MOVED || reply->refusal == STORE_ASK) {
        client_complain(t->client, "%s: is part of a Cluster, expected redis-cluster://",
                        client_link_name(link));
        return TOPOLOGY_END;
    }
    if (reply->refusal == STORE_READONLY) {
        ask_role_again(t, link);
    }
    return TOPOLOGY_PAUSE;
}

static uint64_t tick(struct topology *t, uint64_t now_ns)
{
    (void)t;
    (void)now_ns;
    return UINT64_MAX;
}

const struct topology_ops topology_alone = {
    .create = create,
    .destroy = destroy,
    .route = route,
    .greet = greet,
    .ready = ready,
    .gone = gone,
    .refused = refused,
    .tick = tick,
};
