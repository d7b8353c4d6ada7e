/*
 * Keys of every algorithm in every mode, and how much a failover may admit for each beyond its
 * limit:
 *
 *     admitted in total <= L + min(L, granted within the lag)
 *
 * where a reset adds L once more. Nothing refills, and there are no other callers, so for `exact`
 * both sides are equal to the unit. Each limit has four keys: within the lag nothing is taken of
 * the first, a part of the second, everything of the third, and everything twice of the fourth,
 * with a reset in between.
 *
 * Only one set of keys exists at a time. A violation fails the test.
 */
#ifndef WEIR_TESTS_SUPPORT_FAILOVER_KEYS_H
#define WEIR_TESTS_SUPPORT_FAILOVER_KEYS_H

#include <stdint.h>

/* Opens the limits and names the keys so that all are in one slot of a Cluster. Other stores ignore
 * the slot. */
void failover_keys_open(const char *url, unsigned slot);
void failover_keys_close(void); /* does nothing if they are not open */

void failover_keys_take_before(void); /* units that the replica hears of */
void failover_keys_take_within(void); /* units that the replica does not hear of */

/* Asks until the store answers. Returns how many ms that took. */
uint64_t failover_keys_await_store(void);

/* After the failover: the first takes everything that is left. The second prints a line for each
 * limit and fails the test if too much was admitted. */
void failover_keys_take_the_rest(void);
void failover_keys_judge(void);

#endif
