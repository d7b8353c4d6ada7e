/* What fork does to private tables whose locks were held by threads that the child does not have. */
#include "table/fork.h"
#include "support/unit_table.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lock change; /* not on the stack: a sanitizer's stack is not aligned enough */
static pthread_barrier_t held;
static pthread_barrier_t done;

static void *hold_all(void *arg)
{
    struct table *t = arg;
    for (uint64_t i = 0; i <= t->stripe_mask; i++) {
        lock_take(&t->stripes[i]);
    }
    (void)pthread_barrier_wait(&held);
    (void)pthread_barrier_wait(&done);
    for (uint64_t i = 0; i <= t->stripe_mask; i++) {
        lock_release(&t->stripes[i]);
    }
    return NULL;
}

/* 1 if every lock of the table and the lock of changes can be had. */
static int all_free(struct table *t)
{
    for (uint64_t i = 0; i <= t->stripe_mask; i++) {
        if (!lock_try(&t->stripes[i])) {
            return 0;
        }
        lock_release(&t->stripes[i]);
    }
    return lock_try(&change);
}

static int run_in_child(struct table *t)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(all_free(t));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void locks_held_by_other_threads_are_free_in_the_child(void **state)
{
    struct unit_table *t = unit_table_make(1000, 0);
    struct fork_watch watch;
    pthread_t thread;
    memset(&watch, 0, sizeof watch);
    assert_int_equal(lock_init(&change), 0);
    assert_int_equal(fork_watch(&watch, &t->table, &change), 0);
    assert_int_equal(pthread_barrier_init(&held, NULL, 2), 0);
    assert_int_equal(pthread_barrier_init(&done, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, hold_all, &t->table), 0);
    (void)pthread_barrier_wait(&held);
    assert_int_equal(run_in_child(&t->table), 1);
    fork_unwatch(&watch);
    assert_int_equal(run_in_child(&t->table), 0); /* nobody watches any more */
    (void)pthread_barrier_wait(&done);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(all_free(&t->table), 1);
    unit_table_free(t);
}

static void tables_join_and_leave_the_list_in_any_order(void **state)
{
    struct unit_table *t[3];
    struct fork_watch watch[3];
    assert_int_equal(lock_init(&change), 0);
    memset(watch, 0, sizeof watch);
    for (int i = 0; i < 3; i++) {
        t[i] = unit_table_make(10, 0);
    }
    for (int first = 0; first < 3; first++) {
        for (int i = 0; i < 3; i++) {
            assert_int_equal(fork_watch(&watch[i], &t[i]->table, &change), 0);
        }
        for (int i = 0; i < 3; i++) {
            fork_unwatch(&watch[(first + i) % 3]);
            fork_unwatch(&watch[(first + i) % 3]); /* leaving twice is allowed */
            assert_int_equal(run_in_child(&t[0]->table), 1);
        }
    }
    for (int i = 0; i < 3; i++) {
        unit_table_free(t[i]);
    }
}

static void a_watch_that_never_joined_may_leave(void **state)
{
    struct fork_watch watch;
    memset(&watch, 0, sizeof watch);
    fork_unwatch(&watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_held_by_other_threads_are_free_in_the_child),
        cmocka_unit_test(tables_join_and_leave_the_list_in_any_order),
        cmocka_unit_test(a_watch_that_never_joined_may_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
