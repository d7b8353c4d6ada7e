/*
 * What every algorithm promises of its answers, asked of the library alone, on
 * random traces: P3 exact retry, P4 a denied or peeked call changes nothing, P5
 * isolation, P7 forgetting what is fresh, and what `remaining`, `reset`
 * and settling mean.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/oracle/oracle_trace.h"

#if defined(WEIR_LONG)
#define TRACES 20000
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEIR_EMULATED)
#define TRACES 20
#else
#define TRACES 400
#endif

#define CALLS 500

/* Under which rule and with which calls; and which of them has just been made. */
struct scene {
    struct oracle_trace trace;
    struct oracle_op ops[CALLS];
    const char *algorithm;
    uint64_t seed;
};

typedef void (*scene_fn)(struct scene *s);

static void on_every_algorithm(scene_fn play)
{
    static struct scene s;
    const char *given = getenv("WEIR_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : 1;
    print_message("# WEIR_SEED=%" PRIu64 "\n", seed);
    for (int a = WEIR_TOKEN_BUCKET; a <= WEIR_SLIDING_LOG; a++) {
        for (uint64_t i = 0; i < TRACES; i++) {
            struct oracle_random g = {seed + i};
            s.seed = seed + i;
            s.algorithm = weir_algorithm_name(a);
            s.trace = (struct oracle_trace){.rule = oracle_random_rule(&g, a), .ops = s.ops};
            oracle_random_ops(&g, &s.trace, CALLS, false);
            play(&s);
        }
    }
}

static struct weir *open_limiter(const struct scene *s)
{
    struct weir_options o = oracle_options(&s->trace.rule);
    struct weir *w;
    assert_int_equal(weir_open(&w, &o, NULL), 0);
    return w;
}

static struct weir_answer call(struct weir *w, const struct oracle_op *op)
{
    struct weir_answer a;
    assert_int_equal(oracle_call(w, oracle_key_names[op->key], op, &a), 0);
    return a;
}

/* The same question as *op for n units at a time; -1 beyond the end of the time line. */
static int peek(struct weir *w, const struct oracle_op *op, uint64_t n, uint64_t time_ns,
                uint64_t wait_ns)
{
    struct oracle_op p = {ORACLE_PEEK, op->key, time_ns, n, wait_ns, 0};
    struct weir_answer a;
    return oracle_call(w, oracle_key_names[op->key], &p, &a) == 0 ? a.verdict : -1;
}

#define EXPECT(s, i, condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fail_msg("%s, WEIR_SEED=%" PRIu64 ", call %zu: not so: %s", (s)->algorithm, (s)->seed, \
                     (i), #condition);                                                             \
        }                                                                                          \
    } while (0)

static void retry_is_exact(struct scene *s)
{
    struct weir *w = open_limiter(s);
    for (size_t i = 0; i < s->trace.n; i++) {
        const struct oracle_op *op = &s->ops[i];
        struct weir_answer a = call(w, op);
        uint64_t then = op->time_ns + a.retry_after_ns;
        uint64_t cost = op->verb == ORACLE_CHECK || op->verb == ORACLE_PEEK ? op->cost : 1;
        EXPECT(s, i, (a.verdict == WEIR_ALLOW) == (a.retry_after_ns == 0));
        EXPECT(s, i, (a.verdict == WEIR_NEVER) == (a.retry_after_ns == WEIR_FOREVER));
        if (a.verdict == WEIR_DENY) {
            EXPECT(s, i, peek(w, op, cost, then - 1, op->wait_ns) != WEIR_ALLOW);
            EXPECT(s, i, peek(w, op, cost, then, op->wait_ns) != WEIR_DENY);
        }
    }
    weir_close(w);
}

static void P3_denied_until_retry_after_and_allowed_from_then_on(void **state)
{
    on_every_algorithm(retry_is_exact);
}

static void remaining_is_exact(struct scene *s)
{
    struct weir *w = open_limiter(s);
    for (size_t i = 0; i < s->trace.n; i++) {
        const struct oracle_op *op = &s->ops[i];
        struct weir_answer a = call(w, op);
        EXPECT(s, i, a.remaining <= a.quota);
        EXPECT(s, i, a.remaining == 0 || peek(w, op, a.remaining, op->time_ns, 0) == WEIR_ALLOW);
        EXPECT(s, i, peek(w, op, a.remaining + 1, op->time_ns, 0) != WEIR_ALLOW);
    }
    weir_close(w);
}

