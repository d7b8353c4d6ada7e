/* weir_replay(): the stepped bucket behind a map of clients. */
#include "support/engine/unit_limiter.h"

#include <stdio.h>

static struct weir_replayer *open_replay(int64_t capacity, int64_t window)
{
    struct weir_replayer *r = NULL;
    assert_int_equal(weir_replay_open(&r, capacity, window, NULL), 0);
    assert_non_null(r);
    return r;
}

static void bad_arguments_are_refused(void **state)
{
    struct weir_replayer *r = NULL;
    struct weir_error error;
    char key[WEIR_KEY_MAX + 1] = {0};
    assert_int_equal(weir_replay_open(NULL, 1, 1, &error), WEIR_EINVAL);
    assert_int_equal(weir_replay_open(&r, -1, 1, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.text, "capacity is -1, expected 0 or more"));
    assert_null(r);
    assert_int_equal(weir_replay_open(&r, 1, INT64_MIN, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.text, "window is -9223372036854775808"));
    assert_int_equal(weir_replay_open(&r, -5, -6, NULL), WEIR_EINVAL);
    assert_int_equal(weir_replay(NULL, "k", 1, 0), WEIR_EINVAL);
    r = open_replay(1, 1);
    assert_int_equal(weir_replay(r, NULL, 1, 0), WEIR_EKEY);
    assert_int_equal(weir_replay(r, "k", 0, 0), WEIR_EKEY);
    assert_int_equal(weir_replay(r, key, sizeof key, 0), WEIR_EKEY);
    assert_int_equal(weir_replay_clients(r), 0);
    assert_int_equal(weir_replay(r, key, sizeof key - 1, 0), 1);
    weir_replay_close(r);
    weir_replay_close(NULL);
    assert_int_equal(weir_replay_clients(NULL), 0);
}

static void a_client_starts_full_at_its_first_request(void **state)
{
    struct weir_replayer *r = open_replay(3, 60);
    for (int64_t first = -1000; first <= 1000; first += 500) {
        for (int i = 0; i < 5; i++) {
            assert_int_equal(weir_replay(r, &first, sizeof first, first), i < 3);
        }
        assert_int_equal(weir_replay(r, &first, sizeof first, first + 19), 0);
        assert_int_equal(weir_replay(r, &first, sizeof first, first + 20), 1);
        assert_int_equal(weir_replay(r, &first, sizeof first, first + 20), 0);
    }
    assert_int_equal(weir_replay_clients(r), 5);
    weir_replay_close(r);
}

static void capacity_0_denies_everything(void **state)
{
    struct weir_replayer *r = open_replay(0, 60);
    assert_int_equal(weir_replay(r, "k", 1, 0), 0);
    assert_int_equal(weir_replay(r, "k", 1, INT64_MAX), 0);
    weir_replay_close(r);
}

static void window_0_never_refills(void **state)
{
    struct weir_replayer *r = open_replay(2, 0);
    assert_int_equal(weir_replay(r, "k", 1, 0), 1);
    assert_int_equal(weir_replay(r, "k", 1, 1000), 1);
    assert_int_equal(weir_replay(r, "k", 1, INT64_MAX), 0);
    weir_replay_close(r);
}

static void a_decreasing_time_refills_nothing(void **state)
{
    struct weir_replayer *r = open_replay(1, 10);
    assert_int_equal(weir_replay(r, "k", 1, 100), 1);
    assert_int_equal(weir_replay(r, "k", 1, 50), 0);
    assert_int_equal(weir_replay(r, "k", 1, INT64_MIN), 0);
    assert_int_equal(weir_replay(r, "k", 1, 109), 0);
    assert_int_equal(weir_replay(r, "k", 1, 110), 1);
    weir_replay_close(r);
}

static void it_grows_with_its_clients_and_forgets_none(void **state)
{
    struct weir_replayer *r = open_replay(1, 1000);
    const uint64_t clients = 50000;
    for (uint64_t i = 0; i < clients; i++) {
        assert_int_equal(weir_replay(r, &i, sizeof i, 0), 1);
    }
    assert_int_equal(weir_replay_clients(r), clients);
    for (uint64_t i = 0; i < clients; i++) {
        assert_int_equal(weir_replay(r, &i, sizeof i, 1), 0);
    }
    assert_int_equal(weir_replay_clients(r), clients);
    weir_replay_close(r);
}

static void extreme_numbers_do_not_overflow(void **state)
{
    static const int64_t odd[] = {0, 1, 2, INT32_MAX, INT64_MAX - 1, INT64_MAX};
    static const int64_t times[] = {INT64_MIN, -1, 0, 1, INT64_MAX, INT64_MIN, INT64_MAX};
    for (int i = 0; i < 36; i++) {
        struct weir_replayer *r = open_replay(odd[i / 6], odd[i % 6]);
        for (int j = 0; j < 7; j++) {
            int allowed = weir_replay(r, "k", 1, times[j]);
            assert_in_range(allowed, 0, 1);
            assert_true(odd[i / 6] != 0 || allowed == 0);
        }
        weir_replay_close(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(a_client_starts_full_at_its_first_request),
        cmocka_unit_test(capacity_0_denies_everything),
        cmocka_unit_test(window_0_never_refills),
        cmocka_unit_test(a_decreasing_time_refills_nothing),
        cmocka_unit_test(it_grows_with_its_clients_and_forgets_none),
        cmocka_unit_test(extreme_numbers_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
