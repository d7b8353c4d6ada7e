/* The outcomes that whole operations, one after the other, can have. */
#ifndef WEIR_EXPLORE_ORACLE_H
#define WEIR_EXPLORE_ORACLE_H

#include "explore/scenario.h"

struct outcome {
    unsigned dead;                        /* bit per user */
    unsigned done[USERS_MAX];             /* operations that returned */
    uint64_t told[USERS_MAX][SCRIPT_MAX]; /* what they returned */
    uint64_t left[KEYS_MAX];              /* what each key may do afterwards */
};

/* Another scenario begins. */
void oracle_forget(void);

/* True if some order of whole operations gives this outcome. Leaves the world reset. */
bool oracle_accepts(const struct scenario *s, const struct outcome *outcome);

unsigned script_length(const struct op *script);

#endif
