#include "store/sync_view.h"

#define TICKS 128u /* of a nanosecond: STORE_PARTS of a microsecond */
#define DRIFT 7u   /* 1/128 */

_Static_assert(STORE_PARTS == TICKS * WEIR_MICROSECOND, "one unit of time");

/* ---- time ---- */

static uint64_t earliest_us(const struct sync_view *v, uint64_t now_ns)
{
    uint64_t passed = sub_floor0(now_ns, v->heard_ns);
    return v->store_us + (passed - (passed >> DRIFT)) / WEIR_MICROSECOND;
}

static uint64_t latest_us(const struct sync_view *v, uint64_t now_ns)
{
    uint64_t passed = sub_floor0(now_ns, v->made_ns);
    return v->store_us + (passed + (passed >> DRIFT)) / WEIR_MICROSECOND + 1;
}

static uint64_t ns_of_us(uint64_t us)
{
    return us > UINT64_MAX / WEIR_MICROSECOND ? WEIR_FOREVER : us * WEIR_MICROSECOND;
}

static uint64_t ns_of_ticks(i128 ticks)
{
    if (ticks <= 0) {
        return 0;
    }
    u128 ns = ((u128)ticks + (TICKS - 1)) / TICKS;
    return ns > UINT64_MAX ? WEIR_FOREVER : (uint64_t)ns;
}

/* ---- token_bucket ---- */

static i128 ticks_of(uint64_t ns)
{
    return (i128)ns * TICKS;
}

/* The node's line by which the bucket drains: since the last exchange it is a little slow (V1). */
static i128 slow_now(const struct sync_view *v, uint64_t now_ns)
{
    return ticks_of(now_ns - (sub_floor0(now_ns, v->heard_ns) >> DRIFT));
}

static i128 step_of(const struct store_params *p)
{
    return (i128)p->a * STORE_PARTS + p->b;
}

static i128 lead_of(const struct sync_view *v, uint64_t now_ns)
{
    i128 now = slow_now(v, now_ns);
    return v->full_at > now ? v->full_at - now : 0;
}

static i128 max_i128(i128 a, i128 b)
{
    return a > b ? a : b;
}

static uint64_t quotient(i128 a, i128 b)
{
    if (a <= 0) {
        return 0;
    }
    bool small = a <= INT64_MAX && b <= INT64_MAX;
    return small ? (uint64_t)a / (uint64_t)b : (uint64_t)(a / b);
}

/* A script multiplies the units of one delta by b, and that must stay below 2^53. */
static int64_t most_units(const struct store_params *p)
{
    return (int64_t)(STORE_MOST / 2 / max_u64(p->b, 1));
}

static bool bucket_fits(struct sync_view *v, const struct store_params *p, uint64_t cost,
                        uint64_t now_ns)
{
    return lead_of(v, now_ns) <= (i128)(p->quota - cost) * step_of(p) &&
           v->next.units <= most_units(p) - (int64_t)cost;
}

static void bucket_take(struct sync_view *v, const struct store_params *p, uint64_t cost,
                        uint64_t now_ns)
{
    struct sync_delta *d = &v->next;
    i128 time = (i128)cost * step_of(p);
    i128 now = ticks_of(now_ns);
    v->full_at = max_i128(v->full_at, slow_now(v, now_ns)) + time;
    d->full_at = (d->units > 0 ? max_i128(d->full_at, now) : now) + time;
}

static void bucket_describe(struct sync_view *v, const struct store_params *p, uint64_t cost,
                            uint64_t now_ns, struct weir_answer *answer)
{
    i128 lead = lead_of(v, now_ns);
    i128 step = step_of(p);
    answer->remaining = quotient((i128)p->quota * step - lead, step);
    answer->reset_after_ns = ns_of_ticks(lead);
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = ns_of_ticks(lead - (i128)(p->quota - cost) * step);
    }
}

static uint64_t bucket_refund(struct sync_view *v, const struct store_params *p, uint64_t units,
                              uint64_t now_ns)
{
    i128 time = (i128)units * step_of(p);
    (void)now_ns;
    v->full_at -= time; /* what lies behind now is nothing */
    v->next.full_at -= time;
    return units;
}

static void bucket_hear(struct sync_view *v, const struct store_params *p,
                        const struct sync_heard *heard, uint64_t now_ns)
{
    i128 lead = (i128)heard->x * STORE_PARTS + heard->y;
    v->full_at = ticks_of(now_ns) + lead + v->next.units * step_of(p);
    if (v->next.units > 0) {
        v->full_at = max_i128(v->full_at, v->next.full_at);
    }
}

