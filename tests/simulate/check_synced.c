/*
 * I5 and I6 of `synced`.
 *
 * Let p(j) be the last exchange that told node j of room, and i the node whose p is the latest. Node i
 * has seen to it that what was told until p(i) and what it admitted itself is within the limit. What
 * another node j has admitted and p(i) does not know came after the making of p(j), and before the end
 * of the exchange behind it. So the fleet admits at most L + the sum over the other nodes of what each
 * admits in such a span: in a window, or beyond R t in any time t. Which node i is, nobody knows: the
 * one with the least is left out.
 */
#include <inttypes.h>

#include "simulate/world.h"

/* A node that was started anew knows as little as a new one: each of its lives counts. */
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

/* How long a node may go on by what it knows; by its own clock, which is why the bucket gets a slack. */
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
        sync_counts(node->syncs, &counts);
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
            given += s->extras[k].kind == EXTRA_LOST   ? others
                     : s->extras[k].kind == EXTRA_STEP ? s->params->quota + others
                                                       : 0;
        }
        if (is_bucket(s->params)) {
            check_bucket(w, s, others + given, (i128)stale_us(w) * STORE_PARTS / 64);
        } else {
            uint64_t way_us = w->most_way_us + stale_us(w) / 64 + 2;
            check_windows(w, s, others, way_us);
        }
    }
}
