/*
 * The answer that all protocols give: verdict, limit, quota, remaining, retry_after_ms,
 * reset_after_ms, delay_ms, flags, in this order, then what an operation adds, and last the reason.
 * This file turns questions into answers; each protocol writes them as bytes in its own way.
 */
#ifndef WEIR_SERVER_OPERATIONS_ANSWER_H
#define WEIR_SERVER_OPERATIONS_ANSWER_H

#include "common/remote.h"
#include "rules/value/address.h"
#include "server/access/access.h"
#include "server/loop/server.h"

/* Bits of answer.flags. answer_flag_names has their names, the same in all protocols. */
#define ANSWER_DEGRADED 0x1u
#define ANSWER_SHADOW 0x2u
#define ANSWER_FULL 0x4u
#define ANSWER_MISSING 0x8u
#define ANSWER_FLAGS 4

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
    uint64_t retry_after_ns; /* the exact times, for CL.THROTTLE, which has its own rounding */
    uint64_t reset_after_ns;
    unsigned flags;
    uint64_t window_ns;    /* these two are for header fields only, as in weir_rules_answer */
    unsigned retry_jitter; /* hundredths of a percent */
    int64_t blocked_ms;    /* of operations on one key: how long it is blocked; -1: without end */
    bool removed;          /* of a reset: the key had a state */
    char reservation[33];  /* of a reservation: its id; "": none was made */
    /* These are for gateways and header fields, as in weir_rules_answer: */
    bool hidden;
    unsigned deny_status;
    char deny_message[WEIR_RULES_MESSAGE];
    struct weir_rules_shown shown;
};

/* Returns the ANSWER_... bits for WEIR_FLAG_... */
unsigned answer_flags(unsigned flags);

/* Makes the answer that a client may be told, if the limit is hidden: with the limit that may be
 * shown instead and its numbers, or with none. The times stay. */
void answer_for_client(const struct answer *from, struct answer *to);

/*
 * Calls fn with each header field that tells a client of the limit, in a format (enum
 * ratelimit_format), and its number from 0 on: first Retry-After, if the reply is a denial
 * (`denied`) that ends with time. Returns how many there are. answer_put_fields() puts them as
 * lines.
 */
typedef void (*answer_field_fn)(struct buffer *to, size_t number, struct weir_text name,
                                struct weir_text value);
size_t answer_each_field(const struct answer *a, bool denied, int format, uint64_t now_ns,
                         answer_field_fn fn, struct buffer *to);
void answer_put_fields(struct buffer *out, const struct answer *a, bool denied, int format,
                       uint64_t now_ns);

/*
 * Converts the answer of one limit. A shadow limit never denies. A key that is blocked without end
 * gets the verdict NEVER, because there is no time at which a retry could succeed.
 */
void answer_from_limit(const struct weir_answer *from, struct weir_text limit,
                       const struct weir_rules_found *found, struct answer *to);

/* Converts the answer of the rules. */
void answer_from_rules(const struct weir_rules_answer *from, struct answer *to);

/* ---- asking ---- */

/*
 * Returned, besides 0 and WEIR_E..., by operations: a fleet's store has been asked, and
 * asker->pending will get the answer. The caller must pass it to pending_keep() at once.
 */
#define ANSWER_LATER 100

/* How protocols tell an error. */
struct answer_error {
    int error;        /* WEIR_E... or RESERVATION_... */
    int status;       /* of HTTP */
    const char *code; /* the first word of an error in RESP */
    int reason;       /* of HTTP, for a request that is denied: enum weir_rules_reason; 0: none */
};
const struct answer_error *answer_error(int e);

/* Returns the text for an error: the reason if there is one, otherwise words for `e`. */
const char *answer_words_of_error(int e, const struct weir_error *error);

struct pending;
struct worker;

/* The client that asks, for the audit log. */
struct actor {
    const struct address *peer; /* family 0: a unix socket */
    enum role role;
};

/* Who asks and when, and who gets an answer that comes later. */
struct asker {
    struct server *server;
    struct worker *worker; /* NULL: limits that a fleet decides cannot be asked (WEIR_ENOTSUP) */
    struct actor by;
    uint64_t now_ns;
    unsigned flags;          /* of questions to the rules: WEIR_RULES_... */
    struct pending *pending; /* set with ANSWER_LATER */
};

/* Asks the rules. Returns 0, ANSWER_LATER, or WEIR_E... with the reason in *error. Times are
 * rounded up to milliseconds, so that a client which waits that long is let in. */
int answer_ask(struct asker *asker, const struct weir_rules_question *question,
               struct answer *answer, struct weir_error *error);

#endif
