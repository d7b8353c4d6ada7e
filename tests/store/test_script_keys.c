/*
 * Tests what the scripts leave in a real redis-server, by its own clock: what is written and what
 * is not, for how long, and how large; blocks; and values that weir did not write.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "redis/slots.h"
#include "support/store/store_run.h"

#define ALGORITHMS 5
#define QUOTA 3

static struct store_redis redis;

/* ---- asking ---- */

/* Returns a limit that does not refill while a test runs. */
static struct store_params limit_of(int algorithm, uint64_t count)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct store_params p;
    o.algorithm = algorithm;
    o.count = count;
    o.period_ns = 1000 * WEIR_DAY; /* no window ends while a test runs */
    o.queue = algorithm == WEIR_LEAKY_BUCKET ? count - 1 : 0;
    assert_int_equal(store_params(&o, &p, NULL), 0);
    return p;
}

static void key_of(const struct store_params *p, const char *name, struct store_key *key)
{
    struct store_key head;
    assert_int_equal(store_key_head(TEXT("weir"), TEXT("api"), p, &head, NULL), 0);
    store_key(&head, (struct weir_text){NULL, 0}, text_of(name), key);
}

static const struct store_reply *call(const struct store_params *p, enum script_how how,
                                      unsigned verb, uint64_t cost, uint64_t time_ns)
{
    struct store_key key;
    key_of(p, "alice", &key);
    struct store_part part = {p, store_key_text(&key), cost, time_ns};
    script_put_call(&redis.out, script_for(&store_scripts, &part, 1), how, verb, &part, 1);
    store_redis_send(&redis);
    return store_redis_next(&redis);
}

static struct weir_answer ask(const struct store_params *p, unsigned verb, uint64_t cost,
                              uint64_t time_ns)
{
    struct weir_answer a;
    struct store_part part = {.params = p, .cost = cost};
    const struct store_reply *r = call(p, SCRIPT_BY_SHA, verb, cost, time_ns);
    if (script_answer(r, &part, 1, &a, NULL) != 0) {
        fail_msg("not an answer: %.*s", TEXT_ARGS(r->text));
    }
    return a;
}

static int act(const struct store_params *p, unsigned verb, uint64_t time_ns)
{
    return script_done(call(p, SCRIPT_BY_SHA, verb, 1, time_ns), verb);
}

static int64_t integer(const struct store_reply *r)
{
    assert_int_equal(r->type, ':');
    return r->integers[0];
}

static uint64_t info(const char *section, const char *field)
{
    const struct store_reply *r = store_redis_do(&redis, "INFO", section);
    char *text = strndup(r->text.at, r->text.len);
    const char *at = strstr(text, field);
    assert_non_null(at);
    uint64_t value = strtoull(at + strlen(field) + 1, NULL, 10);
    free(text);
    return value;
}

static uint64_t redis_now_ns(void)
{
    const struct store_reply *r = store_redis_do(
        &redis, "EVAL", "local t = redis.call('TIME') return t[1] * 1000000 + t[2]", "0");
    return (uint64_t)integer(r) * WEIR_MICROSECOND;
}

static int64_t keys_without_an_end(void)
{
    return integer(store_redis_do(&redis, "EVAL",
                                  "local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do "
                                  "if redis.call('PTTL', k) < 0 then n = n + 1 end end return n",
                                  "0"));
}

static int fresh(void **state)
{
    (void)store_redis_do(&redis, "FLUSHALL");
    store_run_load(&redis, &store_scripts);
    return 0;
}

/* ---- the time ---- */

static void the_time_of_a_decision_is_the_stores(void **state)
{
    struct store_params p = limit_of(WEIR_TOKEN_BUCKET, QUOTA);
    struct store_part part = {.params = &p, .cost = 1};
    struct weir_answer a;
    uint64_t stamp_us;
    uint64_t before_ns = redis_now_ns();
    const struct store_reply *r = call(&p, SCRIPT_BY_SHA, REMOTE_CHECK, 1, 0);
    assert_int_equal(script_answer(r, &part, 1, &a, &stamp_us), 0);
    uint64_t after_ns = redis_now_ns();
    assert_true(stamp_us * WEIR_MICROSECOND >= before_ns);
    assert_true(stamp_us * WEIR_MICROSECOND <= after_ns);
}

/* ---- what is written ---- */