static void bucket_tell(const struct store_params *p, const struct sync_delta *d, uint64_t now_ns,
                        struct sync_told *told)
{
    (void)p;
    /* It has drained since then by this clock, which may be fast: one tick of each ns is 1/128. */
    i128 lead = d->full_at - ticks_of(now_ns) + sub_floor0(now_ns, d->since_ns);
    i128 most = (i128)(STORE_MOST / 4) * STORE_PARTS;
    lead = lead > most ? most : lead < -most ? -most : lead;
    i128 us = lead / STORE_PARTS - (lead % STORE_PARTS < 0);
    *told = (struct sync_told){d->units, (int64_t)us, (int64_t)(lead - us * STORE_PARTS)};
}

/* A bucket goes on by itself. */
static void bucket_age(struct sync_view *v, const struct store_params *p, uint64_t now_ns)
{
    (void)v;
    (void)p;
    (void)now_ns;
}

/* ---- windows ---- */

static int64_t window_at(const struct sync_view *v, const struct store_params *p, uint64_t us)
{
    int64_t since = (int64_t)us - (int64_t)v->offset_us;
    int64_t period = (int64_t)p->a;
    return since / period - (since % period < 0);
}

static uint64_t begin_of(const struct sync_view *v, const struct store_params *p, int64_t window)
{
    int64_t us = window * (int64_t)p->a + (int64_t)v->offset_us;
    return us < 0 ? 0 : (uint64_t)us;
}

/* Back, if the node was ahead of the store: what it has admitted was before now, so it counts now. */
static void delta_to_window(struct sync_view *v, int64_t window)
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
    } else if (window == d->window + 1) {
        gone = d->older;
        d->older = d->units;
        d->units = 0;
    } else {
        gone = d->older + d->units;
        d->older = 0;
        d->units = 0;
    }
    v->dropped += gone > 0 ? (uint64_t)gone : 0;
    d->window = window;
}

