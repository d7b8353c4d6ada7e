/* A question while it is answered: what ask.c and ask_shared.c share. */
#ifndef WEIR_RULES_LIVE_ASK_H
#define WEIR_RULES_LIVE_ASK_H

#include "rules/compiled/ruleset.h"

struct asking {
    const struct ruleset *set;
    const struct weir_rules_question *question;
    const struct request *request;
    uint64_t now_ns;
    const struct waiter *waiter; /* NULL: the answer is needed at once */
    struct tally *tally;
    struct weir_error *error;
};

/* Sets *cost to the units that the request takes from one limit. Returns 0 or WEIR_EATTRIBUTE. */
int asking_cost(const struct asking *a, const struct rule *rule, uint64_t *cost);

/*
 * Decides all enforced limits, at least one and all of them local. They are charged together; the
 * answer names the one that bound.
 */
int asking_enforced(const struct asking *a, const struct matches *matches,
                    struct weir_rules_answer *answer);

/* Puts the limit that bound into the answer. */
void answer_put_bound(struct weir_rules_answer *answer, struct text limit, struct text tier,
                      uint64_t window_ns, unsigned retry_jitter);

/* Puts a shadow limit that would have denied into the answer, and counts it if the question takes
 * units. */
void answer_put_shadow(struct weir_rules_answer *answer, struct text limit, struct holder *holder,
                       bool counts);

#endif
