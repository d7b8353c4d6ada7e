/* The audit log: every change of a key that an operator has made, with the client's address and
 * role. A change that failed is not logged. */
#ifndef WEIR_SERVER_ASK_AUDIT_H
#define WEIR_SERVER_ASK_AUDIT_H

#include "server/ask/operations.h"

/* A change and the client that makes it. It refers to nothing of the request, which it outlives. */
struct audit {
    enum operation operation;
    enum role role;
    char peer[ADDRESS_MAX];
    char limit[WEIR_RULES_NAME];
    char tier[WEIR_RULES_NAME];
    char key[256]; /* its parts, separated by commas; cut if it is too long */
    size_t key_len;
    uint64_t units;
    uint64_t for_ms;
};

void audit_init(struct audit *audit, enum operation operation, const struct ask *ask,
                const struct actor *by);
void audit_tell(const struct audit *audit);

#endif
