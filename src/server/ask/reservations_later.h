/*
 * Reservations of limits that a fleet decides: units of its store, charged when they are reserved, and
 * given back or topped up when they are settled. The limit and the key are kept with them, whatever
 * happens to the rules meanwhile.
 */
#ifndef WEIR_SERVER_ASK_RESERVATIONS_LATER_H
#define WEIR_SERVER_ASK_RESERVATIONS_LATER_H

#include "server/ask/reservations.h"

struct entry;
struct held;

/* Whose question it is. */
struct held_asked {
    struct reservations *all;
    struct entry *entry;
    uint64_t now_ns;
};

size_t held_size(size_t parts_len); /* about: of a key whose parts have so many bytes */
void held_destroy(struct held *h);  /* NULL is allowed */

/* Whether there is something to settle: not of a shadow limit's no, nor of an answer without the store,
 * whose charge, if there was one, stays. */
bool held_is_charged(const struct weir_answer *a);

/*
 * With what a weir_rules_use_fn was given. 0: *a is there. ANSWER_LATER: reservation_made() will be
 * called. WEIR_E... *held is the entry's, in any case.
 */
int held_take(struct held **held, const struct held_asked *asked, struct weir_rules_value limit,
              const void *key, size_t key_len, const struct weir_rules_found *found, uint64_t cost,
              struct later *later, struct weir_answer *a);

/* 0; ANSWER_LATER: reservation_settled() will be called. WEIR_E...: nothing has happened. */
int held_settle(const struct held *h, const struct held_asked *asked, struct weir_rules_value limit,
                bool charged, uint64_t actual, struct later *later, struct answer *told);

/* ---- in reservations.c ---- */

void reservation_made(const struct held_asked *asked, bool charged, bool made,
                      char id[RESERVATION_ID]);
void reservation_settled(const struct held_asked *asked, bool good);

#endif
