/*
 * Estimates how old input is, and finds the input that is refused because it is too old.
 *
 * A server that gets more requests than it can decide must not work through a queue
 * whose answers come too late to be of use. Input that may have waited for longer than
 * max_age_ms is refused instead of decided (worker_is_stale()), which costs less, until
 * the queue is gone.
 *
 * The age is an upper bound. In each turn of the loop every connection is read to its
 * end, or nearly so; hence its input has arrived since the turn before. Input of a
 * connection that was not read to its end may have arrived since the last turn in which
 * it was. The bytes that are found when its turn comes are assumed to have arrived
 * evenly over that time: the share of them that would be older than max_age_ms is
 * refused. A single pause is not overload: input has to be late again within
 * SERVER_HICCUP_MS. If only one connection was not read to its end, it waits for nothing but
 * its own pipeline, and is not refused.
 */
#ifndef WEIR_SERVER_LOOP_OVERLOAD_H
#define WEIR_SERVER_LOOP_OVERLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection;
struct worker;

/* What a thread knows about its loop. Times are of the loop's clock, in milliseconds. */
struct overload {
    uint64_t asleep_ms; /* when the loop began to wait for input; 0 once it has got some */
    uint64_t polled_ms; /* when it last got some; at first, when the loop was made */
    uint64_t unread_ms; /* earliest time at which this turn's input can have arrived */
    bool waiting;       /* there was input already when the loop began to wait */
    bool late;          /* in this turn of the loop some input was too old */
    uint64_t late_ms;   /* end of the last turn with late input; 0: none */
    uint32_t turn;      /* number of this turn of the loop */
    unsigned behind;    /* connections that were not read to their end in their last turn */
    const char *fresh;  /* requests that begin before this byte are stale; NULL: none */
};

/* What it knows about one connection. */
struct overload_place {
    uint64_t arrived_ms; /* earliest time at which the input of this turn can have arrived */
    uint64_t read_ms;    /* when it was last read */
    size_t stale;        /* bytes too old and still to be read in this turn */
    uint32_t turn;       /* number of the turn in which it was last read */
    bool full;           /* the last read filled the buffer: there may be more input */
    bool behind;         /* its last turn ended with such a read */
};

/* Called each time before the loop waits for input. */
void overload_before_poll(struct worker *w);

/* Initialises the place of a new connection. */
void overload_enter(struct connection *c);

/* Called when `bytes` have been read from a connection. Returns how many of them, counted from the
 * first, are too old. */
size_t overload_stale(struct connection *c, size_t bytes);

/* Called when a connection ends: it is no longer counted as behind. */
void overload_leave(struct connection *c);

#endif
