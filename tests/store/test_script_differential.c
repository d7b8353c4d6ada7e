/*
 * Compares the scripts with the local code: both get the same random calls, at whole microseconds.
 * Every answer must be equal; a store's times are whole microseconds, so the local ones are rounded
 * up.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/store/store_run.h"

#define CALLS 2000 /* in one trace, sent as one pipeline */

#ifdef WEIR_LONG
#define TRACES 300
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRACES 3
#else
#define TRACES 10
#endif

static struct store_redis redis;
static uint64_t seed = 20261115;

static uint64_t whole(uint64_t ns)
{
    return ns - ns % WEIR_MICROSECOND;
}

/* ---- one trace ---- */

enum { ASK, BLOCK, UNBLOCK, RESET };

/* A call of the oracle, or one that it does not have, on the same key and at the same time. */
struct step {
    int kind;
    uint64_t until_ns;
    struct oracle_op op;
    struct store_call call;
};

struct world {
    struct oracle_trace trace;
    struct store_params params;
    struct weir *local;
    struct step *steps;
};

static void run_local(struct world *w, const struct step *s, struct weir_answer *a)
{
    const char *key = oracle_key_names[s->op.key];
    size_t len = strlen(key);
    switch (s->kind) {
    case BLOCK:
        assert_int_equal(weir_block_at(w->local, key, len, s->until_ns, s->op.time_ns), 0);
        break;
    case UNBLOCK:
        assert_true(weir_unblock(w->local, key, len) >= 0);
        break;
    case RESET:
        assert_true(weir_reset(w->local, key, len) >= 0);
        break;
    default:
        assert_int_equal(oracle_call(w->local, key, &s->op, a), 0);
    }
}

/* Calls the algorithm's script, and often the one that has all algorithms, which decides every call
 * in full: so each reads the states that the other has written. */
static void put(struct world *w, struct step *s)
{
    size_t i = (size_t)(s - w->steps);
    int script = i % 8 < 3 ? 0 : w->params.algorithm;
    static const unsigned verbs[] = {
        [BLOCK] = SCRIPT_BLOCK_UNTIL, [UNBLOCK] = REMOTE_UNBLOCK, [RESET] = REMOTE_RESET};
    store_run_call(&w->params, oracle_key_names[s->op.key], &s->op, &s->call);
    if (s->kind != ASK) {
        s->call.verb = verbs[s->kind];
        s->call.part.time_ns = s->until_ns;
    }
    store_run_put(&redis, &clocked_scripts.row[script], &s->call, s->op.time_ns);
}

static void compare(struct world *w, size_t i, uint64_t of)
{
    struct step *s = &w->steps[i];
    struct weir_answer local;
    struct weir_answer store;
    run_local(w, s, &local);
    if (s->kind != ASK) {
        (void)store_redis_next(&redis);
        assert_true(script_done(store_redis_next(&redis), s->call.verb) >= 0);
        return;
    }
    store_run_answer(&redis, &s->call, &store);
    const char *what = store_run_difference(&local, &store);
    if (what != NULL) {
        const struct oracle_rule *r = &w->trace.rule;
        store_run_print(&local, &store);
        fail_msg("seed %" PRIu64 ", %s %" PRIu64 " per %" PRIu64 " ns, quota %" PRIu64
                 " debt %" PRIu64 " offset %" PRIu64 ", call %zu on %s: verb %d cost %" PRIu64
                 " wait %" PRIu64 " charged %" PRIu64 " at %" PRIu64 " ns: %s differs",
                 of, weir_algorithm_name(r->algorithm), r->count, r->period_ns, r->quota,
                 r->max_debt, r->offset_ns, i, oracle_key_names[s->op.key], (int)s->op.verb,
                 s->op.cost, s->op.wait_ns, s->op.charged_ns, s->op.time_ns, what);
    }
}

/* Rounds the end of a block up to an even microsecond, which the script keeps: an odd one would be
 * a ban. */
static uint64_t even(uint64_t ns)
{
    return ns + ns / WEIR_MICROSECOND % 2 * WEIR_MICROSECOND;
}

/* Sometimes replaces a call by a verb. A block ends soon, much later, or never. */
static void sprinkle(struct oracle_random *g, struct step *s)
{
    switch (oracle_between(g, 0, 60)) {
    case 0:
    case 1:
        s->kind = BLOCK;
        s->until_ns = oracle_once_in(g, 8)
                          ? WEIR_FOREVER
                          : even(whole(s->op.time_ns +
                                       oracle_magnitude(g, WEIR_MICROSECOND, 10 * WEIR_SECOND)));
        break;
    case 2:
    case 3:
    case 4:
        s->kind = UNBLOCK;
        break;
    case 5:
        s->kind = RESET;
        break;
    default:
        break;
    }
}

/*
 * Lets every other refund name the last place of a queue, if that ends at a whole microsecond. The
 * oracle does not know blocks: after the first one (queue->window is set) its queue may be another
 * one, and refunds name no place.
 */
