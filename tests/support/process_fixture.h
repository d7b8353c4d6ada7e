/*
 * What the tests with several processes share: limits to try, a directory that
 * goes away, children with a deadline, memory that parent and children see.
 */
#ifndef WEIR_TESTS_PROCESS_FIXTURE_H
#define WEIR_TESTS_PROCESS_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir.h>

/* Sanitized code is slow: the same tests, with less repetition. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PROCESS_SCALE 5
#else
#define PROCESS_SCALE 1
#endif

/* The time at which everything happens, where time is not the subject. */
#define PROCESS_NOW (1000 * WEIR_HOUR)

/* Nobody may hang: a child that lives longer than this has failed. */
#define PROCESS_DEADLINE_S 100

/*
 * Holds in the test's own process and in its children: a child says what was
 * wrong and exits with 1, the test itself fails.
 */
#define REQUIRE(condition) ((condition) ? (void)0 : process_failed(__FILE__, __LINE__, #condition))
void process_failed(const char *file, int line, const char *what);

/* All algorithms, 1 to 5. */
#define PROCESS_ALGORITHMS 5

/* A limit of exactly `quota` at once, with explicit times and a period of an hour. */
struct weir_options process_limit(int algorithm, uint64_t quota);

/* weir_open() that must succeed. */
struct weir *process_open(const struct weir_options *o);

/* One unit of a key named by a number; its verdict. */
int process_take(struct weir *w, unsigned key, uint64_t now_ns);

/* What a key could still take, without touching it. */
uint64_t process_left(struct weir *w, unsigned key, uint64_t now_ns);

/* A test's own directory: as cmocka's setup and teardown. *state is its path. */
int process_dir_make(void **state);
int process_dir_remove(void **state);
const char *process_path(const char *dir, const char *name); /* valid until the next but three */
unsigned process_dir_entries(const char *dir);

/* Whole files. process_read() is to be freed; all REQUIRE success. */
unsigned char *process_read(const char *path, size_t *bytes);
void process_write(const char *path, const void *data, size_t bytes); /* in place, if it exists */
void process_copy(const char *from, const char *to);                  /* to a new inode */
bool process_same(const char *path, const void *data, size_t bytes);

/* Memory, zeroed, that children of fork share. */
void *process_shared_memory(size_t bytes);
void process_shared_free(void *p, size_t bytes);

/*
 * Starts fn(arg) in a child. After PROCESS_DEADLINE_S it tells where it hangs, and dies by SIGALRM. fn may return
 * or _exit().
 */
pid_t process_start(void (*fn)(void *arg), void *arg);

/* Waits for it. True if it exited with 0; else says how it ended. */
bool process_ended_well(pid_t child);

/* Both at once. */
bool process_run(void (*fn)(void *arg), void *arg);

/* A seed, printed; WEIR_TEST_SEED in the environment repeats a run. And numbers from it. */
uint64_t process_seed(void);
uint64_t process_random(uint64_t *state, uint64_t below);

#endif
