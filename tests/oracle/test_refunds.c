// test-timeout: 300
/*
 * What a refund can add. Reservations, other calls and settlements at random times;
 * each settlement is compared with a world in which the reservation had been for
 * the actual cost from the beginning, and all calls, with what was used of them,
 * with the bound of the algorithm.
 *
 * WEIR_SEED=n in the environment runs other traces.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/oracle/oracle_trace.h"

#define EVENTS 80
#define OPEN_MOST 12

#if defined(WEIR_LONG)
#define TRACES 200000
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRACES 1000
#else
#define TRACES 10000
#endif

/* Units that were charged, or came back. */
struct event {
    bool charge;
    uint64_t time_ns;
    uint64_t units;       /* charged; or returned */
    uint64_t used;        /* of what was charged */
    uint64_t released_ns; /* when the call was told to act */
    bool settled;         /* a charge of which all is known */
    size_t of;            /* which charge they come back of */
};

struct story {
    struct oracle_rule rule;
    struct oracle_random g;
    struct weir *w;
    uint64_t now_ns;
    struct event events[EVENTS];
    size_t n;
    struct weir_reservation open[OPEN_MOST];
    size_t open_of[OPEN_MOST];
    size_t opened;
};

static oracle_int later(oracle_int a, oracle_int b)
{
    return a > b ? a : b;
}

static oracle_int ticks(const struct story *s, uint64_t ns)
{
    return (oracle_int)ns << s->rule.shift;
}

/* ---- making a story ---- */

static void open_story(struct story *s, int algorithm, uint64_t seed)
{
    *s = (struct story){.g = {seed}, .now_ns = 100 * WEIR_SECOND};
    struct oracle_rule *r = &s->rule;
    r->algorithm = algorithm;
    r->count = oracle_between(&s->g, 1, 12);
    r->period_ns = r->count * oracle_between(&s->g, 1, 5) * (WEIR_SECOND / 4);
    r->burst = algorithm == WEIR_TOKEN_BUCKET ? oracle_between(&s->g, 1, 12) : 0;
    r->queue = algorithm == WEIR_LEAKY_BUCKET ? oracle_between(&s->g, 0, 11) : 0;
    oracle_rule_init(r);
    struct weir_options o = oracle_options(r);
    assert_int_equal(weir_open(&s->w, &o, NULL), 0);
}

/* Mostly bursts; sometimes as long as a unit takes, or as the whole quota does, or longer. */
static void pass_time(struct story *s)
{
    uint64_t unit = s->rule.period_ns / s->rule.count;
    switch (oracle_between(&s->g, 0, 9)) {
    case 0:
    case 1:
    case 2:
        s->now_ns += oracle_between(&s->g, 1, 2 * unit);
        break;
    case 3:
        s->now_ns += unit * s->rule.quota;
        break;
    case 4:
        s->now_ns += oracle_between(&s->g, 1, 3 * unit * s->rule.quota);
        break;
    default:
        break;
    }
}

static void note_charge(struct story *s, uint64_t units, const struct weir_answer *a)
{
    s->events[s->n++] = (struct event){.charge = true,
                                       .time_ns = s->now_ns,
                                       .units = units,
                                       .used = units,
                                       .released_ns = s->now_ns + a->delay_ns};
}

static void check(struct story *s)
{
    struct weir_answer a;
    uint64_t cost = oracle_between(&s->g, 1, s->rule.quota);
    assert_int_equal(weir_check_at(s->w, "k", 1, cost, s->now_ns, &a), 0);
    if (a.verdict == WEIR_ALLOW) {
        note_charge(s, cost, &a);
    }
}

static void reserve(struct story *s)
{
    struct weir_answer a;
    struct weir_reservation *r = &s->open[s->opened];
    uint64_t estimate = oracle_between(&s->g, 1, s->rule.quota);
    assert_int_equal(weir_reserve_at(s->w, "k", 1, estimate, UINT64_MAX, s->now_ns, r, &a), 0);
    if (a.verdict == WEIR_ALLOW) {
        s->open_of[s->opened++] = s->n;
        note_charge(s, estimate, &a);
    }
}

