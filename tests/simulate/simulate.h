/*
 * Simulates a fleet in one thread and in its own time: nodes that run the protocol code of
 * src/shared (lease.c, sync.c), each with its own drifting clock; a network between them and the
 * store that delays, loses and partitions; a store (fake_redis.h) that runs the scripts; and
 * questions. A seed determines a run, which is always the same: everything random is drawn from the
 * seed, and there is no other input.
 *
 * World time is in whole microseconds, and equals the store's clock as long as that is not set. So
 * promises in terms of the store's time can be checked exactly. Every run checks:
 *
 *   I1  every question is answered, once, by its deadline;
 *   I2  leased: a bucket admits at most B + R t in any time t, fleet-wide; a fixed window admits at
 *       most its quota, by the store's time. More is admitted only because of a fault, as stated
 *       (lost data: one full limit; the store's clock ahead by d: min(B, R d)), or because it was
 *       asked for (reset, refund). A step back of the store's clock gives nothing: the window
 *       before the step and the one after it count as one;
 *   I3  leased: in the store, outstanding and remaining units are together at most B at any time;
 *       and the units that nodes could still spend are outstanding there, as long as no data is
 *       lost and the store's clock is not set;
 *   I4  leased: if nothing fails and all nodes ask for more than there is, at least B + R t - N q,
 *       or L - N q of each window, is admitted, where q is the largest lease;
 *   I5  synced: the bound of I2, plus what the other nodes admit between the making of one exchange
 *       and the end of the next. Exactly, whenever a bucket admits: plus what others have admitted
 *       and the node's last exchange did not know of. This also holds after a step of the store's
 *       clock, as soon as the node has heard of it; before that at most one limit is added;
 *   I6  synced: every unit of a node that is alive is counted at least once;
 *   I7  a block holds: leased, once the leases are over; synced, once the node has heard of it;
 *   I8  when faults and questions have ended, a key is fresh after its time to fill, or the end of
 *       its window, plus the longest life of a lease: the whole quota is granted at once. If the
 *       store's clock was set back, a second later, counted from the next question.
 */
#ifndef WEIR_TESTS_SIMULATE_SIMULATE_H
#define WEIR_TESTS_SIMULATE_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct simulate_options {
    uint64_t seed;
    int mode;          /* enum remote_mode: LEASED or SYNCED */
    FILE *trace;       /* NULL: no trace */
    bool whole;        /* write the whole trace, not only its last lines */
    uint64_t until_us; /* end of the run, for the trace; 0: the run's own end */
};

struct simulate_result {
    bool failed;
    uint64_t at_us; /* when the violation was seen */
    char text[512];
    char plan[512]; /* what was drawn from the seed */
    uint64_t print; /* hash of all events: the same for two runs of a seed */
    uint64_t questions;
    uint64_t admitted;
    uint64_t calls;
    uint64_t here;   /* questions that were answered without a call */
    uint64_t leases; /* leases granted */
    uint64_t waited; /* questions that were decided by what another's call brought */
    uint64_t faults;
    unsigned nodes;
};

void simulate(const struct simulate_options *options, struct simulate_result *result);

/* Runs the seed. After a failure runs it again to write the last lines of its trace, and how to
 * repeat it with `program`, to `out` (NULL: nowhere). Returns true on success. */
bool simulate_seed(const char *program, int mode, uint64_t seed, FILE *out,
                   struct simulate_result *result);

/* Frees the state that lives as long as the process. */
void simulate_finish(void);

#endif
