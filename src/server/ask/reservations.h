/*
 * Reservations on the wire: units taken in advance by one request, settled or cancelled by another,
 * perhaps of another connection, exactly once.
 *
 * The client holds an id, 128 random bits: who has it may settle. The server remembers what it
 * stands for until it is settled, cancelled or too old; then the estimate stays charged. There is
 * room for so many and no more. Nothing of it outlives the server.
 */
#ifndef WEIR_SERVER_ASK_RESERVATIONS_H
#define WEIR_SERVER_ASK_RESERVATIONS_H

#include "server/ask/answer.h"

#define RESERVATIONS_MAX 65536
#define RESERVATIONS_BYTES (64u << 20) /* of all of them, with their keys */
#define RESERVATION_TTL_MS UINT64_C(60000)
#define RESERVATION_TTL_MAX_MS UINT64_C(86400000)

#define RESERVATION_ID 33 /* 32 hex digits and the end */

/* What may come besides 0 and WEIR_E... */
enum {
    RESERVATION_FULL = 1, /* no room for one more */
    RESERVATION_NONE = 2  /* there is none of that id, or its limit is gone */
};

struct reservations;

/* 0 or WEIR_ENOMEM. */
int reservations_create(struct reservations **out, uint64_t most, struct weir_error *error);
void reservations_destroy(struct reservations *r); /* NULL is allowed */

/*
 * Takes `cost` units (0: the limit's own, else 1). On ALLOW *id is the reservation's, else "".
 * 0; ANSWER_LATER, and the id will be in later->kept->answer; RESERVATION_FULL, WEIR_E... with the reason:
 * then nothing was taken.
 */
int reservation_make(struct reservations *r, struct weir_rules *rules,
                     const struct weir_rules_key *key, uint64_t cost, uint64_t ttl_ms,
                     uint64_t now_ns, struct later *later, struct answer *answer,
                     char id[RESERVATION_ID], struct weir_error *error);

/*
 * Replaces the estimate by what was used (0: cancels). *answer is a peek of 1 afterwards. Of two
 * that try, one gets RESERVATION_NONE. Also WEIR_EFULL, no room to charge the key, and WEIR_EIO, the
 * fleet's store is away: try again. If that has been asked and does not answer, nobody knows whether it
 * has settled: WEIR_EIO too, and the reservation is gone, so that nothing is given back twice.
 */
int reservation_settle(struct reservations *r, struct weir_rules *rules, struct text id,
                       uint64_t actual, uint64_t now_ns, struct later *later, struct answer *answer,
                       struct weir_error *error);

/* Since the start, except the first. */
struct reservations_counts {
    uint64_t open;
    uint64_t made;
    uint64_t settled; /* and cancelled */
    uint64_t expired;
    uint64_t lost; /* their limit was gone, or another one, or the store did not answer, when they
                         were to be settled */
    uint64_t refused; /* because there was no room */
};

void reservations_count(struct reservations *r, struct reservations_counts *counts);

#endif
