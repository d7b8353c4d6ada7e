#include "base/lock.h"
#include "base/atomic.h"
#include "support/engine/unit_limiter.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static struct lock lock;

static void *try_it(void *arg)
{
    *(int *)arg = lock_try(&lock, &lock_private);
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
    lock_init(&lock);
    lock_take(&lock, &lock_private);
    assert_int_equal(try_from_elsewhere(), 0);
    lock_release(&lock);
    assert_int_equal(try_from_elsewhere(), 1);
    assert_true(lock_try(&lock, &lock_private));
    assert_int_equal(try_from_elsewhere(), 0);
    assert_false(lock_take_soon(&lock, &lock_private)); /* its owner lives */
    lock_release(&lock);
    assert_true(lock_take_soon(&lock, &lock_private));
    lock_release(&lock);
}

static void a_lock_is_a_cache_line_of_its_own(void **state)
{
    assert_int_equal(sizeof(struct lock), 64);
    assert_int_equal(_Alignof(struct lock), 64);
}

static void *end_inside(void *arg)
{
    lock_take(&lock, &lock_private);
    pthread_exit(arg);
}

static void *wait_inside(void *arg)
{
    (void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    lock_take(&lock, &lock_private);
    store_release(arg, 1);
    for (;;) {
    }
    return NULL;
}

static void a_thread_that_ends_inside_leaves_the_lock_to_the_next(void **state)
{
    pthread_t thread;
    uint64_t inside = 0;
    lock_init(&lock);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(pthread_create(&thread, NULL, end_inside, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(try_from_elsewhere(), 1);
    }
    assert_int_equal(pthread_create(&thread, NULL, wait_inside, &inside), 0);
    while (load_acquire(&inside) == 0) {
        lock_pause(100);
    }
    assert_int_equal(try_from_elsewhere(), 0);
    assert_int_equal(pthread_cancel(thread), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(try_from_elsewhere(), 1);
}

/* ---- between processes ---- */

/* Memory that parent and children share, with a descriptor for their record locks. */
struct shared {
    struct lock lock;
    uint64_t last;
    uint64_t count;
    uint64_t ready;
};
static struct shared *shared;
static struct lock_owner owner;

static int setup(void **state)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof *shared), 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(shared != MAP_FAILED);
    assert_int_equal(lock_owner_join(&owner, &shared->last, fd), 0);
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(munmap(shared, sizeof *shared), 0);
    assert_int_equal(close(owner.fd), 0);
    return 0;
}

static pid_t start(void (*act)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(120);
        act();
        _exit(0);
    }
    return child;
}

static void assert_ends_well(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void await(const uint64_t *word, uint64_t value)
{
    while (load_acquire(word) != value) {
        lock_pause(100);
    }
}

static void take_and_die(void)
{
    lock_take(&shared->lock, &owner);
    (void)kill(getpid(), SIGKILL);
}

static void take_and_stay(void)
{
    lock_take(&shared->lock, &owner);
    store_release(&shared->ready, 1);
    (void)pause();
}

static void take_and_leave(void)
{
    lock_take(&shared->lock, &owner);
    lock_release(&shared->lock);
}

static void a_process_that_is_killed_inside_leaves_the_lock_to_the_next(void **state)
{
    pid_t child = start(take_and_die);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(lock_try(&shared->lock, &owner)); /* only waiting finds out */
    lock_take(&shared->lock, &owner);
    lock_release(&shared->lock);
    assert_ends_well(start(take_and_leave));
}

static void a_process_that_is_stopped_keeps_the_lock(void **state)
{
    pid_t child = start(take_and_stay);
    await(&shared->ready, 1);
    assert_int_equal(kill(child, SIGSTOP), 0);
    for (int i = 0; i < 5; i++) {
        assert_false(lock_take_soon(&shared->lock, &owner));
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    lock_take(&shared->lock, &owner);
    lock_release(&shared->lock);
}

static void a_damaged_word_names_no_living_process(void **state)
{
    static const uint64_t damaged[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, 123456789};
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        shared->lock.word = damaged[i];
        lock_take(&shared->lock, &owner);
        lock_release(&shared->lock);
    }
}

/* The master dies inside; a worker that never locks has inherited its descriptor and lives on. */
static void fork_idle_and_die(void)
{
    lock_take(&shared->lock, &owner);
    pid_t idle = fork();
    if (idle == 0) {
        (void)alarm(120);
        (void)pause();
        _exit(0);
    }
    store_release(&shared->ready, (uint64_t)idle);
    (void)kill(getpid(), SIGKILL);
}

static void a_living_child_does_not_keep_its_dead_parents_lock(void **state)
{
    pid_t master = start(fork_idle_and_die);
    assert_int_equal(waitpid(master, NULL, 0), master);
    lock_take(&shared->lock, &owner);
    lock_release(&shared->lock);
    assert_int_equal(kill((pid_t)shared->ready, SIGKILL), 0);
}

/* A child made by the bare system call takes a number of its own, so its death is its own too. */
static void a_raw_child_is_a_process_of_its_own(void **state)
{
#ifdef WEIR_EMULATED /* qemu does not know this call */
    skip();
#endif
    for (int dies = 0; dies < 2; dies++) {
        pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        assert_true(child >= 0);
        if (child == 0) {
            lock_take(&shared->lock, &owner);
            if (dies) {
                (void)syscall(SYS_kill, (pid_t)syscall(SYS_getpid), SIGKILL);
            }
            lock_release(&shared->lock);
            _exit(0);
        }
        assert_int_equal(waitpid(child, NULL, 0), child);
        lock_take(&shared->lock, &owner);
        lock_release(&shared->lock);
    }
    assert_int_equal(shared->last, 3);
}

static void take_without_descriptors_left(void)
{
    struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_NOFILE, &none);
    take_and_die();
}

