/*
 * Nodes of a fleet, each with threads that ask for a unit of one key after the other without a break,
 * and what they were answered. The limit is a bucket that does not refill while a test runs, and closed
 * when the store is away: what it admits was charged. So for each key
 *
 *     admitted - lost <= charged <= admitted + unknown
 *
 * where `charged` is what the store says in the end, `unknown` the calls that were sent and had no
 * reply, and `lost` what the store has acknowledged and then forgotten. Without a lost connection or a
 * lost write all of it is exact.
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

struct crowd_options {
    const char *url;
    unsigned nodes;
    unsigned threads;     /* of each node */
    uint64_t deadline_ns; /* 0: 2 s */
    uint64_t quota;       /* of each key */
    size_t grants;        /* so many admissions are remembered one by one; 0: none */
    unsigned key_count;
    char keys[CROWD_KEYS_MAX][16];
};

struct crowd_tally { /* of all keys; by the store or else degraded */
    uint64_t admitted;
    uint64_t denied;
    uint64_t degraded;
    uint64_t unknown; /* of their calls */
    uint64_t resent;
    uint64_t slowest_ns; /* the longest that a question took */
};

/* An admission by the store. Nothing refills, so what remains tells which unit of the key it was. */
struct crowd_grant {
    uint64_t unit; /* 1 is the first */
    unsigned key;
    uint64_t asked_ns; /* CLOCK_MONOTONIC */
    uint64_t answered_ns;
};

struct crowd;

/* Returns when every node has had an answer of the store for every key. */
struct crowd *crowd_start(const struct crowd_options *options);
void crowd_halt(struct crowd *c); /* nobody asks any more; nodes stay */
void crowd_end(struct crowd *c);

struct crowd_tally crowd_tally(struct crowd *c);
uint64_t crowd_admitted(struct crowd *c, unsigned key);

/* Waits until the store has answered a question of the key that was asked after this call; how long
 * that took, in ms. More than 60 s end the test. */
uint64_t crowd_await_answer(struct crowd *c, unsigned key);
/* One of every key, and one of every thread. */
uint64_t crowd_await_everybody(struct crowd *c);
/* Until `units` more were admitted. */
void crowd_await_progress(struct crowd *c, uint64_t units);

/* What the store says: units of the key that are gone. */
uint64_t crowd_charged(struct crowd *c, unsigned key);

/* Those of a crowd that has halted, in no order; how many: *count. More than there was room for end the
 * test. */
const struct crowd_grant *crowd_grants(const struct crowd *c, size_t *count);

/* A key that lives in a slot of a Cluster: the n-th of them. */
void crowd_key_in_slot(unsigned slot, unsigned n, char key[16]);

#endif