static void a_denied_call_and_a_peek_write_nothing(void **state)
{
    for (int algorithm = 1; algorithm <= ALGORITHMS; algorithm++) {
        struct store_params p = limit_of(algorithm, QUOTA);
        assert_int_equal(ask(&p, REMOTE_CHECK, QUOTA, 0).verdict, WEIR_ALLOW);
        uint64_t before = info("persistence", "rdb_changes_since_last_save");
        assert_int_equal(ask(&p, REMOTE_CHECK, 1, 0).verdict, WEIR_DENY);
        assert_int_equal(ask(&p, REMOTE_UP_TO, 1, 0).verdict, WEIR_DENY);
        assert_int_equal(ask(&p, REMOTE_PEEK, 1, 0).verdict, WEIR_DENY);
        assert_int_equal(ask(&p, REMOTE_CHECK, QUOTA + 1, 0).verdict, WEIR_NEVER);
        assert_int_equal(info("persistence", "rdb_changes_since_last_save"), before);
        (void)store_redis_do(&redis, "FLUSHALL");
        assert_int_equal(ask(&p, REMOTE_PEEK, 1, 0).verdict, WEIR_ALLOW);
        assert_int_equal(integer(store_redis_do(&redis, "DBSIZE")), 0);
    }
}

/* Runs every verb that writes on every algorithm: the key lives at least until it is fresh. */
static void whatever_is_written_has_an_end_and_not_too_soon(void **state)
{
    static const struct {
        unsigned verb;
        uint64_t cost;
    } steps[] = {{REMOTE_CHECK, 1},       {REMOTE_CHECK, 1},  {REMOTE_REFUND, 1},
                 {REMOTE_PENALIZE, 4},    {REMOTE_UP_TO, 9},  {REMOTE_REFUND, 2},
                 {SCRIPT_BLOCK_UNTIL, 1}, {REMOTE_CHECK, 1},  {REMOTE_PENALIZE, 1},
                 {REMOTE_RESET, 1},       {REMOTE_REFUND, 1}, {REMOTE_UNBLOCK, 1}};
    for (int algorithm = 1; algorithm <= ALGORITHMS; algorithm++) {
        struct store_params p = limit_of(algorithm, QUOTA);
        struct store_key key;
        key_of(&p, "alice", &key);
        char *name = strndup(key.at, key.len);
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
            uint64_t now_ns = redis_now_ns();
            uint64_t time_ns = steps[i].verb == SCRIPT_BLOCK_UNTIL ? now_ns + 5 * WEIR_HOUR
                               : steps[i].verb == REMOTE_REFUND    ? now_ns
                                                                   : 0;
            (void)call(&p, SCRIPT_BY_SHA, steps[i].verb, steps[i].cost, time_ns);
            assert_int_equal(keys_without_an_end(), 0);
            uint64_t reset_ns = ask(&p, REMOTE_PEEK, 1, 0).reset_after_ns;
            int64_t left_ms = integer(store_redis_do(&redis, "PTTL", name));
            if (left_ms >= 0) { /* read after the peek, so a part of the spare second has passed */
                assert_true((uint64_t)left_ms * WEIR_MILLISECOND + WEIR_SECOND / 2 >= reset_ns);
            } else {
                assert_int_equal(reset_ns, 0);
            }
        }
        free(name);
    }
}

/* The first charge of the key is long ago. */
static void each_charge_moves_the_end(void **state)
{
    for (int algorithm = 1; algorithm <= ALGORITHMS; algorithm++) {
        struct store_params p = limit_of(algorithm, QUOTA);
        struct store_key key;
        key_of(&p, "alice", &key);
        key.at[key.len] = '\0';
        static const unsigned verbs[] = {REMOTE_CHECK, REMOTE_PENALIZE, REMOTE_UP_TO};
        for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
            (void)store_redis_do(&redis, "PEXPIRE", key.at, "60000");
            uint64_t reset_ns = ask(&p, verbs[i], 1, 0).reset_after_ns;
            int64_t left_ms = integer(store_redis_do(&redis, "PTTL", key.at));
            assert_true(left_ms > 60000);
            assert_true((uint64_t)left_ms * WEIR_MILLISECOND + WEIR_SECOND / 2 >= reset_ns);
        }
    }
}

