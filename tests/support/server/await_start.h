/*
 * Waits until a program that the test has started is ready. It is the only function of the C tests
 * that exits with NOT_STARTED: scripts/repeat-tests takes that status to mean that the machine was
 * too busy, and repeats the test once. So use it only between the start of a program and its first
 * answer, never for what the program does later.
 */
#ifndef WEIR_TESTS_AWAIT_START_H
#define WEIR_TESTS_AWAIT_START_H

#include <stdbool.h>

#define NOT_STARTED 75

enum start { START_PENDING, START_READY, START_ENDED };

/* Looks whether the program is ready or has ended. */
typedef enum start (*start_fn)(void *arg);

/*
 * Returns true when the program is ready, and false when it has ended: then the test fails, because
 * no load explains that. After 60 s it prints `what`, calls `show` if there is one, and exits.
 */
bool await_start(const char *what, start_fn look, void (*show)(void *arg), void *arg);

#endif
