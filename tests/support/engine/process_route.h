/*
 * Finds how to reach the k-th instruction of a call without stopping at each one before it, given
 * the path of the call: its places (addresses of instructions) in order.
 *
 * From instruction j a process can run freely to a breakpoint at the place of instruction k if it
 * does not pass that place in between. Most instructions are reached in a few hops: one over a
 * whole loop, or one for each turn of a loop that has to be entered. A string instruction (rep
 * stosb) stays in one place for all its turns; its counter says how many it makes, so the counter
 * is set. The trap flag stops after any instruction, but it is slow under a hypervisor that
 * intercepts it.
 */
#ifndef WEIR_TESTS_PROCESS_ROUTE_H
#define WEIR_TESTS_PROCESS_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

enum hop_kind {
    HOP_STEP, /* `count` instructions, or turns of one, with the trap flag */
    HOP_RUN,  /* run freely until `stop` */
    HOP_TURNS /* `count` turns of the next string instruction, which `stop` follows */
};

struct hop {
    enum hop_kind kind;
    unsigned count;
    uint64_t stop;
};

struct routes;

/*
 * Plans routes from the beginning of the call to each instruction up to n. place[k] is the address
 * of the instruction that comes after k others. can_stop() says where a breakpoint may be set.
 * `place` must outlive the routes.
 */
struct routes *routes_create(const uint64_t *place, unsigned n, bool (*can_stop)(uint64_t place));
void routes_destroy(struct routes *r);

/* Writes the hops to instruction k into `hops`, which has room for `max`. Returns their number. */
unsigned route_to(const struct routes *r, unsigned k, struct hop *hops, unsigned max);

/* Returns true if instruction k is a turn of a string instruction, but not the first. */
bool route_is_turn(const struct routes *r, unsigned k);

/* Returns the number of turns of the string instruction to which k belongs. */
unsigned route_turns(const struct routes *r, unsigned k);

#endif
