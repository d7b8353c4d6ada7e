/*
 * A process killed at each instruction of one call.
 *
 * The victim is a fork of the test. It sets the processor's trap flag, so that
 * it is stopped after every instruction, and has itself killed after k of them,
 * for k = 1, 2, 3, ... until the call has ended. SIGKILL runs nothing: what is
 * left is what the first k instructions did. After each kill the test, or
 * another process, is the survivor who looks at it. (A tracer would do the same
 * with two switches of process for each step.)
 *
 * A step takes microseconds, so a first victim notes the way it went. The others
 * run freely to a breakpoint that is not far before k, which they pass as often
 * as the first one did, and step from there.
 *
 * What a dead process leaves is the memory that it shared, the kernel's objects,
 * which only system calls change, and the locks that the kernel takes back,
 * found by the thread's list of robust locks. Two deaths between which none of
 * these changed leave the same. Calls of more than STEP_ALL instructions are
 * killed right before and right after each change, and at STEP_SAMPLE others
 * chosen at random; with WEIR_LONG, or WEIR_STEP_ALL in the environment, they
 * too are killed at every instruction.
 */
#ifndef WEIR_TESTS_PROCESS_STEP_H
#define WEIR_TESTS_PROCESS_STEP_H

#include <stddef.h>
#include <stdint.h>

#define STEP_ALL 6000
#define STEP_SAMPLE 50

struct step_plan {
    const char *name;
    void (*prepare)(void *arg); /* in the test, before each victim: everything as it was */
    void (*act)(void *arg);     /* in the victim: the call */
    void (*verify)(void *arg);  /* in the test, after each death; must not hang */
    void *arg;
    const void *(*watched)(void *arg, size_t *bytes); /* memory that survivors see; may be NULL */
};

/* Runs the plan and prints what it did. Returns the number of instructions of the call. */
unsigned process_step(const struct step_plan *plan, uint64_t *random);

#endif
