/*
 * I2 and I5: what was admitted, in every interval there is. For a bucket that is exact: with x the most
 * that any interval which ends now has admitted beyond its R t, an admission of n makes x become
 * max(0, x - R dt) + n, and x <= B must hold. Times are in 1/128000 us, as in the scripts.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "simulate/world.h"

#define EPOCHS_MAX 256

/* ---- noting ---- */

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
    s->admissions[s->admitted_n++] = (struct admission){at_us, store_at_us, units, node};
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
 * Intervals by when they begin: those that begin within a lease's life after a fault may see what was
 * outstanding before it besides a full bucket, others may not.
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

/* Intervals that begin at this very moment have it, too: it is taken from them when time goes on. */
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

/* Units beyond the bound, 0: none. */
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

/* What the store's clock gives by being set ahead, in time: at most a full bucket. */
static i128 step_gives(const struct store_params *p, int64_t step_us)
{
    i128 all = (i128)p->quota * unit_parts(p);
    i128 d = step_us > 0 ? (i128)step_us * STORE_PARTS : 0;
    return d < all ? d : all;
}

/* To intervals in which the fault lies; and to those which begin within a lease's life after it, when
 * what the store gave up too early is still spent, and has refilled since. */
static i128 extra_within(const struct store_params *p, const struct extra *e)
{
    return e->kind == EXTRA_STEP ? step_gives(p, e->step_us) : (i128)e->units * unit_parts(p);
}

static i128 extra_behind(const struct store_params *p, const struct extra *e)
{
    i128 all = (i128)p->quota * unit_parts(p);
    i128 twice = 2 * step_gives(p, e->step_us);
    return e->kind == EXTRA_GIVEN ? 0 : e->kind == EXTRA_LOST || twice > all ? all : twice;
}

struct walk {
    const struct subject *s;
    struct ledger ledger;
    size_t next; /* of the extras */
    i128 behind; /* now */
    size_t over; /* extras whose time behind is over */
};

/* Extras are in the order of time, and so are the ends of what lies behind them. */
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
            ledger_credit(&k->ledger, extra_within(s->params, e));
            k->behind += extra_behind(s->params, e);
            if (extra_behind(s->params, e) == 0) {
                k->over += k->over + 1 == k->next;
                continue;
            }
        } else {
            k->behind -= extra_behind(s->params, &s->extras[k->over++]);
        }
        ledger_begin(&k->ledger, k->behind);
    }
    ledger_to(&k->ledger, at_us);
}

/* `slack` is a time in which a bucket may refill besides, in parts. */
void check_bucket(struct world *w, const struct subject *s, uint64_t more, i128 slack)
{
    static struct walk k;
    k = (struct walk){.s = s, .ledger.unit = unit_parts(s->params)};
    k.ledger.most = (i128)(s->params->quota + more) * unit_parts(s->params) + slack;
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

/* In how many windows after a clock was set somebody may not know of it. */
static int64_t unaware(const struct world *w, const struct store_params *p)
{
    uint64_t us = SYNC_DEGRADED_AFTER * w->plan.sync_us + w->plan.deadline_us;
    return w->options->mode == REMOTE_SYNCED ? (int64_t)(us / p->a) + 2 : 1;
}

static uint64_t window_extra(const struct world *w, const struct subject *s, int64_t window,
                             uint64_t more)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->extras_n; i++) {
        const struct extra *e = &s->extras[i];
        int64_t first = window_of(s->params, e->store_us);
        int64_t last = window_of(s->params, (uint64_t)((int64_t)e->store_us + e->step_us));
        if (e->kind == EXTRA_STEP) {
            /* What was in flight or held then may count a window early or late; and a clock that was
             * set back goes through the same windows once more. */
            bool near = llabs(window - first) <= 1 || llabs(window - last) <= 1 ||
                        (window > last && window < first) ||
                        (window > last && window - last <= unaware(w, s->params));
            sum += near ? s->params->quota + more : 0;
        } else if (e->kind == EXTRA_LOST) {
            sum += window == first ? s->params->quota + more : 0;
        } else {
            sum += llabs(window - first) <= 1 ? e->units : 0;
        }
    }
    return sum;
}

static int by_window(const void *a, const void *b)
{
    const struct admission *x = a;
    const struct admission *y = b;
    return x->store_us < y->store_us ? -1 : x->store_us > y->store_us;
}

/* How far an admission is from the nearer edge of its window. */
static uint64_t from_edge(const struct store_params *p, uint64_t store_at_us)
{
    uint64_t since = (uint64_t)((int64_t)store_at_us - window_of(p, store_at_us) * (int64_t)p->a -
                                (int64_t)p->b);
    return min_u64(since, p->a - 1 - since);
}

/* Admissions within `unsure_us` of an edge are left out: nobody can say whose they are. */
void check_windows(struct world *w, const struct subject *s, uint64_t more, uint64_t unsure_us)
{
    int64_t window = INT64_MIN;
    uint64_t sum = 0;
    qsort(s->admissions, s->admitted_n, sizeof s->admissions[0], by_window);
    for (size_t i = 0; i < s->admitted_n; i++) {
        const struct admission *a = &s->admissions[i];
        if (unsure_us > 0 && from_edge(s->params, a->store_us) < unsure_us) {
            continue;
        }
        int64_t now = window_of(s->params, a->store_us);
        sum = now == window ? sum + a->units : a->units;
        window = now;
        uint64_t most = s->params->quota + more + window_extra(w, s, window, more);
        if (sum > most) {
            world_fail_at(w, a->at_us,
                          "%s: window %" PRId64 " has admitted %" PRIu64
                          " units, expected at most %" PRIu64 ", the last of them by node %u",
                          s->name, window, sum, most, a->node);
            return;
        }
    }
}
