/* fixed_window and sliding_window of `synced`: as in algo/, but by the store's time, in us. Windows
 * have the indexes of lua/fixed_window.lua. */
#include "base/calendar.h"
#include "shared/synced/sync_rows.h"

#define DAY_US ((int64_t)(WEIR_DAY / WEIR_MICROSECOND))

static bool has_months(const struct store_params *p)
{
    return p->a == WEIR_MONTH / WEIR_MICROSECOND;
}

static int64_t window_at(const struct sync_view *v, const struct store_params *p, uint64_t us)
{
    int64_t since = (int64_t)us - (int64_t)v->offset_us;
    int64_t unit = has_months(p) ? DAY_US : (int64_t)p->a;
    int64_t units = since / unit - (since % unit < 0);
    return has_months(p) ? calendar_month(units) : units;
}

static uint64_t begin_of(const struct sync_view *v, const struct store_params *p, int64_t window)
{
    int64_t begin = has_months(p) ? calendar_begin(window) * DAY_US : window * (int64_t)p->a;
    int64_t us = begin + (int64_t)v->offset_us;
    return us < 0 ? 0 : (uint64_t)us;
}

/* Returns whether `window` may not be over yet at the store. That can be true of more than one
 * window before the latest only if a round trip is longer than a window. */
static bool is_perhaps(const struct sync_view *v, const struct store_params *p, int64_t window,
                       uint64_t now_ns)
{
    return v->known && sync_earliest_us(v, now_ns) < begin_of(v, p, window + 1);
}

/* Moves the untold delta to `window`, and drops units of windows that are over. If `window` is an
 * earlier one, the node was ahead of the store: all units were admitted before now, so they count
 * in `window`. */
static void delta_to_window(struct sync_view *v, const struct store_params *p, int64_t window,
                            uint64_t now_ns)
{
    struct sync_delta *d = &v->next;
    int64_t gone = 0;
    if (d->window == SYNC_NO_WINDOW || window == d->window) {
        d->window = window;
        return;
    }
    if (window < d->window) {
        d->units += d->older;
        d->older = 0;
    } else {
        bool counts = window == d->window + 1 || is_perhaps(v, p, d->window, now_ns);
        bool older = is_perhaps(v, p, d->window - 1, now_ns);
        gone = (counts ? 0 : d->units) + (older ? 0 : d->older);
        d->older = (counts ? d->units : 0) + (older ? d->older : 0);
        d->units = 0;
    }
    v->dropped += gone > 0 ? (uint64_t)gone : 0;
    d->window = window;
}

/* Moves the view to `window`. If that lies before the known window (a clock was set back), the
 * counts are kept. If several windows may not be over yet, `previous` becomes the count of the
 * fullest: a cost that fits into that one fits into each. */
static void view_to_window(struct sync_view *v, const struct store_params *p, int64_t window,
                           uint64_t now_ns)
{
    if (window > v->window) {
        bool counts = window == v->window + 1 || is_perhaps(v, p, v->window, now_ns);
        bool older = is_perhaps(v, p, v->filled, now_ns);
        uint64_t before = older ? add_sat(v->previous, v->doubtful) : 0;
        uint64_t last = counts ? v->current : 0;
        v->filled = last != 0 ? v->window : v->filled;
        v->previous = max_u64(last, before);
        v->current = 0;
    }
    if (window != v->window) {
        v->doubtful = 0;
        v->mine = 0;
    }
    v->window = window;
}

static void window_age(struct sync_view *v, const struct store_params *p, uint64_t now_ns)
{
    if (!v->known) {
        return;
    }
    int64_t window = window_at(v, p, sync_latest_us(v, now_ns));
    if (window > v->window) {
        view_to_window(v, p, window, now_ns);
        delta_to_window(v, p, window, now_ns);
    }
}

/* Returns whether the window before the view's may not be over yet. */
static bool in_doubt(const struct sync_view *v, const struct store_params *p, uint64_t now_ns)
{
    return is_perhaps(v, p, v->window - 1, now_ns);
}

static void window_take(struct sync_view *v, const struct store_params *p, uint64_t cost,
                        uint64_t now_ns)
{
    v->current += cost;
    v->mine += cost;
    if (in_doubt(v, p, now_ns)) {
        v->doubtful += cost;
    }
}

static uint64_t window_refund(struct sync_view *v, const struct store_params *p, uint64_t units)
{
    (void)p;
    uint64_t n = min_u64(units, v->mine); /* the rest was taken in a window that is over */
    v->mine -= n;
    v->current = sub_floor0(v->current, n);
    v->doubtful = sub_floor0(v->doubtful, n);
    return n;
}

/* Returns the window that the store has told: that of its time, or one that its clock was in before
 * it was set back by up to a second. A number outside this range is moved into it. */
static int64_t heard_window(const struct sync_view *v, const struct store_params *p,
                            const struct sync_heard *heard)
{
    int64_t least = window_at(v, p, heard->store_us);
    int64_t most = window_at(v, p, heard->store_us + WEIR_SECOND / WEIR_MICROSECOND);
    return heard->x < least ? least : heard->x > most ? most : heard->x;
}

