/*
 * `on_store_failure: local`: this node's part of a limit while the store is away. Of N nodes each gets
 * rate/N, exactly, and a burst of max(1, floor(B/N)). A key that is new here begins with what the store
 * last said remained, or with nothing. Nothing of it is told to the store afterwards.
 *
 *   buckets   count per N periods; burst, or queue + 1, as above
 *   windows   b = max(1, floor(count/N)) per b N period / count: the same rate, in shorter windows if
 *             the count is not a multiple of N. Rounded up to whole ns
 *
 * So all nodes together admit at most N max(1, floor(B/N)) + R t in any time t: never more than the limit
 * itself unless there are more nodes than units.
 */
#ifndef WEIR_SHARED_FALLBACK_H
#define WEIR_SHARED_FALLBACK_H

#include "base/hash.h"
#include "shared/known.h"
#include "shared/store.h"

struct fallback;

struct fallback *fallback_create(
    void); /* NULL: no memory. Makes its table when it is first needed */
void fallback_destroy(struct fallback *f);

/* What a node of `nodes` gets. False: that cannot be expressed (the period would be too long). */
bool fallback_options(const struct weir_options *whole, uint64_t nodes, struct weir_options *part);

/*
 * CHECK, PEEK or UP_TO. `hash` is known_hash() of the key. What this node may never let in, but the fleet
 * might, is a DENY.
 */
void fallback_ask(struct fallback *f, struct store_limit *limit, struct known *known,
                  struct hash hash, const struct remote_part *part, int verb, uint64_t now_ns,
                  struct weir_answer *answer);

#endif
