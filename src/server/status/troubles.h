/*
 * Which limits had no room for new keys lately, and which were decided without the store. The
 * counters of a limit only rise, so a trouble is found by comparing them with those of the last
 * look. It counts as present for TROUBLE_NS after the counter has risen: a notice that came and
 * went with each second would be of no use to operators.
 */
#ifndef WEIR_SERVER_STATUS_TROUBLES_H
#define WEIR_SERVER_STATUS_TROUBLES_H

#include "server/status/numbers.h"

#define TROUBLE_SECONDS 10
#define TROUBLE_NS (TROUBLE_SECONDS * WEIR_SECOND)

enum trouble {
    TROUBLE_FULL_DENIED,  /* new keys were denied, */
    TROUBLE_FULL_ALLOWED, /* allowed without a charge, */
    TROUBLE_EVICTED,      /* or took the places of keys in use */
    TROUBLE_DEGRADED,     /* answers came without the store */
    TROUBLES
};

struct limit_trouble {
    char name[WEIR_RULES_NAME];
    uint64_t counts[TROUBLES];  /* at the last look */
    uint64_t answers;           /* likewise; 0 for a limit that no store decides */
    uint64_t seen_ns[TROUBLES]; /* the last look at which the count had risen; 0: none */
};

/* Answers of limits that the store decides, within one second. */
struct answers_second {
    uint64_t second; /* of Unix time */
    uint64_t answers;
    uint64_t degraded;
};

/* Zeroed, it has not looked yet. */
struct troubles {
    struct limit_trouble *limits; /* in the order of the rules */
    size_t count;
    struct answers_second seconds[TROUBLE_SECONDS];
};

/*
 * Compares the counters with those of the last look. A limit that had another place in the rules
 * then begins anew: its earlier counts are not known. So do all of them without memory.
 */
void troubles_look(struct troubles *t, const struct numbers *n, uint64_t now_ns);

/* Returns whether the trouble is present. */
bool trouble_is_near(const struct limit_trouble *l, enum trouble which, uint64_t now_ns);

/* Returns the share of answers without the store in the last TROUBLE_SECONDS, in percent. */
double troubles_degraded_percent(const struct troubles *t, uint64_t now_ns);

/* Forgets these answers. */
void troubles_forget_answers(struct troubles *t);

void troubles_finish(struct troubles *t);

#endif