static void window_hear(struct sync_view *v, const struct store_params *p,
                        const struct sync_heard *heard, uint64_t now_ns)
{
    int64_t before = v->window;
    uint64_t mine = v->mine;
    uint64_t doubtful = v->doubtful;
    v->window = heard_window(v, p, heard);
    v->current = (uint64_t)heard->y;
    v->previous = (uint64_t)heard->z;
    v->filled = v->window - 1;
    int64_t window = window_at(v, p, sync_latest_us(v, now_ns));
    view_to_window(v, p, window > v->window ? window : v->window, now_ns);
    delta_to_window(v, p, v->window, now_ns);
    bool same = before == v->window || before == SYNC_NO_WINDOW;
    v->mine = same ? mine : 0;
    v->doubtful = same ? doubtful : 0;
    if (before == SYNC_NO_WINDOW && v->next.units > 0) {
        v->doubtful = (uint64_t)v->next.units; /* taken in this window or in the one before */
    }
    v->current = (uint64_t)sync_max((i128)v->current + v->next.units, 0);
    v->previous = (uint64_t)sync_max((i128)v->previous + v->next.older, 0);
    v->filled = v->next.older > 0 ? v->window - 1 : v->filled;
}

static void window_tell(const struct sync_delta *d, uint64_t now_ns, struct sync_told *told)
{
    (void)now_ns;
    *told = (struct sync_told){d->units, d->window, d->older};
}

/* Returns the time, by the earliest time of the store, until the window begins that is `after`
 * windows after the current one. */
static uint64_t until_ns(const struct sync_view *v, const struct store_params *p, int64_t after,
                         uint64_t now_ns)
{
    if (!v->known) {
        return sync_ns_of_us((uint64_t)after * p->a); /* the current one may have just begun */
    }
    uint64_t begin_us = begin_of(v, p, v->window + after);
    return sync_ns_of_us(sub_floor0(begin_us, sync_earliest_us(v, now_ns)));
}

/* ---- fixed_window ---- */

static uint64_t fixed_room(const struct sync_view *v, const struct store_params *p, uint64_t now_ns)
{
    uint64_t room = sub_floor0(p->quota, v->current);
    if (in_doubt(v, p, now_ns)) {
        room = min_u64(room, sub_floor0(p->quota, add_sat(v->previous, v->doubtful)));
    }
    return room;
}

static bool fixed_fits(const struct sync_view *v, const struct store_params *p, uint64_t cost,
                       uint64_t now_ns)
{
    return cost <= fixed_room(v, p, now_ns);
}

static void fixed_describe(const struct sync_view *v, const struct store_params *p, uint64_t cost,
                           uint64_t now_ns, struct weir_answer *answer)
{
    bool next = v->current + cost > p->quota; /* false: it fits once this window has surely begun */
    answer->remaining = fixed_room(v, p, now_ns);
    /* While the previous window may not be over and has a count, the key is not as good as new. */
    answer->reset_after_ns = v->current != 0    ? until_ns(v, p, 1, now_ns)
                             : v->previous != 0 ? until_ns(v, p, 0, now_ns)
                                                : 0;
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = until_ns(v, p, next ? 1 : 0, now_ns);
    }
}

const struct sync_row sync_fixed_window = {
    .age = window_age,
    .fits = fixed_fits,
    .take = window_take,
    .describe = fixed_describe,
    .refund = window_refund,
    .hear = window_hear,
    .tell = window_tell,
};

/* ---- sliding_window ---- */

/* Returns the part of the previous window that still counts, in us. */
static uint64_t weight(const struct sync_view *v, const struct store_params *p, uint64_t now_ns)
{
    if (!v->known) {
        return p->a;
    }
    uint64_t passed = sub_floor0(sync_earliest_us(v, now_ns), begin_of(v, p, v->window));
    return sub_floor0(p->a, passed);
}

static bool sliding_fits(const struct sync_view *v, const struct store_params *p, uint64_t cost,
                         uint64_t now_ns)
{
    uint64_t after = v->current + cost;
    return after <= p->quota &&
           mul_wide(v->previous, weight(v, p, now_ns)) <= mul_wide(p->quota - after, p->a);
}

/* Returns the time after the beginning of a window, in us, at which `counted` units of the window
 * before weigh at most `spare`, as in algo/window.h. */
static uint64_t room_at_us(const struct store_params *p, uint64_t counted, uint64_t spare)
{
    return counted <= spare ? 0 : p->a - mul_div(spare, p->a, counted);
}

static uint64_t sliding_retry_ns(const struct sync_view *v, const struct store_params *p,
                                 uint64_t cost, uint64_t now_ns)
{
    uint64_t passed_ns = sync_ns_of_us(p->a - weight(v, p, now_ns));
    uint64_t begins_ns = until_ns(v, p, 0, now_ns); /* 0 if the window has begun */
    if (v->current + cost <= p->quota) {
        uint64_t us = room_at_us(p, v->previous, p->quota - v->current - cost);
        if (us < p->a) {
            return begins_ns + sub_floor0(sync_ns_of_us(us), passed_ns);
        }
    }
    return until_ns(v, p, 1, now_ns) + sync_ns_of_us(room_at_us(p, v->current, p->quota - cost));
}

static void sliding_describe(const struct sync_view *v, const struct store_params *p, uint64_t cost,
                             uint64_t now_ns, struct weir_answer *answer)
{
    uint64_t left = sub_floor0(p->quota, v->current);
    u128 weighed = mul_wide(v->previous, weight(v, p, now_ns));
    u128 space = mul_wide(left, p->a);
    answer->remaining = weighed >= space ? 0 : (uint64_t)((space - weighed) / p->a);
    answer->reset_after_ns = v->current != 0    ? until_ns(v, p, 2, now_ns)
                             : v->previous != 0 ? until_ns(v, p, 1, now_ns)
                                                : 0;
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = sliding_retry_ns(v, p, cost, now_ns);
    }
}

const struct sync_row sync_sliding_window = {
    .age = window_age,
    .fits = sliding_fits,
    .take = window_take,
    .describe = sliding_describe,
    .refund = window_refund,
    .hear = window_hear,
    .tell = window_tell,
};
