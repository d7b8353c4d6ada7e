/*
 * The scripts by which a store decides, the names of its keys, and calls and their replies as
 * bytes. There is no I/O, no state and no clock here: a decision is made at the store's own time,
 * which no argument carries.
 *
 *     const struct script *script = script_for(&store_scripts, &part, 1);
 *     unsigned count = script_put_arguments(&arguments, REMOTE_CHECK, &part, 1);
 *     script_put_head(&b, script, SCRIPT_BY_SHA, count);          // then the arguments
 *     ... store_reply_read(): STORE_NOSCRIPT -> the same with SCRIPT_BY_TEXT, which loads it too
 *     script_answer(&reply, &part, 1, &answer, &stamp_us);
 *
 * The build puts each script together from pieces (src/shared/lua/, cmake/scripts.cmake): the
 * clock, the common part, its algorithms, and the decision. Several limits of one algorithm are
 * asked by one call of its script; limits of several algorithms by one call of the script that has
 * all algorithms. The keys of a call must be in one slot (store_key()), and differ.
 */
#ifndef WEIR_SHARED_CORE_SCRIPT_H
#define WEIR_SHARED_CORE_SCRIPT_H

#include <stdint.h>

#include <weir.h>

#include "common/buffer.h"
#include "common/text.h"
#include "redis/reply.h"
#include "common/remote.h"
#include "redis/script_call.h"
#include "shared/core/params.h"

/* Scripts besides that for several algorithms (0) and those of enum weir_algorithm. MEMBERS is the
 * heartbeat of a node: shared/store/members.h. */
enum { SCRIPT_LEASED_BUCKET = 6, SCRIPT_LEASED_WINDOW, SCRIPT_MEMBERS };

extern const struct scripts store_scripts;

/* ---- keys ---- */

/*
 * The name of a key's state in the store:
 *
 *     <prefix>:1:<limit>:<kind>:{<subject>}[<subject>]
 *
 * 1 is the version of this format and of the states; the kind says what a state means
 * (shared/core/params.h). The subject in braces alone decides the slot in a Redis Cluster. It is
 * the limit's key; or, with `shard`, it is that text, and the key follows after the braces. So all
 * limits that are sharded by the same thing share a slot, and can be asked in one call.
 *
 * A subject is 'r' and the bytes themselves, if these are at most 64 and have no '}', which would
 * end the hash tag; otherwise it is 'h' and the first 128 bits of their SHA-256 in hexadecimal. So
 * a subject is never empty, whatever its bytes are, and the two forms are never equal. Prefix and
 * limit have no braces, so the first '{' is the one before the subject.
 */
#define STORE_VERSION "1"
#define STORE_PREFIX_MAX 64
#define STORE_LIMIT_MAX 256 /* the name of a limit and of its tier */
#define STORE_RAW_MAX 64
#define STORE_KEY_MAX                                                                              \
    (STORE_PREFIX_MAX + STORE_LIMIT_MAX + sizeof((struct store_params *)0)->kind +                 \
     2 * (size_t)(STORE_RAW_MAX + 1) + 9)

struct store_key {
    size_t len;
    char at[STORE_KEY_MAX];
};

/* Makes the head, which is the same for all keys of a limit: "<prefix>:1:<limit>:<kind>:{". Returns
 * 0, or WEIR_EINVAL if the prefix or the limit's name is too long or has braces, or if the name is
 * empty (the prefix may be empty). */
int store_key_head(struct weir_text prefix, struct weir_text limit,
                   const struct store_params *params, struct store_key *head,
                   struct weir_error *error);

/* Makes the store's key. If shard.at is NULL, the limit's key decides the slot. */
void store_key(const struct store_key *head, struct weir_text shard, struct weir_text key,
               struct store_key *out);

static inline struct weir_text store_key_text(const struct store_key *key)
{
    return (struct weir_text){key->at, key->len};
}

/* ---- calls ---- */

