/* Draws a run from a seed: a fleet, its limits, its network, its questions and its faults. */
#include <inttypes.h>

#include "simulate/world.h"

/* ppm: within the 1 % and the 1/128 that the protocols allow */
#define DRIFT_MOST(mode) ((mode) == REMOTE_LEASED ? 9900u : 7500u)

/* ---- sizes ---- */

static void draw_size(struct oracle_random *g, struct plan *p)
{
    static const unsigned most[] = {1, 3, 3, 5, 5, 8, 20, 60};
    p->nodes = (unsigned)oracle_between(g, 1, most[oracle_between(g, 0, 7)]);
    if (oracle_once_in(g, 60)) {
        p->nodes = (unsigned)oracle_between(g, 300, NODES_MAX);
    }
    p->subjects = (unsigned)oracle_between(g, 1, 3);
    p->limits = p->subjects > 1 ? (unsigned)oracle_between(g, 1, 2) : 1;
    p->length_us =
        oracle_magnitude(g, SECOND_US / 4, oracle_once_in(g, 4) ? 20 * SECOND_US : 5 * SECOND_US);
}

/* ---- limits ---- */

static uint64_t at_least_1(uint64_t n)
{
    return n > 0 ? n : 1;
}

/* Draws a limit in proportion to the units that will be offered, so that some runs are far within
 * their limit and others far beyond. */
static void draw_limit(struct oracle_random *g, int mode, const struct plan *p, uint64_t offered,
                       struct weir_options *o)
{
    static const int algorithms[] = {WEIR_TOKEN_BUCKET, WEIR_TOKEN_BUCKET, WEIR_FIXED_WINDOW,
                                     WEIR_SLIDING_WINDOW};
    uint64_t capacity = at_least_1(offered * 10 / oracle_magnitude(g, p->calm ? 25 : 2, 50));
    uint64_t parts = oracle_between(g, 1, p->calm ? 3 : 10);
    *o = (struct weir_options)WEIR_OPTIONS_INIT;
    o->algorithm = algorithms[oracle_between(g, 0, mode == REMOTE_SYNCED ? 3 : 2)];
    if (o->algorithm == WEIR_TOKEN_BUCKET) {
        o->burst = at_least_1(capacity * parts / 11);
        o->count = at_least_1(capacity - o->burst);
        o->period_ns = p->length_us * 1000;
        if (oracle_once_in(g, 2)) { /* a round rate instead of an odd one */
            o->count = at_least_1(mul_div(o->count, SECOND_US, p->length_us));
            o->period_ns = WEIR_SECOND;
        }
    } else {
        o->count = at_least_1(capacity / parts);
        o->period_ns = at_least_1(p->length_us / parts) * 1000;
    }
    if (!p->calm && oracle_once_in(g, 10)) { /* a tiny limit */
        o->burst = o->burst != 0 ? oracle_between(g, 1, 20) : 0;
        o->count = o->burst != 0 ? o->count : oracle_between(g, 1, 20);
    }
    struct store_params params;
    while (store_params(o, &params, NULL) != 0) { /* more than the algorithm can count */
        o->count = at_least_1(o->count / 2);
        o->burst /= 2;
    }
}

/* ---- questions ---- */

static uint64_t draw_demand(struct oracle_random *g, struct plan *p)
{
    static const uint64_t costs[] = {1, 1, 3, 20, 300, 5000, 4000000};
    uint64_t questions = oracle_between(g, 100, 1200) + p->nodes * oracle_between(g, 2, 40);
    questions = p->calm ? 800 * p->nodes : min_u64(questions, max_u64(2500, 4 * p->nodes));
    p->demand = (enum demand)oracle_between(g, 0, DEMANDS - 1);
    p->burst = p->demand == DEMAND_BURSTS ? (unsigned)oracle_between(g, 2, 30) : 1;
    p->cost_most = p->calm ? 1 : costs[oracle_between(g, 0, 6)];
    p->gap_us = at_least_1(p->length_us * p->nodes / questions);
    if (p->demand == DEMAND_WAVES) {
        p->wave_us = oracle_magnitude(g, p->length_us / 20 + 1, p->length_us / 2);
        p->gap_us = at_least_1(p->gap_us / 3);
    }
    if (p->calm) {
        p->demand = DEMAND_STEADY;
        p->burst = 1;
    }
    return questions * (p->cost_most + 1) / 2 / p->subjects;
}

/* ---- the network ---- */

