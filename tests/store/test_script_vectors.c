/* Runs the shared decision vectors through every script, in a real redis-server. */
#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/store/store_run.h"

#define FOLDER WEIR_SOURCE_DIR "/tests/vectors"
#define LINES_MAX 2000 /* of one section: they are sent at once */

static struct store_redis redis;

static void read_answers(const char *name, const struct oracle_vector *v,
                         const struct store_call *calls)
{
    for (size_t i = 0; i < v->trace.n; i++) {
        struct weir_answer a;
        store_run_answer(&redis, &calls[i], &a);
        struct oracle_expected got = oracle_expect(&a, v->unit);
        const struct oracle_expected *want = &v->expected[i];
        if (got.verdict != want->verdict || got.remaining != want->remaining ||
            got.retry != want->retry || got.reset != want->reset || got.delay != want->delay) {
            fail_msg("%s, %s %" PRIu64 " per %" PRIu64 " ns, call %zu at %" PRIu64
                     " ns: got %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                     ", expected %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
                     name, weir_algorithm_name(v->trace.rule.algorithm), v->trace.rule.count,
                     v->trace.rule.period_ns, i + 1, v->trace.ops[i].time_ns, got.verdict,
                     got.remaining, got.retry, got.reset, got.delay, want->verdict, want->remaining,
                     want->retry, want->reset, want->delay);
        }
    }
}

/* Runs a section through one script, in one pipeline. */
static void replay(const char *name, const struct oracle_vector *v, const struct script *script,
                   const struct store_params *params)
{
    static struct store_call calls[LINES_MAX];
    assert_true(v->trace.n <= LINES_MAX);
    (void)store_redis_do(&redis, "FLUSHALL");
    script_put_load(&redis.out, script);
    for (size_t i = 0; i < v->trace.n; i++) {
        const struct oracle_op *op = &v->trace.ops[i];
        store_run_call(params, v->keys[op->key], op, &calls[i]);
        store_run_put(&redis, script, &calls[i], op->time_ns);
    }
    store_redis_send(&redis);
    assert_true(text_is(store_redis_next(&redis)->text, script->sha1));
    read_answers(name, v, calls);
}

static void replay_file(const char *name, size_t *lines)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", FOLDER, name);
    struct oracle_reader reader = {.in = fopen(path, "r")};
    struct oracle_vector v;
    assert_non_null(reader.in);
    while (oracle_vector_read(&reader, &v) == 1) {
        struct weir_options o = oracle_options(&v.trace.rule);
        struct store_params params;
        struct weir_error error;
        if (!v.stepped && store_params(&o, &params, &error) != 0) {
            fail_msg("%s: %s", name, error.text);
        }
        if (!v.stepped) {
            replay(name, &v, &clocked_scripts.row[params.algorithm], &params);
            replay(name, &v, &clocked_scripts.row[0], &params);
            *lines += v.trace.n;
        }
        oracle_vector_finish(&v);
    }
    (void)fclose(reader.in);
}

static void every_script_answers_every_vector_as_written(void **state)
{
    DIR *folder = opendir(FOLDER);
    struct dirent *e;
    size_t lines = 0;
    assert_non_null(folder);
    while ((e = readdir(folder)) != NULL) {
        size_t len = strlen(e->d_name);
        if (len > 4 && strcmp(e->d_name + len - 4, ".vec") == 0) {
            replay_file(e->d_name, &lines);
        }
    }
    (void)closedir(folder);
    assert_true(lines > 1000);
}

/* Makes one call at a time that the test chooses. */
static struct weir_answer call_at(const struct store_params *p, unsigned verb, uint64_t cost,
                                  uint64_t now_ns, uint64_t time_ns, uint64_t *stamp_us)
{
    struct oracle_op op = {.verb = ORACLE_CHECK, .cost = cost, .wait_ns = time_ns};
    struct store_call call;
    struct weir_answer a;
    store_run_call(p, "alice", &op, &call);
    call.verb = verb;
    store_run_put(&redis, &clocked_scripts.row[0], &call, now_ns);
    store_redis_send(&redis);
    (void)store_redis_next(&redis);
    assert_int_equal(script_answer(store_redis_next(&redis), &call.part, 1, &a, stamp_us), 0);
    return a;
}

/* This also holds if a clock is behind: then units are counted in the window of the clocks that are
 * ahead. */
static void what_was_granted_can_be_given_back_under_its_stamp(void **state)
{
    (void)store_redis_do(&redis, "FLUSHALL");
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        struct weir_options o = WEIR_OPTIONS_INIT;
        struct store_params p;
        uint64_t stamp_us;
        o.algorithm = algorithm;
        o.count = 3;
        o.period_ns = 2 * WEIR_SECOND;
        o.queue = algorithm == WEIR_LEAKY_BUCKET ? 2 : 0;
        assert_int_equal(store_params(&o, &p, NULL), 0);
        (void)call_at(&p, REMOTE_CHECK, 1, 10 * WEIR_SECOND, 0, NULL);
        struct weir_answer a = call_at(&p, REMOTE_CHECK, 1, 95 * WEIR_SECOND / 10, 0, &stamp_us);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        uint64_t place = algorithm == WEIR_LEAKY_BUCKET ? a.reset_after_ns : 0;
        struct weir_answer b = call_at(&p, REMOTE_REFUND, 1, 95 * WEIR_SECOND / 10,
                                       stamp_us * WEIR_MICROSECOND + place, NULL);
        assert_int_equal(b.remaining, a.remaining + 1);
    }
}

/* Half a second after a charge of ten to a full bucket, five have refilled; the other five come
 * back. */
static void a_roll_back_returns_no_unit_that_has_refilled(void **state)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct store_params p;
    uint64_t later = 10 * WEIR_SECOND + WEIR_SECOND / 2;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = 10;
    o.period_ns = WEIR_SECOND;
    assert_int_equal(store_params(&o, &p, NULL), 0);
    for (uint64_t taken = 0; taken <= 5; taken++) {
        uint64_t stamp_us;
        (void)store_redis_do(&redis, "FLUSHALL");
        struct weir_answer a = call_at(&p, REMOTE_CHECK, 10, 10 * WEIR_SECOND, 0, &stamp_us);
        uint64_t full_ns = stamp_us * WEIR_MICROSECOND + a.reset_after_ns;
        if (taken > 0) {
            (void)call_at(&p, REMOTE_CHECK, taken, later, 0, NULL);
        }
        a = call_at(&p, SCRIPT_UNDO, 10, later, full_ns, NULL);
        assert_int_equal(a.remaining, 10 - taken);
        a = call_at(&p, SCRIPT_UNDO, 10, later + WEIR_SECOND, full_ns, NULL);
        assert_int_equal(a.remaining, 10); /* a full bucket stays as it is */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_script_answers_every_vector_as_written),
        cmocka_unit_test(what_was_granted_can_be_given_back_under_its_stamp),
        cmocka_unit_test(a_roll_back_returns_no_unit_that_has_refilled),
    };
    store_redis_start(&redis, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    store_redis_stop(&redis);
    return failed;
}