/* The verbs of scripts: enum remote_verb, and these. */
enum {
    SCRIPT_UNDO = REMOTE_VERBS, /* a REFUND that returns no unit which has refilled since */
    SCRIPT_BLOCK_UNTIL,         /* a BLOCK whose end is a time of the store's clock */
    SCRIPT_LEASE                /* only for lease_put_arguments() */
};

/* One limit and one key of it. */
struct store_part {
    const struct store_params *params;
    struct weir_text key; /* store_key() */
    uint64_t cost;
    uint64_t time_ns; /* CHECK, PEEK: max_wait. REFUND: when it was charged (leaky_bucket:
                         when its place ends); WEIR_FOREVER: just now.
                         UNDO: the same; token_bucket: when it would be full after the charge.
                         BLOCK_UNTIL: its end. BLOCK, BAN: its length. Other verbs: 0 */
};

/* Returns the script for a call with these parts. n is at least 1; it is more than 1 only for CHECK
 * and PEEK, and at most WEIR_SEVERAL_MAX. */
const struct script *script_for(const struct scripts *s, const struct store_part *parts, size_t n);

/* Returns the `b` of a key. If windows are aligned by key (align_key), each key has an offset of
 * its own, which is the same on every node. */
uint64_t script_offset(const struct store_params *p, struct weir_text key);

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
 *
 * After these may be one more number for each part: 1 if clients may be told of its limit, 0 if
 * not; there must be one of each. If a limit with 0 binds, the answer is followed by the numbers of
 * the one with 1 that binds (script_told()).
 */
unsigned script_put_numbers(struct buffer *b, const int64_t *numbers, size_t n);

/*
 * For `leased` (shared/leased/lease.h): the arguments of the verb LEASE are those of a CHECK
 * followed by the five numbers that lua/lease.lua names. Its answer is that of a CHECK followed by
 * four numbers.
 */
enum {
    SCRIPT_PLAIN_COUNT = 3,
    SCRIPT_LEASE_NUMBERS = 5,
    SCRIPT_ANSWER_STAMP = 7,
    SCRIPT_ANSWER_COUNT = 9,
    SCRIPT_TOLD_COUNT = 15,
    SCRIPT_LEASE_COUNT = 13
};

/* ---- replies ---- */

/*
 * Reads the answer out of the reply to CHECK, PEEK, UP_TO, REFUND or PENALIZE. *stamp_us (may be
 * NULL) is the time to give to a REFUND of what was granted; for a leaky_bucket, reset_after_ns
 * must be added to it. `parts` are those of the call, but only their params and costs are used.
 * Returns 0, or WEIR_EIO if it is not such a reply.
 */
int script_answer(const struct store_reply *reply, const struct store_part *parts, size_t n,
                  struct weir_answer *answer, uint64_t *stamp_us);

/* Sets *answer to what follows the answer: the limit that clients may be told. Returns false if
 * nothing follows. `parts` as above, and script_answer() has accepted the reply. */
bool script_told(const struct store_reply *reply, const struct store_part *parts,
                 struct weir_answer *answer);

/* The same for the short answer that a script may give to a plain CHECK (script_plain.c): time,
 * state, and for a window the time that is left of it. */
int script_plain_answer(const int64_t x[SCRIPT_PLAIN_COUNT], const struct store_part *part,
                        struct weir_answer *answer, uint64_t *stamp_us);

/* Returns true if the reply to a call with the argument "full" (lua/full.lua) says that keys are
 * absent, so that nothing has happened. *absent has bit i for the i-th part. */
bool script_says_full(const struct store_reply *reply, size_t n, uint64_t *absent);

/*
 * Reads the reply to BLOCK_UNTIL, BLOCK, BAN, UNBLOCK or RESET. Returns for a block 0, or
 * WEIR_ETIME if its end is not after the store's time; for UNBLOCK and RESET 1 if there was
 * something, 0 if not; WEIR_EIO if it is not such a reply.
 */
int script_done(const struct store_reply *reply, unsigned verb);

#endif
