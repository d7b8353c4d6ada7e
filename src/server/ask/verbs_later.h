/* Verbs on keys in a fleet's store (verbs_later.c), and the audit log of all
 * verbs (verbs_audit.c). */
#ifndef WEIR_SERVER_ASK_VERBS_LATER_H
#define WEIR_SERVER_ASK_VERBS_LATER_H

#include "server/ask/key_verbs.h"

/* A copy of the change and of the client that made it, for the log; it outlives the request. */
struct verb_audit {
    enum verb verb;
    enum role role;
    char peer[ADDRESS_MAX];
    char limit[WEIR_RULES_NAME];
    char tier[WEIR_RULES_NAME];
    char key[256]; /* its parts, separated by commas; cut if it is too long */
    size_t key_len;
    uint64_t units;
    uint64_t for_ms;
};

void verb_audit_init(struct verb_audit *audit, const struct verb_call *call,
                     const struct actor *by);
void verb_audit_tell(const struct verb_audit *audit);

uint64_t verb_for_ns(const struct verb_call *call); /* WEIR_FOREVER if it has no end */

/* verb_begin() makes a change, verb_look() inspects a key. Called with the arguments of a
 * weir_rules_use_fn. Return ANSWER_LATER or WEIR_E...; verb_look() may also return 0. */
int verb_begin(const struct verb_call *call, const struct actor *by, const void *key,
               size_t key_len, const struct weir_rules_found *found, uint64_t now_ns,
               struct later *later);
int verb_look(const struct weir_rules_key *of, const void *key, size_t key_len,
              const struct weir_rules_found *found, uint64_t now_ns, struct later *later,
              struct answer *told);

#endif