/* Settles one of the reservations that are open; returns which charge that was. */
static size_t settle(struct story *s, struct weir_answer *before, struct weir_answer *after)
{
    const struct weir_question peek = {.key = "k", .key_len = 1, .cost = 1, .mode = WEIR_PEEK};
    size_t i = oracle_between(&s->g, 0, s->opened - 1);
    size_t of = s->open_of[i];
    struct event *charge = &s->events[of];
    charge->used = oracle_between(&s->g, 0, charge->units - 1);
    charge->settled = true;
    assert_int_equal(weir_ask_at(s->w, &peek, s->now_ns, before), 0);
    assert_int_equal(weir_settle_at(s->w, &s->open[i], charge->used, s->now_ns, after), 0);
    s->events[s->n++] =
        (struct event){.time_ns = s->now_ns, .units = charge->units - charge->used, .of = of};
    s->opened--;
    s->open[i] = s->open[s->opened];
    s->open_of[i] = s->open_of[s->opened];
    return of;
}

typedef void (*judge_fn)(struct story *s, size_t of, const struct weir_answer *before,
                         const struct weir_answer *after);

/* `settled` is called after each settlement, while the story ends with it. */
static void tell(struct story *s, judge_fn settled)
{
    while (s->n < EVENTS - 1) {
        pass_time(s);
        uint64_t what = oracle_between(&s->g, 0, 9);
        if (what < 3 && s->opened < OPEN_MOST) {
            reserve(s);
        } else if (what < 5 && s->opened > 0) {
            struct weir_answer before;
            struct weir_answer after;
            size_t of = settle(s, &before, &after);
            if (settled != NULL) {
                settled(s, of, &before, &after);
            }
        } else {
            check(s);
        }
    }
}

