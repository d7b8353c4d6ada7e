/*
 * Wrong secrets cost time. The refusal of a wrong secret is sent at once for the first nine of an
 * address; from the tenth on it is delayed, by 10 ms, then twice as long for each further one, up
 * to a second. An address without a wrong secret for a minute begins anew. A right secret is
 * never delayed, also if it comes from an address with many wrong ones, so that an attacker
 * cannot keep an operator out.
 *
 * The counts of PENALTY_PLACES addresses are kept; an IPv6 /64 counts as one address, and all unix
 * sockets do. A new address replaces, of the few places that it may have, a forgotten one or the
 * one with the fewest wrong secrets. The table is shared by the threads, under a lock that is taken
 * for wrong secrets only.
 */
#ifndef WEIR_SERVER_LOOP_PENALTY_H
#define WEIR_SERVER_LOOP_PENALTY_H

#include <weir.h>

#include "rules/value/address.h"

#define PENALTY_PLACES 4096
#define PENALTY_FREE 9          /* wrong secrets of an address that are refused at once */
#define PENALTY_FIRST_MS 10     /* delay of the next one */
#define PENALTY_MOST_MS 1000    /* longest delay */
#define PENALTY_FORGET_MS 60000 /* time without a wrong secret until an address begins anew */

struct connection;
struct penalties;
struct pending;
struct worker;

int penalties_create(struct penalties **penalties, struct weir_error *error);
void penalties_destroy(struct penalties *penalties); /* NULL is allowed */

/* Counts a wrong secret of this address; now_ms is any steady clock. Returns by how many
 * milliseconds its refusal is to be delayed. */
uint64_t penalty_note(struct penalties *penalties, const struct address *peer, uint64_t now_ms);

/*
 * Counts a wrong secret of the connection. Returns NULL if it is to be refused at once; otherwise
 * an object that the caller must pass to pending_keep(), with a function that puts the refusal.
 */
struct pending *penalty_begin(struct connection *c);

#endif
