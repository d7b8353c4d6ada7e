/*
 * sliding_log: remembers when each of the last `count` units was admitted, and
 * so admits at most `count` in any interval of a period's length, exactly.
 *
 * The word is the number of units ever admitted. Unit u is noted in place
 * u mod capacity of the record, as time << 1 | parity of the lap u / capacity.
 * The capacity is one more than the count: notes are written to places that no
 * reader of the present word looks at, and the new word makes them true, so a
 * kill in between changes nothing. A place whose parity is not that of its unit's
 * lap is empty: it was written and never committed, or given back.
 *
 * Times in the log never decrease: a call with an older time is noted under the
 * newest one. Live units are therefore the newest ones, and a binary search
 * counts them.
 */
#include <inttypes.h>

#include "algo/algo.h"
#include "base/error.h"
#include "base/maths.h"

/* More would be a record of half a megabyte for each key. */
#define COUNT_MAX 65535

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    uint64_t most = layout->fixed ? layout->capacity - 1 : COUNT_MAX;
    if (most - 1 >= COUNT_MAX) {
        return fail(error, WEIR_EQUOTA, "a log of %" PRIu64 " places, expected 2 to %d",
                    layout->capacity, COUNT_MAX + 1);
    }
    if (spec->count > most) {
        return fail(error, WEIR_EQUOTA,
                    "count %" PRIu64 " is too large for %s log, expected at most %" PRIu64,
                    spec->count, layout->fixed ? "this limiter's" : "a sliding", most);
    }
    if (spec->max_debt != 0) {
        return fail(error, WEIR_EQUOTA,
                    "max_debt %" PRIu64 ", but a log holds no debt: expected none", spec->max_debt);
    }
    p->quota = spec->count;
    p->max_time = INT64_MAX - 2 * ALGO_LIFE_NS; /* a note has 63 bits of time */
    p->capacity = layout->fixed ? layout->capacity : spec->count + 1;
    return 0;
}

static uint64_t note_of(const struct algo_params *p, uint64_t unit, uint64_t time)
{
    return time << 1 | (unit / p->capacity & 1);
}

/* When unit `word - back` was admitted; false if there is none or its place is empty. */
static bool admitted(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     uint64_t back, uint64_t *time)
{
    if (back > word) {
        return false;
    }
    uint64_t unit = word - back;
    uint64_t note = record[unit % p->capacity];
    *time = note >> 1;
    return note == note_of(p, unit, *time);
}

static bool live(const struct algo_params *p, uint64_t word, const uint64_t *record, uint64_t back,
                 uint64_t now)
{
    uint64_t time;
    return admitted(p, word, record, back, &time) && time + p->spec.period_ns > now;
}

/*
 * The word and time to decide with. A log whose newest unit lies in a far
 * future is forgotten: its times cannot be pulled down in one store, and
 * forgetting gives at most one extra count.
 */
struct view {
    uint64_t word;
    uint64_t now;
    bool pulled;
};

static struct view as_of(const struct algo_params *p, uint64_t word, const uint64_t *record,
                         uint64_t now)
{
    struct view v = {word, now, false};
    uint64_t newest;
    if (admitted(p, word, record, 1, &newest) && newest > now) {
        v.pulled = newest > now + ALGO_SLACK_NS;
        v.word = v.pulled ? 0 : word;
        v.now = v.pulled ? now : newest;
    }
    return v;
}