static void an_endless_block_is_kept_for_a_century(void **state)
{
    for (int algorithm = 1; algorithm <= ALGORITHMS; algorithm++) {
        struct store_params p = limit_of(algorithm, QUOTA);
        assert_int_equal(act(&p, SCRIPT_BLOCK_UNTIL, WEIR_FOREVER), 0);
        struct weir_answer a = ask(&p, REMOTE_CHECK, 1, 0);
        assert_int_equal(a.verdict, WEIR_DENY);
        assert_int_equal(a.flags, WEIR_FLAG_BLOCKED);
        assert_true(a.retry_after_ns == WEIR_FOREVER);
        struct store_key key;
        key_of(&p, "alice", &key);
        key.at[key.len] = '\0';
        assert_true(integer(store_redis_do(&redis, "PTTL", key.at)) > INT64_C(3155750000000));
    }
}

/* ---- how large ---- */

#define MANY 1000

/*
 * Returns the memory of MANY keys, each with its value and its place in the table of keys.
 * (used_memory as a whole would include the buffers of connections, which come and go.)
 */
static uint64_t memory_of(void (*put)(const struct store_params *p, const char *name),
                          const struct store_params *p)
{
    (void)store_redis_do(&redis, "FLUSHALL");
    for (unsigned i = 0; i < MANY; i++) {
        char name[32];
        struct store_key key;
        (void)snprintf(name, sizeof name, "subscriber-%08u", i);
        put(p, name);
        key_of(p, name, &key);
        key.at[key.len] = '\0';
        store_redis_put(&redis, "MEMORY", "USAGE", key.at, NULL);
    }
    store_redis_send(&redis);
    uint64_t sum = 0;
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_not_equal(store_redis_next(&redis)->type, '-');
        sum += (uint64_t)integer(store_redis_next(&redis));
    }
    assert_int_equal(integer(store_redis_do(&redis, "DBSIZE")), MANY);
    return sum;
}

static void put_check(const struct store_params *p, const char *name)
{
    struct store_key key;
    key_of(p, name, &key);
    struct store_part part = {p, store_key_text(&key), 1, 0};
    script_put_call(&redis.out, script_for(&store_scripts, &part, 1), SCRIPT_BY_SHA, REMOTE_CHECK,
                    &part, 1);
}

/* Writes the usual alternative: a short string with a time to live, under a key of the same
 * length. */
static void put_plain(const struct store_params *p, const char *name)
{
    struct store_key key;
    key_of(p, name, &key);
    key.at[key.len] = '\0';
    store_redis_put(&redis, "SET", key.at, "a-short-string-x", "PX", "3600000", NULL);
}

static void a_key_takes_no_more_memory_than_a_short_string_with_an_end(void **state)
{
    static const struct {
        int algorithm;
        uint64_t count;
        uint64_t period_ns;
    } limits[] = {
        {WEIR_TOKEN_BUCKET, 100, WEIR_HOUR},      {WEIR_TOKEN_BUCKET, 7, WEIR_HOUR},
        {WEIR_LEAKY_BUCKET, 100, WEIR_HOUR},      {WEIR_FIXED_WINDOW, 1000000, WEIR_HOUR},
        {WEIR_FIXED_WINDOW, 1000000, WEIR_DAY},   {WEIR_TOKEN_BUCKET, 10000, WEIR_DAY},
        {WEIR_SLIDING_WINDOW, 1000, WEIR_MINUTE},
    };
    bool given = getenv("WEIR_TEST_STORE") != NULL; /* other versions lay out keys otherwise */
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct weir_options o = WEIR_OPTIONS_INIT;
        struct store_params p;
        o.algorithm = limits[i].algorithm;
        o.count = limits[i].count;
        o.period_ns = limits[i].period_ns;
        assert_int_equal(store_params(&o, &p, NULL), 0);
        uint64_t plain = memory_of(put_plain, &p);
        uint64_t own = memory_of(put_check, &p);
        print_message("%s %" PRIu64 " per %" PRIu64 " s: %" PRIu64 " bytes per key, plain %" PRIu64
                      "\n",
                      weir_algorithm_name(p.algorithm), o.count, o.period_ns / WEIR_SECOND,
                      own / MANY, plain / MANY);
        assert_true(own <= plain || given);
    }
}

/* ---- verbs ---- */

