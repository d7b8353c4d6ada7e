/* One question on its way: what ask.c and out.c have in common. */
#ifndef WEIR_RULES_LIVE_ASK_H
#define WEIR_RULES_LIVE_ASK_H

#include "rules/compiled/ruleset.h"

struct asking {
    const struct ruleset *set;
    const struct weir_rules_question *question;
    const struct request *request;
    uint64_t now_ns;
    const struct waiter *waiter; /* NULL: nobody waits */
    struct tally *tally;
    struct weir_error *error;
};

/* What the request costs at one limit; 0, WEIR_EATTRIBUTE. */
int asking_cost(const struct asking *a, const struct rule *rule, uint64_t *cost);

/* All enforced limits, at least one and all decided here: charged together, and the one that bound. */
int asking_enforced(const struct asking *a, const struct matches *matches,
                    struct weir_rules_answer *answer);

/* Of a limit or a tier, into an array of WEIR_RULES_NAME. */
void answer_put_name(char *to, struct text name);

#endif
