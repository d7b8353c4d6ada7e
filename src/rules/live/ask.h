/* A question while it is answered: what ask.c, ask_shared.c and rules_answer.c share. */
#ifndef WEIR_RULES_LIVE_ASK_H
#define WEIR_RULES_LIVE_ASK_H

#include "rules/live/live_ban.h"
#include "rules/live/live.h"

/* The caller that waits for an answer that comes later. */
struct rules_waiter {
    struct weir_rules *rules;
    void *where;          /* common/remote.h */
    struct arena *memory; /* for the question until `done` is called; NULL: it makes its own */
    weir_rules_done_fn done;
    void *arg;
};

/* The counts that one question adds to the statistics. */
struct ask_counts {
    unsigned asked, unmatched, allow_listed, block_listed, missing, tier_unknown, shadow_denied,
        shadow_failed;
    unsigned cost_unread; /* limits of an opaque request that took 1 unit; not in the statistics */
};

/* Adds the counts of a question, or of one of its stages, to the statistics. Inside the gate. */
void rules_count(struct weir_rules *r, struct slot *slot, const struct ask_counts *counts,
                 bool bad);

/* The question is pending: waiter->done will be called; its answer and counts are not used. */
#define RULES_PENDING 1

struct rules_ask {
    const struct ruleset *set;
    const struct weir_rules_question *question;
    const struct request *request;
    uint64_t now_ns;
    const struct rules_waiter *waiter; /* NULL: the answer is needed at once */
    struct ask_counts *counts;
    struct weir_error *error;
};

/* Returns a limit that a fleet decides, NULL if all of them are decided here. */
const struct rule *asking_shared(const struct rules_ask *a, const struct rule *const *rules,
                                 size_t n);

/* Returns the flags of the answer that do not come from a limit. */
static inline unsigned asking_flags(const struct matches *matches)
{
    return matches->uncovered > 0 ? WEIR_FLAG_MISSING : 0;
}

/* ---- which limits apply ---- */

enum asking_listed { LISTED_NOWHERE, LISTED_ALLOW, LISTED_BLOCK };

/* Looks for the request in the lists, of which that of blocks comes first. Counts it, and reports
 * the entry that blocks it. */
enum asking_listed asking_lists(const struct rules_ask *a);

/* Finds the limits that apply, and counts a request to which none does. Returns 0 or WEIR_E... */
int asking_match(const struct rules_ask *a, struct matches *matches);

/* Returns the max_wait_ns that keeps the delay of one limit within what the question allows. */
static inline uint64_t asking_wait(const struct weir_rules_question *question,
                                   const struct variant *variant)
{
    return (question->flags & WEIR_RULES_NO_DELAY) != 0 ? variant->no_delay_ns
           : (question->flags & WEIR_RULES_HOLD) != 0   ? variant->hold_ns
                                                        : 0;
}

/* ---- how a limit is asked ---- */

/* Returns WEIR_ENOTSUP for a question with a max_wait if no limit that applies can wait, or 0. */
int asking_waits(const struct rules_ask *a, const struct matches *matches);

/*
 * Decides all enforced limits, at least one and all of them local. They are charged together; the
 * answer names the one that bound.
 */
int asking_enforced(const struct rules_ask *a, const struct matches *matches,
                    struct weir_rules_answer *answer);

/* The limit that bound, as an answer describes it. */
struct bound {
    enum rate_kind kind;    /* of its rate */
    struct weir_text limit; /* its name */
    struct weir_text tier;
    uint64_t window_ns;
    unsigned retry_jitter;
    bool expose;
    const struct deny_config *deny;
    struct rate log;  /* log.denied */
    uint64_t held_ns; /* WEIR_RULES_NO_DELAY: delays below this would have been held; otherwise 0 */
};

static inline struct bound bound_of(const struct weir_rules_question *question,
                                    const struct rule *rule, const struct variant *variant)
{
    const struct limit_config *c = rule->config;
    uint64_t held_ns = (question->flags & WEIR_RULES_NO_DELAY) != 0 ? variant->held_ns : 0;
    return (struct bound){variant->kind,      c->name,         variant->tier,
                          variant->window_ns, c->retry_jitter, c->expose,
                          &c->deny,           c->log.denied,   held_ns};
}

/*
 * Makes the question to the engine for one limit that applies and is local, and finds its variant.
 * *key must live as long as *part. Returns 0 or WEIR_EATTRIBUTE.
 */
int asking_part(const struct rules_ask *a, const struct rule *rule, struct weir_part *part,
                struct weir_key *key, const struct variant **variant);

/* A limit whose answer may come later, when the rules may have been replaced: its texts are in the
 * memory of the question. */
struct kept_limit {
    struct holder *holder;         /* set also after an error */
    const struct variant *variant; /* only inside the gate in which it was found */
    struct bound bound;
    struct deny_config deny; /* of `bound` */
};

/*
 * Fills in one limit that applies, and what its limiter or the fleet is asked. Returns 0 or
 * WEIR_EATTRIBUTE; if there is no memory, memory->failed is set.
 */
int asking_limit(const struct rules_ask *a, const struct rule *rule, struct arena *memory,
                 struct kept_limit *limit, struct remote_part *ask);

/* ---- answers (rules_answer.c) ---- */

/* Makes an answer without a verdict: every decision sets one, an error does not. */
void answer_init(struct weir_rules_answer *answer);

/* Copies the name of a limit or a tier into an array of WEIR_RULES_NAME bytes. */
void answer_put_name(char *to, struct weir_text name);

/* Denies the request for ever, by a limit or, if that is NULL, by none. */
void answer_refuse(struct weir_rules_answer *answer, int reason, const struct limit_config *by);

/* Puts the limit that bound, and the reason, into the answer. */
void answer_put_bound(struct weir_rules_answer *answer, const struct bound *bound);

/*
 * Counts a denial by the limit that bound, for its ban, and puts a ban that follows into the
 * answer. Overload is not the client's fault, and does not count. Then calls `fn` (it may be NULL),
 * which logs as `log` allows, the limit's log.denied.
 */
void answer_note_denial(struct weir_rules_answer *answer, const struct denial *denial,
                        struct rate log, weir_rules_denied_fn fn, void *arg);

/*
 * Puts a limit that clients may be told instead of the hidden one that bound, if it tells more than
 * *most, which the caller sets to ANSWER_SHOWN_INIT before the first. *said is that limit's own
 * answer; answer_peek() asks its limiter for it, because the decision has the numbers of one limit
 * only.
 */
#define ANSWER_SHOWN_INIT                                                                          \
    {                                                                                              \
        .verdict = WEIR_ALLOW, .remaining = WEIR_UNLIMITED                                         \
    }
void answer_show(struct weir_rules_answer *answer, struct weir_answer *most,
                 const struct bound *bound, const struct weir_answer *said);
void answer_peek(struct weir_rules_answer *answer, struct weir_answer *most,
                 const struct bound *bound, struct weir *limiter, struct weir_question question,
                 uint64_t now_ns);

/* Puts a shadow limit that would have denied into the answer. */
void answer_put_shadow(struct weir_rules_answer *answer, struct weir_text limit);

#endif
