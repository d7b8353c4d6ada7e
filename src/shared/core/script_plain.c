/*
 * Makes the answer to a plain CHECK of one bucket or window. The script has decided and charged,
 * and replies with the state alone; remaining, retry and reset are computed here, so that the store
 * does less (lua/plain_bucket.lua, plain_window.lua).
 */
#include "base/maths.h"
#include "shared/core/script.h"

enum { AT_NOW, AT_STATE, AT_REST };

/* Returns the length of n units in 1/STORE_PARTS us. */
static u128 length_of(const struct store_params *p, uint64_t n)
{
    return mul_wide(n, p->a) * STORE_PARTS + mul_wide(n, p->b);
}

/* Rounds up to whole microseconds, as all times of scripts are. */
static uint64_t nanoseconds_up(u128 parts)
{
    return (uint64_t)((parts + STORE_PARTS - 1) / STORE_PARTS) * WEIR_MICROSECOND;
}

/* Reads how far the bucket leads: `state` us and `rest` parts. */
static int bucket_answer(const struct store_part *part, uint64_t state, uint64_t rest,
                         struct weir_answer *a)
{
    const struct store_params *p = part->params;
    u128 span = length_of(p, p->quota);
    u128 cost = length_of(p, part->cost);
    u128 lead = mul_wide(state, STORE_PARTS) + rest;
    bool allowed = a->verdict == WEIR_ALLOW;
    u128 least = allowed ? cost : span - cost + 1;
    if (rest >= STORE_PARTS || lead < least || lead > span) {
        return WEIR_EIO;
    }
    a->remaining = (uint64_t)((span - lead) / length_of(p, 1));
    a->reset_after_ns = nanoseconds_up(lead);
    a->retry_after_ns = allowed ? 0 : nanoseconds_up(lead + cost - span);
    return 0;
}

/* Reads what is taken of a window that ends in left_us. */
static int window_answer(const struct store_part *part, uint64_t count, uint64_t left_us,
                         struct weir_answer *a)
{
    const struct store_params *p = part->params;
    bool allowed = a->verdict == WEIR_ALLOW;
    uint64_t least = allowed ? part->cost : p->quota - part->cost + 1;
    if (left_us == 0 || left_us > p->a || count < least || (allowed && count > p->quota)) {
        return WEIR_EIO;
    }
    a->remaining = sub_floor0(p->quota, count);
    a->reset_after_ns = left_us * WEIR_MICROSECOND;
    a->retry_after_ns = allowed ? 0 : a->reset_after_ns;
    return 0;
}

int script_plain_answer(const int64_t x[SCRIPT_PLAIN_COUNT], const struct store_part *part,
                        struct weir_answer *answer, uint64_t *stamp_us)
{
    const struct store_params *p = part->params;
    bool bucket = p->algorithm == WEIR_TOKEN_BUCKET;
    bool allowed = x[AT_STATE] >= 0;
    uint64_t state = (uint64_t)(allowed ? x[AT_STATE] : -1 - x[AT_STATE]);
    if ((!bucket && p->algorithm != WEIR_FIXED_WINDOW) || part->cost > p->quota || x[AT_NOW] < 0 ||
        x[AT_NOW] > (int64_t)STORE_MOST || x[AT_REST] < 0) {
        return WEIR_EIO;
    }
    *answer = (struct weir_answer){.verdict = allowed ? WEIR_ALLOW : WEIR_DENY,
                                   .quota = p->quota,
                                   .granted = allowed ? part->cost : 0};
    if (stamp_us != NULL) {
        *stamp_us = (uint64_t)x[AT_NOW];
    }
    return (bucket ? bucket_answer : window_answer)(part, state, (uint64_t)x[AT_REST], answer);
}
