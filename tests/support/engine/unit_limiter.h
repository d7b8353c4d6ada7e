/* Helpers of the unit tests: limiters on explicit time, questions in one line, scratch folders. */
#ifndef WEIR_TESTS_SUPPORT_UNIT_LIMITER_H
#define WEIR_TESTS_SUPPORT_UNIT_LIMITER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir.h>

#include <cmocka.h>

#define UNIT_ALGORITHMS 5

/* All values of enum weir_algorithm, in order. */
extern const int unit_algorithms[UNIT_ALGORITHMS];

/*
 * Returns options of a limit of any algorithm that admits `quota` at once and is full again after
 * `period_ns`: explicit time, private memory, a small table.
 */
struct weir_options unit_options(int algorithm, uint64_t quota, uint64_t period_ns);

/* Open a limiter and require success: with these options, or with unit_options(). */
struct weir *unit_open(const struct weir_options *options);
struct weir *unit_limit(int algorithm, uint64_t quota, uint64_t period_ns);

/* Runs a scenario on a fresh limit of each algorithm, prints the algorithm's name, and closes the
 * limit. */
void unit_each(uint64_t quota, uint64_t period_ns, void (*scenario)(struct weir *w, int algorithm));

/* Ask one question on a text key, require an answer, and check that the answer is sound. */
struct weir_answer unit_check(struct weir *w, const char *key, uint64_t cost, uint64_t now_ns);
struct weir_answer unit_peek(struct weir *w, const char *key, uint64_t cost, uint64_t now_ns);
struct weir_answer unit_ask(struct weir *w, const struct weir_question *ask, uint64_t now_ns);
struct weir_question unit_question(const char *key, uint64_t cost, int mode);

/* Returns how many calls of cost 1 are allowed in a row. */
uint64_t unit_drain(struct weir *w, const char *key, uint64_t now_ns);

/* Checks what must hold for any answer to any question. */
void unit_assert_sound(const struct weir_answer *a, uint64_t cost, int mode);
void unit_assert_same(const struct weir_answer *a, const struct weir_answer *b);

struct weir_stats unit_stats(struct weir *w);

/* Returns a random number; the same seed gives the same numbers. */
uint64_t unit_random(uint64_t *seed);

/* Returns fewer rounds under a sanitizer or an emulator. */
uint64_t unit_scale(uint64_t rounds);

/* Makes a folder for the test; unit_folder_remove() removes it with its contents. */
char *unit_folder(void);
char *unit_path(const char *folder, const char *name);
void unit_folder_remove(char *folder);

/* Returns the bytes of a file, to be freed. */
unsigned char *unit_read_file(const char *path, size_t *size);
void unit_write_file(const char *path, const void *bytes, size_t size);

#endif
