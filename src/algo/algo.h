/*
 * The algorithms, behind one table of operations. Each is a file of pure functions from a state and
 * a time to a decision; they have no clock, no lock and no memory of their own. A new algorithm is
 * a new file here and a row in base/algorithms.h, which has its name and traits.
 *
 * STATE is one 64-bit word, and for sliding_log a record beside it. A word of 0 is a fresh key. A
 * state is said to be "as of" a time if as_of() has brought its word to that time. TIME is
 * nanoseconds on the limiter's time line, which begins at its epoch. Words are relative to the
 * epoch too.
 *
 * A state may be ahead of the caller's time. Up to ALGO_SLACK_NS, the reason is another clock, of
 * another thread or process: the state stands, and the caller decides as if its own time were the
 * later one. Beyond that, a clock has been set back: the state is pulled down to the most that it
 * could legitimately be now, so that no key is locked out for longer than the time to full.
 */
#ifndef WEIR_ALGO_ALGO_H
#define WEIR_ALGO_ALGO_H

#include <weir.h>

#include "base/algorithms.h"
#include "base/debt.h"

#define ALGO_SLACK_NS UINT64_C(1000000000)

/* A window's index is wide enough for 100 years of 365.25 days. */
#define ALGO_LIFE_NS (UINT64_C(36525) * WEIR_DAY)

/* A limit as a user wrote it, with its defaults filled in. Files hold these bytes. */
struct limit_spec {
    int algorithm;
    int on_full;
    uint64_t count;
    uint64_t period_ns;
    uint64_t burst;
    uint64_t queue;
    uint64_t max_debt;   /* in units; 0 means none */
    uint64_t debt_asked; /* as in the options; 0 is the default, which follows the quota */
    uint64_t undelayed;
};

/*
 * The numbers with which the algorithms compute. They are made from a spec and do not change; each
 * thread has a copy. A live change makes new ones, in which `shift` and `capacity`
 * keep their values, because words would be misread otherwise.
 */
struct algo_params {
    struct limit_spec spec;
    uint64_t quota;         /* the most units that can be taken at once */
    uint64_t step;          /* what a unit adds to the word; buckets: its time, in 2^-shift ns */
    uint64_t inverse;       /* of step, or of the unit for windows: replaces a division */
    uint64_t span;          /* buckets: quota * step */
    uint64_t reach;         /* buckets: (quota + max_debt) * step, the furthest lead over now */
    uint64_t head_start;    /* leaky_bucket: undelayed * step, by which its delays are shorter */
    uint64_t unit;          /* windows: indexes count in this many ns; the period, or a day */
    uint64_t count_mask;    /* windows: the bits of a counter */
    uint64_t max_time;      /* the last time, in ns since the epoch, that words can express */
    uint64_t capacity;      /* sliding_log: places in the ring */
    uint32_t shift;         /* buckets: words count in 2^-shift ns */
    uint32_t previous_bits; /* windows: bits of the previous count; 0 for fixed_window */
    uint32_t index_shift;   /* windows: bits of all counts, below the index */
    uint32_t period_shift;  /* windows: inverse is floor((2^(64 + period_shift) - 1) / unit) */
};

struct algo_state {
    uint64_t word;
    uint64_t *record; /* sliding_log only; otherwise nobody reads it */
};

/* The effect of a decision on the word. */
struct algo_step {
    uint64_t word; /* the state after the decision */
    uint64_t base; /* the state before it, as of the call's time */
    int verdict;
    bool pulled; /* the state was from a far future, and `base` is what it is pulled down to */
};

/* A question, as the algorithms see it. */
struct algo_ask {
    uint64_t now;  /* ns since the epoch, at most max_time */
    uint64_t cost; /* at least 1 to take units, 0 only to look */
    uint64_t wait; /* the longest delay that the caller accepts, in ns */
};

/* What a refund must know of the charge that it gives back. */
struct algo_charge {
    uint64_t at;   /* the time that names the charge; see stamp() */
    uint64_t step; /* buckets: `step` at the time of the charge */
    uint64_t word; /* buckets: the word right after the charge. The refund then returns no unit that
                      has refilled since. 0: units return in full, up to a full bucket */
};

/* Sizes that are fixed when a table is made. For a new table all are 0. */
struct algo_layout {
    uint32_t shift;
    uint64_t capacity;
    bool fixed; /* the table exists: the values above must be kept */
};

/* Returns whether windows are calendar months. The short cut of a decision does not know them. */
static inline bool algo_has_months(const struct limit_spec *spec)
{
    return spec->period_ns == WEIR_MONTH;
}

struct algo_ops {
    int id; /* its number in EACH_ALGORITHM() */

