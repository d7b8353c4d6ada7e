/* Rules from a text, asked in a few words, at times that the test sets. */
#ifndef WEIR_TESTS_RULES_ASK_H
#define WEIR_TESTS_RULES_ASK_H

#include <weir_rules.h>

/* 2026-01-01 00:00:00 UTC, a Thursday. */
#define RULES_T0 (UINT64_C(1767225600) * WEIR_SECOND)

/* Opens the rules; the first error fails the test. Times are the caller's, around RULES_T0. */
struct weir_rules *rules_open(const char *yaml);

/* Returns NULL, or what is wrong with the rules; valid until the next call. */
const char *rules_complaint(const char *yaml);

/* "path=/x user=alice": the words are attributes. An error fails the test. */
struct weir_rules_answer rules_ask(struct weir_rules *rules, uint64_t now_ns, const char *words);
struct weir_rules_answer rules_peek(struct weir_rules *rules, uint64_t now_ns, const char *words);

/* Calls weir_rules_ask_async() at RULES_T0; q has no attributes. */
int rules_ask_async(struct weir_rules *rules, void *where, const char *words,
                    struct weir_rules_question q, struct weir_rules_answer *answer,
                    weir_rules_done_fn done, void *arg, struct weir_error *error);

/* Returns the error of such a question, with its text in *error; 0 if there was none. Requires that
 * an error leaves the answer without a verdict. */
int rules_refusal(struct weir_rules *rules, const char *words, struct weir_error *error);

/* Returns how many of n such questions are allowed at one time. */
unsigned rules_allowed(struct weir_rules *rules, uint64_t now_ns, const char *words, unsigned n);

/* Asks with a cost. */
struct weir_rules_answer rules_ask_cost(struct weir_rules *rules, uint64_t now_ns,
                                        const char *words, uint64_t cost);

#endif
