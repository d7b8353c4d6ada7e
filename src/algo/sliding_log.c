/*
 * sliding_log: remembers when each of the last `count` units was admitted, and so admits at most
 * `count` in any interval of a period's length, exactly.
 *
 * The word is the number of units ever admitted. Unit u is noted in place u mod capacity of the
 * record, as time << 1 | parity of the lap u / capacity. The capacity is one more than the count:
 * notes are written to places that no reader of the present word looks at, and the new word makes
 * them valid, so a kill in between changes nothing. A place whose parity is not that of its unit's
 * lap is empty: its note was never made valid, or was given back.
 *
 * Times in the log never decrease: a call with an older time is noted under the newest one.
 * Therefore the live units are the newest ones, and a binary search counts them.
 */
#include "algo/algo.h"
#include "base/error.h"

/* This count makes a record of half a megabyte for each key. */
#define COUNT_MAX 65535

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    uint64_t most = layout->fixed ? layout->capacity - 1 : COUNT_MAX;
    if (most - 1 >= COUNT_MAX) {
        return fail(error, WEIR_EQUOTA,
                    "the file has a log of %" PRIu64 " places, expected 2 to %d", layout->capacity,
                    COUNT_MAX + 1);
    }
    if (spec->count > most) {
        return fail(error, WEIR_EQUOTA,
                    "count %" PRIu64 " is too large for %s log, expected at most %" PRIu64,
                    spec->count, layout->fixed ? "this limiter's" : "a sliding", most);
    }
    if (spec->max_debt != 0) {
        return fail(error, WEIR_EQUOTA,
                    "max_debt is %" PRIu64 ", expected none: a log holds no debt", spec->max_debt);
    }
    p->quota = spec->count;
    p->step = 1;
    p->max_time = INT64_MAX - 2 * ALGO_LIFE_NS; /* a note has 63 bits for the time */
    p->capacity = layout->fixed ? layout->capacity : spec->count + 1;
    return 0;
}

static uint64_t note_of(const struct algo_params *p, uint64_t unit, uint64_t time)
{
    return time << 1 | (unit / p->capacity & 1);
}

/* Sets *time to when unit `word - back` was admitted. False if there is no such note. */
static inline bool admitted(const struct algo_params *p, struct algo_state s, uint64_t back,
                            uint64_t *time)
{
    if (back > s.word) {
        return false;
    }
    uint64_t unit = s.word - back;
    uint64_t note = s.record[unit % p->capacity];
    *time = note >> 1;
    return note == note_of(p, unit, *time);
}

static bool live(const struct algo_params *p, struct algo_state s, uint64_t back, uint64_t now)
{
    uint64_t time;
    return admitted(p, s, back, &time) && time + p->spec.period_ns > now;
}

/*
 * A log whose newest unit is in a far future is forgotten. Its times cannot be pulled down in one
 * store, and forgetting them admits at most one extra count.
 */
static uint64_t as_of(const struct algo_params *p, struct algo_state s, uint64_t now, bool *pulled)
{
    uint64_t newest;
    *pulled = admitted(p, s, 1, &newest) && newest > now + ALGO_SLACK_NS;
    return *pulled ? 0 : s.word;
}

/* Returns the time under which a call at `now` is noted. */
static uint64_t time_of(const struct algo_params *p, struct algo_state s, uint64_t now)
{
    uint64_t newest;
    return admitted(p, s, 1, &newest) ? max_u64(newest, now) : now;
}

