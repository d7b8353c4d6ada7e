/*
 * What the tests with several processes share: limits to try, a temporary directory, children with
 * a deadline, and memory that parent and children share.
 */
#ifndef WEIR_TESTS_PROCESS_FIXTURE_H
#define WEIR_TESTS_PROCESS_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir.h>

/* Sanitized code is slow: these builds run the same tests with fewer repetitions. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PROCESS_SCALE 5
#else
#define PROCESS_SCALE 1
#endif

/* The time of all calls in tests whose subject is not time. */
#define PROCESS_NOW (1000 * WEIR_HOUR)

/* A child that lives longer than this hangs, and has failed. */
#define PROCESS_DEADLINE_S 100

/*
 * Checks a condition in the test's process or in a child: a child prints what was wrong and exits
 * with 1, the test itself fails.
 */
#define REQUIRE(condition) ((condition) ? (void)0 : process_failed(__FILE__, __LINE__, #condition))
void process_failed(const char *file, int line, const char *what);

/* All algorithms, 1 to 5. */
#define PROCESS_ALGORITHMS 5

/* Returns a limit of exactly `quota` at once, with explicit times and a period of an hour. */
struct weir_options process_limit(int algorithm, uint64_t quota);

/* Calls weir_open() and requires success. */
struct weir *process_open(const struct weir_options *o);

/* Takes one unit of a key named by a number. Returns the verdict. */
int process_take(struct weir *w, unsigned key, uint64_t now_ns);

/* Peeks how many units of the key are left. */
uint64_t process_left(struct weir *w, unsigned key, uint64_t now_ns);

/* Setup and teardown for cmocka: a directory for the test. *state is its path. */
int process_dir_make(void **state);
int process_dir_remove(void **state);
const char *process_path(const char *dir, const char *name); /* valid for three more calls */
unsigned process_dir_entries(const char *dir);

/* Whole files. The result of process_read() is to be freed. All of them REQUIRE success. */
unsigned char *process_read(const char *path, size_t *bytes);
void process_write(const char *path, const void *data, size_t bytes); /* in place, if it exists */
void process_copy(const char *from, const char *to);                  /* to a new inode */
bool process_same(const char *path, const void *data, size_t bytes);

/* Zeroed memory that children of fork() share. */
void *process_shared_memory(size_t bytes);
void process_shared_free(void *p, size_t bytes);

/*
 * Runs fn(arg) in a child. After PROCESS_DEADLINE_S seconds the child prints where it hangs and
 * dies by SIGALRM. fn may return or call _exit().
 */
pid_t process_start(void (*fn)(void *arg), void *arg);

/* Waits for the child. Returns true if it exited with 0; otherwise prints how it ended. */
bool process_ended_well(pid_t child);

/* Starts a child and waits for it. */
bool process_run(void (*fn)(void *arg), void *arg);

/* process_seed() prints and returns a seed; WEIR_TEST_SEED in the environment repeats a run.
 * process_random() returns numbers from it. */
uint64_t process_seed(void);
uint64_t process_random(uint64_t *state, uint64_t below);

#endif
