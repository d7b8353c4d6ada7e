#include "support/engine/process_victim.h"

#ifdef __x86_64__

#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_FLAG 0x100
#define BREAKPOINT 0xcc
#define STACK_BYTES (1 << 20)
#define HANDLER_BYTES (1 << 16)
#define SEGMENTS 64

/* ---- makes code writable ---- */

static struct segment {
    uintptr_t begin;
    uintptr_t end;
} segment[SEGMENTS];
static unsigned segments;

static int open_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t begin = (info->dlpi_addr + h->p_vaddr) & ~(uintptr_t)4095;
        uintptr_t end = info->dlpi_addr + h->p_vaddr + h->p_memsz;
        bool code = h->p_type == PT_LOAD && (h->p_flags & PF_X) != 0 && segments < SEGMENTS;
        if (code && mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) {
            segment[segments++] = (struct segment){begin, end};
        }
    }
    return 0;
}

void victim_open_code(void)
{
    segments = 0;
    (void)dl_iterate_phdr(open_object, NULL);
}

bool victim_can_stop(uint64_t place)
{
    for (unsigned i = 0; i < segments; i++) {
        if (place >= segment[i].begin && place < segment[i].end) {
            return true;
        }
    }
    return false;
}

/* ---- both kinds of victim ---- */

static const struct step_plan *plan;
static struct victim_board *board;

/* The flags are left out, and so is r11, into which system calls copy them: the trap flag is among
 * them. */
static const int noted[STAND_REGISTERS] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI,
                                           REG_RDI, REG_RBP, REG_RSP, REG_R8,  REG_R9,
                                           REG_R10, REG_R12, REG_R13, REG_R14, REG_R15};

static void note_stand(const greg_t *r, struct stand *s)
{
    s->place = (uint64_t)r[REG_RIP];
    for (unsigned i = 0; i < STAND_REGISTERS; i++) {
        s->registers[i] = (uint64_t)r[noted[i]];
    }
}

static void make_the_call(void)
{
    __asm__ volatile("int3" ::: "memory"); /* the call begins here */
    plan->act(plan->arg);
    board->done = true;
    _exit(0);
}

/*
 * Starts the call with a stack and registers that are the same for each victim, independent of the
 * test's own. The handler has a separate stack: on the victim's stack it would leave bytes where
 * the call later reads memory that it has not set.
 */
static _Noreturn void begin(void (*on_trap)(int, siginfo_t *, void *))
{
    static unsigned char stack[STACK_BYTES] __attribute__((aligned(64)));
    static unsigned char handler_stack[HANDLER_BYTES] __attribute__((aligned(64)));
    static ucontext_t context;
    stack_t aside = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (sigaltstack(&aside, NULL) != 0 || sigaction(SIGTRAP, &action, NULL) != 0 ||
        getcontext(&context) != 0) {
        _exit(2);
    }
    memset(context.uc_mcontext.gregs, 0, sizeof context.uc_mcontext.gregs);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = sizeof stack;
    makecontext(&context, make_the_call, 0);
    (void)setcontext(&context);
    _exit(2);
}

/* ---- the walker ---- */

static struct sight {
    unsigned char *memory; /* contents after the last instruction */
    void *robust[2];
    bool call; /* the next instruction is a system call */
} sight;

/* The kernel's view of the locks that the victim holds or is about to hold. */
static void read_robust(void *robust[2])
{
    void **head = NULL;
    size_t bytes = 0;
    (void)syscall(SYS_get_robust_list, 0, &head, &bytes);
    robust[0] = head[0];
    robust[1] = head[2];
}

/* Returns true if a survivor could see a difference since the last call. */
static bool look(const unsigned char *next)
{
    size_t bytes = 0;
    const void *now = plan->watched != NULL ? plan->watched(plan->arg, &bytes) : NULL;
    void *robust[2];
    bool changed = sight.call;
    read_robust(robust);
    if (memcmp(robust, sight.robust, sizeof robust) != 0) {
        memcpy(sight.robust, robust, sizeof robust);
        changed = true;
    }
    if (bytes != 0 && memcmp(now, sight.memory, bytes) != 0) {
        memcpy(sight.memory, now, bytes);
        changed = true;
    }
    sight.call = next[0] == 0x0f && next[1] == 0x05;
    return changed;
}

static void on_step(int number, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    greg_t *r = u->uc_mcontext.gregs;
    (void)number;
    (void)info;
    if (board->done) {
        r[REG_EFL] &= ~TRAP_FLAG;
        return;
    }
    if (board->count == VICTIM_INSTRUCTIONS) {
        _exit(2);
    }
    r[REG_EFL] |= TRAP_FLAG;
    note_stand(r, &board->way[board->count]);
    board->changed[board->count] = look((const unsigned char *)r[REG_RIP]);
    board->count++;
}

_Noreturn void victim_walk(const struct step_plan *steps, struct victim_board *shared)
{
    plan = steps;
    board = shared;
    size_t bytes = 0;
    const void *now = plan->watched != NULL ? plan->watched(plan->arg, &bytes) : NULL;
    sight = (struct sight){board->memory, {NULL, NULL}, false};
    if (bytes != 0) {
        memcpy(sight.memory, now, bytes);
    }
    read_robust(sight.robust);
    begin(on_step);
}

/* ---- the victim that hops ---- */

static struct {
    unsigned next; /* index of the next hop */
    unsigned steps;
    unsigned char hidden; /* the byte under the breakpoint */
    greg_t turns;         /* turns that the string instruction still has to make */
    greg_t string;        /* its address */
} way;

static void set_breakpoint(const struct hop *hop)
{
    unsigned char *code = (unsigned char *)(uintptr_t)hop->stop;
    way.hidden = *code;
    *code = BREAKPOINT;
}

static void start_hop(greg_t *r, const struct hop *hop)
{
    if (hop->kind == HOP_STEP) {
        way.steps = hop->count;
        r[REG_EFL] |= TRAP_FLAG;
        return;
    }
    r[REG_EFL] &= ~TRAP_FLAG;
    if (hop->kind == HOP_TURNS) {
        way.string = r[REG_RIP];
        way.turns = r[REG_RCX] - (greg_t)hop->count;
        r[REG_RCX] = (greg_t)hop->count;
    }
    set_breakpoint(hop);
}

/* Ends a hop or one of its steps. Returns false if the hop continues. */
static bool end_hop(greg_t *r, const struct hop *hop)
{
    if (hop->kind == HOP_STEP) {
        return --way.steps == 0;
    }
    *(unsigned char *)(uintptr_t)hop->stop = way.hidden;
    r[REG_RIP]--;
    if (hop->kind == HOP_TURNS) {
        r[REG_RIP] = way.string;
        r[REG_RCX] = way.turns;
    }
    return true;
}

/* Runs at the beginning, and at the end of each hop or of one of its steps. */
static void on_stop(int number, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    greg_t *r = u->uc_mcontext.gregs;
    (void)number;
    (void)info;
    if (way.next > 0 && !end_hop(r, &board->hop[way.next - 1])) {
        return;
    }
    if (way.next == board->hops) {
        note_stand(r, &board->death);
        (void)syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    }
    start_hop(r, &board->hop[way.next++]);
}

_Noreturn void victim_hop_and_die(const struct step_plan *steps, struct victim_board *shared)
{
    plan = steps;
    board = shared;
    begin(on_stop);
}

#endif
