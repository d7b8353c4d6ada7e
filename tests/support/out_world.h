/* Rules with a fleet that answers when it is told to, and what they said last. */
#ifndef WEIR_TESTS_OUT_WORLD_H
#define WEIR_TESTS_OUT_WORLD_H

#include "support/fake_fleet.h"
#include "support/rules_ask.h"

struct out_world {
    struct fake_fleet fleet;
    struct weir_rules *rules;
    unsigned done;
    int error;
    struct weir_rules_answer answer;
    char denied[200]; /* "limit key", of the last one */
    unsigned denials;
    unsigned done_before_denial; /* of the last one */
};

void faked_begin(struct out_world *w, const char *yaml);
void faked_end(struct out_world *w);

/* What faked_begin() opens rules with. */
struct weir_rules_options faked_options(struct out_world *w);

/* weir_rules_done_fn: into the world. */
void faked_hear(void *arg, int error, const struct weir_rules_answer *answer);

/* 1: the answer is in the world; 0: it is out. Fails the test on an error. */
int faked_ask_with(struct out_world *w, const char *words, struct weir_rules_question q);
int faked_ask(struct out_world *w, const char *words);

/* Returns the error of such a question, which must leave the answer without a verdict. */
int faked_refusal(struct out_world *w, const char *words, struct weir_rules_question q,
                  struct weir_error *error);

/* Asked, and answered by the fleet, with nothing left out. */
const struct weir_rules_answer *faked_settle(struct out_world *w, const char *words);

struct weir_rules_stats faked_stats(const struct out_world *w);

#endif
