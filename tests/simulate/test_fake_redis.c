/*
 * Compares the fake with a real redis-server: both run the same scripts, one after the other, on
 * the same keys. Their replies must be the same bytes; errors must begin in the same way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "simulate/fake_redis.h"
#include "support/store/store_redis.h"
#include "wire/resp.h"

static const char *const scripts[] = {
    /* numbers in replies: cut to whole numbers */
    "return {1, 3.99, -3.99, 0.5, 2^53, -2^53, 2^53 - 1, 1e15 + 0.9}",
    "return {1/0, -1/0, 0/0, 1e19, -1e19, 2^63, -2^63}",
    "return {true, false, 'text', 1, nil, 2}",
    "return nil",
    "return true",
    "return false",
    "return 'a\\0b'",
    "return {}",
    "return {{1, 2}, {'x'}}",
    "return redis.status_reply('FINE')",
    "return redis.error_reply('OOPS not today')",
    "return {ok = 'yes', 5}",
    /* numbers as arguments of a command */
    "redis.call('SET', KEYS[1], 1786400000123456) return redis.call('GET', KEYS[1])",
    "redis.call('SET', KEYS[1], 2^53 - 1) return redis.call('GET', KEYS[1])",
    "redis.call('SET', KEYS[1], 0.1 + 0.2) return redis.call('GET', KEYS[1])",
    "redis.call('SET', KEYS[1], -7) return redis.call('GET', KEYS[1])",
    "redis.call('SET', KEYS[1], 1e17) return redis.call('GET', KEYS[1])",
    "redis.call('SET', KEYS[1], 1786400000123456 .. '') return redis.call('GET', KEYS[1])",
    "redis.call('SET', KEYS[1], string.format('%.0f', 1786400000123456)) "
    "return redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], {})",
    "return redis.call('SET', KEYS[1], true)",
    "return redis.call()",
    /* replies of commands, as scripts see them */
    "return type(redis.call('GET', 'nobody'))",
    "return redis.call('GET', 'nobody')",
    "return redis.call('SET', KEYS[1], 'x')",
    "return redis.call('SET', KEYS[1], 'x').ok",
    "local t = redis.call('TIME') return {type(t), #t, type(t[1]), type(t[2])}",
    "local e = redis.pcall('GET') return type(e.err)",
    "return redis.pcall('SET', KEYS[1], 'x', 'PX', 'soon')",
    "return redis.call('SET', KEYS[1], 'x', 'PX', 'soon')",
    "return redis.call('SET', KEYS[1], 'x', 'PX', 0)",
    "return redis.call('SET', KEYS[1], 'x', 'PX', '1.5')",
    "return redis.call('SET', KEYS[1], 'x', 'HOW')",
    "return redis.call('GET', KEYS[1], 'x')",
    "return redis.call('NOSUCH', KEYS[1])",
    "return redis.call('EVAL', 'return 1', 0)",
    /* expiry of keys */
    "redis.call('SET', KEYS[1], 'x', 'PX', 100000) local left = redis.call('PTTL', KEYS[1]) "
    "return left > 99000 and left <= 100000",
    "redis.call('SET', KEYS[1], 'y', 'KEEPTTL') return redis.call('PTTL', KEYS[1]) > 90000",
    "redis.call('SET', KEYS[1], 'y') return redis.call('PTTL', KEYS[1])",
    "return {redis.call('PTTL', 'nobody'), redis.call('PEXPIRE', 'nobody', 5)}",
    "return {redis.call('PEXPIRE', KEYS[1], 70000), redis.call('TTL', KEYS[1])}",
    "return {redis.call('PERSIST', KEYS[1]), redis.call('PERSIST', KEYS[1])}",
    "return {redis.call('EXPIRE', KEYS[1], 50), redis.call('TTL', KEYS[1])}",
    "return {redis.call('PEXPIRE', KEYS[1], 0), redis.call('EXISTS', KEYS[1])}",
    "return {redis.call('SET', KEYS[1], 'a', 'NX'), redis.call('SET', KEYS[1], 'b', 'NX')}",
    "return {redis.call('SET', KEYS[1], 'c', 'XX'), redis.call('SET', 'nobody', 'b', 'XX')}",
    "return {redis.call('DEL', KEYS[1], 'nobody'), redis.call('DEL', KEYS[1])}",
    /* parts of strings */
    "return redis.call('SETRANGE', KEYS[1], 3, 'abc')",
    "return {redis.call('GET', KEYS[1]), redis.call('STRLEN', KEYS[1])}",
    "return {redis.call('GETRANGE', KEYS[1], 3, 4), redis.call('GETRANGE', KEYS[1], -2, -1), "
    "redis.call('GETRANGE', KEYS[1], 4, 99), redis.call('GETRANGE', KEYS[1], 99, 100), "
    "redis.call('GETRANGE', KEYS[1], -99, 1), redis.call('GETRANGE', KEYS[1], 5, 4), "
    "redis.call('GETRANGE', 'nobody', 0, 4)}",
    "return {redis.call('SETRANGE', 'nobody', 5, ''), redis.call('EXISTS', 'nobody')}",
    "return redis.call('SETRANGE', KEYS[1], -1, 'x')",
    "return {redis.call('APPEND', KEYS[1], 'tail'), redis.call('GET', KEYS[1])}",
    "redis.call('SET', KEYS[1], 41) return {redis.call('INCR', KEYS[1]), "
    "redis.call('INCRBY', KEYS[1], -50)}",
    "redis.call('SET', KEYS[1], 'x') return redis.call('INCR', KEYS[1])",
    "redis.call('SET', KEYS[1], '9223372036854775807') return redis.call('INCR', KEYS[1])",
    /* struct */
    "return {struct.pack('>I7', 4503599627370497), struct.pack('<I4', 258), struct.pack('>i2', "
    "-2)}",
    "return {struct.unpack('>I7I4I7', struct.pack('>I7I4I7', 2^52 + 1, 7, 9))}",
    "return {struct.unpack('>I2', 'abcdef', 3)}",
    "return {struct.unpack('>i2', struct.pack('>i2', -2))}",
    "return struct.unpack('>I7', 'abc')",
    /* forbidden actions and mistakes */
    "return nosuchname",
    "nosuchname = 1",
    "return nosuch.field",
    "error('weir: something')",
    "return tonumber('12x') + 1",
    "return this is no script",
    "return {#KEYS, #ARGV, ARGV[1], ARGV[2], type(ARGV[1])}",
    "return {tonumber('1:5'), 1}",
    "return {tonumber('0012'), 1}",
    "return {math.floor(-0.5), math.ceil(-0.5), -7 % 3, 7 % -3}",
    "return {string.match('12:34', '^(%d+):(%d+)$')}",
};

