/*
 * The algorithms behind one table of operations. Each is one file of pure functions: state in, time
 * in, decision out; no clock, no lock, no memory of their own. A new algorithm is a new file and a
 * row in algo.c.
 *
 * STATE is one 64-bit word, and for sliding_log a record beside it. A word of 0 is a fresh key.
 * TIME is nanoseconds on the limiter's line, which begins at its epoch; words are relative to it.
 *
 * A state may be ahead of the caller's time. Within ALGO_SLACK_NS that is another thread's or
 * process's clock: the state stands, and the caller decides as if its own time were that later one.
 * Further ahead, a clock has been set back: the state is pulled down to the most that it could
 * legitimately be now (`pulled`), so that no key is locked out for longer than the time to full.
 */
#ifndef WEIR_ALGO_ALGO_H
#define WEIR_ALGO_ALGO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir.h>

#include "base/debt.h"
#include "base/maths.h"

#define ALGO_SLACK_NS UINT64_C(1000000000)

/* A window's index is wide enough for this long. Julian years, as calendars average. */
#define ALGO_LIFE_NS (UINT64_C(36525) * WEIR_DAY)

/* What a user wrote, defaults filled in. */
struct limit_spec {
    int algorithm;
    int on_full;
    uint64_t count;
    uint64_t period_ns;
    uint64_t burst;
    uint64_t queue;
    uint64_t max_debt;   /* units; 0 is none */
    uint64_t debt_asked; /* as in the options: 0 is the default, which follows the quota */
};

/*
 * The numbers that the algorithms compute with. They are made from a spec and do not change; each
 * thread has a copy. A live change makes new ones, in which `shift`, `count_bits` and `capacity`
 * stay as they are, because words would be misread otherwise.
 */
struct algo_params {
    struct limit_spec spec;
    uint64_t quota;   /* the most that can be taken at once */
    uint64_t step;    /* what a unit adds to the word; buckets: its time, in 2^-shift ns */
    uint64_t inverse; /* of step or, windows, of the period, to divide by it without a division */
    uint64_t span;    /* buckets: quota * step */
    uint64_t reach;   /* buckets: (quota + max_debt) * step, the furthest lead over now */
    uint64_t count_mask;   /* windows: the bits of a counter */
    uint64_t max_count;    /* windows: quota + max_debt */
    uint64_t max_time;     /* the last time, in ns since the epoch, that the words can express */
    uint64_t capacity;     /* sliding_log: places in the ring */
    uint32_t shift;        /* buckets: words count in 2^-shift ns */
    uint32_t count_bits;   /* windows: bits of one counter */
    uint32_t period_shift; /* windows: inverse is floor((2^(64 + period_shift) - 1) / period) */
};

/* What a decision does to the word. */
struct algo_step {
    uint64_t word; /* the state afterwards */
    uint64_t base; /* the state that was decided on: as of the call's time */
    int verdict;
    bool pulled; /* the state was from a far future; `word` begins with what it is pulled down to */
};

/* A question, as the algorithms see it. */
struct algo_ask {
    uint64_t now;  /* ns since the epoch, at most max_time */
    uint64_t cost; /* 0 only to look, at least 1 to take */
    uint64_t wait; /* the longest delay that the caller accepts, in ns */
};

/* A charge, as a refund of it must know it. */
struct algo_charge {
    uint64_t at; /* the time that names it: stamp() */
    uint64_t
        step; /* buckets: the time of one unit when it was charged; it may have changed since */
    /*
     * buckets: the word right after the charge, for a refund that must never admit more than if the
     * charge had not been: it returns no unit that has refilled since. 0: units return in full, as
     * far as the bucket is not full.
     */
    uint64_t word;
};

/* Places that are fixed when a table is made; all 0 for a new one. */
struct algo_layout {
    uint32_t shift;
    uint64_t capacity;
    bool fixed; /* the values above must be kept */
};

struct algo_ops {
    int id;
    const char *name;
    bool waits; /* can charge the future: ask.wait may be used */

    /*
     * Checks every number of the spec and fills *params. 0, WEIR_ERATE or WEIR_EQUOTA with a text;
     * then *params is undefined.
     */
    int (*compile)(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *params, struct weir_error *error);

    /*
     * Returns the word that a call at `now` decides with: what is over has been left behind.
     * *pulled: the state was from a far future, and the result is what it is pulled down to.
     */
    uint64_t (*as_of)(const struct algo_params *p, uint64_t word, const uint64_t *record,
                      uint64_t now, bool *pulled);

