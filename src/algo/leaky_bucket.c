/*
 * leaky_bucket: a queue served at count per period. An allowed call carries the
 * delay after which it is its turn; release times are at least one step apart.
 * `queue` calls can wait behind the one that is being served, so the quota is
 * queue + 1. With max_wait the caller's patience replaces the queue's length.
 */
#include "algo/bucket.h"

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    return bucket_compile(spec, add_sat(spec->queue, 1), "queue + 1:", layout, p, error);
}

/*
 * The latest TAT before the call with which it is still allowed: the queue has
 * room for it, or with a wait, its turn comes soon enough and the debt bears it.
 */
static uint64_t latest_base(const struct algo_params *p, uint64_t now, const struct algo_ask *ask)
{
    uint64_t cost = ask->cost * p->step;
    if (ask->wait == 0) {
        return now + p->span - cost;
    }
    return now + bucket_lead(p, ask->wait, p->reach - cost);
}

static struct algo_step decide(const struct algo_params *p, uint64_t word, const uint64_t *record,
                               const struct algo_ask *ask)
{
    struct algo_step step = {word, WEIR_NEVER, false};
    (void)record;
    if (ask->cost > p->quota) {
        return step;
    }
    uint64_t now = bucket_now(p, ask->now);
    uint64_t base = bucket_base(p, word, now, &step.pulled);
    bool fits = base <= latest_base(p, now, ask);
    step.verdict = fits ? WEIR_ALLOW : WEIR_DENY;
    step.word = fits ? base + ask->cost * p->step : base;
    return step;
}

static void describe(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     const struct algo_ask *ask, struct weir_answer *answer)
{
    bool pulled;
    uint64_t now = bucket_now(p, ask->now);
    uint64_t base = bucket_base(p, word, now, &pulled);
    uint64_t lead = base - now;
    (void)record;
    answer->remaining = bucket_free(p, lead);
    answer->reset_after_ns = shift_up(lead, p->shift);
    answer->delay_ns = 0;
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = shift_up(base - latest_base(p, now, ask), p->shift);
    } else if (answer->granted != 0) {
        /* The turn of the units just taken begins where the queue ended before them. */
        answer->delay_ns = shift_up(lead - answer->granted * p->step, p->shift);
    } else if (answer->verdict == WEIR_ALLOW) {
        answer->delay_ns = shift_up(lead, p->shift);
    }
}

static uint64_t stamp(const struct algo_params *p, uint64_t word, const uint64_t *record,
                      uint64_t now)
{
    (void)record;
    (void)now;
    return shift_up(word, p->shift);
}

/* A place that another one follows stays taken: the other one's turn has been promised already. */
static uint64_t refund(const struct algo_params *p, uint64_t word, uint64_t *record,
                       const struct algo_ask *ask, const struct algo_charge *charge)
{
    bool last = shift_up(word, p->shift) == charge->at;
    return last ? bucket_refund(p, word, record, ask, charge) : word;
}

const struct algo_ops algo_leaky_bucket = {
    .id = WEIR_LEAKY_BUCKET,
    .name = "leaky_bucket",
    .waits = true,
    .compile = compile,
    .decide = decide,
    .describe = describe,
    .charge = bucket_charge,
    .refund = refund,
    .owes = bucket_owes,
    .stamp = stamp,
};
