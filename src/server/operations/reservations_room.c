#include "server/operations/reservations_room.h"

#include <assert.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/maths.h"
#include "server/operations/reservations.h"

int room_init(struct room *room, uint64_t most, struct weir_error *error)
{
    *room = (struct room){.most = most};
    return tally_create(&room->shares, (uint32_t)(2 * most), error); /* a limit and a client each */
}

void room_finish(struct room *room)
{
    tally_destroy(room->shares);
}

static uint64_t most_of_limit(const struct room *room)
{
    return room->most - room->most / 4;
}

/* Takes places. Returns how many were taken before, or UINT64_MAX if there are not enough. */
static uint64_t take_of_all(struct room *room, uint32_t places)
{
    uint64_t seen;
    do {
        seen = load_relaxed(&room->taken);
        if (places > room->most - seen) {
            return UINT64_MAX;
        }
        assert(seen <= room->most); /* R1 */
    } while (!cas_u64(&room->taken, seen, seen + places));
    return seen;
}

/* Returns the most places that a client may have after it has got those of the share (R3). */
static uint64_t most_of_client(const struct room *room, uint64_t taken, uint64_t free,
                               uint32_t places)
{
    bool scarce = taken + places > room->most / 2;
    return !scarce ? UINT64_MAX : free / 16 > places ? free / 16 : places;
}

/* Takes places of the limit, and then of the client, if all had `taken` places before. */
static enum room_result take_shares(struct room *room, struct weir_text limit,
                                    const struct address *client, uint64_t taken,
                                    struct room_share *share, struct weir_error *error)
{
    struct address address;
    uint64_t most = most_of_limit(room);
    uint64_t held;
    share->limit = tally_add(room->shares, limit, share->places, most, &held);
    if (share->limit == TALLY_NONE) {
        (void)fail(error, RESERVATION_FULL,
                   "the reservations of this limit take %" PRIu64 " places, and may take %" PRIu64
                   " of all %" PRIu64,
                   held, most, room->most);
        return ROOM_NOT_OF_LIMIT;
    }
    uint64_t free = min_u64(room->most - taken, most + share->places - held);
    most = most_of_client(room, taken, free, share->places);
    share->client =
        tally_add(room->shares, tally_client(client, &address), share->places, most, &held);
    if (share->client == TALLY_NONE) {
        tally_subtract(room->shares, share->limit, share->places);
        (void)fail(error, RESERVATION_FULL,
                   "the reservations of this client take %" PRIu64 " places of %" PRIu64
                   "; more than half are taken, so one client may have %" PRIu64
                   ": settle or cancel some",
                   held, room->most, most);
        return ROOM_NOT_OF_CLIENT;
    }
    return ROOM_TAKEN;
}

enum room_result room_take(struct room *room, struct weir_text limit, const struct address *client,
                           size_t bytes, struct room_share *share, struct weir_error *error)
{
    share->places = (uint32_t)((bytes + RESERVATION_PLACE - 1) / RESERVATION_PLACE);
    uint64_t taken = take_of_all(room, share->places);
    if (taken == UINT64_MAX) {
        (void)fail(error, RESERVATION_FULL,
                   "the reservations of all clients take %" PRIu64 " places of %" PRIu64,
                   load_relaxed(&room->taken), room->most);
        return ROOM_NOT_OF_ALL;
    }
    enum room_result result = take_shares(room, limit, client, taken, share, error);
    if (result != ROOM_TAKEN) {
        (void)fetch_sub(&room->taken, share->places);
    }
    return result;
}

void room_give(struct room *room, const struct room_share *share)
{
    tally_subtract(room->shares, share->client, share->places);
    tally_subtract(room->shares, share->limit, share->places);
    uint64_t before = fetch_sub(&room->taken, share->places);
    assert(before >= share->places);
    (void)before;
}
