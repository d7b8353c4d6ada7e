/*
 * What a process remembers of keys that a store decides: who was denied, and how much there was. A
 * bounded table; what it forgets is asked again, and a fallback that knows nothing begins with nothing.
 *
 * A denial answers questions that the store would deny as well: of the same cost for as long as its
 * retry says, or deny_cache if that is less. Of higher costs only where their retry is known too: in a
 * bucket it is later by the time of the units more, in a fixed window it is the window's end. Costs
 * beyond the quota are never remembered: they are NEVER.
 */
#ifndef WEIR_SHARED_KNOWN_H
#define WEIR_SHARED_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "base/hash.h"
#include "common/text.h"
#include "shared/params.h"

struct known;

int known_create(struct known **k, uint64_t keys);
void known_destroy(struct known *k);

/* A key of a limit (store_limit.id). The hash is keyed: nobody can choose keys that share a place. */
struct hash known_hash(const struct known *k, uint64_t limit, struct text key);

/* ---- denials ---- */

/* True: *answer is a DENY out of memory. */
bool known_denial(struct known *k, struct hash key, const struct store_params *params,
                  uint64_t cost, uint64_t now_ns, struct weir_answer *answer);

/* The store said DENY to that cost. */
void known_denied(struct known *k, struct hash key, uint64_t cost, const struct weir_answer *answer,
                  uint64_t deny_cache_ns, uint64_t now_ns);

/* The key has changed otherwise than by decisions: nothing that is known of it holds. */
void known_forget(struct known *k, struct hash key);

/* ---- how much there was ---- */

#define KNOWN_NOT UINT64_MAX

void known_remaining(struct known *k, struct hash key, uint64_t remaining, uint64_t now_ns);

/*
 * Calls fn(arg, remaining) once for each key and `round`, before any other thread that comes with the
 * same ones goes on; KNOWN_NOT: nothing is known. Again if the key has been forgotten meanwhile.
 */
void known_once(struct known *k, struct hash key, uint64_t round, uint64_t now_ns,
                void (*fn)(void *arg, uint64_t remaining), void *arg);

#endif
