/*
 * The two window algorithms: windows are numbered by floor((time - offset) /
 * period), and a key has a count for the current one, and one for the previous.
 * Windows of weeks begin on a Monday; 1970 began on a Thursday. Months are
 * numbered from January 1970, and found by counting their days.
 */
#include "support/oracle/oracle_model.h"

#define MONTHS 6000 /* to the year 2469: a search looks beyond the end of a time line */

static int days_of(int month)
{
    static const int days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = 1970 + month / 12;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month % 12] + (month % 12 == 1 && leap);
}

/* Returns when a month begins; the sums are kept. */
static oracle_int month_start(oracle_int month)
{
    static oracle_int starts[MONTHS + 1];
    for (int i = 0; starts[MONTHS] == 0 && i < MONTHS; i++) {
        starts[i + 1] = starts[i] + days_of(i) * (oracle_int)WEIR_DAY;
    }
    return starts[month < MONTHS ? month : MONTHS];
}

static oracle_int month_at(oracle_int time)
{
    oracle_int month = 0;
    for (oracle_int step = 4096; step > 0; step /= 2) {
        month += month + step < MONTHS && month_start(month + step) <= time ? step : 0;
    }
    return month;
}

static oracle_int offset_of(const struct oracle_rule *r)
{
    bool weeks = r->period_ns % (7 * WEIR_DAY) == 0;
    return (oracle_int)r->offset_ns + (weeks ? 4 * (oracle_int)WEIR_DAY : 0);
}

static oracle_int start_of(const struct oracle_rule *r, oracle_int window)
{
    oracle_int start = r->period_ns == WEIR_MONTH ? month_start(window) : window * r->period_ns;
    return start + offset_of(r);
}

static oracle_int window_at(const struct oracle_rule *r, oracle_int now)
{
    oracle_int since = now - offset_of(r);
    return r->period_ns == WEIR_MONTH ? month_at(since) : oracle_div_down(since, r->period_ns);
}

oracle_int oracle_window_end(const struct oracle_rule *r, oracle_int now)
{
    return start_of(r, window_at(r, now) + 1);
}

static struct oracle_view as_of(const struct oracle_rule *r, const struct oracle_key *k,
                                oracle_int now)
{
    struct oracle_view v = {.now = now, .window = window_at(r, now)};
    if (!k->known || k->window < v.window - 1) {
        return v;
    }
    if (k->window == v.window - 1) {
        v.previous = k->current;
        return v;
    }
    v.current = k->current;
    v.previous = k->previous;
    if (k->window > v.window && start_of(r, k->window) > now + ORACLE_SLACK_NS) {
        v.pulled = true; /* counted in the caller's window from now on */
    } else if (k->window > v.window) {
        v.window = k->window;
        v.now = start_of(r, k->window);
    }
    return v;
}

static uint64_t no_delay(const struct oracle_rule *r, const struct oracle_view *v, uint64_t n)
{
    (void)r;
    (void)v;
    (void)n;
    return 0;
}

static oracle_int chargeable(const struct oracle_rule *r, const struct oracle_view *v)
{
    oracle_int most = (oracle_int)r->quota + r->max_debt;
    return v->current < most ? most - v->current : 0;
}

static void set(struct oracle_key *k, const struct oracle_view *v)
{
    k->known = true;
    k->window = v->window;
    k->current = v->current;
    k->previous = v->previous;
}

static void take(const struct oracle_rule *r, struct oracle_key *k, const struct oracle_view *v,
                 uint64_t n)
{
    (void)r;
    set(k, v);
    k->current += n;
}

static void lower(uint64_t *count, uint64_t n)
{
    *count = *count > n ? *count - n : 0;
}

/* ---- fixed_window ---- */

static bool fixed_fits(const struct oracle_rule *r, const struct oracle_view *v, oracle_int n,
                       uint64_t wait_ns)
{
    (void)wait_ns;
    return v->current + n <= r->quota;
}

static bool fixed_fresh(const struct oracle_rule *r, const struct oracle_view *v)
{
    (void)r;
    return v->current == 0;
}

static void fixed_refund(const struct oracle_rule *r, struct oracle_key *k,
                         const struct oracle_view *v, uint64_t n, uint64_t charged_ns)
{
    struct oracle_view after = *v;
    if (window_at(r, charged_ns) == v->window) {
        lower(&after.current, n);
        set(k, &after);
    }
}

/* ---- sliding_window ---- */

/* Returns units times the period. The previous window counts by the share of it that is less than a
 * period ago. */
static oracle_int estimate(const struct oracle_rule *r, const struct oracle_view *v)
{
    oracle_int elapsed = v->now - start_of(r, v->window);
    return (oracle_int)v->current * r->period_ns +
           (oracle_int)v->previous * ((oracle_int)r->period_ns - elapsed);
}

static bool sliding_fits(const struct oracle_rule *r, const struct oracle_view *v, oracle_int n,
                         uint64_t wait_ns)
{
    (void)wait_ns;
    return estimate(r, v) + n * r->period_ns <= (oracle_int)r->quota * r->period_ns;
}

static bool sliding_fresh(const struct oracle_rule *r, const struct oracle_view *v)
{
    return estimate(r, v) == 0;
}

static void sliding_refund(const struct oracle_rule *r, struct oracle_key *k,
                           const struct oracle_view *v, uint64_t n, uint64_t charged_ns)
{
    struct oracle_view after = *v;
    oracle_int window = window_at(r, charged_ns);
    if (window == v->window) {
        lower(&after.current, n);
        set(k, &after);
    } else if (window == v->window - 1) {
        lower(&after.previous, n);
        set(k, &after);
    }
}

const struct oracle_model oracle_fixed_window = {
    as_of, fixed_fits, fixed_fresh, no_delay, chargeable, take, fixed_refund,
};

const struct oracle_model oracle_sliding_window = {
    as_of, sliding_fits, sliding_fresh, no_delay, chargeable, take, sliding_refund,
};
