/* Rules on a fake fleet that answers when the test says so, and the last answer they gave. */
#ifndef WEIR_TESTS_FAKED_WORLD_H
#define WEIR_TESTS_FAKED_WORLD_H

#include "support/rules/fake_fleet.h"
#include "support/rules/rules_ask.h"

struct faked_world {
    struct fake_fleet fleet;
    struct weir_rules *rules;
    unsigned done;
    int error;
    struct weir_rules_answer answer;
    char denied[200]; /* "limit key" of the last denial */
    unsigned denials;
    unsigned done_before_denial; /* value of `done` at the last denial */
};

void faked_begin(struct faked_world *w, const char *yaml);
void faked_end(struct faked_world *w);

/* Returns the options with which faked_begin() opens rules. */
struct weir_rules_options faked_options(struct faked_world *w);

/* weir_rules_done_fn: stores the answer in the world. */
void faked_hear(void *arg, int error, const struct weir_rules_answer *answer);

/* Return 1 if the answer is in the world, 0 if it is pending. An error fails the test. */
int faked_ask_with(struct faked_world *w, const char *words, struct weir_rules_question q);
int faked_ask(struct faked_world *w, const char *words);

/* Returns the error of such a question. Requires that the answer has no verdict. */
int faked_refusal(struct faked_world *w, const char *words, struct weir_rules_question q,
                  struct weir_error *error);

/* Asks and lets the fleet answer. Requires that no question is left pending. */
const struct weir_rules_answer *faked_settle(struct faked_world *w, const char *words);

struct weir_rules_stats faked_stats(const struct faked_world *w);

#endif