static unsigned draw_drift(struct oracle_random *g, int mode)
{
    unsigned most = DRIFT_MOST(mode);
    return oracle_once_in(g, 3)   ? 0
           : oracle_once_in(g, 2) ? most
                                  : (unsigned)oracle_magnitude(g, 10, most);
}

static void draw_network(struct oracle_random *g, int mode, struct plan *p)
{
    p->delay_us = oracle_magnitude(g, 20, 5000);
    p->jitter_us = oracle_magnitude(g, 1, 5000);
    p->late_us = oracle_once_in(g, 3) ? oracle_magnitude(g, 1, 20000) : 100;
    /* Messages with the usual delay arrive in time; the 1/8 is for the drift of a node's clock. */
    uint64_t usual = 2 * (p->delay_us + p->jitter_us);
    p->deadline_us = usual + usual / 8 + oracle_magnitude(g, 1000, 5 * SECOND_US);
    p->drift_ppm = draw_drift(g, mode);
    p->sync_us = oracle_once_in(g, 2) ? SECOND_US / 10 : oracle_magnitude(g, 5000, SECOND_US);
    if (p->calm) {
        p->late_us = 100;
        return;
    }
    p->lose_in = oracle_once_in(g, 2) ? (unsigned)oracle_magnitude(g, 3, 200) : 0;
    p->slow_in = oracle_once_in(g, 2) ? (unsigned)oracle_magnitude(g, 3, 200) : 0;
    p->slow_us = oracle_magnitude(g, 1000, 4 * SECOND_US);
    p->refuse_in = oracle_once_in(g, 4) ? (unsigned)oracle_magnitude(g, 3, 100) : 0;
}

static unsigned some(struct oracle_random *g, unsigned once_in, unsigned most)
{
    return oracle_once_in(g, once_in) ? (unsigned)oracle_between(g, 1, most) : 0;
}

static void draw_faults(struct oracle_random *g, struct plan *p)
{
    p->faults_until_us = p->length_us * 3 / 4;
    if (p->calm) {
        return;
    }
    p->deaths = some(g, 2, 4);
    p->pauses = some(g, 2, 4);
    p->partitions = some(g, 2, 6);
    p->flushes = some(g, 6, 2);
    p->steps = some(g, 3, 3);
    p->verbs = some(g, 3, 6);
}

void plan_draw(struct oracle_random *g, int mode, struct plan *p)
{
    *p = (struct plan){.calm = oracle_once_in(g, 6)};
    draw_size(g, p);
    draw_network(g, mode, p);
    draw_faults(g, p);
    if (p->calm) { /* few nodes that ask often: many times during a round trip to the store */
        p->nodes = (unsigned)oracle_between(g, 1, 4);
        p->subjects = 1;
        p->limits = 1;
        p->length_us = max_u64(p->length_us, 200 * (p->delay_us + p->jitter_us));
        p->faults_until_us = 0;
    }
    uint64_t offered = draw_demand(g, p);
    for (unsigned i = 0; i < p->limits; i++) {
        draw_limit(g, mode, p, offered, &p->limit[i]);
    }
}

/* ---- as text ---- */

void plan_describe(const struct plan *p, char *text, size_t size)
{
    int n = snprintf(
        text, size,
        "%u nodes, %u keys, %" PRIu64 " us, demand %d every %" PRIu64 " us by %u cost %" PRIu64
        "; way %" PRIu64 "+%" PRIu64 " us, deadline %" PRIu64 " us, late %" PRIu64
        ", drift %u ppm; lost 1/%u, slow 1/%u by %" PRIu64 ", refused 1/%u; deaths %u pauses %u"
        " partitions %u flushes %u steps %u verbs %u%s",
        p->nodes, p->subjects, p->length_us, (int)p->demand, p->gap_us, p->burst, p->cost_most,
        p->delay_us, p->jitter_us, p->deadline_us, p->late_us, p->drift_ppm, p->lose_in, p->slow_in,
        p->slow_us, p->refuse_in, p->deaths, p->pauses, p->partitions, p->flushes, p->steps,
        p->verbs, p->calm ? "; calm" : "");
    for (unsigned i = 0; i < p->limits && n > 0 && (size_t)n < size; i++) {
        const struct weir_options *o = &p->limit[i];
        n += snprintf(text + n, size - (size_t)n,
                      "; %s %" PRIu64 " per %" PRIu64 " ns burst %" PRIu64,
                      weir_algorithm_name(o->algorithm), o->count, o->period_ns, o->burst);
    }
}
