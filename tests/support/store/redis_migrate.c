/* A slot of a Cluster: finds its owner, and moves it from node to node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redis/slots.h"
#include "shared/core/script.h"
#include "support/store/redis_world.h"

#define OWNER_MS 60000

/* ---- its owner ---- */

void redis_slot_tag(unsigned slot, char tag[16])
{
    unsigned number = 0;
    do {
        (void)snprintf(tag, 16, "%u", number++);
    } while (cluster_slot(text_of(tag)) != slot);
}

/* Returns true if the node answers for the slot itself. A node that is giving the slot away says
 * ASK for keys that it does not have. */
static bool owns(struct redis_node *n, const char *key)
{
    const char *reply = redis_node_runs(n) ? redis_node_run(n, "EXISTS %s", key) : NULL;
    return reply != NULL && (reply[0] != '-' || strncmp(reply, "-ASK ", 5) == 0);
}

static int owner_now(struct redis_world *w, unsigned slot)
{
    char key[16];
    redis_slot_tag(slot, key);
    for (unsigned i = 0; i < w->count; i++) {
        if (owns(&w->node[i], key)) {
            return (int)i;
        }
    }
    return -1;
}

int redis_world_await_owner(struct redis_world *w, unsigned slot, int old)
{
    uint64_t end = redis_now_ms() + OWNER_MS;
    int owner;
    while ((owner = owner_now(w, slot)) < 0 || owner == old) {
        if (redis_now_ms() > end) {
            return -1;
        }
        redis_look_again_soon();
    }
    return owner;
}

int redis_world_owner(struct redis_world *w, unsigned slot)
{
    int owner = redis_world_await_owner(w, slot, -1);
    if (owner < 0) {
        redis_world_give_up(w, "no node owns a slot", redis_node_run(&w->node[0], "CLUSTER INFO"));
    }
    return owner;
}

/* ---- its migration ---- */

static void must(const struct redis_world *w, const char *what, const char *reply)
{
    if (reply == NULL || reply[0] == '-') {
        redis_world_give_up(w, what, reply);
    }
}

void redis_world_migrate_begin(struct redis_world *w, unsigned slot, int from, int to)
{
    must(w, "IMPORTING",
         redis_node_run(&w->node[to], "CLUSTER SETSLOT %u IMPORTING %s", slot, w->node[from].id));
    must(w, "MIGRATING",
         redis_node_run(&w->node[from], "CLUSTER SETSLOT %u MIGRATING %s", slot, w->node[to].id));
}

unsigned redis_world_migrate_keys(struct redis_world *w, unsigned slot, int from, int to,
                                  unsigned most)
{
    struct redis_node *source = &w->node[from];
    char port[16];
    char key[256];
    (void)snprintf(port, sizeof port, "%u", w->node[to].port);
    for (unsigned i = 0; i < most; i++) {
        const char *reply = redis_node_run(source, "CLUSTER GETKEYSINSLOT %u 1", slot);
        must(w, "GETKEYSINSLOT", reply);
        redis_line(reply, 0, key, sizeof key);
        if (key[0] == 0) {
            break;
        }
        const char *args[] = {"MIGRATE", "127.0.0.1", port, key, "0", "5000"};
        must(w, "MIGRATE", redis_node_do(source, args, 6));
    }
    return (unsigned)strtoul(redis_node_run(source, "CLUSTER COUNTKEYSINSLOT %u", slot), NULL, 10);
}

void redis_world_migrate_end(struct redis_world *w, unsigned slot, int from, int to)
{
    int order[] = {to, from};
    for (unsigned i = 0; i < 2; i++) {
        must(
            w, "SETSLOT",
            redis_node_run(&w->node[order[i]], "CLUSTER SETSLOT %u NODE %s", slot, w->node[to].id));
    }
}

void redis_world_migrate(struct redis_world *w, unsigned slot, int from, int to)
{
    redis_world_migrate_begin(w, slot, from, to);
    while (redis_world_migrate_keys(w, slot, from, to, 1000) > 0) {
    }
    redis_world_migrate_end(w, slot, from, to);
}
