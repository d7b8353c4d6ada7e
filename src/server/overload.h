/*
 * How old input is, and which of it is refused.
 *
 * A server that gets more than it can do must not work off a queue whose answers
 * come too late for anybody. Input that may have waited for longer than max_age_ms
 * is refused instead of decided (worker_is_stale()), which costs less, until
 * the queue is gone. How long it can have waited: since the loop last looked at
 * all connections, or since this one's input was last read to its end. A single
 * pause is not overload: it has to be late again within a second. Who waits only
 * behind its own pipeline, with nobody else behind, is not refused.
 */
#ifndef WEIR_SERVER_OVERLOAD_H
#define WEIR_SERVER_OVERLOAD_H

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
    unsigned behind;    /* connections whose last read did not get all */
    const char *fresh;  /* requests before this are stale; NULL: none is */
};

/* Before the first turn, and before the loop waits for input each time. */
void overload_begin(struct worker *w);
void overload_before_poll(struct worker *w);

/* So many bytes have been read from a connection: the first ones, as many as this, are too old. */
size_t overload_stale(struct connection *c, size_t bytes);

/* The connection ends: nobody waits for it. */
void overload_leave(struct connection *c);

#endif
