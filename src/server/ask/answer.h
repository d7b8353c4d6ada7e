/*
 * One answer on every wire: verdict, limit, quota, remaining, retry_after_ms,
 * reset_after_ms, delay_ms, flags, in this order. Questions become answers here;
 * what they look like as bytes is the protocol's business.
 */
#ifndef WEIR_SERVER_ASK_ANSWER_H
#define WEIR_SERVER_ASK_ANSWER_H

#include "common/remote.h"
#include "server/net/server.h"

/* Bits of answer.flags, by the names that all protocols use. */
#define ANSWER_DEGRADED 0x1u
#define ANSWER_SHADOW 0x2u
#define ANSWER_FULL 0x4u
#define ANSWER_FLAGS 3

extern const char *const answer_flag_names[ANSWER_FLAGS];
extern const char *const answer_verdict_names[WEIR_NEVER + 1]; /* by enum weir_verdict */

struct answer {
    int verdict;
    int reason;                  /* enum weir_rules_reason */
    char limit[WEIR_RULES_NAME]; /* "": none */
    uint64_t quota;
    int64_t remaining;      /* -1: no rule */
    int64_t retry_after_ms; /* 0 allow; at least 1 deny; -1 never */
    uint64_t reset_after_ms;
    uint64_t delay_ms;
    unsigned flags;
    bool closed;           /* denied by `on_store_failure: closed`, not for want of units */
    uint64_t window_ns;    /* for headers alone: these two as in struct weir_rules_answer */
    unsigned retry_jitter; /* hundredths of a percent */
    int64_t blocked_ms;    /* of operations on one key: how long it is blocked; -1: without end */
    char reservation[33];  /* of a reservation: its id; "": none was made */
};

/* One limit by its name and the parts of its key. */
struct direct {
    struct weir_rules_key key;
    uint64_t cost; /* 0: the limit's own, else 1 */
    uint64_t max_wait_ns;
    int mode;
};

/*
 * What one limit said. A shadow limit never denies. A key that is blocked without end can never
 * pass: there is no time to tell when to come again.
 */
void answer_from_limit(const struct weir_answer *from, struct weir_rules_value limit,
                       const struct weir_rules_found *found, struct answer *to);

/* What was told of it is counted: who was denied, or would have been by a limit in shadow mode. */
void answer_note(const struct answer *told, const struct weir_answer *from, const void *key,
                 size_t key_len, const struct weir_rules_found *found);

/* ---- asking ---- */

/*
 * What the functions below and their like (verbs.h, reservations.h) return besides 0 and WEIR_E...:
 * a fleet's store has been asked, and later->kept gets the answer. The caller keeps it at once, by
 * deferred_keep().
 */
#define ANSWER_LATER 100

/* WEIR_EIO, in words. */
#define ANSWER_NO_STORE "the store does not answer, and nobody else can do this"

struct deferred;
struct worker;

/* NULL in place of one: no limit that a fleet decides can be asked (WEIR_ENOTSUP). */
struct later {
    struct worker *worker; /* that asks */
    struct deferred *kept; /* with ANSWER_LATER */
};

/* 0 or WEIR_E... with the reason in *error. Rounded up: whoever waits that long is let in. */
int answer_ask(struct weir_rules *rules, const struct weir_rules_question *question,
               uint64_t now_ns, struct later *later, struct answer *answer,
               struct weir_error *error);
int answer_check(struct weir_rules *rules, const struct direct *direct, uint64_t now_ns,
                 struct later *later, struct answer *answer, struct weir_error *error);

#endif
