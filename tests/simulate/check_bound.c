/*
 * Checks I2 and I5: what was admitted, in every possible interval. For a bucket this is exact: let
 * x be the most that any interval which ends now has admitted beyond its R t. Then an admission of
 * n makes x become max(0, x - R dt) + n, and x <= B must hold. Times are in 1/128000 us, as in the
 * scripts.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "simulate/world.h"

#define EPOCHS_MAX 256

/* ---- recording ---- */

void admit(struct world *w, unsigned subject, unsigned node, uint64_t units, uint64_t at_us,
           uint64_t store_at_us)
{
    struct subject *s = &w->subjects[subject];
    if (s->admitted_n == s->admitted_room) {
        s->admitted_room = s->admitted_room == 0 ? 256 : 2 * s->admitted_room;
        s->admissions = realloc(s->admissions, s->admitted_room * sizeof s->admissions[0]);
        if (s->admissions == NULL) {
            abort();
        }
    }
    bool unaware = w->options->mode == REMOTE_SYNCED && is_unaware(w, subject, node);
    s->admissions[s->admitted_n++] = (struct admission){
        .at_us = at_us, .store_us = store_at_us, .units = units, .node = node, .unaware = unaware};
    s->admitted += units;
    w->result->admitted += units;
}

void extra_put(struct world *w, unsigned subject, enum extra_kind kind, uint64_t units,
               int64_t step_us)
{
    struct subject *s = &w->subjects[subject];
    uint64_t store = store_us(w, w->now_us);
    s->stepped = s->stepped || kind == EXTRA_STEP;
    if (kind == EXTRA_LOST) {
        level_lost(w, subject);
    } else if (kind == EXTRA_STEP) {
        level_step(w, subject, step_us);
    }
    s->uncertain = s->uncertain || kind != EXTRA_GIVEN || !is_bucket(s->params);
    if (s->extras_n == sizeof s->extras / sizeof s->extras[0]) {
        world_fail(w, "the simulator has room for %zu faults", s->extras_n);
        return;
    }
    s->extras[s->extras_n++] = (struct extra){
        .at_us = w->now_us, .store_us = store, .units = units, .step_us = step_us, .kind = kind};
}

static int by_time(const void *a, const void *b)
{
    const struct admission *x = a;
    const struct admission *y = b;
    return x->at_us < y->at_us ? -1 : x->at_us > y->at_us;
}

/* ---- buckets ---- */

/*
 * Intervals by their beginning: those that begin within a lease's life after a fault may see the
 * units that were outstanding before it in addition to a full bucket, others may not.
 */
struct epoch {
    i128 x;
    i128 most;
    bool open; /* intervals still begin in it */
    bool live;
};

struct ledger {
    struct epoch epochs[EPOCHS_MAX];
    size_t n;
    i128 unit;
    i128 most; /* without faults */
    i128 at;
};

static void ledger_pass(struct ledger *l, i128 amount)
{
    for (size_t i = 0; i < l->n; i++) {
        struct epoch *e = &l->epochs[i];
        e->x -= amount;
        e->live = e->live && (e->open || e->x >= 0);
        e->x = e->x < 0 ? 0 : e->x;
    }
}

/* Intervals that begin at this very moment get the credit too; it is taken from them when time
 * passes. */
static void ledger_credit(struct ledger *l, i128 amount)
{
    for (size_t i = 0; i < l->n; i++) {
        l->epochs[i].x -= amount;
    }
}

static void ledger_to(struct ledger *l, uint64_t at_us)
{
    i128 at = (i128)at_us * STORE_PARTS;
    if (at > l->at) {
        ledger_pass(l, at - l->at);
    }
    l->at = at;
}

static void ledger_begin(struct ledger *l, i128 more)
{
    if (l->n > 0) {
        l->epochs[l->n - 1].open = false;
    }
    if (l->n < EPOCHS_MAX) {
        l->epochs[l->n++] = (struct epoch){0, l->most + more, true, true};
    }
}

/* Returns the units beyond the bound; 0 if there are none. */
static uint64_t ledger_take(struct ledger *l, uint64_t units)
{
    i128 over = 0;
    for (size_t i = 0; i < l->n; i++) {
        struct epoch *e = &l->epochs[i];
        e->x += e->live ? (i128)units * l->unit : 0;
        over = e->live && e->x - e->most > over ? e->x - e->most : over;
    }
    return (uint64_t)((over + l->unit - 1) / l->unit);
}

/* Returns what a step of the store's clock ahead gives, as time: at most `all`. */
static i128 step_gives(int64_t step_us, i128 all)
{
    i128 d = step_us > 0 ? (i128)step_us * STORE_PARTS : 0;
    return d < all ? d : all;
}