/* Of a window that lies before the one known (a clock was set back), everything is kept. */
static void view_to_window(struct sync_view *v, int64_t window)
{
    if (window > v->window) {
        v->previous = window == v->window + 1 ? v->current : 0;
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
    int64_t window = window_at(v, p, latest_us(v, now_ns));
    if (window > v->window) {
        view_to_window(v, window);
        delta_to_window(v, window);
    }
}

/* The window before is perhaps not over. */
static bool in_doubt(const struct sync_view *v, const struct store_params *p, uint64_t now_ns)
{
    return v->known && earliest_us(v, now_ns) < begin_of(v, p, v->window);
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

static uint64_t window_refund(struct sync_view *v, const struct store_params *p, uint64_t units,
                              uint64_t now_ns)
{
    (void)p;
    (void)now_ns;
    uint64_t n = min_u64(units, v->mine); /* the rest was taken in a window that is over */
    v->mine -= n;
    v->current = sub_floor0(v->current, n);
    v->doubtful = sub_floor0(v->doubtful, n);
    return n;
}

static void window_hear(struct sync_view *v, const struct store_params *p,
                        const struct sync_heard *heard, uint64_t now_ns)
{
    int64_t before = v->window;
    uint64_t mine = v->mine;
    uint64_t doubtful = v->doubtful;
    v->window = heard->x;
    v->current = (uint64_t)heard->y;
    v->previous = (uint64_t)heard->z;
    int64_t window = window_at(v, p, latest_us(v, now_ns));
    view_to_window(v, window > heard->x ? window : heard->x);
    delta_to_window(v, v->window);
    bool same = before == v->window || before == SYNC_NO_WINDOW;
    v->mine = same ? mine : 0;
    v->doubtful = same ? doubtful : 0;
    if (before == SYNC_NO_WINDOW && v->next.units > 0) {
        v->doubtful = (uint64_t)v->next.units; /* of this window or the one before */
    }
    v->current = (uint64_t)max_i128((i128)v->current + v->next.units, 0);
    v->previous = (uint64_t)max_i128((i128)v->previous + v->next.older, 0);
}

static void window_tell(const struct store_params *p, const struct sync_delta *d, uint64_t now_ns,
                        struct sync_told *told)
{
    (void)p;
    (void)now_ns;
    *told = (struct sync_told){d->units, d->window, d->older};
}

/* How long, by the earlier time, until the window `after` windows from the current one begins. */
static uint64_t until_ns(const struct sync_view *v, const struct store_params *p, int64_t after,
                         uint64_t now_ns)
{
    if (!v->known) {
        return ns_of_us(p->a); /* within that */
    }
    uint64_t begin_us = begin_of(v, p, v->window + after);
    return ns_of_us(sub_floor0(begin_us, earliest_us(v, now_ns)));
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

static bool fixed_fits(struct sync_view *v, const struct store_params *p, uint64_t cost,
                       uint64_t now_ns)
{
    return cost <= fixed_room(v, p, now_ns);
}

static void fixed_describe(struct sync_view *v, const struct store_params *p, uint64_t cost,
                           uint64_t now_ns, struct weir_answer *answer)
{
    bool next = v->current + cost > p->quota; /* else this window begins, and then it fits */
    answer->remaining = fixed_room(v, p, now_ns);
    answer->reset_after_ns = v->current == 0 ? 0 : until_ns(v, p, 1, now_ns);
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = until_ns(v, p, next ? 1 : 0, now_ns);
    }
}

/* ---- sliding_window ---- */

/* The part of the previous window that still counts. */
static uint64_t weight(const struct sync_view *v, const struct store_params *p, uint64_t now_ns)
{
    if (!v->known) {
        return p->a;
    }
    uint64_t passed = sub_floor0(earliest_us(v, now_ns), begin_of(v, p, v->window));
    return sub_floor0(p->a, passed);
}

static bool sliding_fits(struct sync_view *v, const struct store_params *p, uint64_t cost,
                         uint64_t now_ns)
{
    uint64_t after = v->current + cost;
    return after <= p->quota &&
           mul_wide(v->previous, weight(v, p, now_ns)) <= mul_wide(p->quota - after, p->a);
}

/* As algo/sliding_window.c. */
static uint64_t room_at_us(const struct store_params *p, uint64_t counted, uint64_t spare)
{
    return counted <= spare ? 0 : p->a - mul_div(spare, p->a, counted);
}

static uint64_t sliding_retry_ns(const struct sync_view *v, const struct store_params *p,
                                 uint64_t cost, uint64_t now_ns)
{
    uint64_t passed_ns = ns_of_us(p->a - weight(v, p, now_ns));
    uint64_t begins_ns = until_ns(v, p, 0, now_ns); /* 0, but for a window that is yet to come */
    if (v->current + cost <= p->quota) {
        uint64_t us = room_at_us(p, v->previous, p->quota - v->current - cost);
        if (us < p->a) {
            return begins_ns + sub_floor0(ns_of_us(us), passed_ns);
        }
    }
    return until_ns(v, p, 1, now_ns) + ns_of_us(room_at_us(p, v->current, p->quota - cost));
}

static void sliding_describe(struct sync_view *v, const struct store_params *p, uint64_t cost,
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

/* ---- the rows ---- */

static const struct row {
    int algorithm;
    void (*age)(struct sync_view *v, const struct store_params *p, uint64_t now_ns);
    bool (*fits)(struct sync_view *v, const struct store_params *p, uint64_t cost, uint64_t now_ns);
    void (*take)(struct sync_view *v, const struct store_params *p, uint64_t cost, uint64_t now_ns);
    void (*describe)(struct sync_view *v, const struct store_params *p, uint64_t cost,
                     uint64_t now_ns, struct weir_answer *answer);
    uint64_t (*refund)(struct sync_view *v, const struct store_params *p, uint64_t units,
                       uint64_t now_ns); /* how many it gave back */
    void (*hear)(struct sync_view *v, const struct store_params *p, const struct sync_heard *heard,
                 uint64_t now_ns);
    void (*tell)(const struct store_params *p, const struct sync_delta *d, uint64_t now_ns,
                 struct sync_told *told);
} rows[] = {
    {WEIR_TOKEN_BUCKET, bucket_age, bucket_fits, bucket_take, bucket_describe, bucket_refund,
     bucket_hear, bucket_tell},
    {WEIR_FIXED_WINDOW, window_age, fixed_fits, window_take, fixed_describe, window_refund,
     window_hear, window_tell},
    {WEIR_SLIDING_WINDOW, window_age, sliding_fits, window_take, sliding_describe, window_refund,
     window_hear, window_tell},
};

static const struct row *row_of(int algorithm)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].algorithm == algorithm) {
            return &rows[i];
        }
    }
    return NULL;
}

