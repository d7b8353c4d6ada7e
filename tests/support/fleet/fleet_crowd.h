/*
 * Nodes of a fleet, each with threads that ask for a unit of one key after the other without a
 * pause, and the answers they got. The limit is a bucket that does not refill while a test runs,
 * and it denies while the store is away: each unit it admits was charged. So for each key
 *
 *     admitted - lost <= charged <= admitted + unknown
 *
 * where `charged` is what the store reports in the end, `unknown` the calls that were sent and got
 * no reply, and `lost` the units that the store acknowledged and then forgot. Without a lost
 * connection or a lost write all of these are exact.
 */
#ifndef WEIR_TESTS_SUPPORT_FLEET_CROWD_H
#define WEIR_TESTS_SUPPORT_FLEET_CROWD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir_fleet.h>

#define CROWD_NODES_MAX 8
#define CROWD_THREADS_MAX 16
#define CROWD_KEYS_MAX 16

/* An answer with a deadline of 50 ms comes by then on a busy machine, too. One that waits for a
 * failover takes longer. */
#define CROWD_SLOWEST_NS (2 * WEIR_SECOND)

struct crowd_options {
    const char *url;
    unsigned nodes;
    unsigned threads;     /* per node */
    uint64_t deadline_ns; /* 0 means 2 s */
    uint64_t quota;       /* per key */
    size_t grants;        /* how many admissions are recorded one by one; 0: none */
    unsigned key_count;
    char keys[CROWD_KEYS_MAX][16];
};

struct crowd_tally { /* sums over all keys; answers without the store are degraded */
    uint64_t admitted;
    uint64_t denied;
    uint64_t degraded;
    uint64_t unknown; /* calls that were sent and got no reply */
    uint64_t resent;
    uint64_t slowest_ns; /* the longest time that a question took */
};

/* An admission by the store. Nothing refills, so `remaining` tells which unit of the key it was. */
struct crowd_grant {
    uint64_t unit; /* 1 is the first */
    unsigned key;
    uint64_t asked_ns; /* CLOCK_MONOTONIC */
    uint64_t answered_ns;
};

struct crowd;

/* Starts the crowd. Returns when each node has had an answer from the store for each key. */
struct crowd *crowd_start(const struct crowd_options *options);
void crowd_halt(struct crowd *c); /* stops the threads; the nodes stay */
void crowd_end(struct crowd *c);

struct crowd_tally crowd_tally(struct crowd *c);
uint64_t crowd_admitted(struct crowd *c, unsigned key);

/* Waits until the store has answered a question about the key that was asked after this call.
 * Returns how long that took, in ms. Ends the test after 60 s. */
uint64_t crowd_await_answer(struct crowd *c, unsigned key);
/* The same for each key and each thread. */
uint64_t crowd_await_everybody(struct crowd *c);
/* Waits until `units` more were admitted. */
void crowd_await_progress(struct crowd *c, uint64_t units);

/* Asks the store how many units of the key are used. */
uint64_t crowd_charged(struct crowd *c, unsigned key);

/* Returns the admissions of a crowd that has halted, in no order; *count is their number. The test
 * has already ended if there were more than options.grants. */
const struct crowd_grant *crowd_grants(const struct crowd *c, size_t *count);

/* Finds the n-th key that is in a slot of a Cluster. */
void crowd_key_in_slot(unsigned slot, unsigned n, char key[16]);

#endif
