/* Calls of several descriptors (rules/live/call_ask.h), described in a few words. */
#ifndef WEIR_TESTS_FAKED_CALL_H
#define WEIR_TESTS_FAKED_CALL_H

#include "common/arena.h"
#include "rules/live/call_ask.h"
#include "support/rules/faked_world.h"

#define FAKED_CALL_TOLD 512

struct faked_call {
    struct call call;
    struct arena memory;
    unsigned done;           /* how often call.done was called */
    int result;              /* of call_ask() */
    struct weir_error error; /* of call_ask() */
};

/* Makes a call of no rules by a caller who may give units back; tests may set members of
 * `call` before they ask. */
struct faked_call faked_call_init(void);

/*
 * Asks at RULES_T0 on the thread `where`. Questions are separated by ';'. A word is an attribute
 * (user=u), the hits (+3), hits that are given back (-3), or an override with its key (5/k: 5 an
 * hour for the key k). Attributes and questions are freed before this function returns.
 */
void faked_call_ask(struct faked_call *c, struct weir_rules *rules, void *where, const char *words);

/*
 * Returns what the call was told: its verdict, its limit and the status of each question, which
 * is the verdict, and what remains, or "-" if clients are told of no limit: "allow l: allow 3,
 * deny 0, allow -". "pending" before the answer; "error N" after an error. Valid until the next
 * call of the function.
 */
const char *faked_call_told(const struct faked_call *c);

void faked_call_finish(struct faked_call *c);

/* Asks, lets the fleet of the world (NULL: there is none) answer everything, and returns what was
 * told. Requires that `done` was called once if the answer came later, and otherwise never. */
const char *faked_call_settle(struct faked_world *w, struct weir_rules *rules, const char *words);

#endif
