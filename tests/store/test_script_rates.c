/*
 * Compares rates that come with the questions (CL.THROTTLE) in the store with weir_throttle_at():
 * both get the same random calls at whole microseconds, and the rate of a key changes all the time.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rules/file/adhoc.h"
#include "support/store/store_run.h"

#define CALLS 2000 /* in one trace, sent as one pipeline */

#ifdef WEIR_LONG
#define TRACES 300
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRACES 3
#else
#define TRACES 10
#endif

#define START_NS (UINT64_C(1789000000) * WEIR_SECOND)

static struct store_redis redis;
static uint64_t seed = 20261118;
static struct weir_options options;
static struct store_params own;

struct step {
    struct remote_rate rate;
    uint64_t now_ns;
    int mode;
    bool reset;
    uint64_t cost;
    const char *key;
    struct store_params params;
    struct store_call call;
};

/* Returns a rate that the store can count: a call of CL.THROTTLE in whole numbers. */
static struct remote_rate any_rate(struct oracle_random *g)
{
    static const uint64_t counts[] = {1, 2, 3, 7, 10, 60, 999, 12345, 1000000, 999999999};
    static const uint64_t periods[] = {1, 2, 7, 60, 61, 3600, 86400};
    struct store_params p;
    struct remote_rate rate;
    do {
        rate.interval_ns =
            periods[oracle_between(g, 0, 6)] * WEIR_SECOND / counts[oracle_between(g, 0, 9)];
        rate.burst = oracle_once_in(g, 3) ? oracle_between(g, 1, 3) : oracle_between(g, 1, 1000);
    } while (store_params_rate(&own, &rate, &p) != 0);
    return rate;
}

/* Lets a key keep one of three rates for a while, so that their states meet. */
static void make(struct oracle_random *g, struct step *steps)
{
    struct remote_rate rates[3] = {any_rate(g), any_rate(g), any_rate(g)};
    uint64_t now_ns = START_NS;
    for (size_t i = 0; i < CALLS; i++) {
        struct step *s = &steps[i];
        size_t which = oracle_between(g, 0, 2);
        rates[which] = oracle_once_in(g, 20) ? any_rate(g) : rates[which];
        now_ns += oracle_once_in(g, 2) ? 0 : oracle_magnitude(g, 1, 20 * WEIR_SECOND);
        now_ns -= now_ns % WEIR_MICROSECOND;
        *s = (struct step){.rate = rates[which],
                           .now_ns = now_ns,
                           .mode = oracle_once_in(g, 5) ? WEIR_PEEK : WEIR_CHECK,
                           .reset = oracle_once_in(g, 50),
                           .key = oracle_key_names[oracle_between(g, 0, ORACLE_KEYS - 1)]};
        s->cost = s->mode == WEIR_PEEK && oracle_once_in(g, 2) ? 0 : oracle_between(g, 1, 4);
        s->cost = oracle_once_in(g, 10) ? s->rate.burst : s->cost;
        assert_int_equal(store_params_rate(&own, &s->rate, &s->params), 0);
    }
}

static void put(struct step *s)
{
    struct oracle_op op = {.verb = s->mode == WEIR_PEEK ? ORACLE_PEEK : ORACLE_CHECK,
                           .cost = s->cost};
    store_run_call(s->reset ? &own : &s->params, s->key, &op, &s->call);
    s->call.verb = s->reset ? REMOTE_RESET : s->call.verb;
    store_run_put(&redis, &clocked_scripts.row[WEIR_TOKEN_BUCKET], &s->call, s->now_ns);
}

static void compare(struct weir *local, const struct step *s, uint64_t of, size_t i)
{
    struct weir_question q = {
        .key = s->key, .key_len = strlen(s->key), .cost = s->cost, .mode = s->mode};
    struct weir_answer here;
    struct weir_answer store;
    if (s->reset) {
        (void)store_redis_next(&redis);
        (void)weir_reset(local, s->key, q.key_len);
        assert_true(script_done(store_redis_next(&redis), REMOTE_RESET) >= 0);
        return;
    }
    assert_int_equal(
        weir_throttle_at(local, s->rate.interval_ns, s->rate.burst, &q, s->now_ns, &here), 0);
    store_run_answer(&redis, &s->call, &store);
    const char *what = store_run_difference(&here, &store);
    if (what != NULL) {
        store_run_print(&here, &store);
        fail_msg("seed %" PRIu64 ", call %zu on %s: burst %" PRIu64 " interval %" PRIu64
                 " ns, mode %d cost %" PRIu64 ": %s differs",
                 of, i, s->key, s->rate.burst, s->rate.interval_ns, s->mode, s->cost, what);
    }
}

static void run(uint64_t of)
{
    struct oracle_random g = {of};
    struct step *steps = calloc(CALLS, sizeof *steps);
    struct weir *local;
    assert_non_null(steps);
    assert_int_equal(weir_open(&local, &options, NULL), 0);
    make(&g, steps);
    store_redis_put(&redis, "FLUSHALL", NULL);
    for (size_t i = 0; i < CALLS; i++) {
        put(&steps[i]);
    }
    store_redis_send(&redis);
    (void)store_redis_next(&redis);
    for (size_t i = 0; i < CALLS; i++) {
        compare(local, &steps[i], of, i);
    }
    weir_close(local);
    free(steps);
}

static void a_key_keeps_its_state_when_its_rate_changes(void **state)
{
    for (uint64_t i = 0; i < TRACES; i++) {
        run(seed + i);
    }
}

static void rates_are_refused_as_they_are_locally(void **state)
{
    static const uint64_t year = 365 * WEIR_DAY;
    const struct {
        struct remote_rate rate;
        int error;
    } rows[] = {
        {{0, 1}, WEIR_ERATE},
        {{year, 0}, WEIR_ERATE},
        {{year, ADHOC_YEARS}, 0},
        {{year, ADHOC_YEARS + 1}, WEIR_EQUOTA},
        {{ADHOC_YEARS * year + 1, 1}, WEIR_EQUOTA},
        {{UINT64_MAX, UINT64_MAX}, WEIR_EQUOTA},
        {{1000, UINT64_C(1) << 49}, 0}, /* whole microseconds */
    };
    struct weir *local;
    assert_int_equal(weir_open(&local, &options, NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_question q = {.key = "k", .key_len = 1, .cost = 1};
        struct weir_answer a;
        struct store_params p;
        const struct remote_rate *rate = &rows[i].rate;
        assert_int_equal(store_params_rate(&own, rate, &p), rows[i].error);
        assert_int_equal(weir_throttle_at(local, rate->interval_ns, rate->burst, &q, START_NS, &a),
                         rows[i].error);
    }
    /* Only a store has this bound: units times a remainder must be exact in a double. */
    struct store_params p;
    assert_int_equal(store_params_rate(&own, &(struct remote_rate){3333333, UINT64_C(1) << 40}, &p),
                     WEIR_EQUOTA);
    weir_close(local);
}

static int start(void **state)
{
    struct weir_error error;
    adhoc_options(1000, WEIR_EVICT, &options);
    options.flags = WEIR_EXPLICIT_TIME;
    assert_int_equal(store_params(&options, &own, &error), 0);
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
        cmocka_unit_test_setup_teardown(a_key_keeps_its_state_when_its_rate_changes, start, stop),
        cmocka_unit_test_setup_teardown(rates_are_refused_as_they_are_locally, start, stop),
    };
    const char *given = getenv("WEIR_SEED");
    seed = given != NULL ? strtoull(given, NULL, 10) : seed;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
