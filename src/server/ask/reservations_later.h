/*
 * Reservations of limits that a fleet decides. The units are charged in the store when they are
 * reserved; when they are settled, the difference is refunded or charged. A struct held keeps the
 * limit and the key, so that a reload of the rules in between does no harm.
 */
#ifndef WEIR_SERVER_ASK_RESERVATIONS_LATER_H
#define WEIR_SERVER_ASK_RESERVATIONS_LATER_H

#include "server/ask/reservations.h"

struct entry;
struct held;

/* The reservation that a question to the store belongs to. */
struct held_asked {
    struct reservations *all;
    struct entry *entry;
    uint64_t now_ns;
};

size_t held_size(size_t parts_len); /* estimate: parts_len is the length of all parts together */
void held_destroy(struct held *h);  /* NULL is allowed */

/* Returns whether there is something to settle. There is not if a shadow limit would have denied,
 * nor if the answer was given without the store; a charge made without it stays. */
bool held_is_charged(const struct weir_answer *a);

/*
 * Charges the units. Called with the arguments of a weir_rules_use_fn. Returns 0 if *a is there;
 * ANSWER_LATER if reservation_made() will be called; or WEIR_E... In each case *held belongs to the
 * entry afterwards.
 */
int held_take(struct held **held, const struct held_asked *asked, struct weir_rules_value limit,
              const void *key, size_t key_len, const struct weir_rules_found *found, uint64_t cost,
              struct later *later, struct weir_answer *a);

/* Refunds or charges the difference to `actual`. Returns 0; ANSWER_LATER if reservation_settled()
 * will be called; WEIR_E... if nothing has happened. */
int held_settle(const struct held *h, const struct held_asked *asked, struct weir_rules_value limit,
                bool charged, uint64_t actual, struct later *later, struct answer *told);

/* ---- in reservations.c: called when the store has answered, or failed ---- */

void reservation_made(const struct held_asked *asked, bool charged, bool made,
                      char id[RESERVATION_ID]);
void reservation_settled(const struct held_asked *asked, bool good);

#endif
