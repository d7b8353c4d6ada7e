/*
 * The keys that were denied most in the last 1, 5 or 15 minutes.
 *
 * The past is kept in panes: what all threads have counted (top_denied.h) in ten seconds, and, once
 * that is more than a minute ago, in thirty. A list adds up the panes of the time that it is for.
 * A pane has as many rows as a sketch of one thread. Two panes are added by adding up the counts of
 * each row, where a row that a pane does not have counts as the `lost` of its set; then the rows
 * with the highest counts stay, and the highest one that goes becomes the `lost` of the sum. This
 * is how summaries of this kind are merged without a loss (Agarwal, Cormode, Huang, Phillips, Wei
 * and Yi, "Mergeable summaries", 2012):
 *
 * E1  low <= the truth <= high, for every row that is told, and high - low <= lost.
 * E2  A row that is not told was denied at most `lost` times.
 * E3  lost <= N / TOP_WAYS, if the set of the row has seen N denials in the time of the list.
 *
 * E3 holds for every thread's sketch, because its lowest count is at most an eighth of all. Call
 * the part of `high` that is above `lost` the surplus of a row. Then (all surpluses) + TOP_WAYS *
 * lost <= N holds for a sketch. Adding two of them adds up surpluses and `lost`, and both N.
 * Cutting to TOP_WAYS rows lowers at least TOP_WAYS + 1 surpluses by what is added to `lost`, so
 * the sum does not rise.
 *
 * All functions but the making of sketches belong to one thread, the operators'.
 */
#ifndef WEIR_SERVER_RECORD_TOP_PANES_H
#define WEIR_SERVER_RECORD_TOP_PANES_H

#include "server/record/top_denied.h"

/* Most that all of this takes, with the sketches of TOP_THREADS threads and with the reasons of
 * limits (limit_reasons.h). It is part of server.memory, whatever the number of threads. */
#define TOP_BYTES 8000000
#define TOP_THREADS 65

#define TOP_TURN_S 10  /* seconds of a pane */
#define TOP_JOINED 3   /* how many panes become one when they are old */
#define TOP_RECENT 8   /* panes of the last minute, and those that will be joined next */
#define TOP_OLD 28     /* joined ones: with those of the last minute at least 15 minutes */
#define TOP_MINUTES 15 /* the longest time of a list */

struct top_panes;

/* Returns NULL if out of memory. */
struct top_panes *top_panes_create(uint64_t now_ns);
void top_panes_destroy(struct top_panes *panes); /* NULL is allowed */

/* Returns the memory of the panes. */
size_t top_panes_bytes(void);

/* Returns the number of the turn, for top_create(). */
const uint64_t *top_panes_turn(const struct top_panes *panes);

/* Begins another turn if that is due, and keeps what the one before the last has counted. To be
 * called at least every TOP_TURN_S; panes are longer if it is called more seldom. */
void top_panes_tick(struct top_panes *panes, struct top *const *tops, size_t count,
                    uint64_t now_ns);

struct top_list {
    uint64_t from_ns; /* the list is of the time since then */
    uint64_t lost;    /* a row that is not in it was denied at most this often (E2) */
    size_t count;
    const struct top_row *rows[TOP_KEYS]; /* the highest counts first; until the next call */
};

/* Lists what was denied in the last window_ns, and at most a joined pane's time before them. */
void top_panes_list(struct top_panes *panes, struct top *const *tops, size_t count,
                    uint64_t window_ns, uint64_t now_ns, struct top_list *list);

#endif
