/* Rules from a text, asked with a few words, at times given by hand. */
#ifndef WEIR_TESTS_RULES_ASK_H
#define WEIR_TESTS_RULES_ASK_H

#include <weir_rules.h>

/* 2026-01-01 00:00:00 UTC, a Thursday. */
#define RULES_T0 (UINT64_C(1767225600) * WEIR_SECOND)

/* Fails the test with the first error. Times are the caller's, around RULES_T0. */
struct weir_rules *rules_open(const char *yaml);

/* NULL, or what is wrong with the rules: valid until the next call. */
const char *rules_complaint(const char *yaml);

/* "path=/x user=alice": words are attributes. Fails the test on an error. */
struct weir_rules_answer rules_ask(struct weir_rules *rules, uint64_t now_ns, const char *words);
struct weir_rules_answer rules_peek(struct weir_rules *rules, uint64_t now_ns, const char *words);

/* As weir_rules_ask_async() at RULES_T0; q without attributes. */
int rules_ask_async(struct weir_rules *rules, void *where, const char *words,
                    struct weir_rules_question q, struct weir_rules_answer *answer,
                    weir_rules_done_fn done, void *arg, struct weir_error *error);

/* Returns the error of such a question, its text in *error; 0 if there was none. An error must leave
   the answer without a verdict. */
int rules_refusal(struct weir_rules *rules, const char *words, struct weir_error *error);

/* How many of n such questions are allowed at one time. */
unsigned rules_allowed(struct weir_rules *rules, uint64_t now_ns, const char *words, unsigned n);

/* A question with a cost. */
struct weir_rules_answer rules_ask_cost(struct weir_rules *rules, uint64_t now_ns,
                                        const char *words, uint64_t cost);

#endif
