#include "support/engine/process_step.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/engine/process_fixture.h"
#include "support/engine/process_victim.h"

#ifdef __x86_64__

/* A victim that takes longer than the first hangs; a survivor that takes longer than the second
 * hangs. */
#define VICTIM_S 45
#define VERIFY_S 60
/* The clock's code sometimes takes another path, but not this many times in a row. */
#define ATTEMPTS 20
#define MISSED_MOST 5 /* of thousands, on one path */
/* On a busy machine both walks may take the same rare path, for instance that of a wait that is
 * over before it begins. */
#define PATHS 4

/* What all walks have in common. */
struct trace {
    unsigned n;
    struct stand *stand;
    uint64_t *place;
    uint16_t *steady; /* bit i: register i was the same in all walks */
    bool *chosen;     /* kill a victim there */
};

static const struct step_plan *plan;
static struct victim_board *board;
static unsigned kill_at; /* 0: a walk */
static int mother;       /* the socket to the mother process */

/* ---- victims ---- */

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

static _Noreturn void be_a_victim(void)
{
    (void)alarm(VICTIM_S);
    if (board->walk) {
        victim_walk(plan, board);
    }
    victim_hop_and_die(plan, board);
}

/*
 * All victims are children of one process that does nothing else, so that each inherits the same
 * state, above all the allocator's lists.
 */
static _Noreturn void be_the_mother(int line)
{
    int status;
    (void)signal(SIGALRM, SIG_DFL);
    while (read(line, &status, sizeof status) == sizeof status) {
        pid_t pid = fork();
        if (pid == 0) {
            be_a_victim();
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid ||
            write(line, &status, sizeof status) != sizeof status) {
            break;
        }
    }
    _exit(0);
}

/* Starts the mother process. It ends when the test closes its end of the socket. */
static pid_t start_mother(void)
{
    int line[2];
    (void)malloc_trim(0); /* memory that is returned need not be copied for each victim */
    fflush(NULL);
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) == 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        (void)close(line[0]);
        be_the_mother(line[1]);
    }
    (void)close(line[1]);
    mother = line[0];
    return pid;
}

/* A victim that was to be killed may also reach the end of the call, by another path than the
 * walker's. */
static void require_victim_ended(int status)
{
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    REQUIRE((killed && !board->walk) || (ended && board->done));
}

/* Runs one victim, and then the survivor's check. */
static void run_victim(unsigned k)
{
    int status = 0;
    kill_at = k;
    board->walk = k == 0;
    board->done = false;
    board->count = 0;
    board->death = (struct stand){0};
    (void)alarm(VERIFY_S);
    plan->prepare(plan->arg);
    REQUIRE(write(mother, &status, sizeof status) == sizeof status);
    REQUIRE(read(mother, &status, sizeof status) == sizeof status);
    require_victim_ended(status);
    plan->verify(plan->arg);
    (void)alarm(0);
}

/* Allows another attempt, unless there were too many. */
static void try_again(unsigned *attempts)
{
    if (++*attempts == ATTEMPTS) {
        fprintf(stderr, "%s: instruction %u is not reached again\n", plan->name, kill_at);
    }
    REQUIRE(*attempts < ATTEMPTS);
}

/* ---- walks ---- */

static bool same_way(const struct trace *t)
{
    bool same = board->count == t->n + 1;
    for (unsigned k = 0; k <= t->n && same; k++) {
        same = board->way[k].place == t->place[k];
    }
    return same;
}

/* Returns one bit for each register that is the same. */
static uint16_t same_registers(const struct stand *a, const struct stand *b)
{
    unsigned same = 0;
    for (unsigned i = 0; i < STAND_REGISTERS; i++) {
        same |= (unsigned)(a->registers[i] == b->registers[i]) << i;
    }
    return (uint16_t)same;
}

/* Clears the bits of registers that were not the same. */
static void compare_registers(struct trace *t)
{
    for (unsigned k = 0; k <= t->n; k++) {
        t->steady[k] &= same_registers(&board->way[k], &t->stand[k]);
    }
}

static void take_walk(struct trace *t)
{
    t->n = board->count - 1;
    for (unsigned k = 0; k <= t->n; k++) {
        t->stand[k] = board->way[k];
        t->place[k] = board->way[k].place;
        t->steady[k] = UINT16_MAX;
    }
}

/*
 * Finds a path that two walks have taken. Code that reads the clock begins again if the clock ticks
 * meanwhile, which is likely when it is stepped. The shortest walk is one without such a
 * repetition.
 */
static void find_way(struct trace *t)
{
    unsigned attempts = 0;
    run_victim(0);
    take_walk(t);
    for (run_victim(0); !same_way(t); run_victim(0)) {
        try_again(&attempts);
        if (board->count <= t->n) {
            take_walk(t);
        }
    }
    compare_registers(t);
}

static void trace_init(struct trace *t)
{
    t->stand = calloc(VICTIM_INSTRUCTIONS, sizeof *t->stand);
    t->place = calloc(VICTIM_INSTRUCTIONS, sizeof *t->place);
    t->steady = calloc(VICTIM_INSTRUCTIONS, sizeof *t->steady);
    t->chosen = calloc(VICTIM_INSTRUCTIONS, sizeof *t->chosen);
    REQUIRE(t->stand != NULL && t->place != NULL && t->steady != NULL && t->chosen != NULL);
    find_way(t);
}

