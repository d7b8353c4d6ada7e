/* Questions to the built-in limit, which bring their own rate: CL.THROTTLE, POST /v1/throttle. */
#ifndef WEIR_SERVER_OPERATIONS_THROTTLE_ASK_H
#define WEIR_SERVER_OPERATIONS_THROTTLE_ASK_H

#include "base/atomic.h"
#include "server/operations/operations.h"

/* Returns the flags of questions to the built-in limit: WEIR_SHADOW while the kill switch is on. */
static inline unsigned throttle_flags(const struct server *server)
{
    return load_relaxed(&server->adhoc_shadow) != 0 ? WEIR_SHADOW : 0;
}

/* Returns the reason (enum weir_rules_reason) of a denial by the built-in limit, and counts its key
 * as denied; 0 if the client is not told of the denial: a question with WEIR_SHADOW is never
 * denied. */
int throttle_denies(const struct weir_question *q, const struct weir_answer *said);

/* The numbers of a question. */
struct throttle {
    struct remote_rate rate;
    uint64_t cost;
    int mode;           /* WEIR_CHECK, WEIR_PEEK */
    uint64_t window_ns; /* answer.window_ns */
};

/* Asks the fleet, which shares the built-in limit (server->adhoc_remote). Returns 0, ANSWER_LATER
 * or WEIR_E..., those of weir_throttle_at() included. */
int throttle_ask_fleet(struct asker *asker, const struct throttle *t, struct weir_text key,
                       struct answer *answer);

/* Runs OPERATION_THROTTLE, for its row in operation_rows. */
int throttle_run(struct asker *asker, enum operation operation, const struct ask *ask,
                 struct answer *answer, struct weir_error *error);

#endif
