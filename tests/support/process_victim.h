/*
 * The one who is killed: a fork of the test that makes one call, and is stopped
 * after each instruction of it (a walker, who tells the way and lives), or hops
 * to one instruction and dies there.
 *
 * It stops itself, by the processor's trap flag and by breakpoints in its own
 * copy of the code. (A tracer would do the same with two switches of process for
 * each stop.)
 */
#ifndef WEIR_TESTS_PROCESS_VICTIM_H
#define WEIR_TESTS_PROCESS_VICTIM_H

#include <stdbool.h>
#include <stdint.h>

#include "support/process_route.h"
#include "support/process_step.h"

#define VICTIM_INSTRUCTIONS 1000000
#define VICTIM_HOPS 8192

/* Where a victim stands: its registers, and the place of the instruction that comes next. */
#define STAND_REGISTERS 15
struct stand {
    uint64_t place;
    uint64_t registers[STAND_REGISTERS];
};

/* What victim and test tell each other. What each of many victims needs comes first: in few pages. */
struct victim_board {
    bool walk;          /* else hop and die */
    bool done;          /* the call has ended */
    struct stand death; /* of who was killed */
    unsigned hops;
    struct hop hop[VICTIM_HOPS];
    void *memory;   /* for a walker: as large as what is watched */
    unsigned count; /* of its stands: before the call, after the first instruction, ... */
    struct stand way[VICTIM_INSTRUCTIONS];
    bool changed[VICTIM_INSTRUCTIONS]; /* since the stand before, what survivors can see */
};

/* In the test, once: lets victims set breakpoints. victim_can_stop() tells where. */
void victim_open_code(void);
bool victim_can_stop(uint64_t place);

/* In the child: makes the call, and ends. */
_Noreturn void victim_walk(const struct step_plan *plan, struct victim_board *board);
_Noreturn void victim_hop_and_die(const struct step_plan *plan, struct victim_board *board);

#endif
