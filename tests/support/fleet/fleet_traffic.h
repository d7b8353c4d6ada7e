/*
 * Questions that keep coming, whatever happens to the store: one per millisecond to each of several
 * limits, through a fleet on the test's own loop. Each answer is recorded: how late it came, and
 * what it said.
 */
#ifndef WEIR_TESTS_SUPPORT_FLEET_TRAFFIC_H
#define WEIR_TESTS_SUPPORT_FLEET_TRAFFIC_H

#include <stdbool.h>

#include <weir_fleet.h>

#define TRAFFIC_LIMITS 4

struct traffic_count {
    uint64_t asked;
    uint64_t answered;
    uint64_t plain;     /* allowed by the store */
    uint64_t degraded;  /* allowed without it */
    uint64_t refused;   /* denied without it */
    uint64_t last_good; /* when the store last answered, CLOCK_BOOTTIME */
};

struct traffic {
    struct weir_fleet *fleet;
    struct weir_fleet_limit *limit[TRAFFIC_LIMITS];
    unsigned limits;
    const char *key;
    struct traffic_count count[TRAFFIC_LIMITS];
    uint64_t longest_ns; /* from a question to its answer */
    uint64_t next_ns;
    struct question *questions; /* kept until traffic_drain(), so that a second answer is seen */
    uint64_t twice; /* second answers, answers with an error, and refused questions: must stay 0 */
};

/* Asks for that long, then returns; questions may still be pending. */
void traffic_run(struct traffic *t, unsigned ms);

/* Asks until the store has answered for every limit again. Returns how many ms that took; -1 after
 * 20 s. */
int traffic_until_good(struct traffic *t);

/* Stops asking, waits for the pending answers and frees the questions. Returns false if one is
 * missing after 10 s. */
bool traffic_drain(struct traffic *t);

/* Peeks how many units of limit i the store has charged. Returns -1 if the store does not
 * answer. */
int64_t traffic_charged(struct traffic *t, unsigned i, uint64_t quota);

#endif
