/*
 * Questions that keep coming, whatever happens to the store: one each millisecond to each of several
 * limits, through a fleet on the test's own loop. Every answer is seen: how late it came, and what it
 * said.
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
    uint64_t twice; /* answers that nobody waited for any more */
};

/* Asks for so long, then returns; questions may still be out. */
void traffic_run(struct traffic *t, unsigned ms);

/* Asks until every limit has been answered by the store again, and returns after how many ms since
 * the call; -1: not within 20 s. */
int traffic_until_good(struct traffic *t);

/* Asks no more and waits for what is out; false: something is never answered (10 s). */
bool traffic_drain(struct traffic *t);

/* Units of limit i that the store has charged: by a peek; -1: it does not answer. */
int64_t traffic_charged(struct traffic *t, unsigned i, uint64_t quota);

#endif
