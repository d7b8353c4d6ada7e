/* The shared decision vectors through every script, in a real redis-server. */
#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/store_run.h"

#define FOLDER WEIR_SOURCE_DIR "/tests/vectors"
#define LINES_MAX 2000 /* of one section: they go out at once */

static struct store_redis redis;
static struct scripts scripts;

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

/* A section through one script, in one pipeline. */
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
            replay(name, &v, &scripts.row[params.algorithm], &params);
            replay(name, &v, &scripts.row[0], &params);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_script_answers_every_vector_as_written),
    };
    store_redis_start(&redis, NULL);
    store_run_scripts(&scripts);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scripts_finish(&scripts);
    store_redis_stop(&redis);
    return failed;
}
