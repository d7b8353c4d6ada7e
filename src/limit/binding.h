/* Which of several answers binds: the one that a call about several limits gives.
 * Every decision about several limits asks here, whoever makes it; only the store's
 * script repeats it (lua/decide.lua). */
#ifndef WEIR_LIMIT_BINDING_H
#define WEIR_LIMIT_BINDING_H

#include <stdbool.h>
#include <weir.h>

/* Returns whether answer `a` binds rather than `before`: NEVER before DENY before ALLOW; then the
 * latest retry, or the least remaining. Of equal answers the earlier binds. */
static inline bool answer_binds(const struct weir_answer *a, const struct weir_answer *before)
{
    if (a->verdict != before->verdict) {
        return a->verdict > before->verdict;
    }
    return a->verdict == WEIR_ALLOW ? a->remaining < before->remaining
                                    : a->retry_after_ns > before->retry_after_ns;
}

_Static_assert(WEIR_NEVER > WEIR_DENY && WEIR_DENY > WEIR_ALLOW,
               "answer_binds() compares verdicts");

#endif
