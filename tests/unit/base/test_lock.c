#include "base/lock.h"
#include "support/unit_limiter.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lock lock;

static void *try_it(void *arg)
{
    *(int *)arg = lock_try(&lock);
    if (*(int *)arg == 1) {
        lock_release(&lock);
    }
    return NULL;
}

static int try_from_elsewhere(void)
{
    pthread_t thread;
    int got = -1;
    assert_int_equal(pthread_create(&thread, NULL, try_it, &got), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return got;
}

static void a_lock_excludes_others_until_it_is_released(void **state)
{
    assert_int_equal(lock_init(&lock), 0);
    lock_take(&lock);
    assert_int_equal(try_from_elsewhere(), 0);
    lock_release(&lock);
    assert_int_equal(try_from_elsewhere(), 1);
    assert_true(lock_try(&lock));
    assert_int_equal(try_from_elsewhere(), 0);
    lock_release(&lock);
}

static void a_lock_is_a_cache_line_of_its_own(void **state)
{
    assert_int_equal(sizeof(struct lock), 64);
    assert_int_equal(_Alignof(struct lock), 64);
}

static void *die_inside(void *arg)
{
    lock_take(&lock);
    return arg;
}

static void leave_it_to_the_dead(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, die_inside, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_thread_that_dies_inside_leaves_the_lock_to_the_next(void **state)
{
    assert_int_equal(lock_init(&lock), 0);
    for (int i = 0; i < 10; i++) {
        leave_it_to_the_dead();
        lock_take(&lock);
        assert_int_equal(try_from_elsewhere(), 0);
        lock_release(&lock);
        leave_it_to_the_dead();
        assert_true(lock_try(&lock));
        assert_int_equal(try_from_elsewhere(), 0);
        lock_release(&lock);
    }
    assert_int_equal(try_from_elsewhere(), 1);
}

static void a_process_that_is_killed_inside_leaves_the_lock_to_the_next(void **state)
{
    struct lock *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    assert_int_equal(lock_init(shared), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        lock_take(shared);
        (void)kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    lock_take(shared);
    lock_release(shared);
    assert_true(lock_try(shared));
    lock_release(shared);
    assert_int_equal(munmap(shared, sizeof *shared), 0);
}

/*
 * As if a killed waiter had taken the wakeup along: the owner's word (nobody's, here) goes without a call
 * to the kernel while somebody sleeps.
 */
static void a_wakeup_that_is_lost_is_only_a_delay(void **state)
{
    struct lock *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    assert_int_equal(lock_init(shared), 0);
    int *word = &shared->mutex.__data.__lock;
    __atomic_store_n(word, 1 << 22, __ATOMIC_SEQ_CST);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(60);
        lock_take(shared);
        lock_release(shared);
        _exit(0);
    }
    while (__atomic_load_n(word, __ATOMIC_SEQ_CST) >= 0) { /* the highest bit: somebody waits */
        (void)usleep(100);
    }
    (void)usleep(1000);
    __atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(munmap(shared, sizeof *shared), 0);
}

static void making_a_lock_overwrites_whatever_was_there(void **state)
{
    memset(&lock, 0xa5, sizeof lock);
    assert_int_equal(lock_init(&lock), 0);
    assert_int_equal(try_from_elsewhere(), 1);
    lock_pause(0);
    lock_pause(100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_excludes_others_until_it_is_released),
        cmocka_unit_test(a_lock_is_a_cache_line_of_its_own),
        cmocka_unit_test(a_thread_that_dies_inside_leaves_the_lock_to_the_next),
        cmocka_unit_test(a_process_that_is_killed_inside_leaves_the_lock_to_the_next),
        cmocka_unit_test(a_wakeup_that_is_lost_is_only_a_delay),
        cmocka_unit_test(making_a_lock_overwrites_whatever_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
