/*
 * How old input is, and which of it is refused.
 *
 * A server that gets more than it can do must not work off a queue whose answers
 * come too late for anybody. Input that may have waited for longer than max_age_ms
 * is refused instead of decided (worker_is_stale()), which costs less, until
 * the queue is gone.
 *
 * How long it can have waited: in each turn of the loop every connection is read
 * to its end, or nearly; so since the turn before, and who was not read to the
 * end has waited since it was. Of what lies there when its turn comes, as much
 * is too old as would be if it had come evenly. A single pause is not overload:
 * it has to be late again within a second. Who waits only behind its own
 * pipeline, with nobody else behind, is not refused.
 */
#ifndef WEIR_SERVER_NET_OVERLOAD_H
#define WEIR_SERVER_NET_OVERLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection;
struct worker;

/* What a thread knows of its loop. */
struct overload {
    uint64_t asleep_ms; /* when the loop began to wait for input, and ... */
    uint64_t polled_ms; /* ... when it got some */
    uint64_t unread_ms; /* not before this did arrive what the loop has got now */
    bool waiting;       /* there was input before the loop began to wait */
    bool late;          /* in this turn of the loop some input was too old */
    uint64_t late_ms;   /* the end of the last such turn; 0: none */
    uint32_t turn;      /* of the loop */
    unsigned behind;    /* connections that were not read to their end in their last turn */
    const char *fresh;  /* requests before this are stale; NULL: none is */
};

/* And of a connection. */
struct overload_place {
    uint64_t arrived_ms; /* not before this did arrive what is read in this turn */
    uint64_t read_ms;    /* when it was last read */
    size_t stale;        /* bytes that are yet to be read in this turn and are too old */
    uint32_t turn;
    bool full;   /* the last read may not have got all */
    bool behind; /* that was the last of its turn */
};

/* Before the first turn, and before the loop waits for input each time. */
void overload_begin(struct worker *w);
void overload_before_poll(struct worker *w);

/* A new connection. */
void overload_enter(struct connection *c);

/* So many bytes have been read from a connection: the first ones, as many as this, are too old. */
size_t overload_stale(struct connection *c, size_t bytes);

/* The connection ends: nobody waits for it. */
void overload_leave(struct connection *c);

#endif
