/* What two users can do to each other, in worlds as small as they can be. */
#include <string.h>

#include "explore/scenario.h"

/* Keys of tables with two lines: all share both lines. */
#define NARROW_0(stripe)                                                                           \
    {                                                                                              \
        0, 1, stripe, ANY                                                                          \
    }
/* Keys of tables with four lines, 0 1 | 2 3. */
#define HOME(first, second, stripe)                                                                \
    {                                                                                              \
        first, second, stripe, ANY                                                                 \
    }
/* Keys of any lines, whose blocks have this line as their home. */
#define BLOCKED_AT(line)                                                                           \
    {                                                                                              \
        ANY, ANY, ANY, line                                                                        \
    }

/* An empty table of two lines. */
#define EMPTY(algorithm_)                                                                          \
    {                                                                                              \
        .algorithm = algorithm_, .lines = 2, .stripes = 2, .keys = 3, .home = {                    \
            NARROW_0(0),                                                                           \
            NARROW_0(0),                                                                           \
            NARROW_0(1)                                                                            \
        }                                                                                          \
    }

/* Two lines, seven of eight slots taken by keys in debt; keys 7, 8, 9 are new. */
#define ONE_PLACE(algorithm_, on_full_, ...)                                                       \
    {                                                                                              \
        .algorithm = algorithm_, .on_full = on_full_, .lines = 2, .stripes = 4, .keys = 10,        \
        .home = {NARROW_0(0), NARROW_0(1), NARROW_0(2), NARROW_0(3), NARROW_0(0),                  \
                 NARROW_0(1), NARROW_0(2), NARROW_0(0), NARROW_0(1), NARROW_0(2)},                 \
        .prepare = {                                                                               \
            {CHECK, 0, 1},                                                                         \
            {CHECK, 1, 2},                                                                         \
            {CHECK, 2, 3},                                                                         \
            {CHECK, 3, 3},                                                                         \
            {CHECK, 4, 3},                                                                         \
            {CHECK, 5, 3},                                                                         \
            {CHECK, 6, 3},                                                                         \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/*
 * Four lines; 0 and 2 are full of keys in debt, 1 and 3 are empty. Key 0 could
 * move from line 0 to 3, key 4 (unless it is like the others) from 2 to 1.
 * Keys 8 and 9 are new and want lines 0 and 2; so does 10, of key 0's stripe.
 */
#define TIGHT(algorithm_, on_full_, fourth, ...)                                                   \
    {                                                                                              \
        .algorithm = algorithm_, .on_full = on_full_, .lines = 4, .stripes = 4, .keys = 12,        \
        .home = {HOME(0, 3, 0), HOME(0, 2, 3), HOME(0, 2, 3), HOME(0, 2, 3),                       \
                 fourth,        HOME(2, 0, 3), HOME(2, 0, 3), HOME(2, 0, 3),                       \
                 HOME(0, 2, 1), HOME(2, 0, 2), HOME(0, 2, 0), HOME(3, 0, 0)},                      \
        .prepare = {                                                                               \
            {CHECK, 0, 1},                                                                         \
            {CHECK, 1, 2},                                                                         \
            {CHECK, 2, 2},                                                                         \
            {CHECK, 3, 2},                                                                         \
            {CHECK, 4, 2},                                                                         \
            {CHECK, 5, 2},                                                                         \
            {CHECK, 6, 2},                                                                         \
            {CHECK, 7, 2},                                                                         \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/*
 * All lines are full of keys but for one slot of line 3, into which a key of line 0 can be moved:
 * key 0, which comes first. Keys 1 and 4 owe less than the others. Keys 8 and 9 are new and want
 * lines 0 and 2.
 */
#define PINNED(algorithm_, on_full_)                                                               \
    {                                                                                              \
        .algorithm = algorithm_, .on_full = on_full_, .lines = 4, .stripes = 4, .keys = 17,        \
        .home = {HOME(0, 3, 0), HOME(0, 3, 1), HOME(0, 3, 3), HOME(0, 3, 3), HOME(2, 1, 2),        \
                 HOME(2, 1, 3), HOME(2, 1, 3), HOME(2, 1, 3), HOME(0, 2, 1), HOME(2, 0, 2),        \
                 HOME(1, 2, 3), HOME(1, 2, 3), HOME(1, 2, 3), HOME(1, 2, 3), HOME(3, 0, 3),        \
                 HOME(3, 0, 3), HOME(3, 0, 3)},                                                    \
        .prepare = {                                                                               \
            {CHECK, 0, 1},                                                                         \
            {CHECK, 1, 3},                                                                         \
            {CHECK, 2, 14},                                                                        \
            {CHECK, 3, 14},                                                                        \
            {CHECK, 4, 2},                                                                         \
            {CHECK, 5, 14},                                                                        \
            {CHECK, 6, 14},                                                                        \
            {CHECK, 7, 14},                                                                        \
            {CHECK, 10, 14},                                                                       \
            {CHECK, 11, 14},                                                                       \
            {CHECK, 12, 14},                                                                       \
            {CHECK, 13, 14},                                                                       \
            {CHECK, 14, 14},                                                                       \
            {CHECK, 15, 14},                                                                       \
            {CHECK, 16, 14},                                                                       \
        }                                                                                          \
    }
#define STAYS HOME(2, 0, 2)
#define MOVES HOME(2, 1, 2)

const struct scenario scenarios[] = {
    {
        .name = "two checks of one known key are charged both",
        .world = {.algorithm = WEIR_TOKEN_BUCKET,
                  .lines = 2,
                  .stripes = 2,
                  .keys = 1,
                  .home = {NARROW_0(0)},
                  .prepare = {{CHECK, 0, 1}}},
        .users = 2,
        .script = {{{CHECK, 0, 3}, {CHECK, 0, 2}}, {{CHECK, 0, 5}, {CHECK, 0, 1}}},
    },
    {
        .name = "a key that two users insert at once exists once and is charged for both",
        .world = EMPTY(WEIR_TOKEN_BUCKET),
        .users = 2,
        .script = {{{CHECK, 0, 3}}, {{CHECK, 0, 5}}},
    },
    {
        .name = "two new keys, of one stripe and of two, are both there",
        .world = EMPTY(WEIR_TOKEN_BUCKET),
        .users = 2,
        .script = {{{CHECK, 0, 3}, {CHECK, 2, 1}}, {{CHECK, 1, 5}, {CHECK, 2, 2}}},
    },
    {
        .name = "of two new keys one gets the last place, the other is refused (deny)",
        .world = ONE_PLACE(WEIR_TOKEN_BUCKET, WEIR_DENY_NEW),
        .users = 2,
        .script = {{{CHECK, 7, 1}}, {{CHECK, 8, 1}}},
    },
    {
        .name = "of two new keys one gets the last place, the other passes uncharged (allow)",
        .world = ONE_PLACE(WEIR_TOKEN_BUCKET, WEIR_ALLOW_NEW),
        .users = 2,
        .script = {{{CHECK, 7, 1}}, {{CHECK, 8, 1}}},
    },
    {
        .name = "of two new keys one gets the last place, the other the least indebted (evict)",
        .world = ONE_PLACE(WEIR_TOKEN_BUCKET, WEIR_EVICT),
        .users = 2,
        .script = {{{CHECK, 7, 5}}, {{CHECK, 8, 5}}},
    },
    {
        .name = "a check of the key that is being evicted counts before, or begins afresh",
        .world = ONE_PLACE(WEIR_TOKEN_BUCKET, WEIR_EVICT, {CHECK, 9, 9}),
        .users = 2,
        .script = {{{CHECK, 7, 5}}, {{CHECK, 0, 1}}},
    },
    {
        .name = "a key that is checked while it is moved is charged exactly once",
        .world = TIGHT(WEIR_TOKEN_BUCKET, WEIR_DENY_NEW, STAYS),
        .users = 2,
        .script = {{{CHECK, 8, 1}}, {{CHECK, 0, 2}, {CHECK, 0, 3}}},
    },
    {
        .name = "two movers of one key leave one of it, and one new key is refused (deny)",
        .world = PINNED(WEIR_TOKEN_BUCKET, WEIR_DENY_NEW),
        .users = 2,
        .script = {{{CHECK, 8, 1}}, {{CHECK, 9, 1}}},
        .judge = BY_TOTALS, /* which key of line 0 is moved, a race decides */
        .three = TOO_MANY,
    },
    {
        .name = "where two can be moved, two new keys both find room",
        .world = TIGHT(WEIR_TOKEN_BUCKET, WEIR_DENY_NEW, MOVES),
        .users = 2,
        .script = {{{CHECK, 8, 1}}, {{CHECK, 9, 1}}},
        .three = IN_THE_LONG_BUILD,
    },
    {
        .name = "two who need each other's stripe to make room both find it",
        .world = {.algorithm = WEIR_TOKEN_BUCKET,
                  .on_full = WEIR_DENY_NEW,
                  .lines = 4,
                  .stripes = 4,
                  .keys = 10,
                  .home = {HOME(0, 3, 2), HOME(0, 2, 3), HOME(0, 2, 3), HOME(0, 2, 3),
                           HOME(2, 1, 1), HOME(2, 0, 3), HOME(2, 0, 3), HOME(2, 0, 3),
                           HOME(0, 2, 1), HOME(2, 0, 2)},
                  .prepare = {{CHECK, 0, 1},
                              {CHECK, 1, 2},
                              {CHECK, 2, 2},
                              {CHECK, 3, 2},
                              {CHECK, 4, 2},
                              {CHECK, 5, 2},
                              {CHECK, 6, 2},
                              {CHECK, 7, 2}}},
        .users = 2,
        .script = {{{CHECK, 8, 1}}, {{CHECK, 9, 1}}},
        .three = TOO_MANY,
    },
    {
        .name = "a penalty for a new key is not refused while there is room",
        .world = TIGHT(WEIR_TOKEN_BUCKET, WEIR_DENY_NEW, MOVES),
        .users = 2,
        .script = {{{PENALIZE, 8, 1}}, {{CHECK, 9, 1}}},
        .three = IN_THE_LONG_BUILD,
    },
    {
        .name = "two movers, and the least indebted that cannot move is forgotten (evict)",
        .world = PINNED(WEIR_TOKEN_BUCKET, WEIR_EVICT),
        .users = 2,
        .script = {{{CHECK, 8, 15}}, {{CHECK, 9, 15}}},
        .judge = BY_STATES, /* which key of line 0 is moved, a race decides */
        .three = TOO_MANY,
    },
    {
        .name =
            "where two can be moved, two new keys both find room and nobody is forgotten (evict)",
        .world = TIGHT(WEIR_TOKEN_BUCKET, WEIR_EVICT, MOVES),
        .users = 2,
        .script = {{{CHECK, 8, 1}}, {{CHECK, 9, 1}}},
        .three = IN_THE_LONG_BUILD,
    },
    {
        .name = "at max_keys, who is forgotten is never the one on the move (evict)",
        .world = PINNED(WEIR_TOKEN_BUCKET, WEIR_EVICT),
        .world.max_keys = 8,
        .users = 2,
        .script = {{{CHECK, 8, 15}}, {{CHECK, 9, 15}}},
        .judge = BY_STATES, /* beyond max_keys it may be one more than in any order */
        .three = TOO_MANY,
    },
    {
        .name = "a sweep by a clock far ahead does not touch what is being moved",
        .world = TIGHT(WEIR_TOKEN_BUCKET, WEIR_DENY_NEW, STAYS),
        .users = 2,
        .script = {{{CHECK, 8, 1}}, {{SWEEP_LATE, 0, 4}}},
        .judge = BY_STATES, /* it takes line by line, as it says: no order of whole operations */
        .three = IN_THE_LONG_BUILD,
    },
    {
        .name = "a new key of the resident's own stripe moves it as well",
        .world = TIGHT(WEIR_TOKEN_BUCKET, WEIR_DENY_NEW, STAYS),
        .users = 2,
        .script = {{{CHECK, 10, 1}}, {{CHECK, 0, 2}}},
    },
    {
        .name = "a reset of a key on the move takes it away whole",
        .world = TIGHT(WEIR_TOKEN_BUCKET, WEIR_DENY_NEW, STAYS),
        .users = 2,
        .script = {{{CHECK, 8, 1}}, {{RESET, 0, 0}}},
    },
    {
        .name = "who moves a key that a dead mover left half moved does not bring back its past",
        .world = TIGHT(WEIR_TOKEN_BUCKET, WEIR_DENY_NEW, STAYS, {LEFTOVER, 0, 0}, {CHECK, 0, 5}),
        .users = 2,
        .script = {{{CHECK, 8, 1}}, {{CHECK, 0, 2}}},
    },
    {
        .name = "log: what a dead mover left does not come back, whoever finds it",
        .world = TIGHT(WEIR_SLIDING_LOG, WEIR_DENY_NEW, STAYS, {LEFTOVER, 0, 0}, {CHECK, 0, 2}),
        .users = 2,
        .script = {{{CHECK, 8, 1}}, {{RESET, 0, 0}}},
        .torn = true,
    },
    {
        .name = "a sweep takes only what is fresh, also from under an insertion",
        .world = ONE_PLACE(WEIR_TOKEN_BUCKET, WEIR_DENY_NEW, {RESET, 0, 0}, {CHECK_OLD, 9, 5}),
        .users = 2,
        .script = {{{CHECK, 7, 1}, {CHECK, 9, 2}}, {{SWEEP, 0, 2}}},
    },
    {
        .name = "a fresh key that is reclaimed while it is checked is not lost",
        .world = ONE_PLACE(WEIR_TOKEN_BUCKET, WEIR_DENY_NEW, {CHECK_OLD, 9, 5}),
        .users = 2,
        .script = {{{CHECK, 7, 1}}, {{CHECK, 9, 2}}},
    },
    {
        .name = "a state of a far future that is swept while it is checked is charged once",
        .world = {.algorithm = WEIR_FIXED_WINDOW,
                  .lines = 2,
                  .stripes = 2,
                  .keys = 1,
                  .home = {NARROW_0(0)},
                  .prepare = {{CHECK_LATE, 0, 5}}},
        .users = 2,
        .script = {{{SWEEP, 0, 2}}, {{CHECK, 0, 2}, {CHECK, 0, 3}}},
    },
    {
        .name = "a new key pulls down the far future of a key that is checked, and loses no charge",
        .world = ONE_PLACE(WEIR_FIXED_WINDOW, WEIR_DENY_NEW, {CHECK_LATE, 9, 5}),
        .users = 2,
        .script = {{{CHECK, 7, 1}}, {{CHECK, 9, 2}}},
    },
    {
        .name = "a block holds from when it is set",
        .world = EMPTY(WEIR_TOKEN_BUCKET),
        .users = 2,
        .script = {{{BLOCK, 0, 0}, {CHECK, 0, 1}}, {{CHECK, 0, 2}, {CHECK, 0, 3}}},
    },
    {
        .name = "a block that is lifted is lifted once",
        .world = {.algorithm = WEIR_TOKEN_BUCKET,
                  .lines = 2,
                  .stripes = 2,
                  .keys = 1,
                  .home = {NARROW_0(0)},
                  .prepare = {{CHECK, 0, 1}, {BLOCK, 0, 0}}},
        .users = 2,
        .script = {{{UNBLOCK, 0, 0}, {CHECK, 0, 1}}, {{CHECK, 0, 2}, {UNBLOCK, 0, 0}}},
    },
    {
        .name = "a block whose line is full holds from when it is set",
        .world = {.algorithm = WEIR_TOKEN_BUCKET,
                  .lines = 2,
                  .stripes = 2,
                  .keys = 4,
                  .home = {BLOCKED_AT(0), BLOCKED_AT(0), BLOCKED_AT(0), BLOCKED_AT(0)},
                  .prepare = {{BLOCK, 1, 0}, {BLOCK, 2, 0}, {BLOCK, 3, 0}}},
        .users = 2,
        .script = {{{BLOCK, 0, 0}, {CHECK, 0, 1}}, {{CHECK, 0, 2}, {CHECK, 1, 3}}},
    },
    {
        .name = "a blocked key stays blocked while others are blocked and unblocked",
        .world = {.algorithm = WEIR_TOKEN_BUCKET,
                  .lines = 2,
                  .stripes = 2,
                  .keys = 4,
                  .home = {BLOCKED_AT(0), BLOCKED_AT(0), BLOCKED_AT(0), BLOCKED_AT(1)},
                  .prepare = {{BLOCK, 1, 0}, {BLOCK, 0, 0}}},
        .users = 2,
        .script = {{{UNBLOCK, 1, 0}, {CHECK, 3, 1}}, {{BLOCK, 3, 0}, {CHECK, 0, 1}}},
    },
    {
        .name = "a block that is set while the last other one is lifted holds",
        .world = {.algorithm = WEIR_TOKEN_BUCKET,
                  .lines = 2,
                  .stripes = 2,
                  .keys = 2,
                  .home = {BLOCKED_AT(0), BLOCKED_AT(1)},
                  .prepare = {{BLOCK, 1, 0}}},
        .users = 2,
        .script = {{{BLOCK, 0, 0}, {CHECK, 0, 1}}, {{UNBLOCK, 1, 0}, {CHECK, 1, 1}}},
    },
    {
        .name = "a reset and a check come one after the other",
        .world = {.algorithm = WEIR_TOKEN_BUCKET,
                  .lines = 2,
                  .stripes = 2,
                  .keys = 1,
                  .home = {NARROW_0(0)},
                  .prepare = {{CHECK, 0, 7}}},
        .users = 2,
        .script = {{{RESET, 0, 0}, {CHECK, 0, 1}}, {{CHECK, 0, 2}, {CHECK, 0, 3}}},
    },
    {
        .name = "a refund and a check come one after the other",
        .world = {.algorithm = WEIR_TOKEN_BUCKET,
                  .lines = 2,
                  .stripes = 2,
                  .keys = 1,
                  .home = {NARROW_0(0)},
                  .prepare = {{CHECK, 0, 19}}},
        .users = 2,
        .script = {{{REFUND, 0, 5}}, {{CHECK, 0, 2}, {CHECK, 0, 3}}},
    },
    {
        .name = "a check decides by the old parameters or by the new, never by a mixture",
        .world = {.algorithm = WEIR_TOKEN_BUCKET,
                  .lines = 2,
                  .stripes = 2,
                  .keys = 2,
                  .home = {NARROW_0(0), NARROW_0(1)},
                  .prepare = {{CHECK, 0, 7}}},
        .users = 2,
        .script = {{{CHANGE, 0, 10}}, {{CHECK, 0, 4}, {CHECK, 1, 12}}},
    },
    {
        .name = "two changes of the parameters come one after the other",
        .world = EMPTY(WEIR_TOKEN_BUCKET),
        .users = 2,
        .script = {{{CHANGE, 0, 10}}, {{CHANGE, 0, 5}}},
    },
    {
        .name = "log: a key that two users insert at once exists once and is charged for both",
        .world = EMPTY(WEIR_SLIDING_LOG),
        .users = 2,
        .script = {{{CHECK, 0, 1}}, {{CHECK, 0, 2}}},
    },
    {
        .name = "log: two checks of a key that is nearly used up admit what one would",
        .world = {.algorithm = WEIR_SLIDING_LOG,
                  .lines = 2,
                  .stripes = 2,
                  .keys = 1,
                  .home = {NARROW_0(0)},
                  .prepare = {{CHECK, 0, 1}}},
        .users = 2,
        .script = {{{CHECK, 0, 1}, {CHECK, 0, 1}}, {{CHECK, 0, 2}}},
    },
    {
        .name = "log: of two new keys one gets the last place, the other is refused (deny)",
        .world = ONE_PLACE(WEIR_SLIDING_LOG, WEIR_DENY_NEW),
        .users = 2,
        .script = {{{CHECK, 7, 1}}, {{CHECK, 8, 2}}},
        .three = TOO_MANY,
        .torn = true,
    },
    {
        .name = "log: a key that is checked while it is moved keeps its record",
        .world = TIGHT(WEIR_SLIDING_LOG, WEIR_DENY_NEW, STAYS),
        .users = 2,
        .script = {{{CHECK, 8, 1}}, {{CHECK, 0, 1}}},
        .three = IN_THE_LONG_BUILD,
    },
    {
        .name = "log: a check of the key that is being evicted counts before, or begins afresh",
        .world = ONE_PLACE(WEIR_SLIDING_LOG, WEIR_EVICT, {CHECK, 9, 3}),
        .users = 2,
        .script = {{{CHECK, 7, 3}}, {{CHECK, 0, 1}}},
        .torn = true,
    },
    {
        .name = "log: a reset of one key does not disturb the record of the next owner",
        .world = ONE_PLACE(WEIR_SLIDING_LOG, WEIR_DENY_NEW, {CHECK, 9, 3}),
        .users = 2,
        .script = {{{CHECK, 7, 2}}, {{RESET, 9, 0}}},
        .torn = true,
        .three = IN_THE_LONG_BUILD,
    },
    {
        .name = "log: one of a far future that is swept while it is checked is forgotten once",
        .world = {.algorithm = WEIR_SLIDING_LOG,
                  .lines = 2,
                  .stripes = 2,
                  .keys = 1,
                  .home = {NARROW_0(0)},
                  .prepare = {{CHECK_LATE, 0, 3}}},
        .users = 2,
        .script = {{{SWEEP, 0, 2}}, {{CHECK, 0, 2}}},
        .torn = true,
        .three = IN_THE_LONG_BUILD,
    },
};
const unsigned scenario_count = sizeof scenarios / sizeof scenarios[0];

const struct scenario *scenario_named(const char *name)
{
    for (unsigned i = 0; i < scenario_count; i++) {
        if (strcmp(scenarios[i].name, name) == 0) {
            return &scenarios[i];
        }
    }
    return NULL;
}
