/* Coroutines: users of the engine that run in one thread, one at a time. */
#ifndef WEIR_EXPLORE_FIBER_H
#define WEIR_EXPLORE_FIBER_H

#include <stddef.h>

#if defined(__x86_64__)
struct fiber {
    void *sp;
};
#else
#include <ucontext.h>
struct fiber {
    ucontext_t context;
};
#endif

/* `entry` begins on the given stack when somebody switches there; it must never return. */
void fiber_make(struct fiber *f, void *stack, size_t bytes, void (*entry)(void));

/* Leaves *from here and goes on in *to. */
void fiber_switch(struct fiber *from, struct fiber *to);

/*
 * The lowest address of its stack that a fiber which was left still needs. What
 * it will do follows from there up to the top, and from *f.
 */
unsigned char *fiber_bottom(const struct fiber *f);

#endif
