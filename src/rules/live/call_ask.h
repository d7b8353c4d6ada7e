/*
 * Several questions that are decided as one call: those about the descriptors of a call of Envoy's
 * rate limit service. The caller gets the answer to the call, and the status of each question.
 *
 * A question is about the attributes of a request, for which the rules find limits; or it brings a
 * rate of its own (an override), which the built-in limit decides. Each limit that applies to a
 * question is a part of the call. The parts are asked in three stages:
 *
 *   1  Parts that can deny the call and cannot be charged together with others: limits in
 *      quota_mode are asked one by one; overrides, and limits of questions without units, are
 *      peeked at. With `charge: each` all enforced limits and overrides are asked here, one by one,
 *      also if a list denies the call, and a denied one uses up what is left.
 *   2  All enforced limits, together: they are charged all or not at all. This is left out if the
 *      call is denied already.
 *   3  The rest: overrides and shadow limits are charged if the call is allowed (with `charge:
 *      each` shadow limits always are), units are given back, and so are those of limits in
 *      quota_mode if the call is denied. Parts whose numbers the stages before did not tell are
 *      peeked at. An error of a part that can no longer change the verdict does not fail the call;
 *      its question is told of no limit.
 *
 * Units are given back only to limits to which the caller may give them (may_give, and `envoy:
 * {negative_hits: true}`). To others nothing is given, and nothing is taken from them: the question
 * is allowed, its limit is peeked at, and the part is `withheld`. That is no error, because the
 * gateway lets a request pass for which its call fails.
 *
 * A stage ends when all its parts have answered. If a fleet decides some of them, answers come
 * later, on the thread that asked (call->where), which is why no counter here is atomic. The next
 * stage begins inside the gate, as the first one does. What holds for a pending question
 * (ask_shared.h, O2 to O4) holds for a pending call.
 */
#ifndef WEIR_RULES_LIVE_CALL_ASK_H
#define WEIR_RULES_LIVE_CALL_ASK_H

#include "rules/live/ask.h"

/* The most questions of a call, and the most limits that apply to all of them. */
#define CALL_MAX WEIR_SEVERAL_MAX

/* The name of the built-in limit, which decides overrides. */
#define CALL_OVERRIDE "override"

struct call_question {
    const struct weir_rules_attribute *attributes;
    size_t attributes_count;
    uint64_t hits; /* 0: look whether there is a unit, and take none */
    bool back;     /* give the hits back */
    /* An override; rate.burst is 0 if there is none: */
    struct remote_rate rate;
    struct rate named;    /* the rate as the caller has named it */
    struct weir_text key; /* its key of the built-in limit; count 0 in `named`: denied */
};

/* The status of one question. Texts are in the memory of the call. */
struct call_status {
    int verdict;    /* enum weir_verdict */
    bool limited;   /* a limit that clients may see decided; the members below describe it */
    bool unlimited; /* its rate is unlimited; `rate` and `remaining` are not set */
    struct weir_text label;  /* the limit's `label` in the rules */
    struct rate rate;        /* the limit's rate */
    bool windows;            /* its windows begin at multiples of its period since 1970 */
    uint64_t remaining;      /* units that are left */
    uint64_t reset_after_ns; /* allowed: until it is fresh; denied: until a retry can succeed */
};

struct call_part;

/* What a call has met that its caller should know; bits of call.oddities. */
#define CALL_UNREAD_VALUE 0x1u /* an attribute of the rules cannot be read: on_missing decides */
#define CALL_UNREAD_COST 0x2u  /* a cost cannot be read: 1 was taken */

/* A call. The caller sets the members up to `arg`, and zeroes the others. It must not
 * change before the answer. */
struct call {
    struct weir_rules *rules;
    void *where;          /* as for weir_rules_ask_async(), not NULL if the rules have a fleet */
    struct arena *memory; /* for the call until it is answered */
    uint64_t now_ns;
    const struct call_question *questions; /* needed only until call_ask() returns */
    size_t count;
    struct weir *adhoc; /* the built-in limit; NULL: switched off, or in the store */
    void *adhoc_remote; /* as struct remote_part.limit; NULL: it is not shared */
    bool adhoc_shadow;
    bool may_give; /* the caller may give units back to any limit, as with a refund */
    /* Called once, with call->error set, if call_ask() has returned RULES_PENDING. */
    void (*done)(void *arg);
    void *arg;

    struct weir_rules_answer answer; /* of the call: of the limit that bound */
    struct call_status *statuses;    /* of each question, in order */
    unsigned oddities;               /* CALL_... */
    int error;                       /* 0, or WEIR_E... */

    /* For call_ask.c and call_parts.c: */
    struct call_part *parts[CALL_MAX];
    size_t parts_count;
    int charge;             /* enum envoy_charge */
    int stage;              /* the one that comes next */
    size_t out;             /* parts that have not answered */
    bool denied;            /* by a part, a list or a missing key */
    bool over;              /* all limits in quota_mode deny */
    bool refused;           /* `answer` has been set by a list, a missing key or an override of 0 */
    bool kept;              /* references to the rules and the holders are held */
    unsigned shadow_failed; /* shadow limits that could not be asked */
    unsigned flags;         /* of `answer`, besides those of limits */
    struct remote_question group;
};

/*
 * Asks. Returns 0 if the call has been answered, RULES_PENDING, or WEIR_E... with the reason in
 * *error; then nothing was charged, as a rule.
 */
int call_ask(struct call *call, struct weir_error *error);

/* ---- parts (call_parts.c) ---- */

enum part_role {
    PART_ENFORCED,
    PART_QUOTA, /* quota_mode */
    PART_SHADOW,
    PART_OVERRIDE,
    PART_LOOK, /* no units */
    PART_BACK  /* gives units back, or would if the caller might */
};

/* One limit that applies to one question. */
struct call_part {
    struct call *call;
    size_t question;
    enum part_role role;
    struct kept_limit limit;           /* its holder is NULL for the built-in limit */
    const struct limit_config *config; /* only while parts are gathered */
    struct weir_text label;
    struct rate rate;
    bool windows; /* as in struct call_status */
    struct remote_part remote;
    struct call_part *same;    /* an earlier part that asks for the same key; it charges for both */
    bool looks;                /* no units are asked for */
    bool dropped;              /* replaced by another limit, or it has failed without effect */
    bool answered;             /* `answer` is final */
    bool charged;              /* units were taken */
    bool withheld;             /* PART_BACK: the caller may not give units back to this limit */
    bool given;                /* PART_BACK: units were given back */
    struct weir_answer answer; /* its verdict is that of this part alone */
    struct remote_question asked;
};

/* Returns whether the part denies nothing: the built-in limit may be in shadow mode, too. */
static inline bool part_is_shadow(const struct call_part *part)
{
    return part->role == PART_SHADOW || (part->limit.holder == NULL && part->call->adhoc_shadow);
}

static inline bool part_denies(const struct call_part *part)
{
    return part->answer.verdict != WEIR_ALLOW;
}

/* Finds the parts of all questions. Returns 0, or WEIR_E... with the reason. Inside the gate. */
int call_gather(struct call *call, const struct ruleset *set, struct ask_counts *counts,
                struct weir_error *error);

/* Sets the statuses and the answer when all parts have answered. */
void call_conclude(struct call *call);

#endif
