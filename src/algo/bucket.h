/*
 * The generic cell rate algorithm, which token_bucket and leaky_bucket share.
 *
 * The word is a theoretical arrival time (TAT): the time at which the bucket will be full again if
 * nothing more is taken. A unit moves it forward by `step`. A call fits if the TAT then leads the
 * time by at most `span`. There is no refilling: the passing of time is the refill, exact to the
 * last fraction.
 *
 * The unit of the word is 2^-shift ns. In whole nanoseconds, rounding the step up would lose 1 % of
 * 9,999,999 per second. The shift is chosen so that a step has at least BUCKET_STEP_MIN units; the
 * loss is then at most one in that number.
 */
#ifndef WEIR_ALGO_BUCKET_H
#define WEIR_ALGO_BUCKET_H

#include "algo/algo.h"
#include "base/maths.h"

#define BUCKET_STEP_MIN 10000u
#define BUCKET_SHIFT_MIN 2u /* exact enough up to 400 k/s; a word lasts 146 years */
/* Exact enough up to 12.8 M/s; a word lasts 4.6 years, less the lead. Beyond, steps are coarser. */
#define BUCKET_SHIFT_MAX 7u

/* Fills everything but spec. An error calls the quota by the name `what`. */
int bucket_compile(const struct limit_spec *spec, uint64_t quota, const char *what,
                   const struct algo_layout *layout, struct algo_params *p,
                   struct weir_error *error);

uint64_t bucket_room(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     uint64_t now);
uint64_t bucket_refund(const struct algo_params *p, uint64_t word, uint64_t *record,
                       const struct algo_ask *ask, const struct algo_charge *charge);
void bucket_owes(const struct algo_params *p, uint64_t word, const uint64_t *record, uint64_t late,
                 struct debt *debt);

/* Returns the time of the call in units of the word. */
static inline uint64_t bucket_now(const struct algo_params *p, uint64_t now)
{
    return now << p->shift;
}

/* Returns the TAT as of `now`: at least `now`, and no further ahead than is legitimate. */
static inline uint64_t bucket_as_of(const struct algo_params *p, uint64_t word,
                                    const uint64_t *record, uint64_t now, bool *pulled)
{
    uint64_t furthest = bucket_now(p, now) + p->reach;
    (void)record;
    *pulled = __builtin_expect(word > furthest + (ALGO_SLACK_NS << p->shift), 0);
    return *pulled ? furthest : max_u64(word, bucket_now(p, now));
}

/* Returns x / step. For any x, the product with the inverse is the quotient or one less. */
static inline uint64_t bucket_units(const struct algo_params *p, uint64_t x)
{
    uint64_t units = mul_high(x, p->inverse);
    return units + (x - units * p->step >= p->step);
}

/* Returns a wait in ns as a lead in units of the word, at most `most`. */
static inline uint64_t bucket_lead(const struct algo_params *p, uint64_t wait, uint64_t most)
{
    return wait > most >> p->shift ? most : wait << p->shift;
}

/* Describes a TAT with which a call is allowed up to `latest`. The algorithm adds the delay. */
static inline void bucket_describe(const struct algo_params *p, uint64_t word, uint64_t latest,
                                   uint64_t now, struct weir_answer *answer)
{
    uint64_t lead = word - bucket_now(p, now);
    answer->remaining = bucket_units(p, sub_floor0(p->span, lead));
    answer->reset_after_ns = shift_up(lead, p->shift);
    answer->delay_ns = 0;
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = shift_up(word - latest, p->shift);
    }
}

#endif
