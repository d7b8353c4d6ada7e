/*
 * Kills a process at each instruction of one call.
 *
 * A victim (process_victim.h) is a fork of the test that makes the call and has itself killed by
 * SIGKILL after k instructions of it, for k = 1, 2, 3, ... until the call has ended. A process that
 * is killed by SIGKILL runs no more code, so only the effects of the first k instructions remain.
 * After each kill the survivor, which is the test or another process, examines them.
 *
 * A step takes microseconds, so n deaths with up to n steps each would take very long. Therefore a
 * first victim walks: it stops after every instruction, records the path and lives. The others run
 * freely and stop at a few breakpoints (process_route.h). The test checks that each of them dies
 * where the walker was after k instructions: by its place and by its registers, as far as those are
 * the same in all walks (a clock's value, a random number or a process id is not).
 *
 * Two kinds are killed at every instruction only with WEIR_LONG, or with WEIR_STEP_ALL in the
 * environment: calls of more than STEP_ALL instructions, and string instructions of more than
 * STEP_TURNS turns. The latter (for example one that clears a table of threads) are one instruction
 * each but can be stopped after each turn. By default these are killed right before and after each
 * change that a survivor could see, and at STEP_SAMPLE other points chosen at random. A dead
 * process leaves the memory that it shared, the kernel's objects, which only system calls change,
 * and the locks that the kernel takes back, which it finds by the thread's list of robust locks.
 * Two deaths between which none of these changed leave the same.
 */
#ifndef WEIR_TESTS_PROCESS_STEP_H
#define WEIR_TESTS_PROCESS_STEP_H

#include <stddef.h>
#include <stdint.h>

#define STEP_ALL 7000
#define STEP_TURNS 1000
#define STEP_SAMPLE 300

struct step_plan {
    const char *name;
    void (*prepare)(void *arg); /* in the test, before each victim: restores the state */
    void (*act)(void *arg);     /* in the victim: makes the call */
    void (*verify)(void *arg);  /* in the test, after each death; must not hang */
    void *arg;
    const void *(*watched)(void *arg, size_t *bytes); /* memory that survivors see; may be NULL */
};

/* Runs the plan and prints what it did. Returns the number of instructions of the call. */
unsigned process_step(const struct step_plan *plan, uint64_t *random);

#endif
