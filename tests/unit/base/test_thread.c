/* Numbers for threads: each of THREAD_OWN has its own, the others share one. */
#include "base/thread.h"
#include "support/engine/unit_limiter.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY (THREAD_OWN + 37)

struct member {
    unsigned number;
    unsigned again;
};

static pthread_barrier_t all_have_one;

static void *take_number(void *arg)
{
    struct member *m = arg;
    m->number = thread_slot();
    (void)pthread_barrier_wait(&all_have_one);
    m->again = thread_slot();
    return NULL;
}

static void run(struct member *members, unsigned n)
{
    pthread_t thread[MANY];
    assert_int_equal(pthread_barrier_init(&all_have_one, NULL, n), 0);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, take_number, &members[i]), 0);
    }
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    assert_int_equal(pthread_barrier_destroy(&all_have_one), 0);
}

static void count_owners(const struct member *members, unsigned n, unsigned owners[THREAD_SLOTS])
{
    memset(owners, 0, THREAD_SLOTS * sizeof *owners);
    for (unsigned i = 0; i < n; i++) {
        assert_true(members[i].number < THREAD_SLOTS);
        assert_int_equal(members[i].number, members[i].again);
        owners[members[i].number]++;
    }
}

static void threads_have_numbers_of_their_own_while_there_are_any_and_the_rest_share(void **state)
{
    struct member members[MANY];
    unsigned owners[THREAD_SLOTS];
    (void)thread_slot(); /* the main thread has one too */
    run(members, MANY);
    count_owners(members, MANY, owners);
    for (unsigned i = 0; i < THREAD_OWN; i++) {
        assert_int_equal(owners[i], i == thread_slot() ? 0 : 1);
    }
    assert_int_equal(owners[THREAD_OWN], MANY - (THREAD_OWN - 1));
}

static void numbers_of_threads_that_have_ended_are_used_again(void **state)
{
    struct member members[20];
    unsigned owners[THREAD_SLOTS];
    for (int round = 0; round < 50; round++) {
        run(members, 20);
        count_owners(members, 20, owners);
        assert_int_equal(owners[THREAD_OWN], 0);
        for (unsigned i = 0; i < 20; i++) {
            assert_true(members[i].number <= 20); /* always the lowest ones */
        }
    }
}

static pthread_barrier_t may_end;

static void *keep_number(void *arg)
{
    (void)thread_slot();
    (void)pthread_barrier_wait(&all_have_one);
    (void)pthread_barrier_wait(&may_end);
    return arg;
}

/* In the child of a fork there is one thread; the numbers of the others are free. */
static int free_numbers_in_child(void)
{
    int status;
    unsigned own = thread_slot();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool kept = thread_slot() == own;
        thread_number = 0; /* as a new thread would find itself */
        _exit(kept && thread_slot() == (own == 0 ? 1 : 0) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_forked_child_frees_the_numbers_of_threads_it_does_not_have(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 1, WEIR_SECOND); /* installs the fork handler */
    pthread_t thread[10];
    (void)thread_slot();
    assert_int_equal(pthread_barrier_init(&all_have_one, NULL, 11), 0);
    assert_int_equal(pthread_barrier_init(&may_end, NULL, 11), 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, keep_number, NULL), 0);
    }
    (void)pthread_barrier_wait(&all_have_one);
    int status = free_numbers_in_child();
    (void)pthread_barrier_wait(&may_end);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    assert_int_equal(status, 0);
    weir_close(w);
}

/* ---- counting through them ---- */

#define CALLS 500

static void *ask_some(void *arg)
{
    struct weir_answer a;
    (void)weir_check_at(arg, "k", 1, 1, 0, &a);
    (void)pthread_barrier_wait(&all_have_one); /* all alive, so most have no number of their own */
    for (int i = 1; i < CALLS; i++) {
        (void)weir_check_at(arg, "k", 1, 1, 0, &a);
    }
    return NULL;
}

static void statistics_are_exact_with_more_threads_than_numbers(void **state)
{
    struct weir *w = unit_limit(WEIR_FIXED_WINDOW, 1000, WEIR_DAY);
    pthread_t thread[MANY];
    assert_int_equal(pthread_barrier_init(&all_have_one, NULL, MANY), 0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, ask_some, w), 0);
    }
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    assert_int_equal(pthread_barrier_destroy(&all_have_one), 0);
    assert_int_equal(unit_stats(w).allowed, 1000);
    assert_int_equal(unit_stats(w).denied, MANY * CALLS - 1000);
    weir_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_have_numbers_of_their_own_while_there_are_any_and_the_rest_share),
        cmocka_unit_test(numbers_of_threads_that_have_ended_are_used_again),
        cmocka_unit_test(a_forked_child_frees_the_numbers_of_threads_it_does_not_have),
        cmocka_unit_test(statistics_are_exact_with_more_threads_than_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
