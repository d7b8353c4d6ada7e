/*
 * A fleet in one thread and at its own time: nodes that run the protocol code of src/shared (lease.c,
 * sync.c), each by a clock of its own that drifts; a network between them and a store that delays,
 * loses and parts; a store (fake_redis.h) that runs the scripts; and questions. One seed is one run,
 * always the same: everything that happens by chance is drawn from it, and nothing else is asked.
 *
 * World time is in whole microseconds, and is the time of the store's clock where that is not set. So
 * what a protocol promises by the store's time can be checked exactly. Checked in every run:
 *
 *   I1  every question is answered, once, by its deadline;
 *   I2  leased: what a bucket admits in any time t is at most B + R t, fleet-wide; what a fixed window
 *       admits by the store's time is at most its quota; more only by what is stated of a fault (data
 *       lost: one full limit; the store's clock ahead by d: min(B, R d)) and by what was asked for
 *       (reset, refund). Set back, the store's clock gives nothing: the window that it was in and the one
 *       that it is in then are one;
 *   I3  leased: what is outstanding and what is left are together at most B, in the store, at any time;
 *       and what nodes could still spend is outstanding there, as long as no data is lost and the
 *       store's clock is not set;
 *   I4  leased: where nothing fails and everybody asks for more, at least B + R t - N q, or L - N q of
 *       each window, is admitted: q is the largest lease;
 *   I5  synced: the same as I2, and besides what the other nodes admit between the making of one
 *       exchange and the end of the next; whenever a bucket admits, exactly: what others have admitted and
 *       the node's last exchange did not know of; also when the store's clock was set, as soon as the
 *       node has heard of that, and before by one limit at most;
 *   I6  synced: no unit of a node that lives is counted zero times;
 *   I7  a block holds: leased, once leases are over; synced, once it was heard;
 *   I8  when faults and questions have ended, a key is as good as new after its time to fill, or the
 *       end of its window, and the longest life of a lease: the whole quota is granted at once. If the
 *       store's clock was set back, a second later, from the next question on.
 */
#ifndef WEIR_TESTS_SIMULATE_SIMULATE_H
#define WEIR_TESTS_SIMULATE_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct simulate_options {
    uint64_t seed;
    int mode;          /* enum remote_mode: LEASED or SYNCED */
    FILE *trace;       /* NULL: none is written */
    bool whole;        /* all of it, not only its last lines */
    uint64_t until_us; /* of the trace: the run ends there; 0: at its end */
};

struct simulate_result {
    bool failed;
    uint64_t at_us; /* when it was seen */
    char text[512];
    char plan[512]; /* what was drawn from the seed */
    uint64_t print; /* of everything that happened: two runs of a seed have the same */
    uint64_t questions;
    uint64_t admitted;
    uint64_t calls;
    uint64_t here;   /* questions that were answered without a call */
    uint64_t leases; /* granted */
    uint64_t waited; /* questions that were decided by what another's call brought */
    uint64_t faults;
    unsigned nodes;
};

void simulate(const struct simulate_options *options, struct simulate_result *result);

/* Runs the seed, and on failure once more for the last lines of its trace: to `out` (NULL: nowhere),
 * with how to repeat it by `program`. */
bool simulate_seed(const char *program, int mode, uint64_t seed, FILE *out,
                   struct simulate_result *result);

/* For memory that lives as long as the process. */
void simulate_finish(void);

#endif
