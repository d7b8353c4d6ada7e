/* Tests a client with a real Redis: many calls at once, missing scripts, a store that dies and
 * returns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "redis/slots.h"
#include "shared/core/script.h"
#include "support/store/client_loop.h"
#include "support/store/redis_world.h"

#define PATIENCE (30 * WEIR_SECOND)

static struct redis_world redis;
static struct client_loop loop;
static struct breakers *breakers;

static struct {
    unsigned made, done, refused;
    unsigned ends[3];
    uint64_t remaining; /* as in the last reply */
} tally;

/* A bucket of a million that gains one unit in 100 s, so that the units taken can be counted. */
#define QUOTA 1000000
static struct store_params params;

static void on_done(void *arg, enum client_end end, const struct store_reply *reply,
                    uint64_t now_ns)
{
    struct store_part part = {.params = &params, .cost = 1};
    struct weir_answer a;
    if (end == CLIENT_REPLIED && script_answer(reply, &part, 1, &a, NULL) != 0) {
        fail_msg("not an answer: %.*s", TEXT_ARGS(reply->whole));
    }
    if (end == CLIENT_REPLIED) {
        tally.remaining = a.remaining;
    }
    tally.ends[end]++;
    tally.done++;
}

static void make(struct buffer *b, unsigned verb, uint64_t deadline)
{
    struct store_part part = {&params, TEXT("weir:1:x:t:{rk}"), 1, 0};
    uint64_t now = loop_now();
    buffer_take(b, buffer_len(b));
    struct client_call call = {
        .slot = cluster_slot(part.key),
        .script = script_for(&store_scripts, &part, 1),
        .count = script_put_arguments(b, verb, &part, 1),
        .deadline_ns = deadline != 0 ? now + deadline : 0,
    };
    call.arguments = buffer_text(b);
    if (client_call(loop.client, &call, now, on_done, NULL) != 0) {
        tally.refused++;
    } else {
        tally.made++;
    }
}

static void make_call(struct buffer *b, uint64_t deadline)
{
    make(b, REMOTE_CHECK, deadline);
}

static bool all_done(void *arg)
{
    return tally.done == tally.made;
}

static bool is_up(void *arg)
{
    return __atomic_load_n(&loop.metrics.up, __ATOMIC_RELAXED) == 1 &&
           !breaker_is_open(breaker_find(breakers, (const char *)arg));
}

static char endpoint[64];

static int begin_with(uint64_t deadline_ns)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = 1;
    o.period_ns = 100 * WEIR_SECOND;
    o.burst = QUOTA;
    assert_int_equal(store_params(&o, &params, NULL), 0);
    memset(&tally, 0, sizeof tally);
    redis_world_alone(&redis, NULL);
    breakers = breakers_create(loop_now());
    (void)snprintf(endpoint, sizeof endpoint, "127.0.0.1:%u", redis.node[0].port);
    loop_start(&loop, redis.url, deadline_ns, breakers);
    assert_true(loop_until(&loop, is_up, endpoint, PATIENCE));
    return 0;
}

static int begin(void **state)
{
    return begin_with(0);
}

/* With this deadline a stall of a busy machine does not end a connection. */
static int begin_patiently(void **state)
{
    return begin_with(PATIENCE);
}

static int finish(void **state)
{
    loop_stop(&loop);
    breakers_destroy(breakers);
    redis_world_stop(&redis);
    return 0;
}

/* Returns how many units the store has taken from the bucket. */
static unsigned charged(struct buffer *b)
{
    make(b, REMOTE_PEEK, PATIENCE);
    assert_true(loop_until(&loop, all_done, NULL, PATIENCE));
    tally.ends[CLIENT_REPLIED]--;
    return (unsigned)(QUOTA - tally.remaining);
}

static double cpu_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void many_calls_are_answered_each_once(void **state)
{
    enum { ROUNDS = 100, AT_ONCE = 500 };
    struct buffer b;
    buffer_init(&b, 4096);
    uint64_t start = loop_now();
    double cpu = cpu_seconds();
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned k = 0; k < AT_ONCE; k++) {
            make_call(&b, PATIENCE);
        }
        assert_true(loop_until(&loop, all_done, NULL, PATIENCE));
    }
    cpu = cpu_seconds() - cpu;
    double took = (double)(loop_now() - start) / 1e9;
    print_message("%.0f calls/s, %.2f us of CPU each with system calls\n", ROUNDS * AT_ONCE / took,
                  cpu * 1e6 / (ROUNDS * AT_ONCE));
    assert_int_equal(tally.ends[CLIENT_REPLIED], ROUNDS * AT_ONCE);
    assert_int_equal(charged(&b), ROUNDS * AT_ONCE);
    buffer_finish(&b);
}

static void scripts_that_were_flushed_are_loaded_again(void **state)
{
    struct buffer b;
    buffer_init(&b, 4096);
    assert_int_equal(charged(&b), 0); /* this loads the script */
    uint64_t before = loop.metrics.resent;
    for (unsigned i = 0; i < 20; i++) {
        assert_string_equal(redis_node_run(&redis.node[0], "SCRIPT FLUSH"), "OK");
        for (unsigned k = 0; k < 50; k++) {
            make_call(&b, PATIENCE);
        }
        assert_true(loop_until(&loop, all_done, NULL, PATIENCE));
    }
    assert_int_equal(tally.ends[CLIENT_REPLIED], 1000);
    assert_int_equal(loop.metrics.resent - before, 1000); /* each once */
    assert_int_equal(charged(&b), 1000);
    buffer_finish(&b);
}

