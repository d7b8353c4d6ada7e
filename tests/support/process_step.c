#include "support/process_step.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "support/process_fixture.h"

#ifdef __x86_64__

/* A survivor that waits this long hangs. */
#define VERIFY_S 30
#define INSTRUCTIONS_MAX 1000000
#define TRAP_FLAG 0x100
#define BREAKPOINT 0xcc
#define PLACES 65536 /* a power of two, more than a call has different instructions */

/* What victim and test tell each other. */
struct board {
    bool done;                     /* the call has ended */
    unsigned count;                /* instructions so far */
    bool chosen[INSTRUCTIONS_MAX]; /* where it is worth being killed */
    uint64_t at[INSTRUCTIONS_MAX]; /* the instruction that came after so many */
};

/* ---- in the victim ---- */

struct sight {
    unsigned char *memory; /* as it was after the last instruction */
    void *robust[2];
    bool call; /* the instruction that comes next is a system call */
};

static const struct step_plan *plan;
static struct board *board;
static unsigned kill_at; /* 0: nowhere; look instead */
static struct sight sight;

/* Where stepping begins. */
static struct start {
    unsigned k;                /* after so many instructions, at at[k] */
    unsigned char *breakpoint; /* NULL: at the beginning of the call */
    unsigned passes;           /* how often the call comes there before */
    unsigned char hidden;      /* the byte under the breakpoint */
    bool rearm;                /* it was just passed */
} start;

/* The kernel's view of the locks that the victim holds or is about to hold. */
static void read_robust(void *robust[2])
{
    void **head = NULL;
    size_t bytes = 0;
    (void)syscall(SYS_get_robust_list, 0, &head, &bytes);
    robust[0] = head[0];
    robust[1] = head[2];
}

/* True if a survivor could see a difference since the last look. */
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

static void count_step(ucontext_t *u)
{
    unsigned k = board->count;
    if (k >= INSTRUCTIONS_MAX - 1) {
        _exit(2);
    }
    if (k == kill_at) {
        (void)syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    }
    if (kill_at == 0) {
        const unsigned char *next = (const unsigned char *)u->uc_mcontext.gregs[REG_RIP];
        board->at[k] = (uintptr_t)next;
        if (look(next)) {
            board->chosen[k - 1] = true;
            board->chosen[k] = true;
        }
    }
}

/* At the breakpoint: the instruction under it is run, and then put under it again, or counted. */
static void on_breakpoint(ucontext_t *u)
{
    *start.breakpoint = start.hidden;
    u->uc_mcontext.gregs[REG_RIP]--;
    u->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
    if (start.passes > 0) {
        start.passes--;
        start.rearm = true;
        return;
    }
    start.breakpoint = NULL;
    board->count = start.k;
    count_step(u);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    (void)number;
    (void)info;
    if (board->done) {
        u->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    } else if (start.rearm) {
        start.rearm = false;
        *start.breakpoint = BREAKPOINT;
        u->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    } else if (start.breakpoint != NULL) {
        on_breakpoint(u);
    } else {
        board->count++;
        count_step(u);
    }
}

/* In the victim's own copy of the code. */
static void set_breakpoint(void)
{
    uintptr_t page = (uintptr_t)start.breakpoint & ~(uintptr_t)4095;
    if (mprotect((void *)page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        _exit(3);
    }
    start.hidden = *start.breakpoint;
    *start.breakpoint = BREAKPOINT;
}

static void be_the_victim(void)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    size_t bytes = 0;
    const void *now = plan->watched != NULL ? plan->watched(plan->arg, &bytes) : NULL;
    sight = (struct sight){malloc(bytes + 1), {NULL, NULL}, false};
    if (bytes != 0) {
        memcpy(sight.memory, now, bytes);
    }
    (void)sigaction(SIGTRAP, &action, NULL);
    if (start.breakpoint != NULL) {
        set_breakpoint();
    } else {
        __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
    }
    plan->act(plan->arg);
    board->done = true;
    _exit(0);
}

/* ---- in the test ---- */

static void on_alarm(int number)
{
    char text[160];
    int n = snprintf(text, sizeof text, "%s: the survivor hangs after a kill at instruction %u\n",
                     plan->name, kill_at);
    (void)number;
    if (write(STDERR_FILENO, text, (size_t)n) == n) {
        _exit(3);
    }
    _exit(4);
}

/* Runs one victim. True if it got to the end of the call. */
static bool run_victim(unsigned k)
{
    int status;
    board->done = false;
    board->count = 0;
    kill_at = k;
    plan->prepare(plan->arg);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        be_the_victim();
    }
    REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
    REQUIRE(board->done ? WIFEXITED(status) && WEXITSTATUS(status) == 0
                        : WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return board->done;
}

static void kill_and_verify(unsigned k)
{
    (void)alarm(VERIFY_S);
    (void)run_victim(k);
    plan->verify(plan->arg);
    (void)alarm(0);
}

static bool want_all(unsigned n)
{
#ifdef WEIR_LONG
    return n != 0;
#else
    return n <= STEP_ALL || getenv("WEIR_STEP_ALL") != NULL;
#endif
}

/* How often the call has passed each instruction so far. */
struct passes {
    struct {
        uint64_t place;
        unsigned count;
    } of[PLACES];
};

static unsigned pass(struct passes *p, uint64_t place)
{
    uint64_t i = place % PLACES;
    while (p->of[i].count != 0 && p->of[i].place != place) {
        i = (i + 1) % PLACES;
    }
    p->of[i].place = place;
    return p->of[i].count++;
}

/* A breakpoint passed n times costs 2n steps. Takes at[k] if that is the cheapest way so far. */
static void consider_start(struct passes *p, unsigned k)
{
    extern char __executable_start, etext; /* the linker's: the program's own code */
    uint64_t place = board->at[k];
    unsigned n = pass(p, place);
    bool ours = place >= (uintptr_t)&__executable_start && place < (uintptr_t)&etext;
    if (ours && k + 2 * start.passes > start.k + 2 * n) {
        start = (struct start){.k = k, .breakpoint = (void *)(uintptr_t)place, .passes = n};
    }
}

unsigned process_step(const struct step_plan *steps, uint64_t *random)
{
    unsigned kills = 0;
    plan = steps;
    board = process_shared_memory(sizeof *board);
    start = (struct start){0};
    struct passes *passes = calloc(1, sizeof *passes);
    REQUIRE(passes != NULL);
    (void)signal(SIGALRM, on_alarm);
    REQUIRE(run_victim(0));
    unsigned n = board->count;
    bool all = want_all(n);
    for (unsigned i = 0; i < STEP_SAMPLE && !all; i++) {
        unsigned k = 1 + (unsigned)process_random(random, n);
        /* Not the thousands of turns of one string instruction that clears memory. */
        board->chosen[k] |= board->at[k] != board->at[k - 1];
    }
    for (unsigned k = 1; k <= n; k++) {
        consider_start(passes, k);
        if (all || board->chosen[k]) {
            kill_and_verify(k);
            kills++;
        }
    }
    printf("%s: %u instructions, killed at %s%u of them\n", plan->name, n, all ? "all " : "",
           kills);
    free(passes);
    process_shared_free(board, sizeof *board);
    return n;
}

#else

unsigned process_step(const struct step_plan *steps, uint64_t *random)
{
    (void)random;
    printf("%s: not stepped on this processor\n", steps->name);
    return 0;
}

#endif