    /* May ask->cost, which is at most the quota, be taken from a word that is as of ask->now? */
    bool (*fits)(const struct algo_params *p, uint64_t word, const uint64_t *record,
                 const struct algo_ask *ask);

    /*
     * Fills remaining, reset_after_ns, delay_ns and (for answer->verdict DENY) retry_after_ns, from
     * a word that is as of ask->now, after what was granted has been taken. Apart from fits() so
     * that it can run after the word has been published.
     */
    void (*describe)(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     const struct algo_ask *ask, struct weir_answer *answer);

    /* Returns how many units a penalty can still take, up to max_debt, as of `now`. */
    uint64_t (*room)(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     uint64_t now);

    /*
     * Returns the word after giving back ask->cost units of *charge. May rewrite the record.
     * docs/ALGORITHMS.md says how much a refund can add.
     */
    uint64_t (*refund)(const struct algo_params *p, uint64_t word, uint64_t *record,
                       const struct algo_ask *ask, const struct algo_charge *charge);

    /* Fills debt->owed and debt->fresh_in by a clock that says `late`; see algo_owes(). */
    void (*owes)(const struct algo_params *p, uint64_t word, const uint64_t *record, uint64_t late,
                 struct debt *debt);

    /*
     * Returns the time that names the charge just made to a refund. Windows and the log: the time
     * under which it was counted, `now` or later if the state (`word`, after the charge) was ahead.
     * leaky_bucket: the end of its place.
     */
    uint64_t (*stamp)(const struct algo_params *p, uint64_t word, const uint64_t *record,
                      uint64_t now);

    /*
     * sliding_log only, else NULL: notes `units` admitted at `now` in places of the record that the
     * state `word` does not use. Takes effect when the word with that many units more is stored;
     * until then a reader of `word` sees no difference.
     */
    void (*note)(const struct algo_params *p, uint64_t word, uint64_t *record, uint64_t now,
                 uint64_t units);
};

/* NULL if there is no such algorithm. */
const struct algo_ops *algo_by_id(int id);
const struct algo_ops *algo_by_name(const char *name);

static inline uint64_t algo_late(uint64_t now)
{
    return sub_floor0(now, ALGO_SLACK_NS);
}

/* A decision on a word that is as of the call's time. */
static inline struct algo_step algo_step(const struct algo_params *p, uint64_t word, bool pulled,
                                         bool fits, uint64_t cost)
{
    return (struct algo_step){fits ? word + cost * p->step : word, word,
                              fits ? WEIR_ALLOW : WEIR_DENY, pulled};
}

/* May ask->cost be taken? Reads word and record, writes neither. */
struct algo_step algo_decide(const struct algo_ops *ops, const struct algo_params *p, uint64_t word,
                             const uint64_t *record, const struct algo_ask *ask);

/* Describes any word as ops->describe() does one that is as of ask->now. */
void algo_describe(const struct algo_ops *ops, const struct algo_params *p, uint64_t word,
                   const uint64_t *record, const struct algo_ask *ask, struct weir_answer *answer);

/*
 * Takes ask->cost whatever the quota, up to max_debt: *charged is what fitted, and the verdict is
 * ALLOW. Units in a record must be noted before the word is stored.
 */
struct algo_step algo_penalize(const struct algo_ops *ops, const struct algo_params *p,
                               uint64_t word, const uint64_t *record, const struct algo_ask *ask,
                               uint64_t *charged);

/*
 * Fills *debt with what the state owes. Whether it is from a far future, `now` says, as in
 * algo_decide(). The rest is judged by the slowest clock that is allowed, algo_late(now): a key
 * that is fresh to one thread must not still bind another.
 */
void algo_owes(const struct algo_ops *ops, const struct algo_params *p, uint64_t word,
               const uint64_t *record, uint64_t now, struct debt *debt);

/* Bytes of the record beside the word; 0 for all but sliding_log. */
static inline uint64_t algo_record_bytes(const struct algo_params *p)
{
    return p->capacity * sizeof(uint64_t);
}

extern const struct algo_ops algo_token_bucket;
extern const struct algo_ops algo_leaky_bucket;
extern const struct algo_ops algo_fixed_window;
extern const struct algo_ops algo_sliding_window;
extern const struct algo_ops algo_sliding_log;

#endif