static void remaining_can_be_taken_and_one_more_cannot(void **state)
{
    on_every_algorithm(remaining_is_exact);
}

static void reset_is_exact(struct scene *s)
{
    struct weir *w = open_limiter(s);
    for (size_t i = 0; i < s->trace.n; i++) {
        const struct oracle_op *op = &s->ops[i];
        struct weir_answer a = call(w, op);
        uint64_t then = op->time_ns + a.reset_after_ns;
        EXPECT(s, i, peek(w, op, a.quota, then, 0) != WEIR_DENY);
    }
    weir_close(w);
}

static void after_reset_the_whole_quota_is_there(void **state)
{
    on_every_algorithm(reset_is_exact);
}

static bool writes(const struct oracle_op *op, const struct weir_answer *a)
{
    return op->verb == ORACLE_REFUND || op->verb == ORACLE_PENALIZE ||
           (op->verb != ORACLE_PEEK && a->verdict == WEIR_ALLOW);
}

static bool same(const struct weir_answer *a, const struct weir_answer *b)
{
    return a->verdict == b->verdict && a->remaining == b->remaining && a->granted == b->granted &&
           a->retry_after_ns == b->retry_after_ns && a->reset_after_ns == b->reset_after_ns &&
           a->delay_ns == b->delay_ns;
}

/* One limiter gets all calls, the other only those that were allowed to write. */
static void only_writers_matter(struct scene *s)
{
    struct weir *all = open_limiter(s);
    struct weir *writers = open_limiter(s);
    for (size_t i = 0; i < s->trace.n; i++) {
        struct weir_answer a = call(all, &s->ops[i]);
        if (writes(&s->ops[i], &a)) {
            struct weir_answer b = call(writers, &s->ops[i]);
            EXPECT(s, i, same(&a, &b));
        }
    }
    weir_close(all);
    weir_close(writers);
}

static void P4_a_denied_or_peeked_call_changes_nothing(void **state)
{
    on_every_algorithm(only_writers_matter);
}

/* One limiter has all keys, the others one each. */
static void only_the_key_matters(struct scene *s)
{
    struct weir *all = open_limiter(s);
    struct weir *own[ORACLE_KEYS];
    for (size_t k = 0; k < ORACLE_KEYS; k++) {
        own[k] = open_limiter(s);
    }
    for (size_t i = 0; i < s->trace.n; i++) {
        struct weir_answer a = call(all, &s->ops[i]);
        struct weir_answer b = call(own[s->ops[i].key], &s->ops[i]);
        EXPECT(s, i, same(&a, &b));
    }
    weir_close(all);
    for (size_t k = 0; k < ORACLE_KEYS; k++) {
        weir_close(own[k]);
    }
}

static void P5_no_key_influences_another(void **state)
{
    on_every_algorithm(only_the_key_matters);
}

/*
 * One limiter is swept after every call, the other never. Without refunds: one of
 * what was never taken moves the window of a key that is there, and cannot of one
 * that is not.
 */
static void sweeping_does_not_matter(struct scene *s)
{
    struct weir *swept = open_limiter(s);
    struct weir *left = open_limiter(s);
    for (size_t i = 0; i < s->trace.n; i++) {
        if (s->ops[i].verb == ORACLE_REFUND) {
            continue;
        }
        struct weir_answer a = call(swept, &s->ops[i]);
        struct weir_answer b = call(left, &s->ops[i]);
        EXPECT(s, i, same(&a, &b));
        EXPECT(s, i, weir_sweep_at(swept, 1000, s->ops[i].time_ns) >= 0);
    }
    weir_close(swept);
    weir_close(left);
}

static void P7_forgetting_keys_that_are_as_good_as_new_changes_no_answer(void **state)
{
    on_every_algorithm(sweeping_does_not_matter);
}

