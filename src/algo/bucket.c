#include "algo/bucket.h"
#include "base/error.h"

/*
 * A quarter of the word is for the lead over now, which leaves three quarters for the time. The
 * slack above the reach is below 2^38.
 */
#define LEAD_MAX (UINT64_MAX / 4)

/* Returns the smallest shift that keeps the rounding of a step below one in BUCKET_STEP_MIN. */
static uint32_t choose_shift(const struct limit_spec *spec)
{
    uint32_t shift = BUCKET_SHIFT_MIN;
    while (shift < BUCKET_SHIFT_MAX &&
           mul_wide(spec->period_ns, UINT64_C(1) << shift) / spec->count < BUCKET_STEP_MIN) {
        shift++;
    }
    return shift;
}

static int check_rate(const struct limit_spec *spec, const struct algo_layout *layout,
                      struct weir_error *error)
{
    if (mul_wide(spec->count, WEIR_SECOND) > mul_wide(spec->period_ns, 1000000000)) {
        return fail(error, WEIR_ERATE,
                    "%" PRIu64 " per %" PRIu64 " ns is more than a bucket can tell apart, expected "
                    "at most 1,000,000,000 per second",
                    spec->count, spec->period_ns);
    }
    if (layout->fixed && layout->shift > BUCKET_SHIFT_MAX) {
        return fail(error, WEIR_ERATE,
                    "the file has a time unit of 2^-%u ns, expected at most 2^-%u",
                    (unsigned)layout->shift, BUCKET_SHIFT_MAX);
    }
    if (layout->fixed && choose_shift(spec) > layout->shift) {
        return fail(error, WEIR_ERATE,
                    "%" PRIu64 " per %" PRIu64 " ns needs a finer time unit than this limiter was "
                    "made with (2^-%u ns); make a new one",
                    spec->count, spec->period_ns, (unsigned)layout->shift);
    }
    return 0;
}

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    bool leaky = spec->algorithm == WEIR_LEAKY_BUCKET;
    uint64_t quota = leaky ? add_sat(spec->queue, 1) : spec->burst;
    int e = check_rate(spec, layout, error);
    if (e != 0) {
        return e;
    }
    p->shift = layout->fixed ? layout->shift : choose_shift(spec);
    p->step = mul_div_up(spec->period_ns, UINT64_C(1) << p->shift, spec->count);
    uint64_t most = LEAD_MAX / p->step;
    if (quota > most || spec->max_debt > most - quota) {
        return fail(error, WEIR_EQUOTA,
                    "%s %" PRIu64 " plus debt %" PRIu64 " at %" PRIu64 " per %" PRIu64
                    " ns takes longer to refill than a bucket can hold (%" PRIu64
                    " ns), expected at most %" PRIu64 " units",
                    leaky ? "queue + 1:" : "burst", quota, spec->max_debt, spec->count,
                    spec->period_ns, LEAD_MAX >> p->shift, most);
    }
    p->quota = quota;
    p->inverse = UINT64_MAX / p->step;
    p->span = quota * p->step;
    p->reach = (quota + spec->max_debt) * p->step;
    p->head_start = min_u64(spec->undelayed, spec->queue) * p->step;
    p->max_time = (UINT64_MAX - p->reach - (ALGO_SLACK_NS << BUCKET_SHIFT_MAX)) >> p->shift;
    return 0;
}

static uint64_t room(const struct algo_params *p, struct algo_state s, uint64_t now)
{
    /* Within the slack of clocks the TAT may be past the reach. Then nothing more fits. */
    return sub_floor0(bucket_now(p, now) + p->reach, s.word) / p->step;
}

/*
 * Moves the TAT back, at most to `now`. If the bucket was full for a while since the charge, a part
 * of the charge has refilled and is returned a second time: the word does not tell a bucket that
 * was full from one that was busy. A refund that must add nothing (charge->word is set) leaves all
 * that was taken since the charge ahead of `now`, so that it returns no unit that has refilled.
 */
static uint64_t refund(const struct algo_params *p, struct algo_state s, const struct algo_ask *ask,
                       const struct algo_charge *charge)
{
    bool pulled;
    uint64_t now = bucket_now(p, ask->now);
    uint64_t base = bucket_as_of(p, s, ask->now, &pulled);
    uint64_t least = charge->word == 0 ? now : now + sub_floor0(base, charge->word);
    if (base <= least) {
        return s.word;
    }
    /* Divides first, because cost * step may not fit in 64 bits. */
    return ask->cost > (base - least) / charge->step ? least : base - ask->cost * charge->step;
}

/* leaky_bucket: returns the end of the queue, which names its last place. */
static uint64_t queue_end(const struct algo_params *p, struct algo_state s, uint64_t now)
{
    (void)now;
    return shift_up(s.word, p->shift);
}

/* Only the last place of the queue is given back: later calls have been told their turns. */
static uint64_t refund_last(const struct algo_params *p, struct algo_state s,
                            const struct algo_ask *ask, const struct algo_charge *charge)
{
    return queue_end(p, s, ask->now) == charge->at ? refund(p, s, ask, charge) : s.word;
}

static void owes(const struct algo_params *p, struct algo_state s, uint64_t late, struct debt *debt)
{
    debt->owed = sub_floor0(s.word, bucket_now(p, late));
    debt->fresh_in = shift_up((uint64_t)debt->owed, p->shift);
}

const struct algo_ops algo_token_bucket = {
    .id = WEIR_TOKEN_BUCKET,
    .compile = compile,
    .as_of = bucket_as_of,
    .fits = token_bucket_fits,
    .describe = token_bucket_describe,
    .room = room,
    .refund = refund,
    .owes = owes,
};

const struct algo_ops algo_leaky_bucket = {
    .id = WEIR_LEAKY_BUCKET,
    .compile = compile,
    .as_of = bucket_as_of,
    .fits = leaky_bucket_fits,
    .describe = leaky_bucket_describe,
    .room = room,
    .refund = refund_last,
    .owes = owes,
    .stamp = queue_end,
};
