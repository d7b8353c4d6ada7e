/*
 * Explains a request: which limits apply to it, by which key and with which numbers, and why the
 * others do not. The tests are those that asking makes (ruleset_explain()).
 */
#ifndef WEIR_RULES_LIVE_EXPLAIN_H
#define WEIR_RULES_LIVE_EXPLAIN_H

#include "rules/live/live.h"

/* One limit. Texts are valid only during the call. */
struct explained_limit {
    struct weir_text name;
    unsigned line;   /* in the rule file; 0: it was added by weir_rules_put() */
    const char *why; /* why it does not apply; NULL: it applies, and the members below are set */
    bool shadow;     /* by the rules or switched */
    struct weir_text tier; /* len 0: none */
    int algorithm;
    const char *rate; /* "100/min" */
    const char *key;  /* as weir_rules_key_text() writes it */
    int consistency;  /* enum weir_rules_consistency */
    bool known;       /* the numbers below are; a fleet's store knows those of its limits */
    struct weir_answer answer; /* a peek of this limit alone */
    uint64_t blocked_ns;       /* how long the key is blocked; 0: it is not, WEIR_FOREVER: no end */
};

/* Called in this order: with each attribute, as it is compared; with the list that decides, if one
 * does ("allow" or "block", and the line of its entry); with each limit, in the order of the file.
 * They must not use the rules. */
struct explain_told {
    void (*attribute)(void *arg, struct weir_text name, struct weir_text value);
    void (*list)(void *arg, const char *name, unsigned line);
    void (*limit)(void *arg, const struct explained_limit *limit);
};

/*
 * Explains a question as a peek, which charges and counts nothing. Returns 0, or WEIR_EATTRIBUTE or
 * WEIR_EINVAL as asking would, or WEIR_ENOMEM. May wait for a reload that is under way.
 */
int rules_explain(struct weir_rules *rules, const struct weir_rules_question *question,
                  uint64_t now_ns, const struct explain_told *tell, void *arg,
                  struct weir_error *error);

#endif
