/*
 * A scenario: a small world and a script for each user. Whatever the schedule,
 * what the users were told and what is left must be what some order of whole
 * operations gives, one after the other; a killed user's last operation has
 * happened or has not.
 */
#ifndef WEIR_EXPLORE_SCENARIO_H
#define WEIR_EXPLORE_SCENARIO_H

#include "explore/search.h"
#include "explore/world.h"

/* How an outcome is judged, beyond what must be true of every table. */
enum judge {
    BY_ORDERS, /* some order of whole operations has it */
    BY_TOTALS, /* each key that is only checked was charged for exactly what was granted */
    BY_STATES  /* no further */
};

/* When three users are let loose on it as well: how many states that makes. */
enum three { SOON, IN_THE_LONG_BUILD, TOO_MANY };

struct scenario {
    const char *name; /* what is true in every schedule */
    struct world_spec world;
    unsigned users;
    struct op script[USERS_MAX][SCRIPT_MAX];
    /* A killed insertion may have taken the place and not yet charged (states with records). */
    bool torn;
    enum judge judge;
    enum three three;
};

extern const struct scenario scenarios[];
extern const unsigned scenario_count;

const struct scenario *scenario_named(const char *name);

/* Makes the world of the scenario and what to explore; false: it cannot be made. */
bool scenario_begin(const struct scenario *s, struct subject *subject);

/* How many operations of this kind are in its scripts. */
unsigned scenario_count_ops(const struct scenario *s, enum op_kind kind);

/* Explores all of it, with at most so many deaths. Prints how much that was, or what went wrong. */
struct found scenario_explore(const struct scenario *s, unsigned kills);

/* Runs at random: true if none ends as no run of the last exploration did. */
bool scenario_walk(const struct scenario *s, unsigned kills, unsigned walks);

/* Prints the schedule that went wrong, what was seen and how the table looks. */
void scenario_print(const struct scenario *s, const char *failure);

#endif
