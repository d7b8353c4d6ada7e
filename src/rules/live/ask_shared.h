/*
 * Questions of which a fleet decides at least one limit: they may be pending for a while, and are
 * then answered by a callback.
 *
 * A question has two stages: the enforced limits together and then, if they allow it, the shadow
 * limits, each by itself. In each stage `left` counts the pending answers, plus one for the thread
 * that asks. So exactly one thread, of those that answer and the one that asks, finds that nothing
 * is left (O1). It goes on to the next stage, and no other thread uses the question then.
 *
 * Before the asking thread gives up its count, it takes references to the question's holders and to
 * the rules (O2): inside the gate they cannot be freed. A question that is answered at once takes
 * no references, and writes to nothing that threads share.
 *
 * A question is continued inside the gate, as it is asked: the numbers of limiters do not change
 * meanwhile, and weir_rules_close() can wait for it. The answer is given outside of the gate, after
 * all references have been released (O3): the callback may close the rules, and then the fleet.
 *
 * All memory of a question, the fleet's part included, is taken from one arena, the asker's
 * (waiter->memory) or its own, and ends with it (O4). Only the thread that asks takes memory.
 */
#ifndef WEIR_RULES_LIVE_ASK_SHARED_H
#define WEIR_RULES_LIVE_ASK_SHARED_H

#include "rules/live/ask.h"

/* Returns 0, WEIR_E..., or RULES_PENDING. Inside the gate. */
int ask_shared(const struct rules_ask *a, const struct matches *matches,
               struct weir_rules_answer *answer);

#endif
