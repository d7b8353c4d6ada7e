/*
 * How many connections each address has open, for a bound on one client's.
 * Of IPv6 a /64 is one client. Shared by the threads; only connections that
 * come and go pass here.
 */
#ifndef WEIR_SERVER_NET_PEERS_H
#define WEIR_SERVER_NET_PEERS_H

#include <weir.h>

#include "rules/value/address.h"

struct peers;

/* For at most `connections` at once, `most` of one address. 0 or WEIR_E... */
int peers_create(struct peers **peers, unsigned connections, unsigned most,
                 struct weir_error *error);
void peers_destroy(struct peers *peers); /* NULL is allowed */

/* One more of this address: false if it has as many as it may. */
bool peers_enter(struct peers *peers, const struct address *address);
void peers_leave(struct peers *peers, const struct address *address);

#endif