/* Returns the smallest n such that the unit before the newest n is not live. */
static uint64_t count_live(const struct algo_params *p, struct algo_state s, uint64_t now)
{
    uint64_t low = 0;
    /* After a change to a smaller count more units than that may be live: search the whole ring. */
    uint64_t high = min_u64(p->capacity - 1, s.word);
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        if (live(p, s, middle, now)) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* After n more units, the newest count - n of the present ones still fit. The next must be over. */
static bool fits(const struct algo_params *p, struct algo_state s, const struct algo_ask *ask)
{
    uint64_t now = time_of(p, s, ask->now);
    return ask->cost == 0 || !live(p, s, p->quota - ask->cost + 1, now);
}

/* A full log takes no penalty, because that would push a live unit out. */
static uint64_t room(const struct algo_params *p, struct algo_state s, uint64_t now)
{
    uint64_t alive = count_live(p, s, time_of(p, s, now));
    return sub_floor0(p->quota, alive);
}

static void note(const struct algo_params *p, struct algo_state s, uint64_t now, uint64_t units)
{
    uint64_t time = time_of(p, s, now);
    for (uint64_t i = 0; i < units; i++) {
        s.record[(s.word + i) % p->capacity] = note_of(p, s.word + i, time);
    }
}

static void describe(const struct algo_params *p, struct algo_state s, const struct algo_ask *ask,
                     struct weir_answer *answer)
{
    uint64_t newest;
    uint64_t time;
    bool any = admitted(p, s, 1, &newest);
    uint64_t now = any ? max_u64(newest, ask->now) : ask->now;
    uint64_t alive = any ? count_live(p, s, now) : 0;
    answer->remaining = sub_floor0(p->quota, alive);
    answer->reset_after_ns = alive != 0 ? newest + p->spec.period_ns - ask->now : 0;
    answer->delay_ns = 0;
    if (answer->verdict == WEIR_DENY && admitted(p, s, p->quota - ask->cost + 1, &time)) {
        answer->retry_after_ns = time + p->spec.period_ns - ask->now;
    }
}

/* Returns whether the newest `units` were all admitted at `time`, so that a refund is exact. */
static bool newest_are(const struct algo_params *p, struct algo_state s, uint64_t units,
                       uint64_t time)
{
    for (uint64_t back = 1; back <= units; back++) {
        uint64_t t;
        if (!admitted(p, s, back, &t) || t != time) {
            return false;
        }
    }
    return true;
}

static uint64_t refund(const struct algo_params *p, struct algo_state s, const struct algo_ask *ask,
                       const struct algo_charge *charge)
{
    bool pulled;
    uint64_t now = time_of(p, s, ask->now);
    uint64_t alive = count_live(p, s, now);
    uint64_t units = min_u64(ask->cost, alive);
    (void)as_of(p, s, ask->now, &pulled);
    if (pulled || charge->at + p->spec.period_ns <= now) {
        return s.word;
    }
    if (newest_are(p, s, units, charge->at)) {
        return s.word - units;
    }
    /*
     * Removes the oldest live units: each gets the time of the dead unit before it. The remaining
     * times are newer than the true ones, also for slower clocks, so that nothing is admitted too
     * early. Each store leaves the times in order.
     */
    uint64_t time = 0;
    bool behind = alive + 1 < p->capacity && admitted(p, s, alive + 1, &time);
    uint64_t oldest = behind ? alive : min_u64(p->capacity, s.word);
    for (uint64_t back = oldest; back > alive - units; back--) {
        uint64_t unit = s.word - back;
        s.record[unit % p->capacity] =
            behind ? note_of(p, unit, time) : note_of(p, unit, 0) ^ 1; /* empty */
    }
    return s.word;
}

static void owes(const struct algo_params *p, struct algo_state s, uint64_t late, struct debt *debt)
{
    uint64_t newest;
    bool any = admitted(p, s, 1, &newest);
    debt->fresh_in = any ? sub_floor0(newest + p->spec.period_ns, late) : 0;
    debt->owed = debt->fresh_in != 0 ? count_live(p, s, late) : 0;
}

const struct algo_ops algo_sliding_log = {
    .id = WEIR_SLIDING_LOG,
    .compile = compile,
    .as_of = as_of,
    .fits = fits,
    .describe = describe,
    .room = room,
    .refund = refund,
    .owes = owes,
    .stamp = time_of,
    .note = note,
};
