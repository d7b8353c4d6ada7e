/*
 * Keys of every algorithm in every mode, and what a failover may let through of each beyond its limit:
 *
 *     admitted in all <= L + min(L, granted within the lag)
 *
 * where a reset gives L once more. Nothing refills, and nobody else asks, so of `exact` both sides are
 * the same to the unit. Of each limit there are four keys: of one nothing is taken within the lag, of one a
 * part, of one all of it, and of one all of it twice, with a reset in between.
 *
 * There is one set of them at a time. What is not as it must be fails the test.
 */
#ifndef WEIR_TESTS_SUPPORT_FAILOVER_KEYS_H
#define WEIR_TESTS_SUPPORT_FAILOVER_KEYS_H

#include <stdint.h>

/* All in one slot of a Cluster; elsewhere it does not matter. */
void failover_keys_open(const char *url, unsigned slot);
void failover_keys_close(void); /* also if they are not open */

void failover_keys_take_before(void); /* what the replica hears of ... */
void failover_keys_take_within(void); /* ... and what it does not */

/* Asks until the store answers; how many ms that took. */
uint64_t failover_keys_await_store(void);

/* All that there still is, behind the failover; then whether that was too much, and a line for each limit. */
void failover_keys_take_the_rest(void);
void failover_keys_judge(void);

#endif
