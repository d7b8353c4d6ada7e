/*
 * Checks I5 and I6 of `synced`.
 *
 * Let p(j) be the last exchange that told node j of room, and i the node whose p is the latest.
 * Node i ensures that the units reported until p(i) plus those it admitted itself are within the
 * limit. Units that another node j has admitted and p(i) does not know of were admitted after p(j)
 * was made, and before the end of the next exchange. So the fleet admits at most L plus the sum,
 * over the other nodes, of what each admits in such a span: in a window, or beyond R t in any time
 * t. Which node i is cannot be known, so the one with the least is left out.
 *
 * Buckets are also checked at every admission, without any slack. Let x be the level of one bucket
 * that is asked for all admitted units at the times of their admissions (check_bound.c). The
 * store's state is never less than such a bucket of the units that it was told (sync_view.h), and a
 * node's view is never less than such a bucket of those units and its own. Units that are left out
 * of a bucket lower it by as many units at most. So for a node that admits, x <= B + the units that
 * others have admitted and of which its last answered exchange did not know when it ran. A refund
 * lowers x when it runs, at most to zero, like the state, which is the more careful the less of the
 * refund is reported. The units that a dead node has not reported are subtracted from both sides.
 * When data is lost, x starts again from zero: everything that is admitted later is reported later.
 * A clock that is set ahead lowers x, like the state, and a node's view is not less than that. One
 * that is set back raises the state, until that is cut to a full bucket.
 *
 * Windows are checked in the same way: the units that a node has admitted in a window, by the
 * store's time, plus those of others that its last exchange knew of, if it ran in that window, are
 * at most the quota, also at the window's edges (V2 of sync_view.h). So the window admits at most
 * the quota plus what others had not reported then. A step of the store's clock begins another
 * window; admissions by a node that has not heard of the step are checked at the end, in
 * check_bound.c.
 */
#include <inttypes.h>

#include "simulate/world.h"

/* ---- buckets, at every admission ---- */

static bool is_sure(const struct world *w, const struct subject *s)
{
    return w->options->mode == REMOTE_SYNCED && is_bucket(s->params);
}

static i128 at_most_full(const struct subject *s, i128 level)
{
    i128 full = (i128)(s->params->quota + s->params->max_debt) * unit_parts(s->params);
    return level < full ? level : full;
}

static void lower(struct subject *s, i128 time)
{
    s->level = s->level > time ? s->level - time : 0;
    s->cut = s->cut > time ? s->cut - time : 0;
}

static void level_to_now(struct world *w, struct subject *s)
{
    lower(s, (i128)(w->now_us - s->level_us) * STORE_PARTS);
    s->level_us = w->now_us;
}

/* Starts again: intervals and windows are checked from here on. */
void level_lost(struct world *w, unsigned subject)
{
    struct subject *s = &w->subjects[subject];
    s->level = 0;
    s->cut = 0;
    s->level_us = w->now_us;
    s->losses++;
}

void level_step(struct world *w, unsigned subject, int64_t step_us)
{
    struct subject *s = &w->subjects[subject];
    if (!is_bucket(s->params)) {
        s->losses++;
        return;
    }
    level_to_now(w, s);
    if (step_us > 0) {
        lower(s, (i128)step_us * STORE_PARTS);
    } else {
        s->cut = at_most_full(s, s->cut);
    }
}

bool is_unaware(const struct world *w, unsigned subject, unsigned node)
{
    return w->nodes[node].told[subject].setting_us != w->step_us;
}

void level_give(struct world *w, unsigned subject, uint64_t units)
{
    struct subject *s = &w->subjects[subject];
    if (!is_bucket(s->params)) {
        level_lost(w, subject);
        return;
    }
    level_to_now(w, s);
    lower(s, (i128)units * unit_parts(s->params));
}

/* ---- windows, at every admission ---- */

static struct in_window *now_in(const struct world *w, const struct subject *s, struct in_window *i)
{
    int64_t window = window_of(s->params, store_us(w, w->now_us));
    if (i->window != window || i->losses != s->losses) {
        *i = (struct in_window){.window = window, .losses = s->losses};
    }
    return i;
}

void level_made(struct world *w, struct message *m)
{
    struct told *t = &w->nodes[m->node].told[m->subject];
    if (!is_bucket(w->subjects[m->subject].params)) {
        t->made = t->again ? t->made : *now_in(w, &w->subjects[m->subject], &t->here);
        m->made = t->made;
    }
}

static void window_ran(const struct world *w, struct subject *s, struct told *t, struct message *m)
{
    struct in_window *all = now_in(w, s, &s->all);
    struct in_window *here = now_in(w, s, &t->here);
    bool same = m->made.window == here->window && m->made.losses == here->losses &&
                !m->made.unaware; /* or the window is over, and it is dropped */
    uint64_t known = same ? m->made.admitted : 0;
    uint64_t fresh = sub_floor0(known, here->ran);
    here->ran += fresh;
    all->ran += fresh;
    m->heard = *all;
    m->heard.ran = all->ran - here->ran;
}

