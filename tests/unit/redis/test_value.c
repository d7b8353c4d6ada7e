/* Tests replies of any kind as a sequence of values, and the timers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "redis/reply.h"
#include "redis/timers.h"

#define SLOTS                                                                                      \
    "*2\r\n*3\r\n:0\r\n:5460\r\n*3\r\n$9\r\n127.0.0.1\r\n:7000\r\n$2\r\nid\r\n"                    \
    "*3\r\n:5461\r\n:16383\r\n*3\r\n$-1\r\n:7001\r\n*0\r\n"

static void a_reply_is_whole_with_its_last_byte(void **state)
{
    static const char *const whole[] = {
        SLOTS,    "+OK\r\n", "-ERR x\r\n", ":-5\r\n", "$0\r\n\r\n",
        "*0\r\n", "*-1\r\n", "$-1\r\n",    "_\r\n",   "*1\r\n*1\r\n*1\r\n:1\r\n",
        "+\r\n"};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        size_t len = strlen(whole[i]);
        struct store_reply r;
        for (size_t n = 0; n < len; n++) {
            char *copy = malloc(n > 0 ? n : 1);
            memcpy(copy, whole[i], n);
            assert_int_equal(store_reply_read((struct weir_text){copy, n}, &r), STORE_MORE);
            free(copy);
        }
        assert_int_equal(store_reply_read((struct weir_text){whole[i], len}, &r), STORE_REPLY);
        assert_int_equal(r.whole.len, len);
    }
}

static void invalid_replies_are_refused(void **state)
{
    static const char *const bad[] = {"x\r\n",
                                      "*x\r\n",
                                      "$-2\r\n",
                                      "*-2\r\n",
                                      ":\r\n",
                                      "\r\n",
                                      "$1\r\nab\r\n",
                                      ":1\rx",
                                      "*1\r\nx\r\n",
                                      "$99999999\r\n",
                                      "*99999999\r\n",
                                      "_x\r\n",
                                      "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"};
    struct store_reply r;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (store_reply_read(text_of(bad[i]), &r) != STORE_BAD) {
            fail_msg("%s", bad[i]);
        }
    }
}

static void values_are_read_one_after_the_other(void **state)
{
    struct weir_text rest = TEXT(SLOTS);
    assert_int_equal(value_array(&rest), 2);
    assert_int_equal(value_array(&rest), 3);
    assert_int_equal(value_integer(&rest), 0);
    assert_int_equal(value_integer(&rest), 5460);
    assert_int_equal(value_array(&rest), 3);
    assert_true(text_is(value_text(&rest), "127.0.0.1"));
    assert_int_equal(value_integer(&rest), 7000);
    value_pass(&rest);
    value_pass(&rest);
    assert_int_equal(rest.len, 0);
    struct store_value v;
    assert_false(value_next(&rest, &v));
    assert_int_equal(value_integer(&rest), -1);
    assert_int_equal(value_text(&rest).len, 0);
    rest = TEXT("+a\r\n");
    assert_int_equal(value_array(&rest), -1);
}

/* ---- timers ---- */

enum { TIMERS = 500 };

static void timers_are_due_in_order_for_any_lengths(void **state)
{
    static struct timer timer[TIMERS];
    struct timers t;
    uint64_t now = 1000;
    uint64_t x = 12345;
    timers_init(&t);
    assert_true(timers_due(&t) == UINT64_MAX);
    for (size_t i = 0; i < TIMERS; i++) {
        timer_init(&timer[i], (int)i);
        x = x * 6364136223846793005u + 1442695040888963407u;
        timer_set(&t, &timer[i], now + (x >> (40 + i % 20)), now);
        if (i % 7 == 0) {
            timer_set(&t, &timer[i], now + i, now);
        }
        if (i % 11 == 0) {
            timer_clear(&timer[i]);
        }
    }
    uint64_t last = 0;
    size_t seen = 0;
    while (timers_due(&t) != UINT64_MAX) {
        now = timers_due(&t);
        assert_null(timers_pop(&t, now - 1));
        assert_true(now >= last);
        last = now;
        struct timer *due = timers_pop(&t, now);
        assert_non_null(due);
        assert_int_not_equal(due->kind % 11, 0);
        seen++;
    }
    assert_int_equal(seen, TIMERS - (TIMERS + 10) / 11);
    assert_null(timers_pop(&t, UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_is_whole_with_its_last_byte),
        cmocka_unit_test(invalid_replies_are_refused),
        cmocka_unit_test(values_are_read_one_after_the_other),
        cmocka_unit_test(timers_are_due_in_order_for_any_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
