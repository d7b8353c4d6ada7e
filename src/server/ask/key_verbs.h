/*
 * What operators do to one key of one limit, whatever the protocol: RESP says
 * WEIR.REFUND, HTTP /v1/keys/refund. Every change is logged at LEVEL_AUDIT with
 * who did it; what could not be done is not. Whether the role suffices is for
 * the caller to check.
 */
#ifndef WEIR_SERVER_ASK_KEY_VERBS_H
#define WEIR_SERVER_ASK_KEY_VERBS_H

#include "rules/value/address.h"
#include "server/ask/answer.h"
#include "server/net/access.h"

enum verb { VERB_REFUND, VERB_PENALIZE, VERB_BLOCK, VERB_UNBLOCK, VERB_RESET, VERBS };

struct verb_row {
    const char *name; /* "refund", ... */
    bool units;       /* it needs how many */
    bool time;        /* it needs how long */
};

extern const struct verb_row verb_rows[VERBS];

#define VERB_FOREVER UINT64_MAX

struct verb_call {
    enum verb verb;
    struct weir_rules_key key;
    uint64_t units;  /* at least 1 */
    uint64_t for_ms; /* at least 1; VERB_FOREVER: until unblocked */
};

/* Who did it. */
struct actor {
    const struct address *peer; /* family 0: a unix socket */
    enum role role;
};

/*
 * The built-in limit's numbers come with each call: a key of it can be looked at (no quota, only
 * when it is as good as new), reset, blocked and unblocked, but units mean nothing (WEIR_ENOTSUP).
 *
 * *answer is a peek of 1 afterwards, with blocked_ms. 0, ANSWER_LATER, or WEIR_E... with the reason and nothing changed:
 * WEIR_EINVAL, WEIR_ENOLIMIT, WEIR_EKEY, WEIR_EATTRIBUTE, WEIR_EFULL (no room for a new key);
 * of a limit that a fleet decides WEIR_EIO: without its store nobody can do it.
 */
int verb_run(struct server *server, const struct verb_call *call, const struct actor *by,
             uint64_t now_ns, struct later *later, struct answer *answer, struct weir_error *error);

/* Looks: a peek of 1, and how long the key is still blocked (0: it is not, -1: without end). */
int verb_inspect(struct server *server, const struct weir_rules_key *key, uint64_t now_ns,
                 struct later *later, struct answer *answer, int64_t *blocked_ms,
                 struct weir_error *error);

/* How many parts the key of a limit has, the built-in one's too; or WEIR_ENOLIMIT. */
int verb_key_parts(struct server *server, struct text limit);

#endif
