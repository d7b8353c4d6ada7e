/*
 * Questions that a fleet decides: they are out for a while, and answered by a callback.
 *
 * A question goes through two stages: the enforced limits together, then, if they allow it, the
 * shadow limits, each for itself. In each stage `left` counts what is still to come, and whoever
 * asks counts as one: so of all threads that answer, and the one that asks, exactly one finds itself
 * the last (O1), and goes on to the next stage, alone with the question.
 *
 * Before the asking thread gives up its count it keeps the question's holders and the rules (O2):
 * inside the gate nobody can take them away. What is answered at once therefore keeps nothing, and
 * writes to nothing that threads share.
 *
 * Going on happens inside the gate, as asking does: numbers of limiters do not change meanwhile, and
 * weir_rules_close() can wait for it. The answer is told outside of it, when everything has been let
 * go (O3): whoever hears it may close the rules, and then the fleet.
 */
#ifndef WEIR_RULES_LIVE_OUT_H
#define WEIR_RULES_LIVE_OUT_H

#include "rules/live/ask.h"

/* At least one of the limits is a fleet's. 0, WEIR_E..., RULESET_OUT. Inside the gate. */
int out_ask(const struct asking *a, const struct matches *matches,
            struct weir_rules_answer *answer);

#endif