static void for_each_story(int algorithm, judge_fn settled, void (*ended)(const struct story *s))
{
    const char *given = getenv("WEIR_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : 1;
    for (uint64_t i = 0; i < TRACES; i++) {
        struct story s;
        open_story(&s, algorithm, seed + i);
        tell(&s, settled);
        if (ended != NULL) {
            ended(&s);
        }
        weir_close(s.w);
    }
}

/* ---- a token bucket without the units that were not used ---- */

struct bucket {
    oracle_int full_at; /* ticks */
    bool was_full;      /* at some time since the charge `of` */
};

/*
 * The bucket as it would be if nothing had ever come back, but all that is settled
 * had been charged as it was used; `of` either way.
 */
static struct bucket replay(const struct story *s, size_t of, bool as_used)
{
    struct bucket b = {0, false};
    for (size_t i = 0; i < s->n; i++) {
        const struct event *e = &s->events[i];
        oracle_int now = ticks(s, e->time_ns);
        b.was_full = i > of && (b.was_full || b.full_at < now);
        b.full_at = later(b.full_at, now);
        if (e->charge) {
            bool used = i == of ? as_used : e->settled;
            b.full_at += s->rule.step * (oracle_int)(used ? e->used : e->units);
        }
    }
    return b;
}

static uint64_t taken_since(const struct story *s, size_t of)
{
    uint64_t units = 0;
    for (size_t i = of + 1; i < s->n; i++) {
        units += s->events[i].charge ? s->events[i].units : 0;
    }
    return units;
}

/* What a settlement may add: the last event, of the charge `of`. */
static oracle_int extra_most(const struct story *s, size_t of)
{
    oracle_int returned = s->rule.step * (oracle_int)s->events[s->n - 1].units;
    oracle_int refilled = ticks(s, s->now_ns - s->events[of].time_ns);
    oracle_int taken = s->rule.step * (oracle_int)taken_since(s, of);
    oracle_int most = returned < refilled ? returned : refilled;
    return most < taken ? most : taken;
}

static struct {
    uint64_t settled, full, busy, added;
} seen;

/* Before it, the key may already be richer by what earlier settlements have added. */
static void judge_settlement(struct story *s, size_t of, const struct weir_answer *before,
                             const struct weir_answer *after)
{
    struct bucket b = replay(s, of, true);
    oracle_int now = ticks(s, s->now_ns);
    oracle_int richer = replay(s, of, false).full_at - now - ticks(s, before->reset_after_ns);
    oracle_int exact = b.full_at - now;
    oracle_int found = ticks(s, after->reset_after_ns);
    oracle_int most = b.was_full ? extra_most(s, of) : 0;
    assert_true(richer >= 0);
    assert_true(found <= exact); /* nothing is kept back */
    assert_true(found >= later(exact - richer - most, 0));
    seen.settled++;
    seen.full += b.was_full;
    seen.busy += !b.was_full;
    seen.added += found < later(exact - richer, 0);
}

static void a_late_refund_adds_no_more_than_returned_refilled_and_taken_since(void **state)
{
    for_each_story(WEIR_TOKEN_BUCKET, judge_settlement, NULL);
    print_message("# %" PRIu64 " settled: %" PRIu64 " of a busy key, %" PRIu64 " of one that was "
                  "full; %" PRIu64 " added something\n",
                  seen.settled, seen.busy, seen.full, seen.added);
    assert_true(seen.busy > TRACES && seen.added > TRACES / 2);
}

/* ---- all calls together ---- */

/* True if all that came back in the events [from, to] was charged in them. */
static bool contains_its_charges(const struct story *s, size_t from, size_t to)
{
    for (size_t i = from; i <= to; i++) {
        if (!s->events[i].charge && s->events[i].of < from) {
            return false;
        }
    }
    return true;
}

static uint64_t used_in(const struct story *s, size_t from, size_t to)
{
    uint64_t units = 0;
    for (size_t i = from; i <= to; i++) {
        units += s->events[i].charge ? s->events[i].used : 0;
    }
    return units;
}

static void judge_bucket(const struct story *s)
{
    for (size_t from = 0; from < s->n; from++) {
        for (size_t to = from; to < s->n; to++) {
            uint64_t passed_ns = s->events[to].time_ns - s->events[from].time_ns;
            oracle_int most = s->rule.step * (oracle_int)s->rule.quota + ticks(s, passed_ns);
            if (contains_its_charges(s, from, to)) {
                assert_true(s->rule.step * (oracle_int)used_in(s, from, to) <= most);
            }
        }
    }
}

static void an_interval_that_contains_the_charges_admits_burst_plus_rate(void **state)
{
    for_each_story(WEIR_TOKEN_BUCKET, NULL, judge_bucket);
}

/* Two calls, the time of one of which is within that of the other. */
static bool overlap(const struct story *s, const struct event *a, const struct event *b)
{
    uint64_t turn_ns = s->rule.period_ns / s->rule.count;
    return a->released_ns < b->released_ns + b->used * turn_ns &&
           b->released_ns < a->released_ns + a->used * turn_ns;
}

static void judge_queue(const struct story *s)
{
    for (size_t i = 0; i < s->n; i++) {
        for (size_t j = 0; j < i; j++) {
            const struct event *a = &s->events[i];
            const struct event *b = &s->events[j];
            if (a->charge && b->charge && a->used != 0 && b->used != 0) {
                assert_false(overlap(s, a, b));
            }
        }
    }
}

static void a_queue_gives_no_turn_to_two_calls(void **state)
{
    for_each_story(WEIR_LEAKY_BUCKET, NULL, judge_queue);
}

/* What was used within a period from each event on, or in each window, if windows are fixed. */
static void judge_windows(const struct story *s)
{
    uint64_t period_ns = s->rule.period_ns;
    bool fixed = s->rule.algorithm == WEIR_FIXED_WINDOW;
    uint64_t most =
        s->rule.algorithm == WEIR_SLIDING_WINDOW ? 2 * s->rule.count - 1 : s->rule.count;
    for (size_t from = 0; from < s->n; from++) {
        uint64_t start_ns = s->events[from].time_ns;
        uint64_t end_ns =
            fixed ? start_ns - start_ns % period_ns + period_ns : start_ns + period_ns;
        size_t to = from;
        while (to + 1 < s->n && s->events[to + 1].time_ns < end_ns) {
            to++;
        }
        assert_true(used_in(s, from, to) <= most);
    }
}

static void windows_and_the_log_admit_no_more_with_refunds_than_without(void **state)
{
    for_each_story(WEIR_FIXED_WINDOW, NULL, judge_windows);
    for_each_story(WEIR_SLIDING_WINDOW, NULL, judge_windows);
    for_each_story(WEIR_SLIDING_LOG, NULL, judge_windows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_refund_adds_no_more_than_returned_refilled_and_taken_since),
        cmocka_unit_test(an_interval_that_contains_the_charges_admits_burst_plus_rate),
        cmocka_unit_test(a_queue_gives_no_turn_to_two_calls),
        cmocka_unit_test(windows_and_the_log_admit_no_more_with_refunds_than_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