static void trace_finish(struct trace *t)
{
    free(t->stand);
    free(t->place);
    free(t->steady);
    free(t->chosen);
}

/* ---- deaths ---- */

static bool died_there(const struct trace *t, unsigned k)
{
    return board->death.place == t->place[k] &&
           (t->steady[k] & ~same_registers(&board->death, &t->stand[k])) == 0;
}

/*
 * Kills a victim at instruction k. Returns false if no victim came there in ATTEMPTS: code that
 * reads the clock may take another path for a while. A register that seemed steady may have held
 * the seconds of a clock: another walk corrects that.
 */
static bool kill_there(struct trace *t, const struct routes *routes, unsigned k)
{
    unsigned attempts = 0;
    board->hops = route_to(routes, k, board->hop, VICTIM_HOPS);
    for (run_victim(k); !died_there(t, k); run_victim(k)) {
        if (++attempts == ATTEMPTS) {
            printf("%s: instruction %u is not reached again\n", plan->name, k);
            return false;
        }
        if (board->death.place == t->place[k]) {
            run_victim(0);
            if (same_way(t)) {
                compare_registers(t);
            }
        }
    }
    return true;
}

static bool want_all(void)
{
#ifdef WEIR_LONG
    return true;
#else
    return getenv("WEIR_STEP_ALL") != NULL;
#endif
}

static bool one_of_many(const struct trace *t, const struct routes *routes, unsigned k)
{
    return t->n > STEP_ALL || (route_is_turn(routes, k) && route_turns(routes, k) > STEP_TURNS);
}

static void choose(struct trace *t, const struct routes *routes, uint64_t *random)
{
    bool all = want_all();
    for (unsigned k = 1; k <= t->n; k++) {
        t->chosen[k] |= all || !one_of_many(t, routes, k);
        if (board->changed[k]) {
            t->chosen[k - 1] = true;
            t->chosen[k] = true;
        }
    }
    for (unsigned i = 0; i < STEP_SAMPLE; i++) {
        t->chosen[1 + process_random(random, t->n)] = true;
    }
}

/* How many instructions there were, and how many of them were killed: [1] turns of string
 * instructions except the first, [0] the rest. */
struct tally {
    unsigned all[2];
    unsigned killed[2];
    unsigned missed; /* were to be killed, and were not reached again */
};

static struct tally kill_at_chosen(struct trace *t, const struct routes *routes)
{
    struct tally tally = {{0, 0}, {0, 0}, 0};
    for (unsigned k = 1; k <= t->n; k++) {
        bool turn = route_is_turn(routes, k);
        tally.all[turn]++;
        if (t->chosen[k]) {
            bool killed = kill_there(t, routes, k);
            tally.killed[turn] += killed;
            tally.missed += !killed;
        }
        if (tally.missed > MISSED_MOST) {
            break;
        }
    }
    return tally;
}

static void print_tally(const struct tally *tally, double steady)
{
    if (tally->killed[0] == tally->all[0]) {
        printf("%s: killed at each of %u instructions", plan->name, tally->all[0]);
    } else {
        printf("%s: killed at %u of %u instructions", plan->name, tally->killed[0], tally->all[0]);
    }
    if (tally->all[1] != 0) {
        printf(" and in %u of %u turns of strings", tally->killed[1], tally->all[1]);
    }
    printf(", known by %.1f registers\n", steady);
}

/* Returns the average number of steady registers over all instructions. With few of them a place
 * could not be recognised. */
static double steady_registers(const struct trace *t)
{
    uint64_t sum = 0;
    for (unsigned k = 1; k <= t->n; k++) {
        sum += (unsigned)__builtin_popcount(t->steady[k]);
    }
    return (double)sum / t->n;
}

static void *watched_copy(void)
{
    size_t bytes = 0;
    const void *now = plan->watched != NULL ? plan->watched(plan->arg, &bytes) : NULL;
    void *copy = malloc(bytes + 1);
    REQUIRE(copy != NULL);
    return bytes != 0 ? memcpy(copy, now, bytes) : copy;
}

/* Kills victims along the path of two walks. Returns false if too many of its instructions were not
 * reached again: it is a rare path. *n is the number of its instructions. */
static bool step_along_path(uint64_t *random, unsigned *n)
{
    struct trace t;
    trace_init(&t);
    struct routes *routes = routes_create(t.place, t.n, victim_can_stop);
    choose(&t, routes, random);
    struct tally tally = kill_at_chosen(&t, routes);
    bool good = tally.missed <= MISSED_MOST;
    if (good) {
        double steady = steady_registers(&t);
        print_tally(&tally, steady);
        REQUIRE(steady > STAND_REGISTERS / 2.0);
        REQUIRE(t.n > STEP_ALL || tally.killed[0] + tally.missed >= tally.all[0]);
    }
    *n = t.n;
    routes_destroy(routes);
    trace_finish(&t);
    return good;
}

unsigned process_step(const struct step_plan *steps, uint64_t *random)
{
    unsigned n = 0;
    plan = steps;
    board = process_shared_memory(sizeof *board);
    board->memory = watched_copy();
    (void)signal(SIGALRM, on_alarm);
    victim_open_code();
    pid_t pid = start_mother();
    for (unsigned paths = 1; !step_along_path(random, &n); paths++) {
        REQUIRE(paths < PATHS);
        printf("%s: walks again, to find a path that is taken more often\n", plan->name);
    }
    (void)close(mother);
    REQUIRE(process_ended_well(pid));
    free(board->memory);
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
