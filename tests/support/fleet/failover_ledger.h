/*
 * What a failover has cost one key of a crowd (support/fleet/fleet_crowd.h): which of the two
 * masters has granted which unit. Nothing refills, so the old master granted units 1, 2, ... until
 * it died, and the new one continues after the last unit that it had heard of (`kept`). Units that
 * the old one granted beyond that are lost. Those of them that the new one grants again are the
 * extra units that the failover admitted:
 *
 *     again <= lost <= granted within the lag
 *
 * The lag is the time from the earliest moment at which `kept` can have run until the old master's
 * death.
 */
#ifndef WEIR_TESTS_SUPPORT_FAILOVER_LEDGER_H
#define WEIR_TESTS_SUPPORT_FAILOVER_LEDGER_H

#include "support/fleet/fleet_crowd.h"

struct ledger {
    uint64_t by_old; /* units granted */
    uint64_t by_new;
    uint64_t last; /* the highest unit that the old master granted */
    uint64_t kept; /* the last unit that the new master knew of */
    uint64_t lost;
    uint64_t again;
    uint64_t within; /* granted within the lag, whether lost or not */
    uint64_t lag_ns;
    uint64_t first_lost_ns; /* when the first and the last lost unit were answered; 0: none */
    uint64_t last_lost_ns;
};

/*
 * Computes the ledger of a crowd that has halted and whose deadline was shorter than the failover:
 * requests from before died_ns were granted by the old master, later ones by the new master. Fails
 * the test if one master granted a unit twice, or if the new master granted nothing.
 */
struct ledger ledger_of(const struct crowd *c, unsigned key, uint64_t died_ns);

/* Prints one line for a human reader. */
void ledger_print(const struct ledger *l, const char *what);

#endif