static void a_block_lasts_whatever_happens_to_the_quota(void **state)
{
    for (int algorithm = 1; algorithm <= ALGORITHMS; algorithm++) {
        struct store_params p = limit_of(algorithm, QUOTA);
        uint64_t now_ns = redis_now_ns();
        assert_int_equal(act(&p, SCRIPT_BLOCK_UNTIL, now_ns - WEIR_SECOND), WEIR_ETIME);
        assert_int_equal(act(&p, REMOTE_UNBLOCK, 0), 0);
        assert_int_equal(act(&p, REMOTE_RESET, 0), 0);
        assert_int_equal(ask(&p, REMOTE_CHECK, 1, 0).remaining, QUOTA - 1);
        assert_int_equal(act(&p, SCRIPT_BLOCK_UNTIL, now_ns + 2 * WEIR_HOUR), 0);
        struct weir_answer a = ask(&p, REMOTE_CHECK, 1, 0);
        assert_int_equal(a.verdict, WEIR_DENY);
        assert_int_equal(a.flags, WEIR_FLAG_BLOCKED);
        assert_true(a.retry_after_ns > WEIR_HOUR && a.retry_after_ns <= 2 * WEIR_HOUR);
        assert_int_equal(ask(&p, REMOTE_CHECK, QUOTA + 1, 0).verdict, WEIR_NEVER);
        assert_int_equal(ask(&p, REMOTE_PENALIZE, 1, 0).flags, WEIR_FLAG_BLOCKED);
        assert_int_equal(ask(&p, REMOTE_REFUND, 1, redis_now_ns()).flags, WEIR_FLAG_BLOCKED);
        assert_int_equal(act(&p, REMOTE_RESET, 0), 1);
        assert_int_equal(ask(&p, REMOTE_UP_TO, 9, 0).flags, WEIR_FLAG_BLOCKED);
        assert_int_equal(act(&p, REMOTE_UNBLOCK, 0), 1);
        assert_int_equal(act(&p, REMOTE_UNBLOCK, 0), 0);
        assert_int_equal(ask(&p, REMOTE_CHECK, QUOTA, 0).verdict, WEIR_ALLOW);
        assert_int_equal(act(&p, REMOTE_RESET, 0), 1);
        assert_int_equal(integer(store_redis_do(&redis, "DBSIZE")), 0);
    }
}

static void a_ban_is_a_block_that_says_so_and_shortens_no_other(void **state)
{
    const unsigned banned = WEIR_FLAG_BLOCKED | WEIR_FLAG_BANNED;
    for (int algorithm = 1; algorithm <= ALGORITHMS; algorithm++) {
        struct store_params p = limit_of(algorithm, QUOTA);
        for (int i = 0; i < 4; i++) { /* at even and odd times of the store's clock */
            assert_int_equal(act(&p, REMOTE_BLOCK, WEIR_MINUTE + (uint64_t)i * WEIR_MICROSECOND),
                             0);
            assert_int_equal(ask(&p, REMOTE_CHECK, 1, 0).flags, WEIR_FLAG_BLOCKED);
            assert_int_equal(act(&p, REMOTE_BAN, WEIR_HOUR + (uint64_t)i * WEIR_MICROSECOND), 0);
            struct weir_answer a = ask(&p, REMOTE_CHECK, 1, 0);
            assert_int_equal(a.verdict, WEIR_DENY);
            assert_int_equal(a.flags, banned);
            assert_true(a.retry_after_ns > 50 * WEIR_MINUTE && a.retry_after_ns < 61 * WEIR_MINUTE);
            assert_int_equal(act(&p, REMOTE_BLOCK, 2 * WEIR_HOUR), 0);
            assert_int_equal(act(&p, REMOTE_BAN, WEIR_HOUR), 0);
            a = ask(&p, REMOTE_PEEK, 1, 0);
            assert_int_equal(a.flags, WEIR_FLAG_BLOCKED);
            assert_true(a.retry_after_ns > WEIR_HOUR);
            assert_int_equal(act(&p, REMOTE_UNBLOCK, 0), 1);
        }
    }
}

static void an_unblocked_key_still_knows_what_it_took(void **state)
{
    for (int algorithm = 1; algorithm <= ALGORITHMS; algorithm++) {
        struct store_params p = limit_of(algorithm, QUOTA);
        assert_int_equal(ask(&p, REMOTE_CHECK, 2, 0).remaining, QUOTA - 2);
        assert_int_equal(act(&p, SCRIPT_BLOCK_UNTIL, WEIR_FOREVER), 0);
        assert_int_equal(act(&p, SCRIPT_BLOCK_UNTIL, redis_now_ns() + WEIR_HOUR), 0);
        assert_int_equal(act(&p, REMOTE_UNBLOCK, 0), 1);
        assert_int_equal(ask(&p, REMOTE_PEEK, 1, 0).remaining, QUOTA - 2);
    }
}

