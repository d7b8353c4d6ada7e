/*
 * A question to one limit that a fleet decides, and the data that is needed when its answer comes.
 * struct later_question is part of a struct deferred, which outlives the request.
 */
#ifndef WEIR_SERVER_ASK_LATER_H
#define WEIR_SERVER_ASK_LATER_H

#include "server/ask/answer.h"

/* Called with the answer: `error` is 0, or WEIR_E... without an answer. It must either call
 * deferred_answered() or ask again. */
typedef void (*later_step_fn)(struct deferred *d, int error, const struct remote_answer *answer);

struct later_question {
    struct weir_rules_found found; /* its limit is held while `kept` is set */
    bool kept;
    char limit[WEIR_RULES_NAME]; /* name of the limit */
    struct buffer bytes;         /* the shard, then the key; reused for each question */
    size_t shard_len;
    later_step_fn step;
};

/* What is asked about the key. */
struct later_call {
    int verb; /* enum remote_verb */
    uint64_t cost;
    uint64_t time_ns; /* as in struct remote_question */
    uint64_t now_ns;
};

/*
 * Asks the fleet. Called inside a weir_rules_use_fn, with the arguments of that function. Returns
 * 0 if *answer is there; ANSWER_LATER if `step` will be called with it, for later->kept;
 * WEIR_E... if nothing has happened.
 */
int later_ask(struct later *later, struct weir_rules_value limit, const void *key, size_t key_len,
              const struct weir_rules_found *found, const struct later_call *call,
              later_step_fn step, struct remote_answer *answer);

/* Asks one more question about the key of a deferred that is kept. `step` may be called
 * before this returns. */
void later_ask_again(struct deferred *d, const struct later_call *call, later_step_fn step);

struct text later_key(const struct later_question *q);

void later_finish(struct later_question *q);

#endif
