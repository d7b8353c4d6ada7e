/* What fork does to private tables whose locks are held by threads that the child lacks. */
#include "support/engine/unit_table.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t held;
static pthread_barrier_t done;

static void *hold_one(void *arg)
{
    struct table *t = arg;
    lock_take(&t->stripes[0], t->owner);
    (void)pthread_barrier_wait(&held);
    (void)pthread_barrier_wait(&done);
    lock_release(&t->stripes[0]);
    return NULL;
}

/* Takes every lock of the table; a lock that stays taken ends the child by its alarm. */
static void take_all(const struct table *t)
{
    (void)alarm(60);
    for (uint64_t i = 0; i <= t->stripe_mask; i++) {
        lock_take(&t->stripes[i], t->owner);
        lock_release(&t->stripes[i]);
    }
}

static pid_t fork_plainly(void)
{
    return fork();
}

/* No handler of the C library runs: only the kernel knows that this is another process. */
static pid_t fork_rawly(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static void assert_free_in_child(const struct table *t, pid_t (*make)(void))
{
    int status = -1;
    pid_t child = make();
    assert_true(child >= 0);
    if (child == 0) {
        take_all(t);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void locks_held_by_other_threads_are_free_in_the_child(void **state)
{
    struct unit_table *t = unit_table_make(1000, 0);
    pthread_t thread;
    assert_int_equal(pthread_barrier_init(&held, NULL, 2), 0);
    assert_int_equal(pthread_barrier_init(&done, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, hold_one, &t->table), 0);
    (void)pthread_barrier_wait(&held);
    assert_free_in_child(&t->table, fork_plainly);
#ifndef WEIR_EMULATED /* qemu does not know this call */
    assert_free_in_child(&t->table, fork_rawly);
#endif
    assert_false(lock_try(&t->table.stripes[0], t->table.owner)); /* here its owner lives */
    (void)pthread_barrier_wait(&done);
    assert_int_equal(pthread_join(thread, NULL), 0);
    take_all(&t->table);
    (void)alarm(0);
    unit_table_free(t);
}

/* A descendant must not have an ancestor's number: it would take a dead lock for its own. */
static void numbers_of_processes_differ_along_a_line_of_descent(void **state)
{
    uint64_t seen[4] = {process_number()};
    for (int depth = 1; depth < 4; depth++) {
#ifdef WEIR_EMULATED
        pid_t child = fork_plainly();
#else
        pid_t child = depth % 2 != 0 ? fork_rawly() : fork_plainly();
#endif
        assert_true(child >= 0);
        if (child > 0) {
            int status = -1;
            (void)waitpid(child, &status, 0);
            if (depth > 1) {
                _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
            }
            assert_int_equal(status, 0);
            return;
        }
        seen[depth] = process_number();
        for (int i = 0; i < depth; i++) {
            if (seen[i] == seen[depth]) {
                _exit(1);
            }
        }
    }
    _exit(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_held_by_other_threads_are_free_in_the_child),
        cmocka_unit_test(numbers_of_processes_differ_along_a_line_of_descent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
