/*
 * How to get to the k-th instruction of a call without stopping at each one
 * before it, given the way that the call goes: its places (addresses of
 * instructions) in order.
 *
 * From instruction j a process can run freely to a breakpoint at the place of
 * instruction k if it does not come by there in between. Most instructions are
 * so reached in a few hops: over whole loops in one, into a turn of a loop in
 * one for each turn. A string instruction (rep stosb) stands in one place for
 * all its turns; its counter says how many it makes, so that is set. The trap
 * flag stops after any instruction, but is slow where a hypervisor looks at it.
 */
#ifndef WEIR_TESTS_PROCESS_ROUTE_H
#define WEIR_TESTS_PROCESS_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

enum hop_kind {
    HOP_STEP, /* `count` instructions, or turns of one, with the trap flag */
    HOP_RUN,  /* freely until `stop` */
    HOP_TURNS /* `count` turns of the string instruction that comes next, which `stop` follows */
};

struct hop {
    enum hop_kind kind;
    unsigned count;
    uint64_t stop;
};

struct routes;

/*
 * Routes from the beginning of the call to each instruction up to n. place[k] is the address of the
 * instruction that comes after k others. can_stop() tells where a breakpoint may
 * be set. place must live as long as the routes do.
 */
struct routes *routes_create(const uint64_t *place, unsigned n, bool (*can_stop)(uint64_t place));
void routes_destroy(struct routes *r);

/* Puts the hops to instruction k into hops, of which there are `max`; their number. */
unsigned route_to(const struct routes *r, unsigned k, struct hop *hops, unsigned max);

/* True if instruction k is a turn, and not the first one, of a string instruction. */
bool route_is_turn(const struct routes *r, unsigned k);

/* How many turns the string instruction makes of which k is a turn. */
unsigned route_turns(const struct routes *r, unsigned k);

#endif
