/* Verbs of keys that a fleet's store holds (verbs_later.c), and the line of the log (verbs_audit.c). */
#ifndef WEIR_SERVER_ASK_VERBS_LATER_H
#define WEIR_SERVER_ASK_VERBS_LATER_H

#include "server/ask/key_verbs.h"

/* Who did what, after the request has gone. */
struct verb_audit {
    enum verb verb;
    enum role role;
    char peer[ADDRESS_MAX];
    char limit[WEIR_RULES_NAME];
    char tier[WEIR_RULES_NAME];
    char key[256]; /* its parts, with commas between them; long ones cut */
    size_t key_len;
    uint64_t units;
    uint64_t for_ms;
};

void verb_audit_init(struct verb_audit *audit, const struct verb_call *call,
                     const struct actor *by);
void verb_audit_tell(const struct verb_audit *audit);

uint64_t verb_for_ns(const struct verb_call *call); /* WEIR_FOREVER */

/* With what a weir_rules_use_fn was given. ANSWER_LATER or WEIR_E...; looking also 0. */
int verb_begin(const struct verb_call *call, const struct actor *by, const void *key,
               size_t key_len, const struct weir_rules_found *found, uint64_t now_ns,
               struct later *later);
int verb_look(const struct weir_rules_key *of, const void *key, size_t key_len,
              const struct weir_rules_found *found, uint64_t now_ns, struct later *later,
              struct answer *told);

#endif
