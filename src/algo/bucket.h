/*
 * What token_bucket and leaky_bucket share: the generic cell rate algorithm.
 *
 * The word is a theoretical arrival time (TAT): when the bucket will be full again if nothing more
 * is taken. A unit moves it forward by `step`; the call fits if the TAT then leads the time by no
 * more than `span`. Nothing refills anything: time passing is the refill, to the last fraction.
 *
 * The unit of the word is 2^-shift ns. Whole nanoseconds would lose 1 % of 9,999,999 per second by
 * rounding the step up; the shift is chosen so that a step has at least BUCKET_STEP_MIN units, and
 * the loss is at most one in that.
 */
#ifndef WEIR_ALGO_BUCKET_H
#define WEIR_ALGO_BUCKET_H

#include "algo/algo.h"
#include "base/maths.h"

#define BUCKET_STEP_MIN 10000u
#define BUCKET_SHIFT_MIN 2u /* exact enough up to 400 k/s; a word lasts 146 years */
#define BUCKET_SHIFT_MAX                                                                           \
    7u /* up to 12.8 M/s; 4.6 years, less the lead. Beyond, the step is coarser */

/* Fills everything but spec; `quota` in units, what it is called in an error in `what`. */
int bucket_compile(const struct limit_spec *spec, uint64_t quota, const char *what,
                   const struct algo_layout *layout, struct algo_params *p,
                   struct weir_error *error);

uint64_t bucket_room(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     uint64_t now);
uint64_t bucket_refund(const struct algo_params *p, uint64_t word, uint64_t *record,
                       const struct algo_ask *ask, const struct algo_charge *charge);
void bucket_owes(const struct algo_params *p, uint64_t word, const uint64_t *record, uint64_t late,
                 struct debt *debt);

/* The time of the call in units of the word. */
static inline uint64_t bucket_now(const struct algo_params *p, uint64_t now)
{
    return now << p->shift;
}

/* The TAT as of `now`: never behind it, never further ahead than is legitimate. */
static inline uint64_t bucket_as_of(const struct algo_params *p, uint64_t word,
                                    const uint64_t *record, uint64_t now, bool *pulled)
{
    uint64_t furthest = bucket_now(p, now) + p->reach;
    (void)record;
    *pulled = __builtin_expect(word > furthest + (ALGO_SLACK_NS << p->shift), 0);
    return *pulled ? furthest : max_u64(word, bucket_now(p, now));
}

/* x / step. The product with the inverse is the quotient or one less, for any x. */
static inline uint64_t bucket_units(const struct algo_params *p, uint64_t x)
{
    uint64_t units = mul_high(x, p->inverse);
    return units + (x - units * p->step >= p->step);
}

/* Whole units that fit before a TAT with this lead over now leads by more than span. */
static inline uint64_t bucket_free(const struct algo_params *p, uint64_t lead)
{
    return bucket_units(p, sub_floor0(p->span, lead));
}

/* A wait in ns as a lead in units, at most `most` of them. */
static inline uint64_t bucket_lead(const struct algo_params *p, uint64_t wait, uint64_t most)
{
    return wait > most >> p->shift ? most : wait << p->shift;
}

/*
 * Describes a TAT, of which a call is allowed if it is not after `latest`. The delay is left to the
 * algorithm.
 */
static inline void bucket_describe(const struct algo_params *p, uint64_t word, uint64_t latest,
                                   uint64_t now, struct weir_answer *answer)
{
    uint64_t lead = word - bucket_now(p, now);
    answer->remaining = bucket_free(p, lead);
    answer->reset_after_ns = shift_up(lead, p->shift);
    answer->delay_ns = 0;
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = shift_up(word - latest, p->shift);
    }
}

#endif
