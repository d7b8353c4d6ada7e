#include "support/store/redis_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "redis/slots.h"
#include "shared/core/script.h"

#define AWAIT_MS 60000
#define AGREE_MS 20000
#define FAILOVER_MS 8000
#define CALM_MS 60000 /* down-after-milliseconds while no failover is expected */

void redis_world_give_up(const struct redis_world *w, const char *what, const char *reply)
{
    (void)fprintf(stderr, "redis world in %s: %s: %s\n", w->folder, what,
                  reply != NULL ? reply : "no answer");
    exit(1);
}

/* ---- start and end ---- */

static struct redis_world *to_remove;

static void remove_at_exit(void)
{
    if (to_remove != NULL) {
        redis_world_stop(to_remove);
    }
}

static void open_world(struct redis_world *w)
{
    static bool registered;
    *w = (struct redis_world){.folder = "/tmp/weir-world-XXXXXX"};
    if (mkdtemp(w->folder) == NULL) {
        redis_world_give_up(w, "folder", strerror(errno));
    }
    if (!registered) {
        registered = atexit(remove_at_exit) == 0;
    }
    to_remove = w;
}

void redis_world_stop(struct redis_world *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        redis_node_finish(&w->node[i]);
    }
    (void)rmdir(w->folder);
    w->count = 0;
    if (to_remove == w) {
        to_remove = NULL;
    }
}

static struct redis_node *add_node(struct redis_world *w, bool bus)
{
    struct redis_node *n = &w->node[w->count];
    redis_node_prepare(n, w->folder, w->count++, bus);
    return n;
}

static unsigned down_ms(const struct redis_world_options *o)
{
    return o != NULL && o->down_ms != 0 ? o->down_ms : 1000;
}

static void put_option(struct redis_node *n, const char *name, const char *value)
{
    redis_node_option(n, "--%s", name);
    redis_node_option(n, "%s", value);
}

static void secure(struct redis_node *n, const struct redis_world_options *o)
{
    if (o != NULL && o->tls != NULL) {
        redis_node_secure(n, o->tls->certificates, o->tls->cert != NULL ? o->tls->cert : "server",
                          o->tls->ask);
    }
}

/* Replicas follow at once, and nothing is written to disk. */
static void put_common_options(struct redis_node *n, const struct redis_world_options *o)
{
    char port[16];
    (void)snprintf(port, sizeof port, "%u", n->port);
    put_option(n, "port", port);
    put_option(n, "bind", "127.0.0.1");
    put_option(n, "save", "");
    put_option(n, "appendonly", "no");
    put_option(n, "repl-diskless-sync-delay", "0");
    put_option(n, "repl-ping-replica-period", "1");
    put_option(n, "hz", "100");
    if (o != NULL && o->min_replicas) {
        put_option(n, "min-replicas-to-write", "1");
        put_option(n, "min-replicas-max-lag", "2");
    }
    secure(n, o);
    for (size_t i = 0; o != NULL && o->extra != NULL && o->extra[i] != NULL; i++) {
        redis_node_option(n, "%s", o->extra[i]);
    }
}

static void start_all(struct redis_world *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        redis_node_start(&w->node[i]);
    }
    for (unsigned i = 0; i < w->count; i++) {
        redis_node_await(&w->node[i]);
    }
}

/* Makes "scheme://host:port,..." from the nodes first to last; "redis" in front is the same for all
 * kinds, and is "rediss" with TLS. */
static void make_url(struct redis_world *w, const char *kind, unsigned first, unsigned last,
                     const char *end)
{
    size_t len =
        (size_t)snprintf(w->url, sizeof w->url, "redis%s%s://",
                         w->node[first].public_port != w->node[first].port ? "s" : "", kind);
    for (unsigned i = first; i <= last; i++) {
        len += (size_t)snprintf(w->url + len, sizeof w->url - len, "%s127.0.0.1:%u",
                                i > first ? "," : "", w->node[i].public_port);
    }
    (void)snprintf(w->url + len, sizeof w->url - len, "%s", end);
}

void redis_world_alone(struct redis_world *w, const struct redis_world_options *o)
{
    open_world(w);
    put_common_options(add_node(w, false), o);
    start_all(w);
    make_url(w, "", 0, 0, "");
}

static int node_at_port(const struct redis_world *w, const char *port)
{
    for (unsigned i = 0; i < w->count; i++) {
        unsigned number = (unsigned)strtoul(port, NULL, 10);
        if (number == w->node[i].port || number == w->node[i].public_port) {
            return (int)i;
        }
    }
    return -1;
}

/* Makes a node id: 40 hexadecimal digits. */
static void make_id(char id[41])
{
    unsigned char random[20];
    if (getrandom(random, sizeof random, 0) != sizeof random) {
        exit(1);
    }
    for (size_t i = 0; i < sizeof random; i++) {
        (void)snprintf(id + 2 * i, 3, "%02x", random[i]);
    }
}