/* This holds for logs too, whose ring is then laid out anew. A bucket keeps the time until it is
 * full. */
static void a_larger_quota_keeps_what_was_taken(void **state)
{
    static const uint64_t left[] = {0, 3, 3, 4, 4, 4};
    for (int algorithm = 1; algorithm <= ALGORITHMS; algorithm++) {
        struct store_params p = limit_of(algorithm, QUOTA);
        struct store_params larger = limit_of(algorithm, 2 * QUOTA);
        assert_int_equal(ask(&p, REMOTE_CHECK, 2, 0).verdict, WEIR_ALLOW);
        uint64_t room = ask(&larger, REMOTE_PEEK, 1, 0).remaining;
        assert_true(algorithm <= WEIR_LEAKY_BUCKET ? room == 2 : room == left[algorithm]);
        assert_int_equal(ask(&larger, REMOTE_CHECK, 1, 0).verdict, WEIR_ALLOW);
        assert_int_equal(ask(&larger, REMOTE_PEEK, 1, 0).remaining, room - 1);
        assert_int_equal(ask(&larger, REMOTE_CHECK, room - 1, 0).verdict, WEIR_ALLOW);
        assert_int_equal(ask(&larger, REMOTE_CHECK, 1, 0).verdict, WEIR_DENY);
    }
}

/* Refunds for another time free the oldest places, so that the next units wrap around the ring. */
static void a_log_that_has_gone_round_fits_a_larger_one(void **state)
{
    struct store_params p = limit_of(WEIR_SLIDING_LOG, QUOTA);
    struct store_params larger = limit_of(WEIR_SLIDING_LOG, 2 * QUOTA);
    uint64_t earlier_ns = redis_now_ns() - WEIR_HOUR;
    assert_int_equal(ask(&p, REMOTE_CHECK, QUOTA, 0).verdict, WEIR_ALLOW);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask(&p, REMOTE_REFUND, 2, earlier_ns).remaining, 2);
        assert_int_equal(ask(&p, REMOTE_CHECK, 2, 0).remaining, 0);
    }
    assert_int_equal(ask(&larger, REMOTE_PEEK, 1, 0).remaining, QUOTA);
    assert_int_equal(ask(&larger, REMOTE_CHECK, 1, 0).verdict, WEIR_ALLOW);
    assert_int_equal(ask(&larger, REMOTE_CHECK, QUOTA - 1, 0).verdict, WEIR_ALLOW);
    assert_int_equal(ask(&larger, REMOTE_CHECK, 1, 0).verdict, WEIR_DENY);
}

/* ---- the server's side ---- */

static void a_script_that_was_forgotten_is_sent_as_text_once(void **state)
{
    struct store_params p = limit_of(WEIR_TOKEN_BUCKET, QUOTA);
    (void)store_redis_do(&redis, "SCRIPT", "FLUSH");
    const struct store_reply *r = call(&p, SCRIPT_BY_SHA, REMOTE_CHECK, 1, 0);
    assert_int_equal(r->refusal, STORE_NOSCRIPT);
    assert_true(store_did_not_run(r->refusal));
    assert_int_equal(call(&p, SCRIPT_BY_TEXT, REMOTE_CHECK, 1, 0)->type, ':');
    assert_int_equal(ask(&p, REMOTE_CHECK, 1, 0).remaining, QUOTA - 2);
}

/* Requires a refusal by the script itself, not an accidental Lua error. */
static void check_refused(const struct store_params *p, const char *key, const char *value)
{
    (void)store_redis_do(&redis, "SET", key, value);
    const struct store_reply *r = call(p, SCRIPT_BY_SHA, REMOTE_CHECK, 1, 0);
    assert_int_equal(r->refusal, STORE_REFUSED);
    if (memmem(r->text.at, r->text.len, "attempt to", 10) != NULL) {
        fail_msg("'%s': %.*s", value, TEXT_ARGS(r->text));
    }
    assert_true(text_is(store_redis_do(&redis, "GET", key)->text, value));
    (void)store_redis_do(&redis, "DEL", key);
}