/* Keeps making calls with deadlines of 5 ms for that long. */
static void call_for(uint64_t ns, struct buffer *b)
{
    uint64_t end = loop_now() + ns;
    while (loop_now() < end) {
        for (unsigned k = 0; k < 5; k++) {
            make_call(b, 0);
        }
        loop_turn(&loop, WEIR_MILLISECOND);
    }
}

/* Calls until one is answered within its deadline: a busy machine may delay the first ones. */
static void call_until_replied(struct buffer *b)
{
    uint64_t end = loop_now() + PATIENCE;
    do {
        assert_true(loop_now() < end);
        call_for(200 * WEIR_MILLISECOND, b);
    } while (tally.ends[CLIENT_REPLIED] == 0);
}

static void a_store_that_dies_and_returns_is_found_again(void **state)
{
    struct buffer b;
    buffer_init(&b, 4096);
    call_until_replied(&b);
    redis_node_kill(&redis.node[0]);
    call_for(500 * WEIR_MILLISECOND, &b);
    assert_true(loop_until(&loop, all_done, NULL, PATIENCE));
    assert_true(tally.ends[CLIENT_UNKNOWN] + tally.ends[CLIENT_NOT_RUN] > 0);
    assert_true(tally.refused > 0); /* at once: breaker open, or no connection */
    assert_true(breaker_is_open(breaker_find(breakers, endpoint)));
    redis_node_start(&redis.node[0]);
    redis_node_await(&redis.node[0]);
    uint64_t back = loop_now();
    assert_true(loop_until(&loop, is_up, endpoint, PATIENCE));
    print_message("found again after %u ms; %u calls lost\n",
                  (unsigned)((loop_now() - back) / WEIR_MILLISECOND), tally.ends[CLIENT_UNKNOWN]);
    unsigned lost = tally.ends[CLIENT_UNKNOWN];
    unsigned before = tally.ends[CLIENT_REPLIED];
    make_call(&b, PATIENCE);
    assert_true(loop_until(&loop, all_done, NULL, PATIENCE));
    assert_int_equal(tally.ends[CLIENT_REPLIED], before + 1);
    assert_int_equal(tally.ends[CLIENT_UNKNOWN], lost);
    buffer_finish(&b);
}

static void a_store_that_hangs_leaves_nobody_waiting(void **state)
{
    struct buffer b;
    buffer_init(&b, 4096);
    redis_node_pause(&redis.node[0]);
    call_for(500 * WEIR_MILLISECOND, &b);
    assert_true(loop_until(&loop, all_done, NULL, PATIENCE));
    assert_true(tally.ends[CLIENT_UNKNOWN] >= 5);
    assert_int_equal(tally.ends[CLIENT_REPLIED], 0);
    assert_true(tally.refused > 0);
    redis_node_resume(&redis.node[0]);
    assert_true(loop_until(&loop, is_up, endpoint, PATIENCE));
    make_call(&b, PATIENCE);
    assert_true(loop_until(&loop, all_done, NULL, PATIENCE));
    assert_int_equal(tally.ends[CLIENT_REPLIED], 1);
    assert_in_range(charged(&b), 1, 1 + tally.ends[CLIENT_UNKNOWN]); /* these may have run */
    buffer_finish(&b);
}

static bool has_error(void *arg)
{
    return client_last_error(loop.client)[0] != 0;
}

static void a_store_with_a_password_says_so(void **state)
{
    assert_string_equal(redis_node_run(&redis.node[0], "CONFIG SET requirepass hunter2"), "OK");
    loop_stop(&loop);
    loop_start(&loop, redis.url, 0, breakers);
    assert_true(loop_until(&loop, has_error, NULL, PATIENCE));
    assert_non_null(strstr(client_last_error(loop.client), "NOAUTH"));
    loop_stop(&loop);
    loop_start(&loop, redis.url, 0, breakers);
    loop.password = TEXT("wrong");
    assert_true(loop_until(&loop, has_error, NULL, PATIENCE));
    assert_non_null(strstr(client_last_error(loop.client), "AUTH: WRONGPASS"));
    assert_null(strstr(client_last_error(loop.client), "wrong "));
    loop_stop(&loop);
    loop_start(&loop, redis.url, 0, breakers);
    loop.password = TEXT("hunter2");
    loop.options.user = TEXT("default");
    assert_true(loop_until(&loop, is_up, endpoint, PATIENCE));
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, finish)
#define COUNTED(name) cmocka_unit_test_setup_teardown(name, begin_patiently, finish)
    const struct CMUnitTest tests[] = {
        COUNTED(many_calls_are_answered_each_once),
        COUNTED(scripts_that_were_flushed_are_loaded_again),
        STORY(a_store_that_dies_and_returns_is_found_again),
        STORY(a_store_that_hangs_leaves_nobody_waiting),
        STORY(a_store_with_a_password_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