/* ---- Sentinel ---- */

/* Writes the file of a Sentinel. It names the replica and the other Sentinels, so that the Sentinel
 * need not discover them. */
static void write_sentinel(const struct redis_world *w, const struct redis_node *n)
{
    char text[2048];
    size_t len =
        (size_t)snprintf(text, sizeof text,
                         "port %u\nbind 127.0.0.1\nsentinel myid %s\n"
                         "sentinel monitor " REDIS_MASTER_NAME " 127.0.0.1 %u 2\n"
                         "sentinel down-after-milliseconds " REDIS_MASTER_NAME " %u\n"
                         "sentinel failover-timeout " REDIS_MASTER_NAME " 3000\n"
                         "sentinel known-replica " REDIS_MASTER_NAME " 127.0.0.1 %u\n",
                         n->port, n->id, w->node[0].public_port, CALM_MS, w->node[1].public_port);
    for (unsigned i = REDIS_SENTINELS; i < w->count; i++) {
        const struct redis_node *other = &w->node[i];
        if (other != n) {
            len +=
                (size_t)snprintf(text + len, sizeof text - len,
                                 "sentinel known-sentinel " REDIS_MASTER_NAME " 127.0.0.1 %u %s\n",
                                 other->public_port, other->id);
        }
    }
    redis_node_file(n, "sentinel.conf", (struct weir_text){text, len});
}

static bool follows(struct redis_node *n)
{
    const char *reply = redis_node_run(n, "INFO replication");
    return reply != NULL && strstr(reply, "master_link_status:up") != NULL;
}

static bool sentinel_sees(struct redis_node *n, const char *field, const char *value)
{
    char search[64];
    const char *reply = redis_node_run(n, "SENTINEL MASTER %s", REDIS_MASTER_NAME);
    (void)snprintf(search, sizeof search, "\n%s\n%s\n", field, value);
    return reply != NULL && strstr(reply, search) != NULL;
}

/* Returns true if all connections are open and the Sentinel knows that the replica follows. */
static bool sentinel_is_ready(struct redis_node *n)
{
    const char *reply = redis_node_run(n, "SENTINEL REPLICAS %s", REDIS_MASTER_NAME);
    return reply != NULL && strstr(reply, "master-link-status\nok\n") != NULL &&
           strstr(reply, "\nflags\nslave\n") != NULL && sentinel_sees(n, "flags", "master") &&
           sentinel_sees(n, "num-other-sentinels", "2") && sentinel_sees(n, "num-slaves", "1");
}

void redis_world_sentinel(struct redis_world *w, const struct redis_world_options *o)
{
    open_world(w);
    for (unsigned i = 0; i < REDIS_SENTINELS; i++) {
        put_common_options(add_node(w, false), o);
    }
    redis_node_option(&w->node[1], "--replicaof");
    redis_node_option(&w->node[1], "127.0.0.1");
    redis_node_option(&w->node[1], "%u", w->node[0].public_port);
    start_all(w);
    redis_node_await_ready(&w->node[1], "the replica follows its primary", follows);
    if (!redis_world_await_replica(w, 0)) {
        redis_world_give_up(w, "no replica", NULL);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct redis_node *n = add_node(w, false);
        make_id(n->id);
        redis_node_option(n, "sentinel.conf");
        redis_node_option(n, "--sentinel");
        secure(n, o);
    }
    for (unsigned i = REDIS_SENTINELS; i < w->count; i++) {
        write_sentinel(w, &w->node[i]);
        redis_node_start(&w->node[i]);
    }
    for (unsigned i = REDIS_SENTINELS; i < w->count; i++) {
        redis_node_await(&w->node[i]);
        redis_node_await_ready(&w->node[i], "the Sentinel sees the others", sentinel_is_ready);
        /* A master that comes back is made a replica after four of these periods and one look at
         * it. A Sentinel that a busy machine kept from running for a while must not stay in TILT
         * mode for half a minute. */
        (void)redis_node_run(&w->node[i], "SENTINEL DEBUG PUBLISH-PERIOD 250 INFO-PERIOD 250 "
                                          "TILT-TRIGGER 20000 MIN-LINK-RECONNECT-PERIOD 1000");
    }
    w->down_ms = down_ms(o);
    make_url(w, "-sentinel", REDIS_SENTINELS, w->count - 1, "/" REDIS_MASTER_NAME);
}

static void set_down_after(struct redis_world *w, unsigned ms)
{
    for (unsigned i = REDIS_SENTINELS; i < w->count; i++) {
        if (redis_node_runs(&w->node[i])) {
            (void)redis_node_run(&w->node[i], "SENTINEL SET %s down-after-milliseconds %u",
                                 REDIS_MASTER_NAME, ms);
        }
    }
}