static void a_child_without_descriptors_left_can_lock_and_die(void **state)
{
    pid_t child = start(take_without_descriptors_left);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(shared->last, 2);
    lock_take(&shared->lock, &owner);
    lock_release(&shared->lock);
}

/* As if a killed waiter had taken the wakeup along: the word becomes free without a
 * call to the kernel. */
static void a_wakeup_that_is_lost_is_only_a_delay(void **state)
{
    uint64_t held = owner.number << 1;
    store_release(&shared->lock.word, held);
    pid_t child = start(take_and_leave);
    await(&shared->lock.word, held | 1); /* the lowest bit: somebody waits */
    lock_pause(100);
    store_release(&shared->lock.word, 0);
    assert_ends_well(child);
}

static void count_a_lot(void)
{
    for (int i = 0; i < 20000; i++) {
        lock_take(&shared->lock, &owner);
        shared->count++; /* not atomic: the lock is all there is */
        lock_release(&shared->lock);
    }
}

static void nothing_is_lost_between_processes(void **state)
{
    pid_t child[4];
    for (int i = 0; i < 4; i++) {
        child[i] = start(count_a_lot);
    }
    for (int i = 0; i < 4; i++) {
        assert_ends_well(child[i]);
    }
    assert_int_equal(shared->count, 80000);
}

static void tick(int number)
{
    (void)number;
}

/* Each signal ends a system call: a wait that began anew would never be over. */
static void frequent_signals_do_not_hide_that_an_owner_is_dead(void **state)
{
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 2000}, {0, 2000}};
    struct itimerval never = {{0, 0}, {0, 0}};
    struct sigaction before;
    pid_t child = start(take_and_die);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    lock_take(&shared->lock, &owner);
    lock_release(&shared->lock);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
}

#define JOINERS 4
static pthread_barrier_t joiners;

static void *join_first(void *arg)
{
    (void)pthread_barrier_wait(&joiners);
    *(uint64_t *)arg = lock_number(&owner);
    return NULL;
}

static void join_together(void)
{
    pthread_t thread[JOINERS];
    uint64_t number[JOINERS];
    (void)pthread_barrier_init(&joiners, NULL, JOINERS);
    for (int i = 0; i < JOINERS; i++) {
        (void)pthread_create(&thread[i], NULL, join_first, &number[i]);
    }
    for (int i = 0; i < JOINERS; i++) {
        (void)pthread_join(thread[i], NULL);
    }
    for (int i = 0; i < JOINERS; i++) {
        if (number[i] != owner.number || lock_owner_is_dead(&owner, number[i])) {
            _exit(1);
        }
    }
}

/* One thread gave up the record lock that another had just taken, in one of thirty children. */
static void threads_of_a_child_that_lock_together_join_once(void **state)
{
    for (uint64_t i = 0; i < unit_scale(500); i++) {
        assert_ends_well(start(join_together));
    }
}

static void making_a_lock_overwrites_whatever_was_there(void **state)
{
    memset(&lock, 0xa5, sizeof lock);
    lock_init(&lock);
    assert_int_equal(try_from_elsewhere(), 1);
    lock_pause(0);
    lock_pause(100);
}

int main(void)
{
#define SHARED(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_excludes_others_until_it_is_released),
        cmocka_unit_test(a_lock_is_a_cache_line_of_its_own),
        cmocka_unit_test(a_thread_that_ends_inside_leaves_the_lock_to_the_next),
        SHARED(a_process_that_is_killed_inside_leaves_the_lock_to_the_next),
        SHARED(a_process_that_is_stopped_keeps_the_lock),
        SHARED(a_damaged_word_names_no_living_process),
        SHARED(a_living_child_does_not_keep_its_dead_parents_lock),
        SHARED(a_raw_child_is_a_process_of_its_own),
        SHARED(a_child_without_descriptors_left_can_lock_and_die),
        SHARED(a_wakeup_that_is_lost_is_only_a_delay),
        SHARED(frequent_signals_do_not_hide_that_an_owner_is_dead),
        SHARED(threads_of_a_child_that_lock_together_join_once),
        SHARED(nothing_is_lost_between_processes),
        cmocka_unit_test(making_a_lock_overwrites_whatever_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
