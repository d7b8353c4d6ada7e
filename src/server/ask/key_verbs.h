/*
 * What operators do to one key of one limit, the same for all protocols: RESP has
 * WEIR.REFUND, HTTP /v1/keys/refund. Every change is logged at LEVEL_AUDIT with the
 * address and role of the client; a change that failed is not logged. The caller
 * must have checked that the client's role allows the change.
 */
#ifndef WEIR_SERVER_ASK_KEY_VERBS_H
#define WEIR_SERVER_ASK_KEY_VERBS_H

#include "rules/value/address.h"
#include "server/ask/answer.h"
#include "server/net/access.h"

enum verb { VERB_REFUND, VERB_PENALIZE, VERB_BLOCK, VERB_UNBLOCK, VERB_RESET, VERBS };

struct verb_row {
    const char *name; /* "refund", ... */
    bool units;       /* it needs a number of units */
    bool time;        /* it needs a duration */
};

extern const struct verb_row verb_rows[VERBS];

#define VERB_FOREVER UINT64_MAX

struct verb_call {
    enum verb verb;
    struct weir_rules_key key;
    uint64_t units;  /* at least 1 */
    uint64_t for_ms; /* at least 1; VERB_FOREVER: until unblocked */
};

/* The client that makes a change, for the log. */
struct actor {
    const struct address *peer; /* family 0: a unix socket */
    enum role role;
};

/*
 * Changes a key. *answer is the answer to a peek of 1 unit after the change, with blocked_ms.
 *
 * The built-in limit gets its rate and burst with each call. Its keys can be inspected (without a
 * quota: only the time until they are as good as new), reset, blocked and unblocked, but a unit has
 * no fixed worth: refund and penalize return WEIR_ENOTSUP.
 *
 * Returns 0, ANSWER_LATER, or WEIR_E... with the reason and nothing changed: WEIR_EINVAL,
 * WEIR_ENOLIMIT, WEIR_EKEY, WEIR_EATTRIBUTE, WEIR_EFULL (no room for a new key); for a limit that a
 * fleet decides also WEIR_EIO, because only the store can make the change.
 */
int verb_run(struct server *server, const struct verb_call *call, const struct actor *by,
             uint64_t now_ns, struct later *later, struct answer *answer, struct weir_error *error);

/* Inspects a key: a peek of 1 unit, and how long the key is still blocked (0: not blocked, -1:
 * without end). Returns as verb_run(). */
int verb_inspect(struct server *server, const struct weir_rules_key *key, uint64_t now_ns,
                 struct later *later, struct answer *answer, int64_t *blocked_ms,
                 struct weir_error *error);

/* Returns how many parts the key of a limit has, also of the built-in one; or WEIR_ENOLIMIT. */
int verb_key_parts(struct server *server, struct text limit);

#endif