/* All of a window was used, and its successor begun and emptied again; then comes a laggard. */
static int laggard_then_one_more(bool sweep)
{
    struct oracle_rule r = {
        .algorithm = WEIR_FIXED_WINDOW, .count = 3, .period_ns = 10 * WEIR_SECOND};
    const struct oracle_op ops[] = {
        {ORACLE_CHECK, 0, 9500 * WEIR_MILLISECOND, 3, 0, 0},
        {ORACLE_CHECK, 0, 10200 * WEIR_MILLISECOND, 1, 0, 0},
        {ORACLE_REFUND, 0, 10200 * WEIR_MILLISECOND, 1, 0, 10200 * WEIR_MILLISECOND},
    };
    const struct oracle_op late = {ORACLE_CHECK, 0, 9900 * WEIR_MILLISECOND, 3, 0, 0};
    const struct oracle_op last = {ORACLE_CHECK, 0, 10300 * WEIR_MILLISECOND, 1, 0, 0};
    struct scene s = {.trace = {.rule = r}};
    oracle_rule_init(&s.trace.rule);
    struct weir *w = open_limiter(&s);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(call(w, &ops[i]).verdict, WEIR_ALLOW);
    }
    if (sweep) {
        assert_true(weir_sweep_at(w, 1000, 10200 * WEIR_MILLISECOND) >= 0);
    }
    assert_int_equal(call(w, &late).verdict, WEIR_ALLOW);
    int verdict = call(w, &last).verdict;
    weir_close(w);
    return verdict;
}

static void a_sweep_does_not_let_a_laggard_into_a_window_that_is_over(void **state)
{
    /* Counted in the window that has begun: the other would have had twice its quota. */
    assert_int_equal(laggard_then_one_more(false), WEIR_DENY);
    assert_int_equal(laggard_then_one_more(true), WEIR_DENY);
}

/* Settles what *op reserved, and does the same by hand in the other limiter. */
static void settle_both(struct scene *s, size_t i, struct weir *w, struct weir *by_hand,
                        struct weir_reservation *reservation, uint64_t charged_ns, uint64_t now)
{
    struct oracle_op op = s->ops[i];
    uint64_t actual = i + 1 < s->trace.n ? s->ops[i + 1].cost : 0;
    struct weir_answer a;
    EXPECT(s, i, weir_settle_at(w, reservation, actual, now, &a) == 0);
    op.verb = actual < op.cost ? ORACLE_REFUND : actual > op.cost ? ORACLE_PENALIZE : ORACLE_PEEK;
    op.cost = actual < op.cost ? op.cost - actual : actual > op.cost ? actual - op.cost : 1;
    op.wait_ns = 0;
    op.time_ns = now;
    op.charged_ns = charged_ns;
    struct weir_answer b = call(by_hand, &op);
    EXPECT(s, i, same(&a, &b));
}

static void settling_is_refund_or_penalty(struct scene *s)
{
    struct weir *w = open_limiter(s);
    struct weir *by_hand = open_limiter(s);
    uint64_t now = 0;
    uint64_t last = oracle_last_time(&s->trace.rule); /* no place can be named that ends after it */
    for (size_t i = 0; i < s->trace.n; i++) {
        struct oracle_op *op = &s->ops[i];
        struct weir_reservation reservation;
        struct weir_answer a;
        now = op->time_ns > now ? op->time_ns : now;
        op->verb = ORACLE_CHECK;
        op->cost = op->cost == 0 ? 1 : op->cost;
        op->wait_ns = 0;
        op->time_ns = now;
        const char *key = oracle_key_names[op->key];
        EXPECT(s, i, weir_reserve_at(w, key, strlen(key), op->cost, 1, now, &reservation, &a) == 0);
        struct weir_answer b = call(by_hand, op);
        EXPECT(s, i, same(&a, &b));
        uint64_t place = s->trace.rule.algorithm == WEIR_LEAKY_BUCKET ? a.reset_after_ns : 0;
        if (a.verdict == WEIR_ALLOW && now + place <= last) {
            settle_both(s, i, w, by_hand, &reservation, now + place, now);
        }
    }
    weir_close(w);
    weir_close(by_hand);
}

static void settling_gives_back_or_charges_the_difference(void **state)
{
    on_every_algorithm(settling_is_refund_or_penalty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(P3_denied_until_retry_after_and_allowed_from_then_on),
        cmocka_unit_test(remaining_can_be_taken_and_one_more_cannot),
        cmocka_unit_test(after_reset_the_whole_quota_is_there),
        cmocka_unit_test(P4_a_denied_or_peeked_call_changes_nothing),
        cmocka_unit_test(P5_no_key_influences_another),
        cmocka_unit_test(P7_forgetting_keys_that_are_as_good_as_new_changes_no_answer),
        cmocka_unit_test(a_sweep_does_not_let_a_laggard_into_a_window_that_is_over),
        cmocka_unit_test(settling_gives_back_or_charges_the_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
