/*
 * Generates random rules and calls. Uniform numbers would miss nearly all interesting cases, so
 * these lean towards edges: multiples of a unit's time and of the period and their neighbours, the
 * slack and its neighbours, the quota and one more, a period after an earlier call.
 */
#include "support/oracle/oracle_trace.h"

#define YEAR (UINT64_C(36525) * WEIR_DAY / 100)
#define SLACK ((uint64_t)ORACLE_SLACK_NS)

/* splitmix64: works with any seed, and its whole state is one word that can be printed. */
uint64_t oracle_next(struct oracle_random *g)
{
    uint64_t z = g->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint64_t oracle_between(struct oracle_random *g, uint64_t low, uint64_t high)
{
    uint64_t range = high - low + 1;
    return low + (range == 0 ? oracle_next(g) : oracle_next(g) % range);
}

uint64_t oracle_magnitude(struct oracle_random *g, uint64_t low, uint64_t high)
{
    unsigned bits = (unsigned)oracle_between(g, 0, 63);
    uint64_t top = high - low;
    while (bits > 0 && top >> bits == 0) {
        bits = (unsigned)oracle_between(g, 0, bits - 1);
    }
    uint64_t most = (UINT64_C(2) << bits) - 1;
    return low + oracle_between(g, 0, most < top ? most : top);
}

bool oracle_once_in(struct oracle_random *g, uint64_t n)
{
    return oracle_next(g) % n == 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- rules ---- */

struct rate {
    uint64_t count;
    uint64_t period_ns;
};

static const struct rate notable[] = {
    {1, 100 * YEAR}, /* too long for any bucket */
    {1, 36 * YEAR},  /* just fits */
    {1, WEIR_DAY},
    {5, 7 * WEIR_DAY}, /* windows that begin on a Monday */
    {5, WEIR_MONTH},   /* only for fixed_window */
    {1, WEIR_SECOND},
    {2, WEIR_SECOND},
    {3, WEIR_SECOND},
    {100, WEIR_MINUTE},
    {20, 90 * WEIR_SECOND},
    {5000, WEIR_HOUR},
    {7, 1000003},
    {9999999, WEIR_SECOND},
    {10000000, WEIR_SECOND},
    {999999937, WEIR_SECOND},
    {1000000000, WEIR_SECOND},
    {1, WEIR_MICROSECOND},
    {1000, WEIR_MICROSECOND},
    {UINT64_C(1800000000000000), 100 * YEAR}, /* in its time unit 64 bits are 73 years */
};

static struct rate random_rate(struct oracle_random *g)
{
    struct rate r = notable[oracle_between(g, 0, sizeof notable / sizeof notable[0] - 1)];
    if (oracle_once_in(g, 2)) {
        r.period_ns = oracle_once_in(g, 2) ? oracle_magnitude(g, WEIR_MICROSECOND, 100 * YEAR)
                                           : oracle_between(g, 1, 100) * (WEIR_SECOND / 10);
        r.count =
            oracle_once_in(g, 4) ? oracle_magnitude(g, 1, r.period_ns) : oracle_between(g, 1, 30);
    }
    return r;
}

/* Small amounts fill up and empty again within a trace. */
static uint64_t random_amount(struct oracle_random *g, uint64_t most)
{
    return oracle_once_in(g, 4) ? oracle_magnitude(g, 1, most)
                                : oracle_between(g, 1, least(most, 12));
}

static uint64_t random_debt(struct oracle_random *g, uint64_t most)
{
    return oracle_once_in(g, 3) || most == 0 ? 0 : random_amount(g, most);
}

static struct oracle_rule propose_bucket(struct oracle_random *g, int algorithm)
{
    struct rate rate = random_rate(g);
    struct oracle_rule r = {
        .algorithm = algorithm, .count = rate.count, .period_ns = rate.period_ns};
    oracle_rule_init(&r);
    uint64_t most = (uint64_t)((oracle_int)(UINT64_MAX / 4) / r.step);
    uint64_t quota = random_amount(g, most != 0 ? most : 1);
    r.burst = algorithm == WEIR_TOKEN_BUCKET ? quota : 0;
    r.queue = algorithm == WEIR_LEAKY_BUCKET ? quota - 1 : 0;
    r.undelayed = oracle_once_in(g, 2) ? oracle_between(g, 0, r.queue) : 0;
    r.max_debt = random_debt(g, most > quota ? most - quota : 0);
    return r;
}

static struct oracle_rule propose_window(struct oracle_random *g, int algorithm)
{
    struct rate rate = random_rate(g);
    struct oracle_rule r = {
        .algorithm = algorithm, .count = rate.count, .period_ns = rate.period_ns};
    r.count = oracle_once_in(g, 3) ? r.count : oracle_between(g, 1, 20);
    r.max_debt = random_debt(g, r.count * 2);
    bool moved = oracle_once_in(g, 3) && r.period_ns != WEIR_MONTH; /* there is no time before it */
    r.offset_ns = moved ? oracle_between(g, 0, r.period_ns - 1) : 0;
    return r;
}

static struct oracle_rule propose_log(struct oracle_random *g, int algorithm)
{
    struct oracle_rule r = propose_window(g, algorithm);
    r.count = oracle_once_in(g, 20) ? oracle_between(g, 1, 300) : oracle_between(g, 1, 12);
    r.max_debt = 0;
    r.offset_ns = 0;
    return r;
}

uint64_t oracle_last_time(const struct oracle_rule *r)
{
    struct weir_options o = oracle_options(r);
    struct weir_question ask = {.key = "a", .key_len = 1, .mode = WEIR_PEEK};
    struct weir_answer a;
    struct weir *w;
    uint64_t yes = 0;
    uint64_t no = UINT64_MAX;
    if (weir_open(&w, &o, NULL) != 0) {
        return 0;
    }
    while (no - yes > 1) {
        uint64_t middle = yes + (no - yes) / 2;
        if (weir_ask_at(w, &ask, middle, &a) == 0) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    weir_close(w);
    return yes;
}

struct oracle_rule oracle_random_rule(struct oracle_random *g, int algorithm)
{
    for (;;) {
        bool bucket = algorithm == WEIR_TOKEN_BUCKET || algorithm == WEIR_LEAKY_BUCKET;
        struct oracle_rule r = bucket                          ? propose_bucket(g, algorithm)
                               : algorithm == WEIR_SLIDING_LOG ? propose_log(g, algorithm)
                                                               : propose_window(g, algorithm);
        oracle_rule_init(&r);
        if (oracle_last_time(&r) != 0) {
            return r;
        }
    }
}

/* ---- calls ---- */

struct walk {
    struct oracle_random *g;
    const struct oracle_trace *trace;
    uint64_t last; /* the end of the time line */
    uint64_t now;
    unsigned keys;
    bool set_back;                         /* clocks are also set back by more than the slack */
    struct oracle_key queues[ORACLE_KEYS]; /* leaky_bucket: refunds must name the last place */
};

static uint64_t clamp(const struct walk *w, oracle_int time)
{
    return time < 0 ? 0 : time > w->last ? w->last : (uint64_t)time;
}

/* Returns a duration that is significant under the rule. */
static uint64_t stretch(const struct walk *w)
{
    const struct oracle_rule *r = &w->trace->rule;
    uint64_t unit = r->period_ns / r->count + 1;
    switch (oracle_between(w->g, 0, 6)) {
    case 0:
        return unit;
    case 1:
        return unit / 2;
    case 2:
        return least(unit, UINT64_MAX / 4 / r->quota) * r->quota;
    case 3:
        return r->period_ns;
    case 4:
        return r->period_ns / r->quota;
    case 5:
        return SLACK;
    default:
        return oracle_magnitude(w->g, 1, least(2 * r->period_ns, w->last));
    }
}

static int wobble(struct oracle_random *g)
{
    return (int)oracle_between(g, 0, 2) - 1;
}

/* Returns a window's edge, or a period after an earlier call. */
static oracle_int edge(const struct walk *w, size_t at)
{
    const struct oracle_rule *r = &w->trace->rule;
    oracle_int period = r->period_ns;
    if (at != 0 && oracle_once_in(w->g, 2)) {
        size_t back = oracle_between(w->g, 1, at < 20 ? at : 20);
        return w->trace->ops[at - back].time_ns + period;
    }
    return oracle_window_end(r, w->now);
}

/* Advances `now`. Without set_back it never goes back, not even by the nanosecond of a wobble,
 * because that would add to the difference of shown(). */
static void pass_time(struct walk *w, size_t at)
{
    oracle_int then = w->now;
    switch (oracle_between(w->g, 0, 15)) {
    case 0:
    case 1:
    case 2:
        then += stretch(w) + wobble(w->g);
        break;
    case 3:
        then += (oracle_int)stretch(w) * (oracle_int)oracle_between(w->g, 1, 9);
        break;
    case 4:
    case 5:
        then = edge(w, at) + wobble(w->g);
        break;
    default: /* a burst */
        break;
    }
    w->now = then > w->now ? clamp(w, then) : w->now;
    if (w->set_back && oracle_once_in(w->g, 100)) {
        w->now = clamp(w, (oracle_int)w->now - SLACK - stretch(w));
    }
}

/* Returns what this caller's clock shows: `now`, or up to the slack less. */
static uint64_t shown(const struct walk *w)
{
    if (!oracle_once_in(w->g, 6)) {
        return w->now;
    }
    uint64_t behind = oracle_once_in(w->g, 4) ? SLACK : oracle_magnitude(w->g, 1, SLACK);
    if (w->set_back && oracle_once_in(w->g, 3)) {
        behind = SLACK + 1;
    }
    return clamp(w, (oracle_int)w->now - behind);
}

static uint64_t random_cost(struct oracle_random *g, uint64_t quota)
{
    switch (oracle_between(g, 0, 19)) {
    case 0:
        return quota;
    case 1:
        return quota + 1;
    case 2:
        return oracle_magnitude(g, 1, UINT64_MAX);
    case 3:
    case 4:
        return quota / 2 + 1;
    case 5:
    case 6:
    case 7:
        return oracle_magnitude(g, 1, quota);
    case 8:
    case 9:
    case 10:
        return oracle_between(g, 1, least(quota, 5));
    default:
        return 1;
    }
}

static enum oracle_verb random_verb(struct oracle_random *g)
{
    uint64_t x = oracle_between(g, 0, 99);
    return x < 70   ? ORACLE_CHECK
           : x < 80 ? ORACLE_PEEK
           : x < 86 ? ORACLE_UP_TO
           : x < 94 ? ORACLE_REFUND
                    : ORACLE_PENALIZE;
}

static uint64_t random_wait(struct walk *w)
{
    const struct oracle_rule *r = &w->trace->rule;
    oracle_int debt = r->step * (oracle_int)r->max_debt >> r->shift;
    switch (oracle_between(w->g, 0, 9)) {
    case 0:
        return UINT64_MAX;
    case 1:
        return (uint64_t)debt + oracle_between(w->g, 0, 1);
    case 2:
    case 3:
        return stretch(w);
    default:
        return 0;
    }
}

/* Returns mostly the time of an earlier call, sometimes any time. For a queue it is often the last
 * place. */
static uint64_t random_charged(struct walk *w, size_t at, const struct oracle_key *queue)
{
    if (queue->known && oracle_once_in(w->g, 2)) {
        return clamp(w, oracle_last_place_ends(&w->trace->rule, queue));
    }
    if (at != 0 && !oracle_once_in(w->g, 4)) {
        size_t back = oracle_between(w->g, 1, at < 10 ? at : 10);
        return w->trace->ops[at - back].time_ns;
    }
    return clamp(w, (oracle_int)w->now + SLACK - stretch(w));
}

static struct oracle_op random_op(struct walk *w, size_t at)
{
    const struct oracle_rule *r = &w->trace->rule;
    struct oracle_op op = {.verb = random_verb(w->g)};
    bool waits = r->algorithm == WEIR_TOKEN_BUCKET || r->algorithm == WEIR_LEAKY_BUCKET;
    op.key = (unsigned)oracle_between(w->g, 0, w->keys - 1);
    op.time_ns = shown(w);
    op.cost = random_cost(w->g, r->quota);
    if (op.verb == ORACLE_PEEK && oracle_once_in(w->g, 8)) {
        op.cost = 0;
    }
    if (waits && op.verb <= ORACLE_PEEK) {
        op.wait_ns = random_wait(w);
    }
    if (op.verb == ORACLE_REFUND) {
        op.charged_ns = random_charged(w, at, &w->queues[op.key]);
    }
    if (r->algorithm == WEIR_LEAKY_BUCKET) {
        struct weir_answer a;
        oracle_apply(r, &w->queues[op.key], &op, &a);
    }
    return op;
}

static uint64_t random_start(struct oracle_random *g, const struct oracle_rule *r, uint64_t last)
{
    switch (oracle_between(g, 0, 3)) {
    case 0:
        return 0;
    case 1:
        return last - least(last, oracle_magnitude(g, 0, least(last, 8 * r->period_ns)));
    default:
        return oracle_magnitude(g, 0, last / 2);
    }
}

void oracle_random_ops(struct oracle_random *g, struct oracle_trace *t, size_t n, bool set_back)
{
    uint64_t last = oracle_last_time(&t->rule);
    struct walk w = {
        .g = g,
        .trace = t,
        .last = last,
        .now = random_start(g, &t->rule, last),
        .keys = oracle_once_in(g, 2) ? 1 : (unsigned)oracle_between(g, 1, ORACLE_KEYS),
        .set_back = set_back,
    };
    for (size_t i = 0; i < n; i++) {
        pass_time(&w, i);
        t->ops[i] = random_op(&w, i);
    }
    t->n = n;
}
