/*
 * The process that is killed: a fork of the test that makes one call. A walker is stopped after
 * each instruction of the call, records the path and lives; other victims hop to one instruction
 * and die there.
 *
 * A victim stops itself, by the processor's trap flag and by breakpoints in its own copy of the
 * code. (A tracer would do the same with two process switches for each stop.)
 */
#ifndef WEIR_TESTS_PROCESS_VICTIM_H
#define WEIR_TESTS_PROCESS_VICTIM_H

#include <stdbool.h>
#include <stdint.h>

#include "support/engine/process_route.h"
#include "support/engine/process_step.h"

#define VICTIM_INSTRUCTIONS 1000000
#define VICTIM_HOPS 8192

/* Where a victim stands: its registers, and the address of its next instruction. */
#define STAND_REGISTERS 15
struct stand {
    uint64_t place;
    uint64_t registers[STAND_REGISTERS];
};

/* What victim and test tell each other. Members that each of many victims needs come first, so that
 * they are in few pages. */
struct victim_board {
    bool walk;          /* true: walk; false: hop and die */
    bool done;          /* the call has ended */
    struct stand death; /* where the victim was killed */
    unsigned hops;
    struct hop hop[VICTIM_HOPS];
    void *memory;   /* for a walker: as large as the watched memory */
    unsigned count; /* of a walker's stands: before the call, after the first instruction, ... */
    struct stand way[VICTIM_INSTRUCTIONS];
    bool changed[VICTIM_INSTRUCTIONS]; /* what survivors see differs from the stand before */
};

/* victim_open_code() is called once in the test and lets victims set breakpoints. victim_can_stop()
 * returns where they may be. */
void victim_open_code(void);
bool victim_can_stop(uint64_t place);

/* In the child: make the call, and end. */
_Noreturn void victim_walk(const struct step_plan *plan, struct victim_board *board);
_Noreturn void victim_hop_and_die(const struct step_plan *plan, struct victim_board *board);

#endif
