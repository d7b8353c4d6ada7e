/*
 * The functions in which the algorithms of `synced` differ, and the estimate of the store's time
 * that they share (sync_view.h V1, V2).
 */
#ifndef WEIR_SHARED_SYNCED_SYNC_ROWS_H
#define WEIR_SHARED_SYNCED_SYNC_ROWS_H

#include "shared/synced/sync_view.h"

struct sync_row {
    /* Brings the view up to date. */
    void (*age)(struct sync_view *v, const struct store_params *p, uint64_t now_ns);
    bool (*fits)(const struct sync_view *v, const struct store_params *p, uint64_t cost,
                 uint64_t now_ns);
    void (*take)(struct sync_view *v, const struct store_params *p, uint64_t cost, uint64_t now_ns);
    /* Sets remaining, reset and, for a DENY, retry. */
    void (*describe)(const struct sync_view *v, const struct store_params *p, uint64_t cost,
                     uint64_t now_ns, struct weir_answer *answer);
    /* Gives units back. Returns how many of them. */
    uint64_t (*refund)(struct sync_view *v, const struct store_params *p, uint64_t units);
    void (*hear)(struct sync_view *v, const struct store_params *p, const struct sync_heard *heard,
                 uint64_t now_ns);
    /* Returns the units that the key is known to owe beyond quota and max_debt. NULL: always 0. */
    uint64_t (*owes)(const struct sync_view *v, const struct store_params *p, uint64_t now_ns);
    void (*tell)(const struct sync_delta *d, uint64_t now_ns, struct sync_told *told);
};

extern const struct sync_row sync_token_bucket;
extern const struct sync_row sync_fixed_window;
extern const struct sync_row sync_sliding_window;

#define SYNC_DRIFT 7u /* a shift: clocks may differ by 1/128 of the time that passes */

/* Returns the earliest time that the store's clock may show now. */
static inline uint64_t sync_earliest_us(const struct sync_view *v, uint64_t now_ns)
{
    uint64_t passed = sub_floor0(now_ns, v->heard_ns);
    return v->store_us + (passed - (passed >> SYNC_DRIFT)) / WEIR_MICROSECOND;
}

/* Returns the latest time that the store's clock may show now. */
static inline uint64_t sync_latest_us(const struct sync_view *v, uint64_t now_ns)
{
    uint64_t passed = sub_floor0(now_ns, v->made_ns);
    return v->store_us + (passed + (passed >> SYNC_DRIFT)) / WEIR_MICROSECOND + 1;
}

static inline uint64_t sync_ns_of_us(uint64_t us)
{
    return us > UINT64_MAX / WEIR_MICROSECOND ? WEIR_FOREVER : us * WEIR_MICROSECOND;
}

static inline i128 sync_max(i128 a, i128 b)
{
    return a > b ? a : b;
}

#endif
