// test-labels: notsan
/*
 * Containers that share a state file: each has a PID namespace of its own, so their processes and
 * threads have the same numbers. And other ways in which a process is not what its number says.
 */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine/process_fixture.h"

#define CONTAINERS 2
#define WORKERS 4
#define KEYS (64 / PROCESS_SCALE)
#define ROUNDS (100 / PROCESS_SCALE)

/* What the workers of all containers write down, in a file beside the limiter's. */
struct tally {
    uint64_t admitted[CONTAINERS * WORKERS][8]; /* a line each */
    uint64_t arrived;                           /* containers at the beginning of a round */
};

struct fleet {
    const char *dir;
    struct weir_options o;
    struct tally *tally;
    unsigned container;
    unsigned worker;
    bool kill;
};

static struct weir_options fleet_limit(const char *dir)
{
    struct weir_options o = process_limit(WEIR_SLIDING_LOG, 20000);
    o.memory = WEIR_FILE;
    o.path = process_path(dir, "limits");
    o.max_keys = KEYS;
    return o;
}

static struct tally *map_tally(const char *dir)
{
    int fd = open(process_path(dir, "tally"), O_RDWR | O_CREAT, 0600);
    REQUIRE(fd >= 0 && ftruncate(fd, sizeof(struct tally)) == 0);
    struct tally *t = mmap(NULL, sizeof(struct tally), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(t != MAP_FAILED);
    (void)close(fd);
    return t;
}

/*
 * The program of a worker, with addresses of its own as in a container of its own. Takes from every
 * key until all deny. All of a log's decisions are made under locks.
 */
static int work(const char *dir, unsigned place)
{
    struct weir_options o = fleet_limit(dir);
    struct weir *w = process_open(&o);
    uint64_t *mine = map_tally(dir)->admitted[place];
    (void)alarm(PROCESS_DEADLINE_S);
    for (bool some = true; some;) {
        some = false;
        for (unsigned i = 0; i < KEYS; i++) {
            if (process_take(w, i, PROCESS_NOW) == WEIR_ALLOW) {
                __atomic_store_n(mine, *mine + 1, __ATOMIC_RELEASE);
                some = true;
            }
        }
    }
    weir_close(w);
    return 0;
}

static void start_work(void *arg)
{
    struct fleet *f = arg;
    char place[16];
    (void)snprintf(place, sizeof place, "%u", f->container * WORKERS + f->worker);
    (void)execl("/proc/self/exe", "worker", f->dir, place, NULL);
    _exit(1);
}

static void start_workers(struct fleet *f, pid_t pid[WORKERS])
{
    for (f->worker = 0; f->worker < WORKERS; f->worker++) {
        pid[f->worker] = process_start(start_work, f);
    }
}

/*
 * Kills all workers, round after round, in step with the other containers: so workers with the same
 * numbers wait for each other's locks. None may end in another way than by that signal, or at the
 * end of its work.
 */
static void kill_in_step(struct fleet *f)
{
    for (unsigned round = 1; round <= ROUNDS; round++) {
        pid_t pid[WORKERS];
        start_workers(f, pid);
        (void)__atomic_fetch_add(&f->tally->arrived, 1, __ATOMIC_ACQ_REL);
        /* The first process of a namespace does not die of an alarm: it counts. */
        for (int i = 0; __atomic_load_n(&f->tally->arrived, __ATOMIC_ACQUIRE) < round * CONTAINERS;
             i++) {
            REQUIRE(i < PROCESS_DEADLINE_S * 1000);
            (void)usleep(1000);
        }
        (void)usleep(10000);
        for (unsigned i = 0; i < WORKERS; i++) {
            int status = -1;
            (void)kill(pid[i], SIGKILL);
            REQUIRE(waitpid(pid[i], &status, 0) == pid[i]);
            REQUIRE(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
        }
    }
}

/* The first process of a namespace. */
static void run_container(void *arg)
{
    struct fleet *f = arg;
    pid_t pid[WORKERS];
    bool well = true;
    if (f->kill) {
        kill_in_step(f);
    }
    start_workers(f, pid);
    for (unsigned i = 0; i < WORKERS; i++) {
        well &= process_ended_well(pid[i]);
    }
    _exit(well ? 0 : 1);
}

/* What is forked from here on is in a namespace of its own; its first process has the number 1. */
static void enter_namespace(void *arg)
{
    if (unshare(CLONE_NEWPID) != 0) {
        _exit(77);
    }
    _exit(process_run(run_container, arg) ? 0 : 1);
}

static bool can_unshare(void)
{
    pid_t child = fork();
    if (child == 0) {
        _exit(unshare(CLONE_NEWPID) != 0);
    }
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
}

static uint64_t run_fleet(struct fleet *f)
{
    pid_t pid[CONTAINERS];
    uint64_t sum = 0;
    for (f->container = 0; f->container < CONTAINERS; f->container++) {
        pid[f->container] = process_start(enter_namespace, f);
    }
    for (unsigned i = 0; i < CONTAINERS; i++) {
        assert_true(process_ended_well(pid[i]));
    }
    for (unsigned i = 0; i < CONTAINERS * WORKERS; i++) {
        sum += f->tally->admitted[i][0];
    }
    return sum;
}

static void two_pid_namespaces_share_one_limit_exactly(void **state)
{
    if (!can_unshare()) {
        skip();
    }
    for (int killed = 0; killed < 2; killed++) {
        struct fleet f = {*state, fleet_limit(*state), map_tally(*state), 0, 0, killed != 0};
        uint64_t quota = f.o.count;
        uint64_t sum = run_fleet(&f);
        /* Each kill may lose the one call that the worker was in. */
        uint64_t lost = killed != 0 ? CONTAINERS * WORKERS * ROUNDS : 0;
        assert_in_range(sum, KEYS * quota - lost, KEYS * quota);
        (void)munmap(f.tally, sizeof *f.tally);
        assert_int_equal(unlink(f.o.path), 0);
        assert_int_equal(unlink(process_path(*state, "tally")), 0);
    }
}

/* ---- opened twice ---- */

static struct weir_options file_limit(const char *dir)
{
    struct weir_options o = process_limit(WEIR_SLIDING_LOG, 5);
    o.memory = WEIR_FILE;
    o.path = process_path(dir, "limits");
    return o;
}

struct holder {
    struct weir_options o;
    volatile uint64_t *step;
};

/* Opens the file twice and closes it once, is refused once, and dies with a stripe in its hands. */
static void open_twice_and_wait(void *arg)
{
    struct holder *h = arg;
    struct weir_options other = h->o;
    struct weir *w = process_open(&h->o);
    struct weir *again = process_open(&h->o);
    struct weir *refused;
    weir_close(w);
    other.count = 6;
    REQUIRE(weir_open(&refused, &other, NULL) == WEIR_EMISMATCH);
    *h->step = 1;
    while (*h->step == 1) {
        (void)usleep(100);
    }
    for (;;) { /* stopped somewhere in here */
        (void)process_take(again, 1, PROCESS_NOW);
        (void)weir_reset(again, &(unsigned){1}, sizeof(unsigned));
    }
}

static void a_file_opened_twice_and_closed_once_is_still_this_process(void **state)
{
    struct holder h = {file_limit(*state), process_shared_memory(sizeof(uint64_t))};
    pid_t child = process_start(open_twice_and_wait, &h);
    while (*h.step == 0) {
        (void)usleep(100);
    }
    /* Its record locks are still there: the file is in use, and so cannot be recovered. */
    struct weir *w = process_open(&h.o);
    assert_int_equal(process_take(w, 1, PROCESS_NOW), WEIR_ALLOW);
    *h.step = 2;
    for (int i = 0; i < 2000 / PROCESS_SCALE; i++) {
        assert_int_not_equal(process_take(w, 1, PROCESS_NOW), WEIR_NEVER);
    }
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    for (unsigned i = 0; i < 100; i++) {
        (void)process_take(w, i, PROCESS_NOW); /* no stripe is stuck */
    }
    weir_close(w);
    process_shared_free((void *)(uintptr_t)h.step, sizeof(uint64_t));
}

static void two_limiters_of_one_file_are_one_limit(void **state)
{
    struct weir_options o = file_limit(*state);
    struct weir *a = process_open(&o);
    struct weir *b = process_open(&o);
    assert_int_equal(process_take(a, 1, PROCESS_NOW), WEIR_ALLOW);
    assert_int_equal(process_left(b, 1, PROCESS_NOW), 4);
    weir_close(a);
    assert_int_equal(process_take(b, 1, PROCESS_NOW), WEIR_ALLOW);
    a = process_open(&o);
    assert_int_equal(process_left(a, 1, PROCESS_NOW), 3);
    weir_close(b);
    assert_int_equal(process_left(a, 1, PROCESS_NOW), 3);
    weir_close(a);
}

/* ---- a time namespace ---- */

struct told {
    struct weir_options o;
    uint64_t now;
};

static void tell_time(void *arg)
{
    struct told *t = arg;
    uint64_t now;
    struct weir *w = process_open(&t->o);
    REQUIRE(weir_now(w, &now) == 0);
    /* CLOCK_BOOTTIME is ten days ahead in here; the limiter's time is not. */
    REQUIRE(now >= t->now && now - t->now < WEIR_HOUR);
    weir_close(w);
}

static void enter_time_namespace(void *arg)
{
    if (unshare(CLONE_NEWTIME) != 0) {
        _exit(77);
    }
    FILE *f = fopen("/proc/self/timens_offsets", "w");
    if (f == NULL || fprintf(f, "boottime 864000 0\n") < 0 || fclose(f) != 0) {
        _exit(77);
    }
    _exit(process_run(tell_time, arg) ? 0 : 1);
}

static void a_time_namespace_does_not_shift_a_shared_limiter(void **state)
{
    struct told t = {.o = file_limit(*state)};
    t.o.flags = 0;
    struct weir *w = process_open(&t.o);
    assert_int_equal(weir_now(w, &t.now), 0);
    pid_t child = process_start(enter_time_namespace, &t);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    weir_close(w);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        skip();
    }
    assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[0], "worker") == 0) {
        _exit(work(argv[1],
                   (unsigned)atoi(
                       argv[2]))); /* no sanitizer looks for leaks: /proc is another namespace's */
    }
#define TEST(name) cmocka_unit_test_setup_teardown(name, process_dir_make, process_dir_remove)
    const struct CMUnitTest tests[] = {
        TEST(two_pid_namespaces_share_one_limit_exactly),
        TEST(a_file_opened_twice_and_closed_once_is_still_this_process),
        TEST(two_limiters_of_one_file_are_one_limit),
        TEST(a_time_namespace_does_not_shift_a_shared_limiter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
