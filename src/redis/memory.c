#include "redis/memory.h"

#include <string.h>

#include <weir.h>

#include "wire/resp.h"

#define EVERY_NS WEIR_SECOND
#define UNKNOWN_NS WEIR_MINUTE

static const char *const policies[MEMORY_POLICIES] = {
    [MEMORY_POLICY_UNKNOWN] = "",
    [MEMORY_NOEVICTION] = "noeviction",
    [MEMORY_VOLATILE_TTL] = "volatile-ttl",
    [MEMORY_VOLATILE_LRU] = "volatile-lru",
    [MEMORY_VOLATILE_LFU] = "volatile-lfu",
    [MEMORY_VOLATILE_RANDOM] = "volatile-random",
    [MEMORY_ALLKEYS_LRU] = "allkeys-lru",
    [MEMORY_ALLKEYS_LFU] = "allkeys-lfu",
    [MEMORY_ALLKEYS_RANDOM] = "allkeys-random",
};

const char *memory_policy_name(uint64_t policy)
{
    return policy < MEMORY_POLICIES ? policies[policy] : "";
}

/* Sets *value to what follows "name:" at the beginning of a line. */
static bool find(struct weir_text info, const char *name, struct weir_text *value)
{
    size_t len = strlen(name);
    while (info.len > 0) {
        struct weir_text line = text_cut(&info, '\n');
        if (line.len > len && memcmp(line.at, name, len) == 0 && line.at[len] == ':') {
            *value = text_trim(text_after(line, len + 1));
            return true;
        }
    }
    return false;
}

static bool find_number(struct weir_text info, const char *name, uint64_t *number)
{
    struct weir_text value;
    int64_t n;
    if (!find(info, name, &value) || !resp_to_i64(value, &n) || n < 0) {
        return false;
    }
    *number = (uint64_t)n;
    return true;
}

static uint64_t policy_of(struct weir_text name)
{
    uint64_t policy = MEMORY_POLICIES;
    while (--policy > MEMORY_POLICY_UNKNOWN && !text_is(name, policies[policy])) {
    }
    return policy;
}

void memory_read(struct endpoint_memory *m, struct weir_text info, unsigned high_percent)
{
    struct weir_text policy;
    uint64_t used;
    uint64_t most;
    uint64_t evicted;
    uint64_t clients;
    if (find_number(info, "evicted_keys", &evicted)) {
        store_relaxed(&m->evicted, evicted);
    }
    if (find_number(info, "maxclients", &clients)) {
        store_relaxed(&m->maxclients, clients);
    }
    if (find(info, "maxmemory_policy", &policy)) {
        store_relaxed(&m->policy, policy_of(policy));
    }
    if (find_number(info, "used_memory", &used) && find_number(info, "maxmemory", &most)) {
        store_relaxed(&m->used_bytes, used);
        store_relaxed(&m->most_bytes, most);
        store_relaxed(&m->full, most != 0 && used >= most / 100 * high_percent);
    }
}

bool memory_take_turn(struct endpoint_memory *m, uint64_t now_ns)
{
    uint64_t due_ns = load_relaxed(&m->ask_ns);
    return now_ns >= due_ns && cas_u64(&m->ask_ns, due_ns, now_ns + EVERY_NS);
}

void memory_is_unknown(struct endpoint_memory *m, uint64_t now_ns)
{
    store_relaxed(&m->ask_ns, now_ns + UNKNOWN_NS);
    store_relaxed(&m->policy, MEMORY_POLICY_UNKNOWN);
    store_relaxed(&m->most_bytes, 0);
    store_relaxed(&m->full, 0);
}
