/* The faults, and the verbs that are used meanwhile. */
#include <inttypes.h>

#include "shared/core/script.h"
#include "simulate/world.h"

static void plan_some(struct world *w, unsigned count, enum event_kind kind)
{
    for (unsigned i = 0; i < count; i++) {
        event_put(w, world_between(w, 0, w->plan.faults_until_us), kind,
                  (unsigned)world_between(w, 0, w->plan.nodes - 1), NULL);
    }
}

void faults_plan(struct world *w)
{
    plan_some(w, w->plan.deaths, EVENT_DEATH);
    plan_some(w, w->plan.pauses, EVENT_PAUSE);
    plan_some(w, w->plan.partitions, EVENT_PARTITION);
    plan_some(w, w->plan.flushes, EVENT_FLUSH);
    plan_some(w, w->plan.steps, EVENT_STEP);
    plan_some(w, w->plan.verbs, EVENT_VERB);
}

/* Returns a time that is not after the end of all faults. */
static uint64_t until(struct world *w, uint64_t most_us)
{
    uint64_t at_us = w->now_us + oracle_magnitude(&w->random, 1, most_us);
    return min_u64(at_us, max_u64(w->plan.faults_until_us, w->now_us + 1));
}

/* Half of the nodes first end in good order and give back what they hold. */
static void death(struct world *w, unsigned n)
{
    struct node *node = &w->nodes[n];
    if (!node->up) {
        return;
    }
    if (!node->ending && world_once_in(w, 2)) {
        TRACE(w, "node %u: ends in good order", n);
        node->ending = true;
        node_keys_stop(node->keys);
        node_pump(w, n);
        event_put(w, until(w, SECOND_US / 10), EVENT_DEATH, n, NULL);
        return;
    }
    TRACE(w, "node %u: dies", n);
    node_stop(w, n);
    event_put(w, until(w, 2 * SECOND_US), EVENT_START, n, NULL);
}

static void start(struct world *w, unsigned n)
{
    if (!w->nodes[n].up) {
        TRACE(w, "node %u: starts", n);
        node_start(w, n);
    }
}

static void standstill(struct world *w, unsigned n)
{
    uint64_t until_us = until(w, 4 * SECOND_US);
    w->nodes[n].paused_us = max_u64(w->nodes[n].paused_us, until_us);
    TRACE(w, "node %u: stands still until %" PRIu64, n, w->nodes[n].paused_us);
}

static void partition(struct world *w, unsigned n)
{
    static const unsigned once_in[] = {1, 2, 4, 1000000};
    unsigned part = once_in[world_between(w, 0, 3)];
    uint64_t until_us = until(w, 4 * SECOND_US);
    int cut = (int)world_between(w, 1, 3) | (world_once_in(w, 2) ? CUT_HOLDS : 0);
    TRACE(w, "1 in %u nodes, and %u, parted from the store until %" PRIu64 ": %d", part, n,
          until_us, cut);
    for (unsigned i = 0; i < w->plan.nodes; i++) {
        if (i == n || world_once_in(w, part)) {
            w->nodes[i].cut_us = until_us;
            w->nodes[i].cut = cut;
        }
    }
}

static void flush(struct world *w)
{
    TRACE(w, "store: begins anew, empty");
    fake_redis_restart(w->redis);
    for (unsigned i = 0; i < w->plan.subjects; i++) {
        extra_put(w, i, EXTRA_LOST, w->subjects[i].params->quota, 0);
    }
}

static void step(struct world *w)
{
    int64_t step_us = (int64_t)oracle_magnitude(&w->random, 1000, 200 * SECOND_US);
    step_us = world_once_in(w, 2) ? -step_us : step_us;
    TRACE(w, "store: its clock is set by %" PRId64 " us", step_us);
    for (unsigned i = 0; i < w->plan.subjects; i++) {
        extra_put(w, i, EXTRA_STEP, 0, step_us);
    }
    w->step_us += step_us;
}

/* Blocks are only checked if the clock is not set and no data is lost. */
static void verb(struct world *w, unsigned n)
{
    static const unsigned all[] = {REMOTE_RESET,   REMOTE_REFUND,      REMOTE_PENALIZE,
                                   REMOTE_UNBLOCK, SCRIPT_BLOCK_UNTIL, SCRIPT_BLOCK_UNTIL};
    bool blocks = w->plan.steps == 0 && w->plan.flushes == 0;
    unsigned v = all[world_between(w, 0, blocks ? 5 : 2)];
    unsigned subject = (unsigned)world_between(w, 0, w->plan.subjects - 1);
    uint64_t now_ns = store_us(w, w->now_us) * 1000;
    uint64_t cost = world_between(w, 1, w->subjects[subject].params->quota);
    uint64_t time_ns = v == SCRIPT_BLOCK_UNTIL ? now_ns + world_between(w, 1, BLOCK_MOST_US) * 1000
                       : v == REMOTE_REFUND    ? now_ns
                                               : 0;
    node_verb(w, n, subject, v, cost, time_ns);
}

void fault_happens(struct world *w, const struct event *e)
{
    w->result->faults++;
    switch (e->kind) {
    case EVENT_DEATH:
        death(w, e->node);
        break;
    case EVENT_START:
        start(w, e->node);
        break;
    case EVENT_PAUSE:
        standstill(w, e->node);
        break;
    case EVENT_PARTITION:
        partition(w, e->node);
        break;
    case EVENT_FLUSH:
        flush(w);
        break;
    case EVENT_STEP:
        step(w);
        break;
    default:
        verb(w, e->node);
    }
}
