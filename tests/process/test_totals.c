// test-labels: notsan
/*
 * However many processes ask, together they are admitted exactly what one would
 * be (P8); and when they are killed at random and come back, at most the one
 * call that each was in goes unreported.
 */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine/process_fixture.h"

#define WORKERS_MAX 32
#define KEYS_MAX 40

/* What the workers write down, each in a place of its own, and the gate they start behind. */
struct tally {
    struct {
        uint64_t admitted __attribute__((aligned(64)));
    } of[WORKERS_MAX];
    uint64_t open;
};

struct crowd {
    struct weir_options o;
    struct weir *inherited; /* NULL: each worker opens the path itself */
    struct tally *tally;
    unsigned workers;
    unsigned keys;
    unsigned number; /* of the worker that is being started */
};

/* Asks for each key in turn until all of them deny. */
static void work(void *arg)
{
    struct crowd *c = arg;
    struct weir *w = c->inherited != NULL ? c->inherited : process_open(&c->o);
    uint64_t *mine = &c->tally->of[c->number].admitted;
    while (__atomic_load_n(&c->tally->open, __ATOMIC_ACQUIRE) == 0) {
        (void)sched_yield();
    }
    for (bool some = true; some;) {
        some = false;
        for (unsigned i = 0; i < c->keys; i++) {
            if (process_take(w, (i + c->number) % c->keys, PROCESS_NOW) == WEIR_ALLOW) {
                __atomic_store_n(mine, *mine + 1, __ATOMIC_RELEASE);
                some = true;
            }
        }
    }
    weir_close(w);
}

/* Enough that all workers are at it at once; a log has a place for each unit of each slot. */
static uint64_t quota_for(int algorithm)
{
    return (algorithm == WEIR_SLIDING_LOG ? 8000 : 120000) / PROCESS_SCALE;
}

static uint64_t reported(const struct crowd *c)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < c->workers; i++) {
        sum += __atomic_load_n(&c->tally->of[i].admitted, __ATOMIC_ACQUIRE);
    }
    return sum;
}

static void crowd_init(struct crowd *c, int algorithm, int memory, uint64_t quota, const char *path)
{
    memset(c, 0, sizeof *c);
    c->o = process_limit(algorithm, quota);
    c->o.memory = memory;
    c->o.path = memory == WEIR_FILE ? path : NULL;
    c->inherited = memory == WEIR_SHARED ? process_open(&c->o) : NULL;
    c->tally = process_shared_memory(sizeof *c->tally);
}

static void crowd_finish(struct crowd *c)
{
    weir_close(c->inherited);
    process_shared_free(c->tally, sizeof *c->tally);
    if (c->o.path != NULL) {
        (void)unlink(c->o.path);
    }
}

static pid_t start(struct crowd *c, unsigned number)
{
    c->number = number;
    return process_start(work, c);
}

static void count_one(int algorithm, int memory, unsigned workers, unsigned keys, const char *path)
{
    struct crowd c;
    uint64_t quota = quota_for(algorithm) / (keys == 1 ? 1 : 10);
    pid_t pid[WORKERS_MAX];
    crowd_init(&c, algorithm, memory, quota, path);
    c.workers = workers;
    c.keys = keys;
    for (unsigned i = 0; i < workers; i++) {
        pid[i] = start(&c, i);
    }
    __atomic_store_n(&c.tally->open, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < workers; i++) {
        assert_true(process_ended_well(pid[i]));
    }
    assert_int_equal(reported(&c), quota * keys);
    crowd_finish(&c);
}

static void count_all(int memory, unsigned workers, const char *dir)
{
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        count_one(algorithm, memory, workers, 1, process_path(dir, "limits"));
        count_one(algorithm, memory, workers, KEYS_MAX, process_path(dir, "limits"));
    }
}

static void two_processes_admit_exactly_the_quota(void **state)
{
    count_all(WEIR_SHARED, 2, *state);
    count_all(WEIR_FILE, 2, *state);
}

static void eight_processes_admit_exactly_the_quota(void **state)
{
    count_all(WEIR_SHARED, 8, *state);
    count_all(WEIR_FILE, 8, *state);
}

static void thirty_two_processes_admit_exactly_the_quota(void **state)
{
    count_all(WEIR_SHARED, 32, *state);
    count_all(WEIR_FILE, 32, *state);
}

/* ---- with deaths ---- */

/* Waits until the crowd has got some way, so that kills are spread over its work. */
static void wait_for_progress(const struct crowd *c, uint64_t goal, const pid_t *pid)
{
    while (reported(c) < goal) {
        for (unsigned i = 0; i < c->workers; i++) {
            siginfo_t info = {0};
            if (waitid(P_PID, (id_t)pid[i], &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                info.si_pid != 0) {
                return; /* the quota is used up, or somebody failed: seen at the end */
            }
        }
    }
}

/* Ends worker i whatever it is doing. 1 if it was still at work; it must not have failed before. */
static unsigned kill_one(pid_t pid)
{
    int status;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status)) {
        assert_int_equal(WEXITSTATUS(status), 0);
        return 0;
    }
    assert_int_equal(WTERMSIG(status), SIGKILL);
    return 1;
}

static void kill_some(int algorithm, int memory, unsigned workers, uint64_t *random,
                      const char *path)
{
    struct crowd c;
    unsigned tries = 60 / PROCESS_SCALE;
    unsigned kills = 0;
    uint64_t quota = quota_for(algorithm) / 4;
    pid_t pid[WORKERS_MAX];
    crowd_init(&c, algorithm, memory, quota, path);
    c.workers = workers;
    c.keys = 7;
    c.tally->open = 1;
    for (unsigned i = 0; i < workers; i++) {
        pid[i] = start(&c, i);
    }
    for (unsigned t = 0; t < tries; t++) {
        unsigned victim = (unsigned)process_random(random, workers);
        uint64_t step = quota * c.keys / tries;
        wait_for_progress(&c, t * step + process_random(random, step), pid);
        kills += kill_one(pid[victim]);
        pid[victim] = start(&c, victim);
    }
    for (unsigned i = 0; i < workers; i++) {
        assert_true(process_ended_well(pid[i]));
    }
    assert_true(reported(&c) <= quota * c.keys);
    assert_true(reported(&c) + kills >= quota * c.keys);
    crowd_finish(&c);
}

static void killed_workers_lose_at_most_the_call_they_were_in(void **state)
{
    uint64_t random = process_seed();
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        kill_some(algorithm, WEIR_SHARED, 2, &random, NULL);
        kill_some(algorithm, WEIR_SHARED, 8, &random, NULL);
        kill_some(algorithm, WEIR_FILE, 8, &random, process_path(*state, "limits"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_processes_admit_exactly_the_quota, process_dir_make,
                                        process_dir_remove),
        cmocka_unit_test_setup_teardown(eight_processes_admit_exactly_the_quota, process_dir_make,
                                        process_dir_remove),
        cmocka_unit_test_setup_teardown(thirty_two_processes_admit_exactly_the_quota,
                                        process_dir_make, process_dir_remove),
        cmocka_unit_test_setup_teardown(killed_workers_lose_at_most_the_call_they_were_in,
                                        process_dir_make, process_dir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
