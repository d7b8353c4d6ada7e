/*
 * `on_store_failure: local`: this node decides by its own part of a limit while the store is away.
 * Each of N nodes gets exactly rate/N, and a burst of max(1, floor(B/N)). A key begins with that
 * burst, but with no more than what the store last said remained and what has refilled since. What
 * it has spent here stays spent in the next outage, and when N or the limit's numbers change. The
 * store is not told of these decisions afterwards.
 *
 *   buckets   count per N periods; burst, or queue + 1, as above
 *   rates     that come with questions are divided in the same way, question by question
 *   windows   b = max(1, floor(count/N)) per b N period / count, rounded up to whole ns: the same
 *             rate, in shorter windows if the count is not a multiple of N
 *
 * So all nodes together admit at most N max(1, floor(B/N)) + R t in any time t (fixed_window: twice
 * that burst, at the edge of a window): never more than the limit itself unless there are more
 * nodes than units.
 */
#ifndef WEIR_SHARED_STORE_FALLBACK_H
#define WEIR_SHARED_STORE_FALLBACK_H

#include "shared/store/store.h"

struct fallback;

/* Returns NULL if there is no memory. The table is made when it is first needed. */
struct fallback *fallback_create(void);
void fallback_destroy(struct fallback *f);

/* Sets *part to what one of `nodes` nodes gets. Returns false if that cannot be expressed (the
 * period would be too long). */
bool fallback_options(const struct weir_options *whole, uint64_t nodes, struct weir_options *part);

/*
 * Answers CHECK, PEEK or UP_TO. A cost that this node can never allow, but the fleet can, gets DENY
 * instead of NEVER.
 */
void fallback_ask(struct fallback *f, const struct remote_part *part, int verb, uint64_t now_ns,
                  struct weir_answer *answer);

#endif