static void name_place(struct oracle_random *g, const struct oracle_rule *r, struct step *s,
                       struct oracle_key *queue, uint64_t last_ns)
{
    struct weir_answer a;
    bool blocked = queue->window != 0 || s->kind == BLOCK;
    if (s->kind == RESET) {
        oracle_key_finish(queue);
    }
    queue->window = blocked;
    if (r->algorithm != WEIR_LEAKY_BUCKET || s->kind != ASK) {
        return;
    }
    if (s->op.verb == ORACLE_REFUND && blocked) {
        s->op.charged_ns = 0;
    } else if (s->op.verb == ORACLE_REFUND && queue->known) {
        uint64_t ends_ns = oracle_last_place_ends(r, queue);
        bool named = whole(ends_ns) == ends_ns && ends_ns <= last_ns;
        s->op.charged_ns = named && oracle_once_in(g, 2) ? ends_ns : s->op.charged_ns;
        if (!named && whole(ends_ns) + WEIR_MICROSECOND == s->op.charged_ns) {
            s->op.charged_ns += WEIR_MICROSECOND; /* a store would take it for that name */
        }
    }
    oracle_apply(r, queue, &s->op, &a);
}

static void make_steps(struct oracle_random *g, struct world *w, bool set_back)
{
    struct oracle_key queues[ORACLE_KEYS] = {{0}};
    uint64_t last_ns = oracle_last_time(&w->trace.rule);
    oracle_random_ops(g, &w->trace, CALLS, set_back);
    for (size_t i = 0; i < CALLS; i++) {
        struct step *s = &w->steps[i];
        *s = (struct step){.op = w->trace.ops[i]};
        s->op.time_ns = whole(s->op.time_ns);
        s->op.charged_ns = whole(s->op.charged_ns);
        s->op.wait_ns = s->op.wait_ns == UINT64_MAX ? UINT64_MAX : whole(s->op.wait_ns);
        if (!set_back) { /* only a store forgets a block that is over */
            sprinkle(g, s);
        }
        name_place(g, &w->trace.rule, s, &queues[s->op.key], last_ns);
    }
}

typedef void (*make_fn)(struct oracle_random *g, struct world *w, bool set_back);

/* Runs one trace. Returns false if the store cannot express the rule. */
static bool run_made(const struct oracle_rule *rule, uint64_t of, bool set_back, make_fn make)
{
    struct oracle_random g = {of};
    struct world w = {.trace = {.rule = *rule}};
    struct weir_options o = oracle_options(rule);
    if (store_params(&o, &w.params, NULL) != 0) {
        return false;
    }
    w.trace.ops = calloc(CALLS, sizeof w.trace.ops[0]);
    w.steps = calloc(CALLS, sizeof w.steps[0]);
    assert_int_equal(weir_open(&w.local, &o, NULL), 0);
    make(&g, &w, set_back);
    store_redis_put(&redis, "FLUSHALL", NULL);
    for (size_t i = 0; i < CALLS; i++) {
        put(&w, &w.steps[i]);
    }
    store_redis_send(&redis);
    (void)store_redis_next(&redis);
    for (size_t i = 0; i < CALLS; i++) {
        compare(&w, i, of);
    }
    weir_close(w.local);
    free(w.steps);
    free(w.trace.ops);
    return true;
}

static bool run(const struct oracle_rule *rule, uint64_t of, bool set_back)
{
    return run_made(rule, of, set_back, make_steps);
}

/* ---- many ---- */

/* Returns a rule that a store can express: windows in whole microseconds. */
static struct oracle_rule random_rule(struct oracle_random *g, int algorithm)
{
    struct oracle_rule r;
    do {
        r = oracle_random_rule(g, algorithm);
        if (algorithm != WEIR_TOKEN_BUCKET && algorithm != WEIR_LEAKY_BUCKET) {
            r.period_ns = whole(r.period_ns);
            r.offset_ns = whole(r.offset_ns) % r.period_ns;
        }
        oracle_rule_init(&r);
    } while (oracle_last_time(&r) == 0);
    return r;
}

static void compare_many(int algorithm, bool set_back)
{
    struct oracle_random g = {seed + (unsigned)algorithm * 1000};
    unsigned done = 0;
    for (unsigned i = 0; i < 10 * TRACES && done < TRACES; i++) {
        struct oracle_rule rule = random_rule(&g, algorithm);
        done += run(&rule, oracle_next(&g), set_back);
    }
    assert_int_equal(done, TRACES); /* rules that cannot be expressed are rare */
}

static void any_rule_decides_as_it_does_locally(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        compare_many(algorithm, false);
    }
}

static void also_when_clocks_are_set_back(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        compare_many(algorithm, true);
    }
}

/* ---- at the edges ---- */