bool sync_view_can(int algorithm)
{
    return row_of(algorithm) != NULL;
}

void sync_view_init(struct sync_view *v, uint64_t offset_us, uint64_t now_ns)
{
    *v = (struct sync_view){
        .heard_ns = now_ns,
        .offset_us = offset_us,
        .window = SYNC_NO_WINDOW,
        .next.window = SYNC_NO_WINDOW,
    };
}

/* ---- asking ---- */

static uint64_t blocked_ns(const struct sync_view *v, uint64_t now_ns)
{
    if (v->block_us >= STORE_MOST) {
        return WEIR_FOREVER;
    }
    uint64_t left = sub_floor0(v->block_us, v->known ? earliest_us(v, now_ns) : 0);
    return ns_of_us(left);
}

/* As decide.lua: a block denies, and lasts at least as long as the quota would. */
static void block(uint64_t left_ns, struct weir_answer *answer)
{
    answer->flags |= WEIR_FLAG_BLOCKED;
    answer->remaining = 0;
    answer->reset_after_ns = max_u64(answer->reset_after_ns, left_ns);
    if (answer->verdict != WEIR_NEVER) {
        answer->verdict = WEIR_DENY;
        answer->retry_after_ns = max_u64(answer->retry_after_ns, left_ns);
    }
}

void sync_view_never(const struct store_params *p, struct weir_answer *answer)
{
    *answer = (struct weir_answer){
        .verdict = WEIR_NEVER,
        .quota = p->quota,
        .remaining = p->quota,
        .retry_after_ns = WEIR_FOREVER,
    };
}

void sync_view_ask(struct sync_view *v, const struct store_params *p, uint64_t cost,
                   uint64_t now_ns, struct weir_answer *answer)
{
    const struct row *row = row_of(p->algorithm);
    uint64_t left_ns = v->block_us != 0 ? blocked_ns(v, now_ns) : 0;
    row->age(v, p, now_ns);
    sync_view_never(p, answer);
    if (cost <= p->quota) {
        answer->verdict = row->fits(v, p, cost, now_ns) ? WEIR_ALLOW : WEIR_DENY;
        answer->retry_after_ns = 0;
    }
    if (answer->verdict == WEIR_ALLOW && left_ns == 0) {
        row->take(v, p, cost, now_ns);
        answer->granted = cost;
        v->next.since_ns = v->next.units > 0 ? v->next.since_ns : now_ns;
        v->next.units += (int64_t)cost;
    }
    row->describe(v, p, cost, now_ns, answer);
    if (left_ns != 0) {
        block(left_ns, answer);
    }
}

uint64_t sync_view_reset(struct sync_view *v, const struct store_params *p, uint64_t now_ns)
{
    const struct row *row = row_of(p->algorithm);
    struct weir_answer a = {.verdict = WEIR_ALLOW};
    uint64_t left_ns = v->block_us != 0 ? blocked_ns(v, now_ns) : 0;
    row->age(v, p, now_ns);
    row->describe(v, p, 1, now_ns, &a);
    return max_u64(a.reset_after_ns, left_ns);
}

void sync_view_refund(struct sync_view *v, const struct store_params *p, uint64_t units,
                      uint64_t now_ns)
{
    const struct row *row = row_of(p->algorithm);
    row->age(v, p, now_ns);
    v->next.units -= (int64_t)row->refund(v, p, units, now_ns);
}

/* ---- exchanges ---- */

bool sync_delta_is_empty(const struct sync_delta *delta)
{
    return delta->units == 0 && delta->older == 0;
}

void sync_view_take(struct sync_view *v, const struct store_params *p, uint64_t now_ns,
                    struct sync_delta *delta)
{
    row_of(p->algorithm)->age(v, p, now_ns);
    *delta = v->next;
    v->next = (struct sync_delta){.window = v->window};
}

void sync_view_tell(const struct store_params *p, const struct sync_delta *delta, uint64_t now_ns,
                    struct sync_told *told)
{
    row_of(p->algorithm)->tell(p, delta, now_ns, told);
}

void sync_view_hear(struct sync_view *v, const struct store_params *p,
                    const struct sync_heard *heard, uint64_t made_ns, uint64_t now_ns)
{
    v->known = true;
    v->store_us = heard->store_us;
    v->made_ns = made_ns;
    v->heard_ns = now_ns;
    v->block_us = heard->block_us;
    v->dropped += heard->dropped;
    row_of(p->algorithm)->hear(v, p, heard, now_ns);
}