    /*
     * Checks every number of the spec and fills *params. Returns 0, or WEIR_ERATE or WEIR_EQUOTA
     * with a text; then *params is undefined.
     */
    int (*compile)(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *params, struct weir_error *error);

    /*
     * Returns the word with which a call at `now` decides. Sets *pulled if the state was from a far
     * future and the result is what it is pulled down to.
     */
    uint64_t (*as_of)(const struct algo_params *p, struct algo_state s, uint64_t now, bool *pulled);

    /* Returns whether ask->cost, at most the quota, may be taken from a word as of ask->now. */
    bool (*fits)(const struct algo_params *p, struct algo_state s, const struct algo_ask *ask);

    /*
     * Fills remaining, reset_after_ns, delay_ns and, for answer->verdict DENY, retry_after_ns, from
     * a word as of ask->now after the granted units were taken. This is apart from fits() so that
     * it can run after the word has been published.
     */
    void (*describe)(const struct algo_params *p, struct algo_state s, const struct algo_ask *ask,
                     struct weir_answer *answer);

    /* Returns how many units a penalty can still take, up to max_debt, as of `now`. */
    uint64_t (*room)(const struct algo_params *p, struct algo_state s, uint64_t now);

    /*
     * Returns the word after giving back ask->cost units of *charge. May rewrite the record.
     * docs/explanation/algorithms.md says how much a refund can add.
     */
    uint64_t (*refund)(const struct algo_params *p, struct algo_state s, const struct algo_ask *ask,
                       const struct algo_charge *charge);

    /* Fills debt->owed and debt->fresh_in for a clock that says `late`; see algo_owes(). */
    void (*owes)(const struct algo_params *p, struct algo_state s, uint64_t late,
                 struct debt *debt);

    /*
     * Returns the time by which a refund names the charge that made `word`. Windows and the log:
     * the time under which the charge was counted, which is `now`, or later if the state was ahead.
     * leaky_bucket: the end of the charge's place in the queue. token_bucket needs none: NULL.
     */
    uint64_t (*stamp)(const struct algo_params *p, struct algo_state s, uint64_t now);

    /*
     * sliding_log only, otherwise NULL. Notes `units` admitted at `now` in places of the record
     * that the state `word` does not use. The notes take effect when the word with that many units
     * more is stored; until then a reader of `word` sees no difference.
     */
    void (*note)(const struct algo_params *p, struct algo_state s, uint64_t now, uint64_t units);
};

/* Returns NULL if there is no such algorithm. */
const struct algo_ops *algo_by_id(int id);

/*
 * Decides whether ask->cost may be taken. Reads word and record and writes neither. If *ops is a
 * constant, the compiler inlines its functions.
 */
ALWAYS_INLINE struct algo_step algo_decide(const struct algo_ops *ops, const struct algo_params *p,
                                           struct algo_state s, const struct algo_ask *ask)
{
    bool pulled;
    struct algo_state base = {ops->as_of(p, s, ask->now, &pulled), s.record};
    if (ask->cost > p->quota) {
        return (struct algo_step){s.word, base.word, WEIR_NEVER, false};
    }
    if (!ops->fits(p, base, ask)) {
        return (struct algo_step){base.word, base.word, WEIR_DENY, pulled};
    }
    return (struct algo_step){base.word + ask->cost * p->step, base.word, WEIR_ALLOW, pulled};
}

/* Describes any word, as ops->describe() describes one that is as of ask->now. */
void algo_describe(const struct algo_ops *ops, const struct algo_params *p, struct algo_state s,
                   const struct algo_ask *ask, struct weir_answer *answer);

/*
 * Takes up to ask->cost units whatever the quota, as far as max_debt allows; *charged is how many.
 * The verdict is ALLOW. Units of a record must be noted before the word is stored.
 */
struct algo_step algo_penalize(const struct algo_ops *ops, const struct algo_params *p,
                               struct algo_state s, const struct algo_ask *ask, uint64_t *charged);

/*
 * Fills *debt with what the state owes. `now` tells whether it is from a far future, as in
 * algo_decide(). The rest is judged by the slowest clock that is allowed, ALGO_SLACK_NS before
 * `now`: a key that is fresh to one thread must not still bind another.
 */
void algo_owes(const struct algo_ops *ops, const struct algo_params *p, struct algo_state s,
               uint64_t now, struct debt *debt);

/* Returns the bytes of the record beside the word; 0 for all algorithms but sliding_log. */
static inline uint64_t algo_record_bytes(const struct algo_params *p)
{
    return p->capacity * sizeof(uint64_t);
}

#define ALGO_OPS(number, name, traits) extern const struct algo_ops algo_##name;
EACH_ALGORITHM(ALGO_OPS)
#undef ALGO_OPS

#endif