/* Live units: the smallest n such that the unit before the newest n is not live. */
static uint64_t count_live(const struct algo_params *p, struct view v, const uint64_t *record)
{
    uint64_t low = 0;
    /* All that the ring holds: after a change to a smaller count more than that may be live. */
    uint64_t high = min_u64(p->capacity - 1, v.word);
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if (live(p, v.word, record, middle, v.now)) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

static struct algo_step decide(const struct algo_params *p, uint64_t word, const uint64_t *record,
                               const struct algo_ask *ask)
{
    struct algo_step step = {word, WEIR_NEVER, false};
    if (ask->cost > p->quota) {
        return step;
    }
    struct view v = as_of(p, word, record, ask->now);
    step.pulled = v.pulled;
    /* Taking n leaves the newest count - n of the present units: the one before them must be gone. */
    bool fits = ask->cost == 0 || !live(p, v.word, record, p->quota - ask->cost + 1, v.now);
    step.verdict = fits ? WEIR_ALLOW : WEIR_DENY;
    step.word = fits ? v.word + ask->cost : v.word;
    return step;
}

static void note(const struct algo_params *p, uint64_t word, uint64_t *record, uint64_t now,
                 uint64_t units)
{
    struct view v = as_of(p, word, record, now);
    for (uint64_t i = 0; i < units; i++) {
        uint64_t unit = v.word + i;
        record[unit % p->capacity] = note_of(p, unit, v.now);
    }
}

static uint64_t newest_gone_in(const struct algo_params *p, struct view v, const uint64_t *record,
                               uint64_t now)
{
    uint64_t time;
    if (!live(p, v.word, record, 1, v.now) || !admitted(p, v.word, record, 1, &time)) {
        return 0;
    }
    return time + p->spec.period_ns - now;
}

static void describe(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     const struct algo_ask *ask, struct weir_answer *answer)
{
    struct view v = as_of(p, word, record, ask->now);
    uint64_t time;
    answer->remaining = sub_floor0(p->quota, count_live(p, v, record));
    answer->reset_after_ns = newest_gone_in(p, v, record, ask->now);
    answer->delay_ns = 0;
    if (answer->verdict == WEIR_DENY &&
        admitted(p, v.word, record, p->quota - ask->cost + 1, &time)) {
        answer->retry_after_ns = time + p->spec.period_ns - ask->now;
    }
}

/*
 * One unit at a time, so that a kill in between leaves a shorter penalty and
 * nothing else. A full log takes none: no live unit is pushed out.
 */
static uint64_t charge(const struct algo_params *p, uint64_t word, const uint64_t *record,
                       const struct algo_ask *ask, uint64_t *charged)
{
    struct view v = as_of(p, word, record, ask->now);
    *charged = min_u64(ask->cost, live(p, v.word, record, p->quota, v.now) ? 0 : 1);
    return v.word + *charged;
}

/* True if the newest `units` were all admitted at `time`: then taking them out undoes it exactly. */
static bool newest_are(const struct algo_params *p, uint64_t word, const uint64_t *record,
                       uint64_t units, uint64_t time)
{
    for (uint64_t back = 1; back <= units; back++) {
        uint64_t t;
        if (!admitted(p, word, record, back, &t) || t != time) {
            return false;
        }
    }
    return true;
}

static uint64_t refund(const struct algo_params *p, uint64_t word, uint64_t *record,
                       const struct algo_ask *ask, const struct algo_charge *charge)
{
    struct view v = as_of(p, word, record, ask->now);
    uint64_t alive = count_live(p, v, record);
    uint64_t units = min_u64(ask->cost, alive);
    if (v.pulled || charge->at + p->spec.period_ns <= v.now) {
        return word;
    }
    if (newest_are(p, word, record, units, charge->at)) {
        return word - units;
    }
    /*
     * The oldest live ones go, by taking the time of the dead unit behind them:
     * what remains is newer than the truth, for slower clocks too, so nothing is
     * admitted too early. Each store leaves the times in order.
     */
    uint64_t time = 0;
    bool behind = alive + 1 < p->capacity && admitted(p, word, record, alive + 1, &time);
    uint64_t oldest = behind ? alive : min_u64(p->capacity, word);
    for (uint64_t back = oldest; back > alive - units; back--) {
        uint64_t unit = word - back;
        record[unit % p->capacity] =
            behind ? note_of(p, unit, time) : note_of(p, unit, 0) ^ 1; /* empty */
    }
    return word;
}

static void owes(const struct algo_params *p, uint64_t word, const uint64_t *record, uint64_t now,
                 struct debt *debt)
{
    struct view v = {word, algo_late(now), false};
    uint64_t newest;
    *debt = (struct debt){0, 0, word};
    if (!admitted(p, word, record, 1, &newest)) {
        return;
    }
    if (newest > now + ALGO_SLACK_NS) {
        debt->word = 0;
        return;
    }
    debt->fresh_in = sub_floor0(newest + p->spec.period_ns, v.now);
    debt->owed = debt->fresh_in != 0 ? count_live(p, v, record) : 0;
}

static uint64_t stamp(const struct algo_params *p, uint64_t word, const uint64_t *record,
                      uint64_t now)
{
    uint64_t newest;
    return admitted(p, word, record, 1, &newest) ? max_u64(newest, now) : now;
}

const struct algo_ops algo_sliding_log = {
    .id = WEIR_SLIDING_LOG,
    .name = "sliding_log",
    .compile = compile,
    .decide = decide,
    .describe = describe,
    .charge = charge,
    .refund = refund,
    .owes = owes,
    .stamp = stamp,
    .note = note,
};