static void window_take(struct world *w, struct subject *s, unsigned node, struct told *t,
                        uint64_t units)
{
    struct in_window *here = now_in(w, s, &t->here);
    here->admitted += units;
    here->unaware = here->unaware || t->setting_us != w->step_us;
    uint64_t heard = now_in(w, s, &t->known_window)->ran;
    if (here->admitted + heard > s->params->quota && !here->unaware) {
        world_fail(w,
                   "%s: node %u has admitted %" PRIu64 " in this window, and has heard of %" PRIu64
                   " units of others, of %" PRIu64,
                   s->name, node, here->admitted, heard, s->params->quota);
    }
}

/* ---- both ---- */

/* What a clock that was set back adds cannot be told from a debt. When a node has reported the
 * step, both are cut to a full bucket, as of now, or as of the moment at which a node saw that no
 * debt can be so large. */
static void forgive(struct world *w, const struct message *m)
{
    struct subject *s = &w->subjects[m->subject];
    i128 unit = unit_parts(s->params);
    level_to_now(w, s);
    s->cut = at_most_full(s, s->cut);
    if (s->level > s->cut) {
        uint64_t units = (uint64_t)((s->level - s->cut + unit - 1) / unit);
        extra_put(w, m->subject, EXTRA_GIVEN, units, 0);
        s->level = s->cut;
    }
}

/* Exchanges of a life that is over are not counted: the store then knows more than the simulator
 * counts. */
void level_ran(struct world *w, struct message *m)
{
    struct subject *s = &w->subjects[m->subject];
    struct told *t = &w->nodes[m->node].told[m->subject];
    if (m->kind == MESSAGE_SYNC && m->call.sync.set_back) {
        forgive(w, m);
    }
    if (m->kind != MESSAGE_SYNC || m->life != w->nodes[m->node].life || !w->nodes[m->node].up) {
        return;
    }
    uint64_t fresh = sub_floor0(m->admitted, t->ran);
    t->ran += fresh;
    s->ran += fresh;
    m->others = s->ran - t->ran;
    if (!is_bucket(s->params)) {
        window_ran(w, s, t, m);
    }
}

void level_take(struct world *w, unsigned subject, unsigned node, uint64_t units)
{
    struct subject *s = &w->subjects[subject];
    struct told *t = &w->nodes[node].told[subject];
    if (!is_bucket(s->params)) {
        window_take(w, s, node, t, units);
        return;
    }
    level_to_now(w, s);
    s->level += (i128)units * unit_parts(s->params);
    s->cut += (i128)units * unit_parts(s->params);
    uint64_t others = s->admitted - s->gone - (t->admitted - units);
    uint64_t unheard = others - t->heard;
    i128 most = (i128)(s->params->quota + unheard) * unit_parts(s->params);
    if (is_sure(w, s) && s->level > most) {
        world_fail(w,
                   "%s: node %u admits %" PRIu64 ", and has heard of all but %" PRIu64
                   " units: %" PRIu64 " too many",
                   s->name, node, units, unheard,
                   (uint64_t)((s->level - most) / unit_parts(s->params)));
    }
}

/* ---- everything, at the end ---- */

/* A node that was restarted knows as little as a new one, so each of its lives counts. */
static uint64_t others_admit(const struct world *w, unsigned subject)
{
    uint64_t sum = 0;
    uint64_t least = UINT64_MAX;
    for (unsigned n = 0; n < w->plan.nodes; n++) {
        const struct told *t = &w->nodes[n].told[subject];
        uint64_t most = at_once(w, subject, t->most);
        sum += t->past + most;
        least = min_u64(least, w->nodes[n].life > 1 ? min_u64(t->least, most) : most);
    }
    return sum - least;
}

/* Returns how long a node may continue with what it knows. The node measures that by its own clock,
 * so the check of the bucket has some slack. */
static uint64_t stale_us(const struct world *w)
{
    return SYNC_DEGRADED_AFTER * w->plan.sync_us + w->plan.deadline_us;
}

void check_told(struct world *w, unsigned subject)
{
    const struct subject *s = &w->subjects[subject];
    for (unsigned n = 0; n < w->plan.nodes; n++) {
        const struct node *node = &w->nodes[n];
        const struct told *t = &node->told[subject];
        struct sync_counts counts;
        if (!node->up) {
            continue;
        }
        sync_counts(node->keys, &counts);
        uint64_t dropped = is_bucket(s->params) ? 0 : counts.dropped;
        if (t->told > t->admitted || t->told + dropped < t->admitted) {
            world_fail(w,
                       "%s: node %u has admitted %" PRIu64 " units, and told of %" PRIu64
                       ", dropped %" PRIu64,
                       s->name, n, t->admitted, t->told, dropped);
            return;
        }
    }
}

void check_synced(struct world *w)
{
    for (unsigned i = 0; i < w->plan.subjects; i++) {
        struct subject *s = &w->subjects[i];
        uint64_t others = others_admit(w, i);
        uint64_t given = 0;
        for (size_t k = 0; k < s->extras_n; k++) {
            given += s->extras[k].kind == EXTRA_LOST ? others : 0;
        }
        if (is_bucket(s->params)) {
            check_bucket(w, s, others + given, (i128)stale_us(w) * STORE_PARTS / 64);
        } else {
            uint64_t way_us = w->most_way_us + stale_us(w) / 64 + 2;
            check_windows(w, s, others, way_us);
        }
    }
}
