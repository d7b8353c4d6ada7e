/* Why a request was allowed or denied. */
#include "rules/live/live.h"

static const char *const names[] = {
    [WEIR_REASON_UNMATCHED] = "unmatched",
    [WEIR_REASON_LIMIT] = "limit",
    [WEIR_REASON_ALLOW_LIST] = "allow_list",
    [WEIR_REASON_BLOCK_LIST] = "block_list",
    [WEIR_REASON_MISSING] = "missing",
    [WEIR_REASON_BLOCKED] = "blocked",
    [WEIR_REASON_BAN] = "ban",
    [WEIR_REASON_OVERLOAD] = "overload",
    [WEIR_REASON_STORE] = "store",
    [WEIR_REASON_SHADOW] = "shadow",
    [WEIR_REASON_DEGRADED] = "degraded",
};

const char *weir_rules_reason_name(int reason)
{
    bool known = reason >= 0 && (size_t)reason < sizeof names / sizeof names[0];
    return known ? names[reason] : "unknown";
}

/* Flags that give an allowance or a denial another reason than the units of its limit; the first
 * one that is set counts. */
static const struct reason_row {
    unsigned flag;
    int reason;
} allowed[] = {{WEIR_FLAG_SHADOW, WEIR_REASON_SHADOW}, {REMOTE_DEGRADED, WEIR_REASON_DEGRADED}},
  denied[] = {{WEIR_FLAG_BANNED, WEIR_REASON_BAN},
              {WEIR_FLAG_BLOCKED, WEIR_REASON_BLOCKED},
              {REMOTE_CLOSED, WEIR_REASON_STORE},
              {WEIR_FLAG_FULL, WEIR_REASON_OVERLOAD}};

int rules_reason(const struct weir_answer *answer)
{
    bool allows = answer->verdict == WEIR_ALLOW;
    const struct reason_row *row = allows ? allowed : denied;
    size_t n = allows ? sizeof allowed / sizeof *row : sizeof denied / sizeof *row;
    if (answer->flags == 0) {
        return WEIR_REASON_LIMIT;
    }
    for (size_t i = 0; i < n; i++) {
        if ((answer->flags & row[i].flag) != 0) {
            return row[i].reason;
        }
    }
    return WEIR_REASON_LIMIT;
}
