/*
 * A question to one limit that a fleet decides, and what has to be known when its answer comes. The
 * struct is a part of a struct deferred, which outlives the request.
 */
#ifndef WEIR_SERVER_ASK_LATER_H
#define WEIR_SERVER_ASK_LATER_H

#include "server/ask/answer.h"

/* error: 0, or WEIR_E... and no answer. Ends with deferred_answered(), or asks again. */
typedef void (*later_step_fn)(struct deferred *d, int error, const struct remote_answer *answer);

struct later_question {
    struct weir_rules_found found; /* its limit is kept, if `kept` */
    bool kept;
    char limit[WEIR_RULES_NAME]; /* its name */
    struct buffer bytes;         /* the shard and the key; used again and again */
    size_t shard_len;
    later_step_fn step;
};

/* What is asked about one key. */
struct later_call {
    int verb; /* enum remote_verb */
    uint64_t cost;
    uint64_t time_ns; /* as in struct remote_question */
    uint64_t now_ns;
};

/*
 * Inside a weir_rules_use_fn, with what it was given: 0: *answer is there. ANSWER_LATER: later->kept
 * will get it by `step`. WEIR_E...: nothing has happened.
 */
int later_ask(struct later *later, struct weir_rules_value limit, const void *key, size_t key_len,
              const struct weir_rules_found *found, const struct later_call *call,
              later_step_fn step, struct remote_answer *answer);

/* One more question about the same key, of one that is kept. `step` may be called within. */
void later_ask_again(struct deferred *d, const struct later_call *call, later_step_fn step);

struct text later_key(const struct later_question *q);

void later_finish(struct later_question *q);

#endif
