/*
 * Reservations on the wire: one request takes units in advance, and another one, perhaps on another
 * connection, settles or cancels them, exactly once.
 *
 * The client holds an id of 128 random bits; any client that knows the id may settle. The server
 * remembers the reservation until it is settled, cancelled or expired; if it expires, the estimate
 * stays charged. The number of reservations, their memory and their time are bounded. They do not
 * survive a restart of the server.
 */
#ifndef WEIR_SERVER_OPERATIONS_RESERVATIONS_H
#define WEIR_SERVER_OPERATIONS_RESERVATIONS_H

#include "server/operations/answer.h"
#include "server/operations/reservations_room.h"

#define RESERVATIONS_MAX 65536 /* places for all of them (reservations_room.h) */
#define RESERVATION_TTL_MS UINT64_C(60000)
#define RESERVATION_TTL_LONGEST_MS UINT64_C(600000) /* default of options.reservation_ttl_ms, */
#define RESERVATION_TTL_MAX_MS UINT64_C(86400000)   /* and the most that it can be */

#define RESERVATION_ID 33 /* 32 hex digits and a NUL */

/* Results besides 0 and WEIR_E... */
enum {
    RESERVATION_FULL = 1, /* no room for one more */
    RESERVATION_NONE = 2  /* there is none with that id, or its limit is gone */
};

struct reservations;
struct server;

/* Returns the longest time to live that may be asked for. */
uint64_t reservation_ttl_longest_ms(const struct server *server);

/* With this many places, of which nearly every reservation takes one. Returns 0 or WEIR_E... */
int reservations_create(struct reservations **out, uint64_t most, struct weir_error *error);
void reservations_destroy(struct reservations *r); /* NULL is allowed */

/*
 * Takes `cost` units (0: the limit's own cost, or 1 if it has none), for `ttl_ms` (0: a minute, or
 * the longest time if that is shorter). If the verdict is ALLOW, answer->reservation is the id of
 * the reservation; otherwise it is "". Returns 0, ANSWER_LATER, or RESERVATION_FULL or WEIR_E...
 * with the reason, and nothing was taken.
 *
 * A limit that a fleet decides is charged in the store; when the reservation is settled, the
 * difference is refunded or charged there. The reservation keeps the limit and the key, so that a
 * reload of the rules in between does no harm.
 */
int reservation_make(struct asker *asker, const struct weir_rules_key *key, uint64_t cost,
                     uint64_t ttl_ms, struct answer *answer, struct weir_error *error);

/*
 * Replaces the estimate by the units that were used (0: cancels). *answer is the answer to a peek
 * of 1 unit afterwards. If two clients settle the same reservation, one of them gets
 * RESERVATION_NONE. WEIR_EFULL (no room to charge the key) and WEIR_EIO (the fleet's store is
 * away) leave the reservation in place: the client may try again. If the store was asked and does
 * not answer, it is not known whether it has settled: the answer is WEIR_EIO too, but the
 * reservation is gone, so that no units are given back twice.
 */
int reservation_settle(struct asker *asker, struct weir_text id, uint64_t actual,
                       struct answer *answer, struct weir_error *error);

/* `open` is the present number, the others count since the start. */
struct reservations_counts {
    uint64_t open;
    uint64_t made;
    uint64_t settled; /* settled or cancelled */
    uint64_t expired;
    uint64_t lost; /* not settled: the limit was gone or changed, or the store did not answer */
    uint64_t refused[ROOM_RESULTS]; /* not made, because there was no room; by the bound */
};

void reservations_count(struct reservations *r, struct reservations_counts *counts);

#endif
