/*
 * How full the memory of an endpoint is, which keys it evicts, and how many connections it
 * takes. The client asks by INFO (never by CONFIG, which managed services refuse): when a
 * connection is ready, then once a second for each endpoint and process as long as calls are
 * made. Above client_options.memory_high the endpoint is full: calls that may create keys carry
 * one argument more (client.h C7).
 *
 * The numbers belong to the breaker of the endpoint, so that all threads share them; the fields are
 * atomic.
 */
#ifndef WEIR_REDIS_MEMORY_H
#define WEIR_REDIS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "common/text.h"

/* maxmemory_policy, in the order of memory_policy_name(). */
enum memory_policy {
    MEMORY_POLICY_UNKNOWN,
    MEMORY_NOEVICTION,
    MEMORY_VOLATILE_TTL,
    MEMORY_VOLATILE_LRU,
    MEMORY_VOLATILE_LFU,
    MEMORY_VOLATILE_RANDOM,
    MEMORY_ALLKEYS_LRU,
    MEMORY_ALLKEYS_LFU,
    MEMORY_ALLKEYS_RANDOM,
    MEMORY_POLICIES
};

/* Every member is a uint64_t. */
struct endpoint_memory {
    uint64_t ask_ns; /* the next question is due */
    uint64_t full;   /* 1: above memory_high, or a call was refused with OOM since */
    uint64_t used_bytes;
    uint64_t most_bytes; /* maxmemory; 0: unlimited, or not known */
    uint64_t evicted;    /* evicted_keys */
    uint64_t policy;     /* enum memory_policy */
    uint64_t maxclients; /* asked for until it is known, that is, not 0 */
};

/* Returns the name of a policy as INFO has it; "" for MEMORY_POLICY_UNKNOWN. */
const char *memory_policy_name(uint64_t policy);

/* Reads a reply to INFO memory, stats or clients; members that the text does not have stay as they
 * are. */
void memory_read(struct endpoint_memory *m, struct weir_text info, unsigned high_percent);

/* Returns true if the caller is to ask now; no other thread is told so for a second. */
bool memory_take_turn(struct endpoint_memory *m, uint64_t now_ns);
/* Notes that the endpoint does not say: an ACL may forbid INFO. It is asked again in a minute. */
void memory_is_unknown(struct endpoint_memory *m, uint64_t now_ns);

static inline bool memory_is_full(const struct endpoint_memory *m)
{
    return load_relaxed(&m->full) != 0;
}

#endif
