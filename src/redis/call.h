/* A client and its calls, as client.c, call.c and link.c see them. */
#ifndef WEIR_REDIS_CALL_H
#define WEIR_REDIS_CALL_H

#include "redis/client.h"
#include "redis/list.h"
#include "redis/timers.h"
#include "redis/topology.h"

enum { TIMER_CALL, TIMER_LINK };

enum call_state {
    CALL_FREE,
    CALL_WAITING, /* for its turn on call.link */
    CALL_SENT,    /* there, at call.place */
    CALL_PAUSED,  /* refused; its timer says when it goes on */
    CALL_PARKED   /* nobody knows where to */
};

struct call {
    struct list node; /* of the free, waiting, paused or parked ones */
    struct timer timer;
    enum call_state state;
    enum script_how how;
    bool asking;
    unsigned hops;    /* that it has made from endpoint to endpoint */
    unsigned pauses;  /* and pauses */
    unsigned strange; /* times that its script was not known */
    unsigned slot;
    unsigned count; /* arguments */
    struct client_link *link;
    uint64_t place;
    const struct script *script;
    uint64_t made_ns;
    uint64_t deadline_ns;
    client_done_fn done;
    void *arg;
    size_t len;
    size_t size;
    char *bytes; /* its arguments; kept for the next call */
};

#define CALL_BYTES_MAX 65536
#define CALLS_OF_A_CHUNK 64

struct call_chunk {
    struct call_chunk *next;
    struct call calls[CALLS_OF_A_CHUNK];
};

struct client {
    const struct client_options *options;
    struct client_driver driver;
    const struct topology_ops *ops;
    struct topology *topology;
    uint64_t topology_due;
    uint64_t now_ns; /* the last that was heard */
    uint64_t random;
    bool closing;
    bool reap; /* some link is forgotten */

    struct list links;
    size_t link_count;

    struct timers timers;
    struct list free;
    struct list paused;
    struct list parked;
    unsigned in_flight;
    unsigned in_flight_most;
    struct call_chunk *chunks;

    struct client_metrics counts; /* not yet told to options->metrics */
    char error[256];
    const struct client_link *blamed; /* whom the error is about; NULL: nobody alone */
};

/* The bytes of a call on the wire behind its script's name. */
static inline struct text call_arguments(const struct call *call)
{
    return (struct text){call->bytes, call->len};
}

/* ---- call.c ---- */

void call_replied(struct call *call, const struct store_reply *reply, uint64_t now_ns);
void call_lost(struct call *call, uint64_t now_ns); /* it was sent, and the connection has ended */
void call_tick(struct client *c, struct call *call, uint64_t now_ns); /* its timer */
void call_end(struct client *c, struct call *call, enum client_end end, uint64_t now_ns);
void calls_end(struct client *c, struct list *calls, uint64_t now_ns); /* all NOT_RUN */
void calls_free(struct client *c);

/* ---- client.c ---- */

void client_tell_metrics(struct client *c);

#endif