static void a_value_that_is_not_ours_is_an_error_and_stays(void **state)
{
    static const char *const values[] = {"somebody's", "!", "12!", "12!x", "nan", "inf", "1e300"};
    for (int algorithm = 1; algorithm <= ALGORITHMS; algorithm++) {
        struct store_params p = limit_of(algorithm, QUOTA);
        struct store_key key;
        key_of(&p, "alice", &key);
        key.at[key.len] = '\0';
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            check_refused(&p, key.at, values[i]);
        }
        (void)store_redis_do(&redis, "RPUSH", key.at, "a list");
        assert_int_equal(call(&p, SCRIPT_BY_SHA, REMOTE_CHECK, 1, 0)->type, '-');
        (void)store_redis_do(&redis, "FLUSHALL");
    }
}

/* A store without memory or without enough replicas refuses before anything is written. */
static void a_store_that_cannot_write_refuses_the_whole_call(void **state)
{
    struct store_params p = limit_of(WEIR_TOKEN_BUCKET, QUOTA);
    (void)store_redis_do(&redis, "CONFIG", "SET", "min-replicas-to-write", "1");
    enum store_refusal alone = call(&p, SCRIPT_BY_SHA, REMOTE_CHECK, 1, 0)->refusal;
    (void)store_redis_do(&redis, "CONFIG", "SET", "min-replicas-to-write", "0");
    (void)store_redis_do(&redis, "CONFIG", "SET", "maxmemory", "1");
    enum store_refusal full = call(&p, SCRIPT_BY_SHA, REMOTE_CHECK, 1, 0)->refusal;
    (void)store_redis_do(&redis, "CONFIG", "SET", "maxmemory", "0");
    (void)store_redis_do(&redis, "REPLICAOF", "127.0.0.1", "1");
    enum store_refusal replica = call(&p, SCRIPT_BY_SHA, REMOTE_CHECK, 1, 0)->refusal;
    (void)store_redis_do(&redis, "REPLICAOF", "NO", "ONE");
    assert_int_equal(full, STORE_OOM);
    assert_int_equal(replica, STORE_READONLY);
    assert_int_equal(alone, STORE_NOREPLICAS);
    assert_int_equal(ask(&p, REMOTE_PEEK, 1, 0).remaining, QUOTA);
}

static void slots_are_what_a_cluster_says(void **state)
{
    static const char *const options[] = {"--cluster-enabled", "yes", NULL};
    static const char *const keys[] = {"foo",
                                       "foo{",
                                       "foo{}",
                                       "{}foo",
                                       "{a}b{c}",
                                       "a}b{c}",
                                       "\xff\x80{\x01}",
                                       "weir:1:api:t:{r}ra",
                                       "{{}}",
                                       "{abc",
                                       "}{"};
    struct store_redis cluster;
    store_redis_start(&cluster, options);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        assert_int_equal(integer(store_redis_do(&cluster, "CLUSTER", "KEYSLOT", keys[i])),
                         cluster_slot(text_of(keys[i])));
    }
    store_redis_stop(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_time_of_a_decision_is_the_stores, fresh),
        cmocka_unit_test_setup(a_denied_call_and_a_peek_write_nothing, fresh),
        cmocka_unit_test_setup(whatever_is_written_has_an_end_and_not_too_soon, fresh),
        cmocka_unit_test_setup(each_charge_moves_the_end, fresh),
        cmocka_unit_test_setup(an_endless_block_is_kept_for_a_century, fresh),
        cmocka_unit_test_setup(a_key_takes_no_more_memory_than_a_short_string_with_an_end, fresh),
        cmocka_unit_test_setup(a_block_lasts_whatever_happens_to_the_quota, fresh),
        cmocka_unit_test_setup(a_ban_is_a_block_that_says_so_and_shortens_no_other, fresh),
        cmocka_unit_test_setup(an_unblocked_key_still_knows_what_it_took, fresh),
        cmocka_unit_test_setup(a_larger_quota_keeps_what_was_taken, fresh),
        cmocka_unit_test_setup(a_log_that_has_gone_round_fits_a_larger_one, fresh),
        cmocka_unit_test_setup(a_script_that_was_forgotten_is_sent_as_text_once, fresh),
        cmocka_unit_test_setup(a_value_that_is_not_ours_is_an_error_and_stays, fresh),
        cmocka_unit_test_setup(a_store_that_cannot_write_refuses_the_whole_call, fresh),
        cmocka_unit_test_setup(slots_are_what_a_cluster_says, fresh),
    };
    store_redis_start(&redis, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    store_redis_stop(&redis);
    return failed;
}
