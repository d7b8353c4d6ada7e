/*
 * The answer that all protocols give: verdict, limit, quota, remaining, retry_after_ms,
 * reset_after_ms, delay_ms, flags, in this order. This file turns questions into answers;
 * each protocol writes them as bytes in its own way.
 */
#ifndef WEIR_SERVER_ASK_ANSWER_H
#define WEIR_SERVER_ASK_ANSWER_H

#include "common/remote.h"
#include "server/net/server.h"

/* Bits of answer.flags. answer_flag_names has their names, the same in all protocols. */
#define ANSWER_DEGRADED 0x1u
#define ANSWER_SHADOW 0x2u
#define ANSWER_FULL 0x4u
#define ANSWER_FLAGS 3

extern const char *const answer_flag_names[ANSWER_FLAGS];
extern const char *const answer_verdict_names[WEIR_NEVER + 1]; /* index: enum weir_verdict */

struct answer {
    int verdict;
    int reason;                  /* enum weir_rules_reason */
    char limit[WEIR_RULES_NAME]; /* its name; "": none */
    uint64_t quota;
    int64_t remaining;      /* -1: no limit applied, or its quota is not known */
    int64_t retry_after_ms; /* allow: 0; deny: at least 1; never: -1 */
    uint64_t reset_after_ms;
    uint64_t delay_ms;
    unsigned flags;
    bool closed;           /* denied because of `on_store_failure: closed`, not for lack of units */
    uint64_t window_ns;    /* these two are for header fields only, as in weir_rules_answer */
    unsigned retry_jitter; /* hundredths of a percent */
    int64_t blocked_ms;    /* of operations on one key: how long it is blocked; -1: without end */
    char reservation[33];  /* of a reservation: its id; "": none was made */
};

/* A question to one limit, given by its name and the parts of its key. */
struct direct {
    struct weir_rules_key key;
    uint64_t cost; /* 0: the limit's own cost, or 1 if it has none */
    uint64_t max_wait_ns;
    int mode;
};

/*
 * Converts the answer of one limit. A shadow limit never denies. A key that is blocked without end
 * gets the verdict NEVER, because there is no time at which a retry could succeed.
 */
void answer_from_limit(const struct weir_answer *from, struct weir_rules_value limit,
                       const struct weir_rules_found *found, struct answer *to);

/* Counts the key as denied, or as one that a limit in shadow mode would have denied. `told` is the
 * answer that the client gets, `from` the one that the limit gave. */
void answer_note(const struct answer *told, const struct weir_answer *from, const void *key,
                 size_t key_len, const struct weir_rules_found *found);

/* ---- asking ---- */

/*
 * Returned, besides 0 and WEIR_E..., by the functions below and those of key_verbs.h and
 * reservations.h: a fleet's store has been asked, and later->kept will get the answer. The caller
 * must pass it to deferred_keep() at once.
 */
#define ANSWER_LATER 100

/* The text for WEIR_EIO. */
#define ANSWER_NO_STORE "the store does not answer, and nobody else can do this"

struct deferred;
struct worker;

/* Where an answer from a fleet's store goes. Functions that get NULL instead cannot ask a limit
 * that a fleet decides (WEIR_ENOTSUP). */
struct later {
    struct worker *worker; /* the thread that asks */
    struct deferred *kept; /* set with ANSWER_LATER */
};

/* Ask the rules, or one limit. Return 0, ANSWER_LATER, or WEIR_E... with the reason in *error.
 * Times are rounded up to milliseconds, so that a client which waits that long is let in. */
int answer_ask(struct weir_rules *rules, const struct weir_rules_question *question,
               uint64_t now_ns, struct later *later, struct answer *answer,
               struct weir_error *error);
int answer_check(struct weir_rules *rules, const struct direct *direct, uint64_t now_ns,
                 struct later *later, struct answer *answer, struct weir_error *error);

#endif
