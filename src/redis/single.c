/*
 * Topology of redis://: a single store. If the URL has several hosts, the first one that answers as
 * a master is used; the others are tried again when its connection has ended. As long as no master
 * is known all hosts are tried, each with its own backoff and breaker.
 *
 * A master that replies READONLY is asked for its role. Unless it says that it is a master, its
 * connection is closed and made anew, with only one host too: after a failover the same name may
 * lead to another server, while the old master keeps its connections (managed services and the
 * Services of Kubernetes do this). The next connection is asked for its role before it gets calls.
 */
#include "redis/link.h"

struct topology {
    struct client *client;
    struct client_link *links[STORE_HOSTS_MAX];
    size_t count;
    /* READONLY was replied, and no link has been ready since. */
    bool doubted;
};

static void want_all(struct topology *t, uint64_t now_ns)
{
    for (size_t i = 0; i < t->count; i++) {
        client_link_want(t->links[i], true, now_ns);
    }
}

static int add(struct topology *t, const struct store_host *host)
{
    struct client_link *link = client_link_open(t->client, text_of(host->host), host->port, false);
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

static int create(struct topology *t, struct client *c, uint64_t now_ns)
{
    const struct store_url *url = c->options->url;
    t->client = c;
    for (size_t i = 0; i < url->count; i++) {
        if (add(t, &url->hosts[i]) != 0) {
            return WEIR_ENOMEM;
        }
    }
    t->client->master = t->count == 1 ? t->links[0] : NULL;
    want_all(t, now_ns);
    return 0;
}

/* ---- finding the master ---- */

/*
 * Closes the connection of a link that is not a master. With several hosts another one may be the
 * master. The only host has failed: its breaker's probes, at least one in a second, connect anew.
 */
static void leave(struct topology *t, struct client_link *link, uint64_t now_ns)
{
    if (t->count > 1) {
        client_link_drop(link, "is not a master", now_ns);
    } else {
        link_fail(link, now_ns, "READONLY, it is not a master");
    }
}

/* Handles the reply to ROLE. A link that may not ask for it (an error) is taken for a master until
 * it replies READONLY. */
static void on_role(void *arg, struct client_link *link, const struct store_reply *reply,
                    uint64_t now_ns)
{
    struct topology *t = arg;
    if (reply == NULL) {
        return;
    }
    if (text_starts(reply->text, "NOAUTH")) {
        link_fail(link, now_ns, "requires a password");
    } else if (reply->type == '-' ? link->state == LINK_READY : !client_role_is_master(reply)) {
        leave(t, link, now_ns);
    } else if (link->state == LINK_READY) {
        t->doubted = false;
    }
}

static void greet(struct topology *t, struct client_link *link)
{
    if (t->count > 1) {
        client_link_ask_role(link, "is not a master");
    } else if (t->doubted) {
        (void)client_ask(link, &TEXT("ROLE"), 1, on_role, t);
    }
}

static void ready(struct topology *t, struct client_link *link, uint64_t now_ns)
{
    if (t->count > 1 && t->client->master != NULL) {
        client_link_drop(link, NULL, now_ns);
        return;
    }
    t->client->master = link;
    t->doubted = false;
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
    if (t->count > 1 && t->client->master == link) {
        t->client->master = NULL;
        want_all(t, now_ns);
    }
    client_reroute(t->client, now_ns);
}

static enum topology_next refused(struct topology *t, struct client_link *link,
                                  const struct store_reply *reply, uint64_t now_ns,
                                  struct client_link **to)
{
    (void)now_ns;
    (void)to;
    if (client_link_is_of_cluster(link, reply)) {
        return TOPOLOGY_END;
    }
    if (reply->refusal == STORE_READONLY && t->client->master == link) {
        /* The question follows the calls that were sent, so they are answered before its answer
         * can close the connection. */
        t->doubted = t->doubted || client_ask(link, &TEXT("ROLE"), 1, on_role, t) == 0;
    }
    return TOPOLOGY_PAUSE;
}

const struct topology_ops topology_alone = {
    .size = sizeof(struct topology),
    .create = create,
    .greet = greet,
    .ready = ready,
    .gone = gone,
    .refused = refused,
};
