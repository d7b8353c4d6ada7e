/*
 * A failover with a lag that is known and long: the replica's connection is closed and cannot be
 * opened again, then units are granted, then the master is killed with SIGKILL. What is admitted
 * beyond the limit is judged for keys of every kind (support/fleet/failover_keys.h), and for one
 * key that a crowd asks for all the time (support/fleet/failover_ledger.h).
 */
#ifndef WEIR_TESTS_SUPPORT_FAILOVER_LAG_H
#define WEIR_TESTS_SUPPORT_FAILOVER_LAG_H

#include "support/store/redis_world.h"

/* Returns when the replica has become the master. Fails the test otherwise. */
void failover_with_lag(struct redis_world *w, int master, int replica, unsigned slot);
void failover_end(void); /* for the teardown, before the world is stopped */

#endif
