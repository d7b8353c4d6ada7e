/* The structs of a client and its calls, for the files of this folder that implement a client. */
#ifndef WEIR_REDIS_CALL_H
#define WEIR_REDIS_CALL_H

#include "redis/client.h"
#include "redis/list.h"
#include "redis/timers.h"
#include "redis/topology.h"

enum { TIMER_CALL, TIMER_LINK };

enum call_state {
    CALL_FREE,
    CALL_WAITING, /* waits for its turn on call.link */
    CALL_SENT,    /* sent on call.link, at call.place */
    CALL_PAUSED,  /* refused; its timer says when it goes on */
    CALL_PARKED   /* waits until the link of its slot is known */
};

struct call {
    struct list node; /* in the list of free, waiting, paused or parked calls */
    struct timer timer;
    enum call_state state;
    enum script_how how;
    bool asking;
    unsigned hops;    /* redirections since the last pause */
    unsigned pauses;  /* pauses so far */
    unsigned strange; /* NOSCRIPT replies to calls by hash */
    unsigned slot;
    unsigned count; /* number of arguments */
    struct client_link *link;
    uint64_t place;
    const struct script *script;
    uint64_t made_ns;
    uint64_t deadline_ns;
    client_done_fn done;
    void *arg;
    size_t len;
    size_t size;
    char *bytes; /* the arguments; the memory is kept for the next call */
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
    uint64_t now_ns; /* the latest time that the client was given */
    uint64_t random;
    bool closing;
    bool reap; /* a forgotten link must be freed */

    struct list links;
    size_t link_count;

    struct timers timers;
    struct list free;
    struct list paused;
    struct list parked;
    unsigned in_flight;
    unsigned in_flight_most;
    struct call_chunk *chunks;

    struct client_metrics counts; /* not yet added to options->metrics */
    char error[256];
    const struct client_link *blamed; /* the link that the error is about; NULL: no single one */
};

/* Returns the bytes of the call that follow its head (script_put_head()). */
static inline struct text call_arguments(const struct call *call)
{
    return (struct text){call->bytes, call->len};
}

/* ---- call.c ---- */

void call_replied(struct call *call, const struct store_reply *reply, uint64_t now_ns);
void call_tick(struct client *c, struct call *call, uint64_t now_ns); /* its timer is due */
void call_end(struct client *c, struct call *call, enum client_end end, uint64_t now_ns);
void calls_end(struct client *c, struct list *calls, uint64_t now_ns); /* ends all as NOT_RUN */
void calls_free(struct client *c);

/* ---- client.c ---- */

void client_tell_metrics(struct client *c);

#endif