static void rules_at_the_edge_of_what_can_be_expressed(void **state)
{
    const uint64_t year = UINT64_C(31557600) * WEIR_SECOND;
    const uint64_t most = UINT64_C(1) << 52; /* maximum of quota times remainder, and of a quota */
    const struct oracle_rule rules[] = {
        {.algorithm = WEIR_TOKEN_BUCKET, .count = 1, .period_ns = WEIR_DAY, .burst = 1},
        {.algorithm = WEIR_TOKEN_BUCKET, .count = 1, .period_ns = 36 * year, .burst = 1},
        {.algorithm = WEIR_TOKEN_BUCKET, .count = 10000000, .period_ns = WEIR_SECOND, .burst = 7},
        {.algorithm = WEIR_TOKEN_BUCKET,
         .count = 9999999,
         .period_ns = WEIR_SECOND,
         .burst = most / 12801,
         .max_debt = 0}, /* a unit takes 0 us and 12,801 parts */
        {.algorithm = WEIR_TOKEN_BUCKET,
         .count = 1000000000,
         .period_ns = WEIR_SECOND,
         .burst = most / 128 - 5,
         .max_debt = 5},
        {.algorithm = WEIR_TOKEN_BUCKET,
         .count = 1000000,
         .period_ns = WEIR_SECOND,
         .burst = UINT64_C(1000000000000),
         .max_debt = 3},
        {.algorithm = WEIR_TOKEN_BUCKET,
         .count = 999999,
         .period_ns = WEIR_DAY,
         .burst = 999999,
         .max_debt = 999999},
        {.algorithm = WEIR_LEAKY_BUCKET,
         .count = 3,
         .period_ns = WEIR_SECOND,
         .queue = 4,
         .max_debt = 9},
        {.algorithm = WEIR_LEAKY_BUCKET, .count = 7, .period_ns = 1000003, .queue = 100000},
        {.algorithm = WEIR_FIXED_WINDOW,
         .count = (UINT64_C(1) << 47),
         .period_ns = WEIR_DAY,
         .max_debt = 1000},
        {.algorithm = WEIR_FIXED_WINDOW, .count = 3, .period_ns = WEIR_MICROSECOND},
        {.algorithm = WEIR_SLIDING_WINDOW,
         .count = 16777000,
         .period_ns = WEIR_DAY,
         .max_debt = 200}, /* products of 2^60 */
        {.algorithm = WEIR_SLIDING_WINDOW, .count = UINT64_C(1000000000), .period_ns = 20 * year},
        {.algorithm = WEIR_SLIDING_WINDOW, .count = 15, .period_ns = 100 * year, .max_debt = 5},
        {.algorithm = WEIR_SLIDING_LOG, .count = 1500, .period_ns = WEIR_SECOND},
        {.algorithm = WEIR_SLIDING_LOG, .count = 1, .period_ns = 100 * year},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct oracle_rule rule = rules[i];
        oracle_rule_init(&rule);
        if (!run(&rule, seed + i, i % 2 != 0)) {
            fail_msg("rule %zu cannot be expressed", i);
        }
    }
}

/*
 * Takes everything, and then peeks whenever the next unit lacks as little time as possible at a
 * whole microsecond: there a quotient of doubles would say that it has arrived.
 */
static void make_near_misses(struct oracle_random *g, struct world *w, bool set_back)
{
    uint64_t unit = w->params.a * STORE_PARTS + w->params.b;
    uint64_t least = 64; /* both are multiples of it */
    uint64_t us = 1;
    while ((us * STORE_PARTS + least) % unit != 0) {
        us++;
    }
    uint64_t all_us = w->params.quota * w->params.a;
    uint64_t stride = all_us / (unit / least) / CALLS * (unit / least);
    w->steps[0].op = (struct oracle_op){.verb = ORACLE_CHECK, .cost = w->params.quota};
    for (size_t i = 1; i < CALLS; i++, us += stride) {
        w->steps[i].op =
            (struct oracle_op){.verb = ORACLE_PEEK, .cost = 1, .time_ns = us * WEIR_MICROSECOND};
    }
}

static void a_unit_that_has_nearly_come_has_not_come(void **state)
{
    struct oracle_rule rule = {
        .algorithm = WEIR_TOKEN_BUCKET, .count = 1700, .period_ns = WEIR_SECOND};
    rule.burst = (UINT64_C(1) << 52) / 30144; /* a unit takes 588 us and 30,144 parts */
    oracle_rule_init(&rule);
    assert_true(run_made(&rule, 0, false, make_near_misses));
}

/* Starts a server for each test, because replies that a failed test has not read would confuse the
 * next. */
static int start(void **state)
{
    store_redis_start(&redis, NULL);
    store_run_load(&redis, &clocked_scripts);
    return 0;
}

static int stop(void **state)
{
    store_redis_stop(&redis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_rule_decides_as_it_does_locally, start, stop),
        cmocka_unit_test_setup_teardown(also_when_clocks_are_set_back, start, stop),
        cmocka_unit_test_setup_teardown(rules_at_the_edge_of_what_can_be_expressed, start, stop),
        cmocka_unit_test_setup_teardown(a_unit_that_has_nearly_come_has_not_come, start, stop),
    };
    const char *given = getenv("WEIR_SEED");
    seed = given != NULL ? strtoull(given, NULL, 10) : seed;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed;
}
