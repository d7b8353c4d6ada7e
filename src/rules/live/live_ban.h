/*
 * Bans: keys that are denied too often are blocked for a time (`ban` of a limit). This is the
 * exception to "a denied call writes nothing" (P4): a DENY of a limit with a ban is counted.
 *
 * The denials of a limiter are counted by a second limiter, holder->denials: a fixed window whose
 * quota is the number of denials that bans. So counts are exact whatever the number of threads,
 * bounded, and part of the memory of the rules. The call that takes the last unit of a window makes
 * the ban; further denials in that window find no unit and change nothing (N1). So a window bans a
 * key once at most, and no call extends a ban (N2).
 *
 * A ban is a block of the limiter (weir_ban_at()), or of the store if a fleet decides the limit.
 * The caller does not wait for the store: it gets its answer at once.
 *
 * holder->denials changes while the gate is closed, so these functions are called inside the gate.
 */
#ifndef WEIR_RULES_LIVE_LIVE_BAN_H
#define WEIR_RULES_LIVE_LIVE_BAN_H

#include "rules/live/live.h"

/* A key that an enforced limit has denied units that were to be taken. */
struct denial {
    struct weir_rules *rules;
    void *where; /* as for remote_ops.ask() */
    struct holder *holder;
    struct weir_text key;
    struct weir_text shard; /* as in struct remote_part */
    uint64_t now_ns;
};

/*
 * Counts the denial if it is one that bans count: not for a block, a full table or the lack of a
 * store. If it is the last that the limit allows, bans the key and makes *answer tell so.
 */
void ban_count(const struct denial *d, struct weir_answer *answer);

/* Does the same if the limit has a ban and the verdict is DENY. */
static inline void ban_after(const struct denial *d, struct weir_answer *answer)
{
    if (d->holder->denials != NULL && answer->verdict == WEIR_DENY) {
        ban_count(d, answer);
    }
}

#endif
