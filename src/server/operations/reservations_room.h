/*
 * The room for reservations, which no client and no limit can take for itself.
 *
 * Room is counted in places. A reservation takes one place for each RESERVATION_PLACE bytes that it
 * begins; nearly every one takes one. So a bound on places bounds the memory too.
 *
 * R1  All reservations have at most `most` places.
 * R2  Those of one limit have at most three quarters of them.
 * R3  While more than half of them are taken, a client that has some may have no more than a
 *     sixteenth of those that are free (for the limit, if that is less). So one client gets at most
 *     half of the room, and about 170 clients are needed to take all of it. A
 *     gateway is one client.
 */
#ifndef WEIR_SERVER_OPERATIONS_RESERVATIONS_ROOM_H
#define WEIR_SERVER_OPERATIONS_RESERVATIONS_ROOM_H

#include "common/text.h"
#include "server/loop/tally.h"

#define RESERVATION_PLACE 1024

/* Whether there is room; if not, because of which bound. */
enum room_result {
    ROOM_TAKEN,
    ROOM_NOT_OF_ALL,
    ROOM_NOT_OF_LIMIT,
    ROOM_NOT_OF_CLIENT,
    ROOM_RESULTS
};

struct room {
    uint64_t most;
    uint64_t taken;
    struct tally *shares; /* places of each limit and of each client */
};

/* What one reservation has of the room. */
struct room_share {
    uint32_t places;
    uint32_t limit; /* rows of room->shares */
    uint32_t client;
};

int room_init(struct room *room, uint64_t most, struct weir_error *error);
void room_finish(struct room *room);

/*
 * Takes room for a reservation of `bytes`. Returns ROOM_TAKEN; or the bound that would be exceeded,
 * with the reason in *error, and takes nothing. R1 and R2 are exact; for R3 the number of free
 * places may change while other threads take some.
 */
enum room_result room_take(struct room *room, struct weir_text limit, const struct address *client,
                           size_t bytes, struct room_share *share, struct weir_error *error);
void room_give(struct room *room, const struct room_share *share);

#endif
