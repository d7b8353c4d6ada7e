/* A bucket whose numbers come with each question. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <weir.h>

#define T0 (1000 * WEIR_DAY)

/* Lends a table in which a key may be ahead by a year. */
static struct weir *open_lender(int algorithm)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir *w;
    o.algorithm = algorithm;
    o.count = 1;
    o.period_ns = 365 * WEIR_DAY;
    o.flags = WEIR_EXPLICIT_TIME;
    o.max_keys = 100;
    assert_int_equal(weir_open(&w, &o, NULL), 0);
    return w;
}

static struct weir_answer ask(struct weir *w, uint64_t interval_ns, uint64_t burst, uint64_t cost,
                              int mode, uint64_t now_ns)
{
    struct weir_question q = {.key = "k", .key_len = 1, .cost = cost, .mode = mode};
    struct weir_answer a;
    assert_int_equal(weir_throttle_at(w, interval_ns, burst, &q, now_ns, &a), 0);
    return a;
}

static void it_decides_like_a_token_bucket_of_these_numbers(void **state)
{
    struct weir *w = open_lender(WEIR_TOKEN_BUCKET);
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir *same;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = 1;
    o.period_ns = 10 * WEIR_SECOND;
    o.burst = 5;
    o.flags = WEIR_EXPLICIT_TIME;
    assert_int_equal(weir_open(&same, &o, NULL), 0);
    uint64_t now = T0;
    for (unsigned i = 0; i < 5000; i++) {
        struct weir_answer b;
        uint64_t cost = 1 + i % 7;
        now += i * 2654435761u % (9 * WEIR_SECOND);
        struct weir_answer a = ask(w, 10 * WEIR_SECOND, 5, cost, WEIR_CHECK, now);
        assert_int_equal(weir_check_at(same, "k", 1, cost, now, &b), 0);
        assert_int_equal(a.verdict, b.verdict);
        assert_int_equal(a.quota, b.quota);
        assert_int_equal(a.remaining, b.remaining);
        assert_true(a.retry_after_ns == b.retry_after_ns);
        assert_true(a.reset_after_ns == b.reset_after_ns);
    }
    weir_close(same);
    weir_close(w);
}

static void a_key_keeps_its_state_when_the_numbers_change(void **state)
{
    struct weir *w = open_lender(WEIR_TOKEN_BUCKET);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ask(w, 10 * WEIR_SECOND, 5, 1, WEIR_CHECK, T0).verdict, WEIR_ALLOW);
    }
    /* 50 s ahead: with a unit per second and 100 at once, 50 are left. */
    struct weir_answer a = ask(w, WEIR_SECOND, 100, 1, WEIR_PEEK, T0);
    assert_int_equal(a.remaining, 50);
    assert_true(a.reset_after_ns == 50 * WEIR_SECOND);
    /* With 20 at once none, until 31 s have passed. */
    a = ask(w, WEIR_SECOND, 20, 1, WEIR_CHECK, T0);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_true(a.retry_after_ns == 31 * WEIR_SECOND);
    assert_int_equal(ask(w, WEIR_SECOND, 20, 1, WEIR_CHECK, T0 + 31 * WEIR_SECOND - 1).verdict,
                     WEIR_DENY);
    assert_int_equal(ask(w, WEIR_SECOND, 20, 1, WEIR_CHECK, T0 + 31 * WEIR_SECOND).verdict,
                     WEIR_ALLOW);
    weir_close(w);
}

static void more_than_the_burst_is_never_and_tells_what_remains(void **state)
{
    struct weir *w = open_lender(WEIR_TOKEN_BUCKET);
    struct weir_answer a = ask(w, 10 * WEIR_SECOND, 5, 6, WEIR_CHECK, T0);
    assert_int_equal(a.verdict, WEIR_NEVER);
    assert_int_equal(a.remaining, 5);
    assert_true(a.reset_after_ns == 0);
    weir_close(w);
}

static void numbers_that_cannot_be_are_errors(void **state)
{
    struct weir *w = open_lender(WEIR_TOKEN_BUCKET);
    struct weir *window = open_lender(WEIR_FIXED_WINDOW);
    struct weir_question q = {.key = "k", .key_len = 1, .cost = 1};
    struct weir_answer a;
    assert_int_equal(weir_throttle_at(w, 0, 5, &q, T0, &a), WEIR_ERATE);
    assert_int_equal(weir_throttle_at(w, 1, 0, &q, T0, &a), WEIR_ERATE);
    assert_int_equal(weir_throttle_at(w, WEIR_DAY, 365, &q, T0, &a), 0);
    assert_int_equal(weir_throttle_at(w, WEIR_DAY, 366, &q, T0, &a), WEIR_EQUOTA);
    assert_int_equal(weir_throttle_at(w, UINT64_MAX, UINT64_MAX, &q, T0, &a), WEIR_EQUOTA);
    assert_int_equal(weir_throttle_at(w, 1, UINT64_MAX, &q, T0, &a), WEIR_EQUOTA);
    assert_int_equal(weir_throttle_at(window, 1, 1, &q, T0, &a), WEIR_ENOTSUP);
    assert_int_equal(weir_throttle_at(NULL, 1, 1, &q, T0, &a), WEIR_EINVAL);
    assert_int_equal(weir_throttle(w, 1, 1, &q, &a), WEIR_EINVAL); /* explicit time */
    q.cost = 0;
    assert_int_equal(weir_throttle_at(w, 1, 1, &q, T0, &a), WEIR_ECOST);
    weir_close(window);
    weir_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_decides_like_a_token_bucket_of_these_numbers),
        cmocka_unit_test(a_key_keeps_its_state_when_the_numbers_change),
        cmocka_unit_test(more_than_the_burst_is_never_and_tells_what_remains),
        cmocka_unit_test(numbers_that_cannot_be_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
