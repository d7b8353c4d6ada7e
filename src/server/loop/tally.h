/*
 * Counts by key, in a table of fixed size: the connections of an address, the reservations of a
 * limit. Keys are told apart by a keyed hash, so that a client which chooses keys cannot choose
 * their list. The threads share a table under its lock, which is taken only when a connection or a
 * reservation begins or ends.
 */
#ifndef WEIR_SERVER_LOOP_TALLY_H
#define WEIR_SERVER_LOOP_TALLY_H

#include <weir.h>

#include "common/text.h"
#include "rules/value/address.h"

#define TALLY_NONE UINT32_MAX

struct tally;

/* For at most `rows` keys with counts above 0. Returns 0 or WEIR_E... */
int tally_create(struct tally **tally, uint32_t rows, struct weir_error *error);
void tally_destroy(struct tally *tally); /* NULL is allowed */

/*
 * Adds units to the count of a key. Returns the row of the key, which stays the same until the
 * count is 0, and the count in *count. If the count would exceed `most`, or there is no row left,
 * returns TALLY_NONE and adds nothing; *count is then the count as it is.
 */
uint32_t tally_add(struct tally *tally, struct weir_text key, uint32_t units, uint64_t most,
                   uint64_t *count);
void tally_subtract(struct tally *tally, uint32_t row, uint32_t units);

/* Returns the row of a key, or TALLY_NONE if its count is 0. */
uint32_t tally_row(struct tally *tally, struct weir_text key);

/* Returns the key of a client, in *room: its address; of an IPv6 address the /64, because one
 * client has all of it. All clients of unix sockets (family 0, or NULL) are one. */
struct weir_text tally_client(const struct address *address, struct address *room);

#endif
