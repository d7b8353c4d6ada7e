/*
 * Counts the open connections of each address, to bound those of one client.
 * An IPv6 /64 counts as one client. The table is shared by the threads, under a
 * lock that is taken only when a connection opens or closes.
 */
#ifndef WEIR_SERVER_NET_PEERS_H
#define WEIR_SERVER_NET_PEERS_H

#include <weir.h>

#include "rules/value/address.h"

struct peers;

/* For at most `connections` at once, and `most` of one address. Returns 0 or WEIR_E... */
int peers_create(struct peers **peers, unsigned connections, unsigned most,
                 struct weir_error *error);
void peers_destroy(struct peers *peers); /* NULL is allowed */

/* Counts one more connection of this address. Returns false, and counts nothing, if it has
 * as many as it may. */
bool peers_enter(struct peers *peers, const struct address *address);
void peers_leave(struct peers *peers, const struct address *address);

#endif
