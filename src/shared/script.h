/*
 * The scripts by which a store decides, and their calls as bytes: no I/O, no state, no clock. The
 * time of a decision is the store's own: no argument carries one.
 *
 *     struct scripts s;
 *     scripts_init(&s, NULL);
 *     script_put_load(&b, script);                      // once for each connection
 *     const struct script *script = script_for(&s, &part, 1);
 *     script_put_call(&b, script, SCRIPT_BY_SHA, STORE_CHECK, &part, 1);
 *     ... store_reply_read(): STORE_NOSCRIPT -> script_put_call(SCRIPT_BY_TEXT), which also loads it
 *     script_answer(&reply, &part, 1, &answer, &stamp_us);
 *
 * A script is put together of pieces (src/shared/lua/): the clock, what is common, its algorithms,
 * and the decision. Several limits of one algorithm are a call of its script; of several algorithms,
 * of the script that has them all. Their keys must be in one slot (shared/store_key.h), and differ.
 */
#ifndef WEIR_SHARED_SCRIPT_H
#define WEIR_SHARED_SCRIPT_H

#include <stdint.h>

#include <weir.h>

#include "common/buffer.h"
#include "common/text.h"
#include "redis/reply.h"
#include "redis/script_call.h"
#include "shared/params.h"

enum { SCRIPT_LEASED_BUCKET = 6, SCRIPT_LEASED_WINDOW };

/*
 * Puts the scripts together. `clock` is NULL; only a test, which must say what time it is, gives
 * another first piece than lua/clock.lua. WEIR_ENOMEM. End with scripts_finish().
 */
int scripts_init(struct scripts *s, const struct text *clock);
void scripts_finish(struct scripts *s);

enum store_verb {
    STORE_CHECK,
    STORE_PEEK,
    STORE_UP_TO,
    STORE_REFUND,
    STORE_PENALIZE,
    STORE_BLOCK,
    STORE_UNBLOCK,
    STORE_RESET,
    STORE_UNDO,      /* a REFUND that returns no unit which has refilled since */
    STORE_BLOCK_FOR, /* as BLOCK, and the store's own clock says when that ends */
    STORE_LEASE      /* script_put_lease() alone */
};

/* One limit and one key of it. */
struct store_part {
    const struct store_params *params;
    struct text key; /* store_key() */
    uint64_t cost;
    uint64_t time_ns; /* CHECK, PEEK: max_wait. REFUND: charged at (leaky_bucket:
                         when its place ends); WEIR_FOREVER: just now.
                         UNDO: the same; token_bucket: when it would be full after the charge.
                         BLOCK: until. BLOCK_FOR: how long. Else 0 */
};

/* The heartbeat of a node: shared/members.h. */
const struct script *script_members(const struct scripts *s);

/* n at least 1; more than one only with CHECK and PEEK, and at most WEIR_SEVERAL_MAX. */
const struct script *script_for(const struct scripts *s, const struct store_part *parts, size_t n);

/* The `b` of a key: of windows by the key, each begins somewhere of its own, the same for every node. */
uint64_t script_offset(const struct store_params *p, struct text key);

/*
 * The arguments of a call, behind script_put_head(): number of keys, keys, verb, numbers. Returns how
 * many there are.
 */
unsigned script_put_arguments(struct buffer *b, enum store_verb verb,
                              const struct store_part *parts, size_t n);

/*
 * Behind them, one number for each of the n parts: the units that a bucket may owe besides its quota and
 * max_debt (sync_beyond()). One that leads further than all that, by more than a second, is taken for one
 * of a clock that was set back. Returns n, to be added to `count`.
 */
unsigned script_put_beyond(struct buffer *b, const uint64_t *beyond, size_t n);

/* Both, without that. */
void script_put_call(struct buffer *b, const struct script *script, enum script_how how,
                     enum store_verb verb, const struct store_part *parts, size_t n);

/*
 * Of `leased` (shared/leased/lease.h): the script, and the arguments of its verb LEASE, which are those of a
 * CHECK and behind them the five numbers that lua/lease.lua names. Its answer is that of a CHECK, and
 * behind it four numbers.
 */
enum {
    SCRIPT_LEASE_NUMBERS = 5,
    SCRIPT_ANSWER_STAMP = 7,
    SCRIPT_ANSWER_COUNT = 9,
    SCRIPT_LEASE_COUNT = 13
};
const struct script *script_lease(const struct scripts *s, const struct store_params *params);
unsigned script_put_lease(struct buffer *b, const struct store_part *part,
                          const uint64_t numbers[SCRIPT_LEASE_NUMBERS]);

/*
 * The answer out of the reply to CHECK, PEEK, UP_TO, REFUND or PENALIZE. *stamp_us (may be NULL):
 * the time to give to a REFUND of what was granted; of a leaky_bucket, reset_after_ns must be added to
 * it. WEIR_EIO: not such a reply.
 */
int script_answer(const struct store_reply *reply, const struct store_part *parts, size_t n,
                  struct weir_answer *answer, uint64_t *stamp_us);

/*
 * Of the reply to BLOCK: 0, or WEIR_ETIME if its end is not after the store's time. Of UNBLOCK and
 * RESET: 1 if there was something, 0 if not. WEIR_EIO: not such a reply.
 */
int script_done(const struct store_reply *reply, enum store_verb verb);

#endif
