#include "explore/fiber.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
/*
 * swapcontext() makes a system call each time, and a search switches some ten
 * million times. Only what the calling convention preserves has to be kept.
 */
void explore_swap(void **from, void *to);
__asm__(".text\n"
        ".type explore_swap, @function\n"
        "explore_swap:\n"
        "    endbr64\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size explore_swap, . - explore_swap\n");

void fiber_make(struct fiber *f, void *stack, size_t bytes, void (*entry)(void))
{
    uintptr_t top = ((uintptr_t)stack + bytes) & ~(uintptr_t)15;
    void **sp = (void **)top;
    *--sp = NULL; /* where entry's caller would be: aligns the stack as a call does */
    *--sp = (void *)(uintptr_t)entry;
    sp -= 6;
    memset(sp, 0, 6 * sizeof *sp);
    f->sp = sp;
}

void fiber_switch(struct fiber *from, struct fiber *to)
{
    explore_swap(&from->sp, to->sp);
}

unsigned char *fiber_bottom(const struct fiber *f)
{
    return f->sp;
}
#else
void fiber_make(struct fiber *f, void *stack, size_t bytes, void (*entry)(void))
{
    (void)getcontext(&f->context);
    f->context.uc_stack.ss_sp = stack;
    f->context.uc_stack.ss_size = bytes;
    f->context.uc_link = NULL;
    makecontext(&f->context, entry, 0);
}

void fiber_switch(struct fiber *from, struct fiber *to)
{
    (void)swapcontext(&from->context, &to->context);
}

unsigned char *fiber_bottom(const struct fiber *f)
{
    return (unsigned char *)(uintptr_t)f->context.uc_mcontext.sp; /* aarch64 */
}
#endif