static struct store_redis redis;
static struct fake_redis *fake;

static void make_request(const char *script, struct weir_text argv[6])
{
    argv[0] = TEXT("EVAL");
    argv[1] = text_of(script);
    argv[2] = TEXT("1");
    argv[3] = TEXT("key");
    argv[4] = TEXT("seven");
    argv[5] = TEXT("8");
}

/* Asks the real server. Replies come in forms that store_reply_read() does not know, so a mark
 * shows where they end. */
static void ask_real(const struct weir_text argv[6])
{
    resp_put_array(&redis.out, 6);
    for (size_t i = 0; i < 6; i++) {
        resp_put_bulk(&redis.out, argv[i]);
    }
    store_redis_put(&redis, "PING", "the-mark", NULL);
    store_redis_send(&redis);
}

static struct weir_text read_until_mark(char *bytes, size_t size)
{
    static const char mark[] = "$8\r\nthe-mark\r\n";
    size_t n = 0;
    for (;;) {
        ssize_t got = read(redis.fd, bytes + n, size - n);
        assert_true(got > 0);
        n += (size_t)got;
        if (n >= sizeof mark - 1 &&
            memcmp(bytes + n - (sizeof mark - 1), mark, sizeof mark - 1) == 0) {
            return (struct weir_text){bytes, n - (sizeof mark - 1)};
        }
    }
}

