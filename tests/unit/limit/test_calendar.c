/* Windows by the calendar: months of WEIR_MONTH, weeks from Monday on. The C library's calendar
 * says when they begin. */
#include "support/engine/unit_limiter.h"

#include <stdlib.h>
#include <time.h>

static uint64_t utc_ns(int year, int month, int day)
{
    struct tm t = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    return (uint64_t)timegm(&t) * WEIR_SECOND;
}

static struct weir_options months(uint64_t quota)
{
    return unit_options(WEIR_FIXED_WINDOW, quota, WEIR_MONTH);
}

static void each_month_of_two_centuries_has_its_quota(void **state)
{
    struct weir_options o = months(3);
    struct weir *w = unit_open(&o);
    for (int month = 0; month < 200 * 12 - 1; month++) {
        uint64_t begin = utc_ns(1970 + month / 12, month % 12 + 1, 1);
        uint64_t end = utc_ns(1970 + (month + 1) / 12, (month + 1) % 12 + 1, 1);
        assert_int_equal(unit_check(w, "k", 3, begin).verdict, WEIR_ALLOW);
        for (uint64_t now = begin; now < end; now += 3 * WEIR_DAY / 2) {
            struct weir_answer a = unit_check(w, "k", 1, now);
            assert_int_equal(a.verdict, WEIR_DENY);
            assert_int_equal(a.retry_after_ns, end - now);
            assert_int_equal(a.reset_after_ns, end - now);
        }
        assert_int_equal(unit_check(w, "k", 1, end - 1).verdict, WEIR_DENY);
    }
    weir_close(w);
}

static void a_month_can_begin_later(void **state)
{
    struct weir_options o = months(1);
    o.offset_ns = 5 * WEIR_HOUR;
    struct weir *w = unit_open(&o);
    struct weir_answer a;
    uint64_t march = utc_ns(2028, 3, 1) + o.offset_ns;
    assert_int_equal(unit_check(w, "k", 1, march - 1).verdict, WEIR_ALLOW);
    assert_int_equal(unit_check(w, "k", 1, march - 1).retry_after_ns, 1);
    assert_int_equal(unit_check(w, "k", 1, march).verdict, WEIR_ALLOW);
    assert_int_equal(weir_check_at(w, "k", 1, 1, o.offset_ns - 1, &a), WEIR_ETIME);
    weir_close(w);
}

static void a_month_ends_for_a_clock_that_lags_and_is_not_gained_by_one_that_is_set_back(
    void **state)
{
    struct weir_options o = months(2);
    struct weir *w = unit_open(&o);
    uint64_t may = utc_ns(2026, 5, 1);
    assert_int_equal(unit_check(w, "k", 1, may).verdict, WEIR_ALLOW);
    assert_int_equal(unit_check(w, "k", 1, may - WEIR_SECOND).verdict, WEIR_ALLOW);
    struct weir_answer a = unit_check(w, "k", 1, may - WEIR_SECOND);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.retry_after_ns, 31 * WEIR_DAY + WEIR_SECOND);
    a = unit_check(w, "k", 1, may - WEIR_SECOND - 1); /* set back: counted in April from now on */
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.retry_after_ns, WEIR_SECOND + 1);
    assert_int_equal(unit_check(w, "k", 2, may).verdict, WEIR_ALLOW);
    weir_close(w);
}

static void verbs_know_the_month_of_a_charge(void **state)
{
    struct weir_options o = months(5);
    struct weir_reservation r;
    struct weir_answer a;
    struct weir *w = unit_open(&o);
    uint64_t june = utc_ns(2026, 6, 1);
    assert_int_equal(weir_reserve_at(w, "k", 1, 3, 90 * WEIR_DAY, june, &r, &a), 0);
    assert_int_equal(weir_refund_at(w, "k", 1, 1, june - 1, june + 1, &a), 0);
    assert_int_equal(a.remaining, 2);
    assert_int_equal(weir_refund_at(w, "k", 1, 1, june + 29 * WEIR_DAY, june + 1, &a), 0);
    assert_int_equal(a.remaining, 3);
    assert_int_equal(weir_penalize_at(w, "k", 1, 2, june + WEIR_DAY, &a), 0);
    assert_int_equal(a.remaining, 1);
    assert_int_equal(weir_settle_at(w, &r, 1, june + 29 * WEIR_DAY, &a), 0);
    assert_int_equal(a.remaining, 3);
    assert_int_equal(unit_peek(w, "k", 5, june + 30 * WEIR_DAY).remaining, 5);
    weir_close(w);
}

/* The slot of a key is free for another as soon as its month is over, and not before. */
static void a_key_is_kept_until_its_month_ends(void **state)
{
    struct weir_options o = months(5);
    struct weir *w = unit_open(&o);
    uint64_t june = utc_ns(2026, 6, 1);
    (void)unit_check(w, "k", 1, june);
    assert_int_equal(weir_sweep_at(w, 1000, june + 30 * WEIR_DAY), 0);
    assert_int_equal(weir_sweep_at(w, 1000, june + 30 * WEIR_DAY + WEIR_SECOND), 1);
    (void)unit_check(w, "k", 1, june + 40 * WEIR_DAY);
    assert_int_equal(weir_refund_at(w, "k", 1, 1, june + 40 * WEIR_DAY, june + 40 * WEIR_DAY, NULL),
                     0);
    assert_int_equal(weir_sweep_at(w, 1000, june + 40 * WEIR_DAY), 1);
    weir_close(w);
}

