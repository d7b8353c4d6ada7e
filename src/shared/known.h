/*
 * What a process remembers of keys that a store decides: denials, and how much remained. The table
 * is bounded. A key that it has forgotten is asked for in the store again, and begins with nothing
 * in a fallback.
 *
 * A denial answers questions that the store would deny as well: those of the same cost for as long
 * as its retry says, or deny_cache if that is less; those of higher costs only where their retry is
 * known, too: in a bucket it is later by the time of the additional units, in a fixed window it is
 * the window's end. A denial never answers costs beyond the quota: their answer is NEVER.
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

/* Returns the hash of a key of a limit (store_limit.id). The hash has a secret, so that an attacker
 * cannot choose keys that share a place. */
struct hash known_hash(const struct known *k, uint64_t limit, struct text key);

/* ---- denials ---- */

/* Returns true, with a DENY in *answer, if a remembered denial answers the question. */
bool known_denial(struct known *k, struct hash key, const struct store_params *params,
                  uint64_t cost, uint64_t now_ns, struct weir_answer *answer);

/* Remembers that the store denied this cost, unless the key is blocked. */
void known_denied(struct known *k, struct hash key, uint64_t cost, const struct weir_answer *answer,
                  uint64_t deny_cache_ns, uint64_t now_ns);

/* Forgets all that is known of the key, because it was changed otherwise than by decisions. */
void known_forget(struct known *k, struct hash key);

/* ---- how much there was ---- */

#define KNOWN_NOT UINT64_MAX

/* Remembers what the store last said remained. known_once() then counts the key as new. */
void known_remaining(struct known *k, struct hash key, uint64_t remaining, uint64_t now_ns);

/*
 * Calls fn(arg, remaining) once for each key and `round`, before any other thread that calls with
 * the same ones returns. `remaining` is KNOWN_NOT if nothing is known. A key that has been
 * forgotten meanwhile counts as new.
 */
void known_once(struct known *k, struct hash key, uint64_t round, uint64_t now_ns,
                void (*fn)(void *arg, uint64_t remaining), void *arg);

#endif