struct walk {
    const struct subject *s;
    i128 whole;  /* a limit plus what a fleet admits on top: the most that a step gives */
    bool leased; /* otherwise no node holds units that the store has given up */
    struct ledger ledger;
    size_t next; /* index of the next extra */
    i128 behind; /* what is granted now after faults */
    size_t over; /* number of extras whose time after the fault is over */
};

/* Return what a fault adds: to intervals that contain it, and to those that begin within a lease's
 * life after it. There, units that the store gave up too early can still be spent, and have
 * refilled for less than the step. */
static i128 extra_within(const struct walk *k, const struct extra *e)
{
    return e->kind == EXTRA_STEP ? step_gives(e->step_us, k->whole)
                                 : (i128)e->units * k->ledger.unit;
}

static i128 extra_behind(const struct walk *k, const struct extra *e)
{
    i128 all = (i128)k->s->params->quota * k->ledger.unit;
    return e->kind == EXTRA_LOST                ? all
           : e->kind == EXTRA_STEP && k->leased ? step_gives(e->step_us, all)
                                                : 0;
}

/* Extras are in the order of time, and so are the ends of their after-effects. */
static void walk_to(struct walk *k, uint64_t at_us)
{
    const struct subject *s = k->s;
    for (;;) {
        uint64_t begins = k->next < s->extras_n ? s->extras[k->next].at_us : NEVER_US;
        uint64_t ends = k->over < k->next ? s->extras[k->over].at_us + LEASE_LIFE_US + 1 : NEVER_US;
        if (min_u64(begins, ends) > at_us) {
            break;
        }
        ledger_to(&k->ledger, min_u64(begins, ends));
        if (begins <= ends) {
            const struct extra *e = &s->extras[k->next++];
            ledger_credit(&k->ledger, extra_within(k, e));
            k->behind += extra_behind(k, e);
            if (extra_behind(k, e) == 0) {
                k->over += k->over + 1 == k->next;
                continue;
            }
        } else {
            k->behind -= extra_behind(k, &s->extras[k->over++]);
        }
        ledger_begin(&k->ledger, k->behind);
    }
    ledger_to(&k->ledger, at_us);
}

/* `slack` is an additional time in which a bucket may refill, in parts. */
void check_bucket(struct world *w, const struct subject *s, uint64_t more, i128 slack)
{
    static struct walk k;
    k = (struct walk){.s = s, .ledger.unit = unit_parts(s->params)};
    k.whole = (i128)(s->params->quota + more) * k.ledger.unit;
    k.leased = w->options->mode == REMOTE_LEASED;
    k.ledger.most = k.whole + slack;
    ledger_begin(&k.ledger, 0);
    qsort(s->admissions, s->admitted_n, sizeof s->admissions[0], by_time);
    for (size_t i = 0; i < s->admitted_n; i++) {
        const struct admission *a = &s->admissions[i];
        walk_to(&k, a->at_us);
        uint64_t over = ledger_take(&k.ledger, a->units);
        if (over > 0) {
            world_fail_at(w, a->at_us,
                          "%s: an interval that ends at %" PRIu64 " us admits %" PRIu64
                          " units more than %" PRIu64 " + %" PRIu64
                          " + R t, the last of them by node %u",
                          s->name, a->at_us, over, s->params->quota, more, a->node);
            return;
        }
    }
}

/* ---- windows ---- */

int64_t window_of(const struct store_params *p, uint64_t store_at_us)
{
    int64_t since = (int64_t)store_at_us - (int64_t)p->b;
    int64_t a = (int64_t)p->a;
    return since / a - (since % a < 0);
}

/*
 * A window by the store's clock and its setting. A clock that is set back passes through the same
 * windows again. Units that were counted before then count in the window in which the clock is
 * afterwards: these two windows are one.
 */
struct window_id {
    int64_t setting; /* the store's clock minus world time */
    int64_t window;
};

static struct window_id id_of(const struct subject *s, uint64_t at_us, uint64_t store_at_us)
{
    struct window_id id = {(int64_t)(store_at_us - at_us), window_of(s->params, store_at_us)};
    for (size_t i = s->extras_n; i-- > 0;) {
        const struct extra *e = &s->extras[i];
        int64_t before = (int64_t)(e->store_us - e->at_us);
        uint64_t after_us = (uint64_t)((int64_t)e->store_us + e->step_us);
        if (e->kind == EXTRA_STEP && e->step_us < 0 && id.setting == before + e->step_us &&
            id.window == window_of(s->params, after_us)) {
            id = (struct window_id){before, window_of(s->params, e->store_us)};
        }
    }
    return id;
}

static bool is_same(struct window_id a, struct window_id b, int64_t apart)
{
    return a.setting == b.setting && llabs(a.window - b.window) <= apart;
}

/* Returns what lost data, or units that came back, add to the window of an admission. For units
 * that were never reported the window is unknown. */