static void batches_and_hashed_keys_count_by_the_month_too(void **state)
{
    struct weir_options o = months(3);
    struct weir *w = unit_open(&o);
    uint64_t last = utc_ns(2027, 1, 1) - 1;
    struct weir_question asks[4];
    struct weir_answer answers[4];
    for (unsigned i = 0; i < 4; i++) {
        asks[i] = unit_question("k", 1, WEIR_CHECK);
    }
    assert_int_equal(weir_ask_batch_at(w, asks, 4, last - 30 * WEIR_DAY, answers, NULL), 0);
    assert_int_equal(answers[2].verdict, WEIR_ALLOW);
    assert_int_equal(answers[3].verdict, WEIR_DENY);
    assert_int_equal(answers[3].retry_after_ns, 30 * WEIR_DAY + 1);
    assert_int_equal(unit_check(w, "k", 1, last).verdict, WEIR_DENY);
    assert_int_equal(weir_ask_batch_at(w, asks, 4, last + 1, answers, NULL), 0);
    assert_int_equal(answers[2].verdict, WEIR_ALLOW);
    weir_close(w);
}

static void a_month_is_for_a_fixed_window_that_follows_the_clock(void **state)
{
    struct weir_error error;
    uint64_t bytes;
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir_options o = unit_options(unit_algorithms[i], 5, WEIR_MINUTE);
        o.count = 5;
        o.period_ns = WEIR_MONTH;
        int e = weir_size(&o, &bytes, &error);
        assert_int_equal(e, o.algorithm == WEIR_FIXED_WINDOW ? 0 : WEIR_EINVAL);
        if (e != 0) {
            assert_non_null(strstr(error.text, "needs the algorithm fixed_window"));
        }
    }
    struct weir_options o = months(5);
    o.align = WEIR_ALIGN_KEY;
    assert_int_equal(weir_size(&o, &bytes, &error), WEIR_EINVAL);
}

static uint64_t new_year(void *arg)
{
    return *(uint64_t *)arg;
}

static void the_short_forms_know_the_month(void **state)
{
    uint64_t now = utc_ns(2026, 12, 31);
    struct weir_options o = months(1);
    struct weir_answer a;
    o.flags = 0;
    o.clock = new_year;
    o.clock_arg = &now;
    struct weir *w = unit_open(&o);
    assert_int_equal(weir_check(w, "k", 1, 1, &a), 0);
    assert_int_equal(a.reset_after_ns, WEIR_DAY);
    now += WEIR_DAY;
    assert_int_equal(weir_check(w, "k", 1, 1, &a), 0);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.reset_after_ns, 31 * WEIR_DAY);
    weir_close(w);
}

static void a_week_begins_on_monday_and_so_do_two(void **state)
{
    uint64_t monday = utc_ns(2026, 11, 16);
    for (uint64_t weeks = 1; weeks <= 2; weeks++) {
        struct weir *w = unit_limit(WEIR_FIXED_WINDOW, 1, weeks * 7 * WEIR_DAY);
        uint64_t now = monday - 1;
        struct weir_answer a = unit_check(w, "k", 1, now);
        assert_int_equal((a.reset_after_ns - 1) % (7 * WEIR_DAY), 0);
        now += a.reset_after_ns;
        assert_int_equal(unit_check(w, "k", 1, now).verdict, WEIR_ALLOW);
        assert_int_equal(unit_check(w, "k", 1, now).retry_after_ns, weeks * 7 * WEIR_DAY);
        weir_close(w);
    }
    struct weir *w = unit_limit(WEIR_FIXED_WINDOW, 1, 8 * WEIR_DAY);
    assert_int_equal(unit_check(w, "k", 1, 8 * WEIR_DAY).reset_after_ns, 8 * WEIR_DAY);
    weir_close(w);
}

/* Earlier versions began weeks on Thursday. This is what an offset of three days does now. */
static void a_file_whose_weeks_begin_on_thursday_is_refused(void **state)
{
    char *folder = unit_folder();
    char *path = unit_path(folder, "weeks");
    struct weir_options o = unit_options(WEIR_FIXED_WINDOW, 1, 7 * WEIR_DAY);
    struct weir_error error;
    struct weir *w;
    o.memory = WEIR_FILE;
    o.path = path;
    o.offset_ns = 3 * WEIR_DAY;
    weir_close(unit_open(&o));
    o.offset_ns = 0;
    assert_int_equal(weir_open(&w, &o, &error), WEIR_EMISMATCH);
    assert_non_null(strstr(error.text, "the file has offset_ns 0, expected 345600000000000"));
    free(path);
    unit_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_month_of_two_centuries_has_its_quota),
        cmocka_unit_test(a_month_can_begin_later),
        cmocka_unit_test(
            a_month_ends_for_a_clock_that_lags_and_is_not_gained_by_one_that_is_set_back),
        cmocka_unit_test(verbs_know_the_month_of_a_charge),
        cmocka_unit_test(a_key_is_kept_until_its_month_ends),
        cmocka_unit_test(batches_and_hashed_keys_count_by_the_month_too),
        cmocka_unit_test(a_month_is_for_a_fixed_window_that_follows_the_clock),
        cmocka_unit_test(the_short_forms_know_the_month),
        cmocka_unit_test(a_week_begins_on_monday_and_so_do_two),
        cmocka_unit_test(a_file_whose_weeks_begin_on_thursday_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