void redis_world_expect_failover(struct redis_world *w)
{
    if (w->down_ms > 0) {
        set_down_after(w, w->down_ms);
    }
}

static int master_by(struct redis_world *w, struct redis_node *sentinel)
{
    char port[16];
    redis_line(redis_node_run(sentinel, "SENTINEL get-master-addr-by-name %s", REDIS_MASTER_NAME),
               1, port, sizeof port);
    return node_at_port(w, port);
}

int redis_world_master(struct redis_world *w)
{
    int master = -1;
    for (unsigned i = REDIS_SENTINELS; i < w->count && master < 0; i++) {
        master = redis_node_runs(&w->node[i]) ? master_by(w, &w->node[i]) : -1;
    }
    return master;
}

static bool says_master(struct redis_node *n)
{
    char role[16];
    redis_line(redis_node_run(n, "ROLE"), 0, role, sizeof role);
    return strcmp(role, "master") == 0;
}

/* Returns the master that all running Sentinels name, if it is not `old`; otherwise -1. */
static int agreed_master(struct redis_world *w, int old)
{
    int master = redis_world_master(w);
    for (unsigned i = REDIS_SENTINELS; i < w->count && master >= 0; i++) {
        if (redis_node_runs(&w->node[i]) && master_by(w, &w->node[i]) != master) {
            master = -1;
        }
    }
    bool good = master >= 0 && master != old && redis_node_runs(&w->node[master]);
    return good && says_master(&w->node[master]) ? master : -1;
}

static int await_master(struct redis_world *w, int old, uint64_t within_ms)
{
    uint64_t end = redis_now_ms() + within_ms;
    int master;
    while ((master = agreed_master(w, old)) < 0 && redis_now_ms() < end) {
        redis_look_again_soon();
    }
    return master;
}

/* If the Sentinels repeatedly fail to elect a leader, one of them is told to start the failover. */
int redis_world_await_master(struct redis_world *w, int old)
{
    int master = await_master(w, old, AGREE_MS);
    if (master < 0) {
        (void)redis_node_run(&w->node[REDIS_SENTINELS], "SENTINEL FAILOVER %s", REDIS_MASTER_NAME);
        master = await_master(w, old, AWAIT_MS - AGREE_MS);
    }
    if (master < 0) {
        redis_node_show_log(&w->node[REDIS_SENTINELS]);
    }
    set_down_after(w, CALM_MS);
    return master;
}

/* A Sentinel may give up a failover that it has begun; then it is asked again. */
int redis_world_failover(struct redis_world *w)
{
    int old = redis_world_master(w);
    const char *reply = "";
    uint64_t end = redis_now_ms() + AWAIT_MS;
    do {
        reply =
            redis_node_run(&w->node[REDIS_SENTINELS], "SENTINEL FAILOVER %s", REDIS_MASTER_NAME);
        bool begun = reply != NULL && strcmp(reply, "OK") == 0;
        int master = begun ? await_master(w, old, FAILOVER_MS) : -1;
        if (master >= 0) {
            return master;
        }
        redis_look_again_soon();
    } while (redis_now_ms() < end);
    redis_world_give_up(w, "SENTINEL FAILOVER", reply);
    return -1;
}

/* ---- replicas ---- */

int redis_world_replica_of(struct redis_world *w, int primary)
{
    char line[16];
    for (unsigned i = 0; i < w->count; i++) {
        const char *reply =
            redis_node_runs(&w->node[i]) ? redis_node_run(&w->node[i], "ROLE") : NULL;
        if (reply != NULL && strncmp(reply, "slave", 5) == 0) {
            redis_line(reply, 2, line, sizeof line);
            if (node_at_port(w, line) == primary) {
                return (int)i;
            }
        }
    }
    return -1;
}

static bool has_replica(struct redis_world *w, int primary)
{
    const char *reply = redis_node_run(&w->node[primary], "INFO replication");
    return reply != NULL && strstr(reply, "state=online") != NULL &&
           redis_world_replica_of(w, primary) >= 0;
}

/* Reads the offset from the replica itself, because the replica reports it to its primary only once
 * a second. */
static bool has_followed(struct redis_world *w, int primary, long long offset)
{
    int replica = redis_world_replica_of(w, primary);
    return replica >= 0 &&
           redis_node_info(&w->node[replica], "replication", "slave_repl_offset") >= offset;
}

/* Sends a message that the replica must have received, because a replica may be called online and
 * get nothing for a second. */
