/*
 * Two nodes of a fleet share one limit through Redis: together they admit as much
 * as one node would.
 *
 *     fleet_wait redis://127.0.0.1:6379
 *
 * Each fleet has its own thread, which talks to the store; weir_fleet_check() waits for the answer
 * and may be called from any thread. Exits with 1 if the store answered and the total is not exact.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <weir_fleet.h>

#define NODES 2
#define CALLS 40
#define QUOTA 50

struct node {
    pthread_t thread;
    struct weir_fleet *fleet;
    struct weir_fleet_limit *limit;
    unsigned allowed, denied, degraded;
};

static int open_node(struct node *n, const char *url)
{
    struct weir_fleet_options f = WEIR_FLEET_OPTIONS_INIT;
    struct weir_fleet_limit_options l = WEIR_FLEET_LIMIT_OPTIONS_INIT;
    struct weir_error error;
    f.url = url;
    f.deadline_ns = WEIR_SECOND; /* for a busy machine; the default is 5 ms */
    l.name = "example";          /* all nodes with this name share the limit */
    l.limit.algorithm = WEIR_TOKEN_BUCKET;
    l.limit.count = QUOTA;
    l.limit.period_ns = WEIR_DAY;
    l.on_store_failure = WEIR_FLEET_CLOSED; /* deny without the store; see also LOCAL and OPEN */
    l.deny_cache_ns = 1;                    /* every question goes to the store */
    if (weir_fleet_open(&n->fleet, &f, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return -1;
    }
    if (weir_fleet_limit_open(&n->limit, n->fleet, &l, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        weir_fleet_close(n->fleet);
        return -1;
    }
    return 0;
}

static void *serve(void *arg)
{
    struct node *n = arg;
    for (int i = 0; i < CALLS; i++) {
        struct weir_answer a;
        if (weir_fleet_check(n->limit, "alice", 5, 1, &a) != 0) {
            break;
        }
        n->allowed += a.verdict == WEIR_ALLOW;
        n->denied += a.verdict == WEIR_DENY;
        n->degraded += (a.flags & WEIR_FLAG_DEGRADED) != 0; /* the answer is not from the store */
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct node node[NODES];
    unsigned allowed = 0, degraded = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: fleet_wait redis://host:port\n");
        return 2;
    }
    memset(node, 0, sizeof node);
    for (int i = 0; i < NODES; i++) {
        if (open_node(&node[i], argv[1]) != 0 ||
            pthread_create(&node[i].thread, NULL, serve, &node[i]) != 0) {
            return 1;
        }
    }
    for (int i = 0; i < NODES; i++) {
        pthread_join(node[i].thread, NULL);
        printf("node %d: %2u allowed, %2u denied, %u degraded\n", i, node[i].allowed,
               node[i].denied, node[i].degraded);
        allowed += node[i].allowed;
        degraded += node[i].degraded;
        weir_fleet_limit_close(node[i].limit);
        weir_fleet_close(node[i].fleet);
    }
    printf("together: %u of %d\n", allowed, QUOTA);
    return degraded == 0 && allowed != QUOTA;
}
