#include "shared/core/params.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/maths.h"
#include "limit/plan.h"

#define SHIFT_MOST 7u /* STORE_PARTS is 1000 << 7 */

_Static_assert(STORE_PARTS == 1000u << SHIFT_MOST, "parts of a microsecond are 2^-7 ns");

/* Sets the time of a unit. Returns how many units scripts can count: they multiply them by b, and
 * half of what is exact leaves room for the slack. */
static uint64_t set_unit(u128 unit, struct store_params *p)
{
    p->a = (uint64_t)(unit / STORE_PARTS);
    p->b = (uint64_t)(unit % STORE_PARTS);
    return STORE_MOST / 2 / (p->undelayed != 0 ? STORE_PARTS : p->b != 0 ? p->b : 1);
}

static int bucket(const struct plan *plan, struct store_params *p, struct weir_error *error)
{
    const struct algo_params *local = &plan->params;
    if (local->shift > SHIFT_MOST) {
        return fail(error, WEIR_ERATE, "found a time unit of 2^-%u ns, expected at most 2^-%u ns",
                    local->shift, SHIFT_MOST);
    }
    uint64_t most = set_unit((u128)local->step << (SHIFT_MOST - local->shift), p);
    if (p->quota > most || p->max_debt > most - p->quota) {
        return fail(error, WEIR_EQUOTA,
                    "quota %" PRIu64 " plus debt %" PRIu64 " at %" PRIu64 " per %" PRIu64
                    " ns is more than a store can count, expected at most %" PRIu64 " units",
                    p->quota, p->max_debt, local->spec.count, local->spec.period_ns, most);
    }
    return 0;
}

static int window(const struct plan *plan, struct store_params *p, struct weir_error *error)
{
    uint64_t period = plan->fixed.period_ns;
    uint64_t offset = plan->fixed.offset_ns;
    if (period % WEIR_MICROSECOND != 0 || offset % WEIR_MICROSECOND != 0) {
        return fail(error, WEIR_ERATE,
                    "found a window of %" PRIu64 " ns at offset %" PRIu64
                    " ns, but a store's clock ticks in microseconds: expected multiples of 1000 ns",
                    period, offset);
    }
    p->a = period / WEIR_MICROSECOND;
    p->b = offset / WEIR_MICROSECOND;
    if (p->quota >= STORE_MOST / 2 || p->max_debt >= STORE_MOST / 2 - p->quota) {
        return fail(error, WEIR_EQUOTA,
                    "count %" PRIu64 " plus debt %" PRIu64
                    " is more than a store can count, expected less than %" PRIu64 " together",
                    p->quota, p->max_debt, STORE_MOST / 2);
    }
    return 0;
}

/* How an algorithm's numbers become a script's, and the letter of its states. */
static const struct row {
    int algorithm;
    int (*express)(const struct plan *plan, struct store_params *p, struct weir_error *error);
    char letter;
    bool windows; /* the state counts windows: it means nothing with another length or offset */
} rows[] = {
    {WEIR_TOKEN_BUCKET, bucket, 't', false}, {WEIR_LEAKY_BUCKET, bucket, 'l', false},
    {WEIR_FIXED_WINDOW, window, 'f', true},  {WEIR_SLIDING_WINDOW, window, 's', true},
    {WEIR_SLIDING_LOG, window, 'g', false},
};

/* Returns NULL for an algorithm that has no script. */
static const struct row *row_of(int algorithm)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].algorithm == algorithm) {
            return &rows[i];
        }
    }
    return NULL;
}

/* Writes a time, in seconds where possible: a kind is part of every key, so it should be short. */
static size_t name_time(char *at, size_t size, char before, uint64_t us)
{
    bool seconds = us % 1000000 == 0;
    int n = snprintf(at, size, "%c%" PRIu64 "%c", before, seconds ? us / 1000000 : us,
                     seconds ? 's' : 'u');
    return (size_t)n;
}

static void name_kind(const struct row *row, struct store_params *p)
{
    if (!row->windows) {
        (void)snprintf(p->kind, sizeof p->kind, "%c", row->letter);
        return;
    }
    size_t n = name_time(p->kind, sizeof p->kind, row->letter, p->a);
    if (p->b != 0) {
        n += name_time(p->kind + n, sizeof p->kind - n, '+', p->b);
    }
    if (p->align_key) {
        (void)snprintf(p->kind + n, sizeof p->kind - n, "k");
    }
}

int store_params(const struct weir_options *options, struct store_params *params,
                 struct weir_error *error)
{
    struct weir_options o;
    struct plan plan;
    int e = plan_make(options, &o, &plan, error);
    if (e != 0) {
        return e;
    }
    *params = (struct store_params){
        .algorithm = plan.fixed.algorithm,
        .align_key = plan.fixed.align == WEIR_ALIGN_KEY,
        .quota = plan.params.quota,
        .max_debt = plan.params.spec.max_debt,
        .undelayed = o.undelayed,
    };
    const struct row *row = row_of(params->algorithm);
    if (row == NULL) {
        return fail(error, WEIR_ENOTSUP, "%s cannot be shared, expected consistency local",
                    weir_algorithm_name(params->algorithm));
    }
    e = row->express(&plan, params, error);
    if (e == 0) {
        name_kind(row, params);
    }
    return e;
}

int store_params_rate(const struct store_params *own, const struct remote_rate *rate,
                      struct store_params *params)
{
    uint64_t longest_ns = own->quota * own->a * WEIR_MICROSECOND;
    if (rate->interval_ns == 0 || rate->burst == 0) {
        return WEIR_ERATE;
    }
    *params = *own;
    params->quota = rate->burst;
    uint64_t most = set_unit((u128)rate->interval_ns << SHIFT_MOST, params);
    uint64_t longest = longest_ns / rate->interval_ns; /* in units of this rate */
    if (rate->burst > longest || rate->burst > most) {
        return WEIR_EQUOTA;
    }
    params->max_debt = longest - rate->burst; /* only a bound: scripts need not be exact in it */
    return 0;
}

/* A bucket's state becomes one of another kind, with marks; a window's state stays as it is. */
void store_params_lease(struct store_params *params)
{
    params->leased = true;
    if (algorithm_has(params->algorithm, IS_BUCKET)) {
        (void)snprintf(params->kind, sizeof params->kind, "e");
    }
}
