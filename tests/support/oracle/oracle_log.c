/*
 * sliding_log: the times of all admitted units, oldest first. There is room for one more than the
 * quota; a unit that is pushed out no longer counts, or is about to be given back.
 */
#include "support/oracle/oracle_model.h"

#include <stdlib.h>
#include <string.h>

static oracle_int end_of(const struct oracle_rule *r, uint64_t admitted_ns)
{
    return (oracle_int)admitted_ns + r->period_ns;
}

/* Sets v->current to the number of units that still count. */
static struct oracle_view as_of(const struct oracle_rule *r, const struct oracle_key *k,
                                oracle_int now)
{
    struct oracle_view v = {.now = now};
    oracle_int newest = k->units != 0 ? (oracle_int)k->times[k->units - 1] : -1;
    if (newest > now + ORACLE_SLACK_NS) {
        v.pulled = true; /* the log is forgotten: nothing counts */
        return v;
    }
    v.now = newest > now ? newest : now;
    size_t most = k->units < r->quota ? k->units : r->quota;
    while (v.current < most && end_of(r, k->times[k->units - 1 - v.current]) > v.now) {
        v.current++;
    }
    return v;
}

static bool fits(const struct oracle_rule *r, const struct oracle_view *v, oracle_int n,
                 uint64_t wait_ns)
{
    (void)wait_ns;
    return v->current + n <= r->quota;
}

static bool fresh(const struct oracle_rule *r, const struct oracle_view *v)
{
    (void)r;
    return v->current == 0;
}

static uint64_t no_delay(const struct oracle_rule *r, const struct oracle_view *v, uint64_t n)
{
    (void)r;
    (void)v;
    (void)n;
    return 0;
}

/* A log has no debt. */
static oracle_int chargeable(const struct oracle_rule *r, const struct oracle_view *v)
{
    return v->current < r->quota ? r->quota - v->current : 0;
}

static void drop(struct oracle_key *k, size_t at, size_t n)
{
    memmove(&k->times[at], &k->times[at + n], (k->units - at - n) * sizeof k->times[0]);
    k->units -= n;
}

static void append(const struct oracle_rule *r, struct oracle_key *k, uint64_t time)
{
    if (k->room == 0) {
        k->room = r->quota + 1;
        k->times = malloc(k->room * sizeof k->times[0]);
        if (k->times == NULL) {
            abort();
        }
    }
    if (k->units == k->room) {
        drop(k, 0, 1);
    }
    k->times[k->units++] = time;
}

static void take(const struct oracle_rule *r, struct oracle_key *k, const struct oracle_view *v,
                 uint64_t n)
{
    k->known = true;
    if (v->pulled) {
        k->units = 0;
    }
    for (uint64_t i = 0; i < n; i++) {
        append(r, k, (uint64_t)v->now);
    }
}

static bool newest_are(const struct oracle_key *k, size_t n, uint64_t time)
{
    for (size_t i = 1; i <= n; i++) {
        if (k->times[k->units - i] != time) {
            return false;
        }
    }
    return true;
}

/*
 * Removes n of the `live` newest units, the oldest of them first. They get the time of the newest
 * dead unit, so that a slower clock, for which that unit may count again, finds no more free than
 * before. If no dead unit is remembered they are dropped, together with all older units.
 */
static void take_out_oldest(const struct oracle_rule *r, struct oracle_key *k, size_t live,
                            size_t n)
{
    size_t first = k->units - live;
    if (first == 0 || live == r->quota) {
        drop(k, 0, first + n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        k->times[first + i] = k->times[first - 1];
    }
}

/* Removes the newest units if they are the refunded ones; otherwise the oldest that count, which
 * never admits more. */
static void refund(const struct oracle_rule *r, struct oracle_key *k, const struct oracle_view *v,
                   uint64_t n, uint64_t charged_ns)
{
    size_t units = n < v->current ? n : v->current;
    if (v->pulled || end_of(r, charged_ns) <= v->now) {
        return;
    }
    if (newest_are(k, units, charged_ns)) {
        k->units -= units;
    } else {
        take_out_oldest(r, k, v->current, units);
    }
}

const struct oracle_model oracle_sliding_log = {
    as_of, fits, fresh, no_delay, chargeable, take, refund,
};