static uint64_t window_extra(const struct subject *s, const struct admission *a, uint64_t more)
{
    const struct store_params *p = s->params;
    struct window_id id = {a->setting, a->window};
    uint64_t sum = 0;
    for (size_t i = 0; i < s->extras_n; i++) {
        const struct extra *e = &s->extras[i];
        struct window_id here = id_of(s, e->at_us, e->store_us);
        uint64_t apart_us = a->at_us > e->at_us ? a->at_us - e->at_us : e->at_us - a->at_us;
        bool near = s->stepped && apart_us <= 2 * p->a;
        if (e->kind == EXTRA_LOST) {
            sum += is_same(id, here, 0) ? p->quota + more : 0;
        } else if (e->kind == EXTRA_GIVEN) {
            sum += near || is_same(id, here, 1) ? e->units : 0;
        }
    }
    return sum;
}

/* Returns whether the units came from a lease of a window that the store's clock has left, before
 * that lease was to end, except in the window in which the lease still counts; or, in `synced`,
 * from what a node knew by another clock. */
static bool is_of_other_time(const struct world *w, const struct subject *s,
                             const struct admission *a)
{
    if (w->options->mode == REMOTE_SYNCED) {
        return a->unaware;
    }
    for (size_t i = 0; i < s->extras_n; i++) {
        const struct extra *e = &s->extras[i];
        struct window_id left = id_of(s, e->at_us, e->store_us);
        if (e->kind == EXTRA_STEP && a->at_us >= e->at_us && a->at_us - e->at_us <= s->params->a &&
            !is_same(left, (struct window_id){a->setting, a->window}, 0)) {
            return true;
        }
    }
    return false;
}

/* Returns what all windows together may admit beyond their own bounds: one limit for each step.
 * What was lost or given back before a step may be spent after it. */
static uint64_t beyond_all(const struct subject *s, uint64_t more)
{
    uint64_t sum = 0;
    for (size_t i = 0; s->stepped && i < s->extras_n; i++) {
        bool given = s->extras[i].kind == EXTRA_GIVEN;
        sum += given ? s->extras[i].units : s->params->quota + more;
    }
    return sum;
}

static int by_window(const void *a, const void *b)
{
    const struct admission *x = a;
    const struct admission *y = b;
    if (x->setting != y->setting) {
        return x->setting < y->setting ? -1 : 1;
    }
    if (x->window != y->window) {
        return x->window < y->window ? -1 : 1;
    }
    return x->at_us < y->at_us ? -1 : x->at_us > y->at_us;
}

/* Returns how far an admission is from the nearer edge of its window. */
static uint64_t from_edge(const struct store_params *p, uint64_t store_at_us)
{
    uint64_t since = (uint64_t)((int64_t)store_at_us - window_of(p, store_at_us) * (int64_t)p->a -
                                (int64_t)p->b);
    return min_u64(since, p->a - 1 - since);
}

static void sort_by_window(const struct subject *s)
{
    for (size_t i = 0; i < s->admitted_n; i++) {
        struct admission *a = &s->admissions[i];
        struct window_id id = id_of(s, a->at_us, a->store_us);
        a->setting = id.setting;
        a->window = id.window;
    }
    qsort(s->admissions, s->admitted_n, sizeof s->admissions[0], by_window);
}

/* The sum of one window. */
struct window_sum {
    const struct admission *first;
    uint64_t units;
    uint64_t other; /* of these, admitted by another time than the window's */
    uint64_t beyond;
};

/* Leaves out admissions within `unsure_us` of an edge, because their window cannot be
 * determined. */
void check_windows(struct world *w, const struct subject *s, uint64_t more, uint64_t unsure_us)
{
    const struct store_params *p = s->params;
    struct window_sum sum = {0};
    uint64_t beyond = beyond_all(s, more);
    sort_by_window(s);
    for (size_t i = 0; i < s->admitted_n; i++) {
        const struct admission *a = &s->admissions[i];
        if (unsure_us > 0 && from_edge(p, a->store_us) < unsure_us) {
            continue;
        }
        if (sum.first == NULL || a->setting != sum.first->setting ||
            a->window != sum.first->window) {
            beyond -= sum.beyond;
            sum = (struct window_sum){.first = a};
        }
        sum.units += a->units;
        sum.other += is_of_other_time(w, s, a) ? a->units : 0;
        uint64_t most = p->quota + more + window_extra(s, a, more);
        sum.beyond = sub_floor0(sum.units, most);
        if (sum.beyond > min_u64(sum.other, beyond)) {
            world_fail_at(w, a->at_us,
                          "%s: window %" PRId64 " has admitted %" PRIu64
                          " units, expected at most %" PRIu64 " and, of %" PRIu64
                          " by another time, %" PRIu64 "; the last of them by node %u",
                          s->name, a->window, sum.units, most, sum.other, beyond, a->node);
            return;
        }
    }
}
