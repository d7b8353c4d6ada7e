/*
 * What a failover has cost one key of a crowd (support/fleet_crowd.h): who of the two masters has granted
 * which unit. Nothing refills, so the old one has granted units 1, 2, ... up to when it died, and the new
 * one goes on behind the last that it had heard of (`kept`). What the old one granted beyond that is
 * lost, and of it what the new one grants once more is the extra that the failover has let through:
 *
 *     again <= lost <= granted within the lag
 *
 * The lag is the time from when `kept` can have run at the earliest until the old master's death.
 */
#ifndef WEIR_TESTS_SUPPORT_FAILOVER_LEDGER_H
#define WEIR_TESTS_SUPPORT_FAILOVER_LEDGER_H

#include "support/fleet_crowd.h"

struct ledger {
    uint64_t by_old; /* units granted */
    uint64_t by_new;
    uint64_t last; /* the highest that the old one granted */
    uint64_t kept; /* as much as the new master knew of */
    uint64_t lost;
    uint64_t again;
    uint64_t within; /* granted within the lag, whether lost or not */
    uint64_t lag_ns;
    uint64_t first_lost_ns; /* when the first lost was answered, and the last lost; 0: none */
    uint64_t last_lost_ns;
};

/*
 * Of a crowd that has halted, with a deadline shorter than the failover took: what was asked before
 * died_ns was granted by the old master, what was asked later by the new one. A unit that one master has
 * granted twice ends the test, and so does a new master that has granted nothing.
 */
struct ledger ledger_of(const struct crowd *c, unsigned key, uint64_t died_ns);

/* One line for a person. */
void ledger_print(const struct ledger *l, const char *what);

#endif
