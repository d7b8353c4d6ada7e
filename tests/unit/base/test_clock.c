#include "base/clock.h"
#include "base/counter.h"
#include "support/engine/unit_limiter.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 3

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

/*
 * Reads for half a second, across many syncs. The stated error, and as much again for the kernel's
 * clock, which may differ between processors, too. True if all times were right and none went back.
 */
static bool reads_well(void)
{
    uint64_t end_ns = clock_boot_ns() + 500 * WEIR_MILLISECOND;
    uint64_t last_ns = 0;
    for (uint64_t before_ns = 0; before_ns < end_ns;) {
        before_ns = clock_boot_ns();
        uint64_t now_ns = clock_now_ns();
        uint64_t after_ns = clock_boot_ns();
        if (now_ns < last_ns || now_ns + 2 * COUNTER_ERROR_NS < before_ns ||
            now_ns > after_ns + 2 * COUNTER_ERROR_NS) {
            return false;
        }
        last_ns = now_ns;
    }
    return true;
}

static void *read_in_a_thread(void *arg)
{
    *(bool *)arg = reads_well();
    return NULL;
}

static void the_fast_clock_agrees_with_the_kernels_in_each_thread(void **state)
{
    pthread_t id[THREADS];
    bool well[THREADS] = {false};
    clock_choose();
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&id[i], NULL, read_in_a_thread, &well[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(id[i], NULL), 0);
        assert_true(well[i]);
    }
}

static void a_forked_child_keeps_the_time(void **state)
{
    clock_choose();
    assert_true(reads_well());
    uint64_t before_ns = clock_now_ns();
    pid_t pid = fork();
    if (pid == 0) {
        _exit(clock_now_ns() >= before_ns && reads_well() ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
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
        cmocka_unit_test(the_fast_clock_agrees_with_the_kernels_in_each_thread),
        cmocka_unit_test(a_forked_child_keeps_the_time),
        cmocka_unit_test(the_boot_has_an_id_that_does_not_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
