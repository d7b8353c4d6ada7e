#include "base/clock.h"
#include "support/unit_limiter.h"

#include <time.h>

static void the_wall_clock_is_unix_time(void **state)
{
    uint64_t before = (uint64_t)time(NULL) - 1;
    uint64_t now = clock_unix_ns();
    uint64_t after = (uint64_t)time(NULL) + 1;
    assert_in_range(now / WEIR_SECOND, before, after);
}

static void the_boot_clock_never_runs_back(void **state)
{
    uint64_t last = clock_boot_ns();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = clock_boot_ns();
        assert_true(now >= last);
        last = now;
    }
}

static void the_boot_has_an_id_that_does_not_change(void **state)
{
    struct boot_id a;
    struct boot_id b;
    assert_int_equal(clock_boot_id(&a), 0);
    assert_int_equal(clock_boot_id(&b), 0);
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(a.word[0] != 0 && a.word[1] != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_wall_clock_is_unix_time),
        cmocka_unit_test(the_boot_clock_never_runs_back),
        cmocka_unit_test(the_boot_has_an_id_that_does_not_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