/* Compares two replies. Of an error only the fake's text counts, without the name and the line of
 * the script at its end. */
static bool same(struct weir_text real, struct weir_text made)
{
    if (made.len > 0 && made.at[0] == '-') {
        const char *tail = memmem(made.at, made.len, " script: ", 9);
        size_t len = tail != NULL ? (size_t)(tail - made.at) : made.len - 2;
        return real.len >= len && memcmp(real.at, made.at, len) == 0;
    }
    return text_equal(real, made);
}

static void the_fake_replies_what_a_real_server_replies(void **state)
{
    static char bytes[65536];
    struct buffer reply;
    unsigned wrong = 0;
    buffer_init(&reply, sizeof bytes);
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        struct weir_text argv[6];
        make_request(scripts[i], argv);
        ask_real(argv);
        struct weir_text real = read_until_mark(bytes, sizeof bytes);
        buffer_take(&reply, buffer_len(&reply));
        fake_redis_request(fake, argv, 6, &reply);
        struct weir_text made = buffer_text(&reply);
        if (!same(real, made)) {
            print_error("%s\nreal: %.*s\nfake: %.*s\n", scripts[i], TEXT_ARGS(real),
                        TEXT_ARGS(made));
            wrong++;
        }
    }
    buffer_finish(&reply);
    assert_int_equal(wrong, 0);
}

static void ask(const char *script, struct buffer *reply)
{
    struct weir_text argv[6];
    make_request(script, argv);
    buffer_take(reply, buffer_len(reply));
    fake_redis_request(fake, argv, 6, reply);
}

/* A real server could show this only after real waiting. */
static void keys_of_the_fake_end_by_its_time(void **state)
{
    struct buffer b;
    buffer_init(&b, 65536);
    fake_redis_set_time(fake, 5000999);
    ask("return redis.call('SET', KEYS[1], 'x', 'PX', 7)", &b);
    fake_redis_set_time(fake, 5007999); /* its last millisecond */
    ask("return {redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[1])}", &b);
    assert_true(text_is(buffer_text(&b), "*2\r\n:0\r\n$1\r\nx\r\n"));
    fake_redis_set_time(fake, 5008000);
    ask("return {redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[1])}", &b);
    assert_true(text_is(buffer_text(&b), "*2\r\n:-2\r\n$-1\r\n"));
    ask("local t = redis.call('TIME') return t[1] * 1000000 + t[2]", &b);
    assert_true(text_is(buffer_text(&b), ":5008000\r\n"));
    buffer_finish(&b);
}

static void a_script_of_the_fake_may_be_held_to_its_keys(void **state)
{
    struct buffer b;
    buffer_init(&b, 65536);
    fake_redis_only_declared(fake, true);
    ask("return redis.call('GET', 'another')", &b);
    assert_true(text_starts(buffer_text(&b), "-ERR Script attempted to access a non local key"));
    ask("return redis.call('GET', KEYS[1])", &b);
    assert_true(text_is(buffer_text(&b), "$-1\r\n"));
    fake_redis_only_declared(fake, false);
    buffer_finish(&b);
}

static int fresh(void **state)
{
    fake_redis_restart(fake);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_fake_replies_what_a_real_server_replies, fresh),
        cmocka_unit_test_setup(keys_of_the_fake_end_by_its_time, fresh),
        cmocka_unit_test_setup(a_script_of_the_fake_may_be_held_to_its_keys, fresh),
    };
    fake = fake_redis_create();
    fake_redis_set_time(fake, UINT64_C(1800000000000000));
    store_redis_start(&redis, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    store_redis_stop(&redis);
    fake_redis_destroy(fake);
    return failed;
}