bool redis_world_await_replica(struct redis_world *w, int primary)
{
    uint64_t end = redis_now_ms() + AWAIT_MS;
    while (!has_replica(w, primary) && redis_now_ms() < end) {
        redis_look_again_soon();
    }
    (void)redis_node_run(&w->node[primary], "PUBLISH weir-world hello");
    long long offset = redis_node_info(&w->node[primary], "replication", "master_repl_offset");
    bool followed;
    while (!(followed = has_followed(w, primary, offset)) && redis_now_ms() < end) {
        redis_look_again_soon();
    }
    if (!followed) {
        const char *reply = redis_node_run(&w->node[primary], "INFO replication");
        (void)fprintf(stderr, "no replica has followed node %d to %lld:\n%s\n", primary, offset,
                      reply != NULL ? reply : "no answer");
    }
    return followed;
}

/* ---- Cluster ---- */

static unsigned first_slot(unsigned primary)
{
    return (primary * SLOTS + REDIS_PRIMARIES - 1) / REDIS_PRIMARIES;
}

/* Writes nodes.conf, the memory of a Cluster node, so that the nodes need not be introduced to each
 * other. */
static void write_nodes(const struct redis_world *w, const struct redis_node *self)
{
    char text[4096];
    size_t len = 0;
    for (unsigned i = 0; i < w->count; i++) {
        const struct redis_node *n = &w->node[i];
        unsigned primary = i % REDIS_PRIMARIES;
        bool replica = i >= REDIS_PRIMARIES;
        len += (size_t)snprintf(
            text + len, sizeof text - len, "%s 127.0.0.1:%u@%u %s%s %s 0 0 %u connected", n->id,
            n->public_port, n->bus, n == self ? "myself," : "", replica ? "slave" : "master",
            replica ? w->node[primary].id : "-", primary + 1);
        if (!replica) {
            len += (size_t)snprintf(text + len, sizeof text - len, " %u-%u", first_slot(primary),
                                    first_slot(primary + 1) - 1);
        }
        len += (size_t)snprintf(text + len, sizeof text - len, "\n");
    }
    len += (size_t)snprintf(text + len, sizeof text - len, "vars currentEpoch %u lastVoteEpoch 0\n",
                            REDIS_PRIMARIES);
    redis_node_file(self, "nodes.conf", (struct weir_text){text, len});
}

static bool cluster_is_ok(struct redis_node *n)
{
    const char *reply = redis_node_run(n, "CLUSTER INFO");
    return reply != NULL && strstr(reply, "cluster_state:ok") != NULL;
}

static void await_cluster(struct redis_world *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        redis_node_await_ready(&w->node[i], "the Cluster is complete", cluster_is_ok);
    }
    for (unsigned i = 0; i < REDIS_PRIMARIES; i++) {
        struct redis_node *replica = &w->node[REDIS_PRIMARIES + i];
        redis_node_await_ready(replica, "the replica follows its primary", follows);
        if (!redis_world_await_replica(w, (int)i)) {
            redis_world_give_up(w, "no replica", NULL);
        }
    }
}

void redis_world_cluster(struct redis_world *w, const struct redis_world_options *o)
{
    open_world(w);
    for (unsigned i = 0; i < 2 * REDIS_PRIMARIES; i++) {
        struct redis_node *n = add_node(w, true);
        make_id(n->id);
        put_common_options(n, o);
        put_option(n, "cluster-enabled", "yes");
        put_option(n, "tls-cluster", o != NULL && o->tls != NULL ? "yes" : "no");
        redis_node_option(n, "--cluster-port");
        redis_node_option(n, "%u", n->bus);
        redis_node_option(n, "--cluster-node-timeout");
        redis_node_option(n, "%u", down_ms(o));
        put_option(n, "cluster-replica-validity-factor", "0");
        put_option(n, "cluster-allow-replica-migration", "no"); /* each primary keeps its replica */
    }
    for (unsigned i = 0; i < w->count; i++) {
        write_nodes(w, &w->node[i]);
    }
    start_all(w);
    await_cluster(w);
    make_url(w, "-cluster", 0, w->count - 1, "");
}

/* Nodes do not vote for two replicas of one primary within two of their timeouts, so this tries
 * again. */
int redis_world_promote(struct redis_world *w, int primary)
{
    uint64_t end = redis_now_ms() + AWAIT_MS;
    uint64_t again = 0;
    int replica;
    while ((replica = redis_world_replica_of(w, primary)) < 0) {
        if (redis_now_ms() > end) {
            redis_world_give_up(w, "CLUSTER FAILOVER", "there is no replica");
        }
        redis_look_again_soon();
    }
    while (!says_master(&w->node[replica])) {
        const char *reply = "";
        if (redis_now_ms() >= again) {
            reply = redis_node_run(&w->node[replica], "CLUSTER FAILOVER");
            again = redis_now_ms() + 2500;
        }
        if (redis_now_ms() > end) {
            redis_world_give_up(w, "CLUSTER FAILOVER did not happen", reply);
        }
        redis_look_again_soon();
    }
    return replica;
}
