/*
 * The oracle: the right answer of each algorithm, computed slowly and obviously in exact
 * arithmetic. It shares nothing with src/ but the constants of weir.h.
 *
 * A model defines only three things about a key: its state at a given time, whether n units fit
 * into that, and the effect of taking them. Everything else is found by search from these:
 * `remaining` is the largest n that fits, `retry_after` the first later moment at which the call
 * fits, `reset_after` the first at which nothing is left to forget. So the oracle does not repeat
 * the formulas of the library, and cannot repeat their errors.
 */
#ifndef WEIR_TESTS_ORACLE_MODEL_H
#define WEIR_TESTS_ORACLE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir.h>

__extension__ typedef __int128 oracle_int;

/* P6: clocks may differ by this much. */
#define ORACLE_SLACK_NS 1000000000

/* A limit, as a user would describe it; max_debt in units, 0 is none. */
struct oracle_rule {
    int algorithm;
    uint64_t count;
    uint64_t period_ns; /* or WEIR_MONTH */
    uint64_t burst;     /* token_bucket */
    uint64_t queue;     /* leaky_bucket */
    uint64_t undelayed; /* leaky_bucket */
    uint64_t max_debt;
    uint64_t offset_ns; /* the windows */

    /* Filled in by oracle_rule_init(). */
    uint64_t quota;
    unsigned shift;  /* buckets: time is counted in 2^-shift ns ... */
    oracle_int step; /* ... and one unit takes this many */
};

/*
 * A key. Which fields mean something depends on the algorithm. A zeroed key is
 * a fresh one; oracle_key_finish() frees what it has grown.
 */
struct oracle_key {
    bool known;
    oracle_int time;  /* buckets: the time at which `level` was right */
    oracle_int level; /* buckets: what may be taken, in steps of 2^-shift ns; negative is debt */
    oracle_int window;
    uint64_t current;
    uint64_t previous;
    uint64_t *times; /* the log: one entry for each admitted unit */
    size_t units;
    size_t room;
};

/* The state of a key at some time. */
struct oracle_view {
    oracle_int now; /* the caller's time, or the state's if that is ahead within the slack */
    oracle_int level;
    oracle_int window;
    uint64_t current;
    uint64_t previous;
    bool pulled; /* the state was ahead by more than the slack */
};

struct oracle_model {
    struct oracle_view (*as_of)(const struct oracle_rule *r, const struct oracle_key *k,
                                oracle_int now);
    bool (*fits)(const struct oracle_rule *r, const struct oracle_view *v, oracle_int n,
                 uint64_t wait_ns);
    bool (*fresh)(const struct oracle_rule *r, const struct oracle_view *v);
    /* Returns how long after an admission of n units from *v the caller has to wait. */
    uint64_t (*delay)(const struct oracle_rule *r, const struct oracle_view *v, uint64_t n);
    /* Returns the most that penalize may charge. */
    oracle_int (*chargeable)(const struct oracle_rule *r, const struct oracle_view *v);
    /* Stores *v less n units as the key's state. n may be 0. */
    void (*take)(const struct oracle_rule *r, struct oracle_key *k, const struct oracle_view *v,
                 uint64_t n);
    void (*refund)(const struct oracle_rule *r, struct oracle_key *k, const struct oracle_view *v,
                   uint64_t n, uint64_t charged_ns);
};

extern const struct oracle_model oracle_token_bucket, oracle_leaky_bucket, oracle_fixed_window,
    oracle_sliding_window, oracle_sliding_log;

/* Fills in the derived fields. burst 0 means count, as in weir.h. */
void oracle_rule_init(struct oracle_rule *r);

/* Returns the options of a limiter with this rule and explicit times. */
struct weir_options oracle_options(const struct oracle_rule *r);

void oracle_key_finish(struct oracle_key *k);

/* Answer as weir_ask_at(), weir_refund_at() and weir_penalize_at() must. */
void oracle_ask(const struct oracle_rule *r, struct oracle_key *k, int mode, uint64_t cost,
                uint64_t wait_ns, uint64_t now_ns, struct weir_answer *a);
void oracle_refund(const struct oracle_rule *r, struct oracle_key *k, uint64_t units,
                   uint64_t charged_ns, uint64_t now_ns, struct weir_answer *a);
void oracle_penalize(const struct oracle_rule *r, struct oracle_key *k, uint64_t units,
                     uint64_t now_ns, struct weir_answer *a);

/* Returns the charged_ns by which a refund names the last place in the queue of a leaky_bucket. */
uint64_t oracle_last_place_ends(const struct oracle_rule *r, const struct oracle_key *k);

/* Returns when the window of `now` ends. */
oracle_int oracle_window_end(const struct oracle_rule *r, oracle_int now);

/* stepped_bucket for one client: the textbook algorithm, word for word. */
struct oracle_stepped {
    bool known;
    oracle_int tokens;
    oracle_int last;
};
bool oracle_stepped_take(struct oracle_stepped *s, int64_t capacity, int64_t window, int64_t time);

/* ceil(a / b) for a >= 0, b > 0. */
static inline oracle_int oracle_div_up(oracle_int a, oracle_int b)
{
    return (a + b - 1) / b;
}

/* floor(a / b) for b > 0; a may be negative. */
static inline oracle_int oracle_div_down(oracle_int a, oracle_int b)
{
    return a >= 0 ? a / b : -oracle_div_up(-a, b);
}

#endif
