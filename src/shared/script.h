/*
 * The scripts by which a store decides, and their calls as bytes. There is no I/O, no state and no
 * clock here: a decision is made at the store's own time, which no argument carries.
 *
 *     struct scripts s;
 *     scripts_init(&s, NULL);
 *     script_put_load(&b, script);                      // once for each connection
 *     const struct script *script = script_for(&s, &part, 1);
 *     script_put_call(&b, script, SCRIPT_BY_SHA, REMOTE_CHECK, &part, 1);
 *     ... store_reply_read(): STORE_NOSCRIPT -> script_put_call(SCRIPT_BY_TEXT), which loads it too
 *     script_answer(&reply, &part, 1, &answer, &stamp_us);
 *
 * A script is put together from pieces (src/shared/lua/): the clock, the common part, its
 * algorithms, and the decision. Several limits of one algorithm are asked by one call of its
 * script; limits of several algorithms by one call of the script that has all algorithms. The keys
 * of a call must be in one slot (shared/store_key.h), and differ.
 */
#ifndef WEIR_SHARED_SCRIPT_H
#define WEIR_SHARED_SCRIPT_H

#include <stdint.h>

#include <weir.h>

#include "common/buffer.h"
#include "common/text.h"
#include "redis/reply.h"
#include "common/remote.h"
#include "redis/script_call.h"
#include "shared/params.h"

enum { SCRIPT_LEASED_BUCKET = 6, SCRIPT_LEASED_WINDOW };

/*
 * Puts the scripts together. `clock` is NULL; only a test, which must set the time, gives another
 * first piece than lua/clock.lua. Returns 0 or WEIR_ENOMEM. scripts_finish() frees the scripts.
 */
int scripts_init(struct scripts *s, const struct text *clock);
void scripts_finish(struct scripts *s);

/* The verbs of scripts: enum remote_verb, and these. */
enum {
    SCRIPT_UNDO = REMOTE_VERBS, /* a REFUND that returns no unit which has refilled since */
    SCRIPT_BLOCK_UNTIL,         /* a BLOCK whose end is a time of the store's clock */
    SCRIPT_LEASE                /* only for script_put_lease() */
};

/* One limit and one key of it. */
struct store_part {
    const struct store_params *params;
    struct text key; /* store_key() */
    uint64_t cost;
    uint64_t time_ns; /* CHECK, PEEK: max_wait. REFUND: when it was charged (leaky_bucket:
                         when its place ends); WEIR_FOREVER: just now.
                         UNDO: the same; token_bucket: when it would be full after the charge.
                         BLOCK: its end. BLOCK_FOR: its length. Other verbs: 0 */
};

/* Returns the script of a node's heartbeat: shared/members.h. */
const struct script *script_members(const struct scripts *s);

/* Returns the script for a call with these parts. n is at least 1; it is more than 1 only for CHECK
 * and PEEK, and at most WEIR_SEVERAL_MAX. */
const struct script *script_for(const struct scripts *s, const struct store_part *parts, size_t n);

/* Returns the `b` of a key. If windows are aligned by key (align_key), each key has an offset of
 * its own, which is the same on every node. */
uint64_t script_offset(const struct store_params *p, struct text key);

/*
 * Puts the arguments of a call, which follow script_put_head(): number of keys, keys, verb,
 * numbers. Returns how many there are.
 */
unsigned script_put_arguments(struct buffer *b, unsigned verb, const struct store_part *parts,
                              size_t n);

/*
 * Puts n numbers as further arguments. Returns n, to be added to the number of arguments.
 *
 * After the arguments above these may be one number for each part: the units that a bucket may owe
 * besides its quota and max_debt (sync_beyond()). If a bucket leads further than all that, by more
 * than a second, the store's clock is taken to have been set back.
 */
unsigned script_put_numbers(struct buffer *b, const int64_t *numbers, size_t n);

/* Puts a whole call: script_put_head() and script_put_arguments(). */
void script_put_call(struct buffer *b, const struct script *script, enum script_how how,
                     unsigned verb, const struct store_part *parts, size_t n);

/*
 * For `leased` (shared/leased/lease.h): the script, and the arguments of its verb LEASE, which are
 * those of a CHECK followed by the five numbers that lua/lease.lua names. Its answer is that of a
 * CHECK followed by four numbers.
 */
enum {
    SCRIPT_LEASE_NUMBERS = 5,
    SCRIPT_ANSWER_STAMP = 7,
    SCRIPT_ANSWER_COUNT = 9,
    SCRIPT_LEASE_COUNT = 13
};
const struct script *script_lease(const struct scripts *s, const struct store_params *params);
unsigned script_put_lease(struct buffer *b, const struct store_part *part,
                          const int64_t numbers[SCRIPT_LEASE_NUMBERS]);

/*
 * Reads the answer out of the reply to CHECK, PEEK, UP_TO, REFUND or PENALIZE. *stamp_us (may be
 * NULL) is the time to give to a REFUND of what was granted; for a leaky_bucket, reset_after_ns
 * must be added to it. Returns 0, or WEIR_EIO if it is not such a reply.
 */
int script_answer(const struct store_reply *reply, const struct store_part *parts, size_t n,
                  struct weir_answer *answer, uint64_t *stamp_us);

/*
 * Reads the reply to BLOCK, BLOCK_FOR, UNBLOCK or RESET. Returns for a block 0, or WEIR_ETIME if
 * its end is not after the store's time; for UNBLOCK and RESET 1 if there was something, 0 if not;
 * WEIR_EIO if it is not such a reply.
 */
int script_done(const struct store_reply *reply, unsigned verb);

#endif
