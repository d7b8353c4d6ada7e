/*
 * One endpoint of a client, and its connection if it has one. What topologies see of it is in
 * topology.h, what drivers see in client.h.
 *
 * Calls come in order: they wait (in `waiting`, as arguments), are put into `out` when the driver asks
 * for bytes, and from then on count as sent, with a place in `asked`, in the order of the replies. A
 * call that ends while it waits is just taken out; one that ends when it was sent leaves its place
 * empty, and the reply to it is dropped.
 */
#ifndef WEIR_REDIS_LINK_H
#define WEIR_REDIS_LINK_H

#include "common/buffer.h"
#include "redis/call.h"
#include "redis/topology.h"

enum link_state { LINK_IDLE, LINK_CONNECTING, LINK_GREETING, LINK_READY };

/* Something was sent, and a reply is to come. */
struct asked {
    client_answer_fn answer; /* NULL: of a call */
    void *arg;               /* then the call; NULL: it has ended */
};

struct client_link {
    struct list node; /* of client.links */
    struct client *client;
    void *data; /* the driver's */
    char host[256];
    char name[300];
    unsigned port;
    unsigned flags;
    struct breaker *breaker;

    enum link_state state;
    bool wanted;
    bool woken;      /* the driver knows that there is something to send */
    bool probing;    /* the breaker waits for what becomes of this */
    bool complained; /* about refusals of calls, ... */
    bool looking;    /* (probe.c, as the two times) */
    bool loaded;     /* its scripts were */
    bool forgotten;  /* freed by the next client_tick() */
    uint64_t life;   /* counts connections: who calls others can see that one has ended meanwhile */
    unsigned greeting; /* questions before calls that are not answered */
    unsigned tries;    /* since it last stood for a while; link_ended() */
    uint64_t retry_ns; /* IDLE: not before */
    uint64_t up_ns;
    uint64_t quiet_ns;      /* since when nothing was heard that was waited for */
    uint64_t probe_ns;      /* when a probe was sent */
    uint64_t complained_ns; /* ... last then; */
    uint64_t look_ns;       /* the next look whether they still are */
    struct timer timer;

    struct buffer out;
    struct buffer in; /* the beginning of a reply */
    struct asked *asked;
    uint64_t asked_size;  /* a power of two, or 0 */
    uint64_t first, last; /* places that are taken: asked[place % asked_size]. They go on counting
                             from connection to connection */
    uint64_t began;       /* the first place of this connection */
    uint64_t good;        /* replies that the breaker has not been told of */
    bool well;            /* and one of them was no error */
    uint64_t texts[SCRIPT_COUNT]; /* calls sent before this place find the script loaded again */

    struct list waiting;
    size_t waiting_bytes;
};

/* ---- link.c ---- */

void link_free(struct client_link *link); /* idle, without calls */
/* The driver closes it; the client forgets all that was asked, without a word. */
void link_abandon(struct client_link *link);
void link_tick(struct client_link *link, uint64_t now_ns); /* its timer */
void link_set_timer(struct client_link *link, uint64_t now_ns);
void link_bad(struct client_link *link, uint64_t now_ns); /* a failure for its breaker */
void link_ready(struct client_link *link, uint64_t now_ns);
/* Calls are refused there, in its own words. */
void link_complain(struct client_link *link, struct text error);
/* As a failure, this key's for one. */
void link_refuses(struct client_link *link, struct text error, struct text key, uint64_t now_ns);
/* As much of an error as may be shown: not the arguments of a command that is not known there, which
 * may be a password, or somebody's key. */
struct text link_said(struct text error);
/* Takes the time to make a probe, if it is that time. */
void link_try_probe(struct client_link *link, uint64_t now_ns);

/* It is closed, as a failure; why, for client_last_error(). */
void link_fail(struct client_link *link, uint64_t now_ns, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- probe.c ---- */

void link_probe(struct client_link *link, uint64_t now_ns); /* link->probing; it is READY */
void link_look(struct client_link *link, uint64_t now_ns);  /* link->complained; it is READY */
void link_look_later(struct client_link *link, uint64_t now_ns);
void link_well(struct client_link *link); /* calls are answered again */

/* ---- link_io.c ---- */

void link_wake(struct client_link *link);
bool link_has_room(const struct client_link *link, size_t bytes); /* for one more call */
void link_put(struct client_link *link, struct call *call, uint64_t now_ns);
void link_take(struct client_link *link, struct call *call); /* one that waits */

static inline bool link_waits(const struct client_link *link)
{
    return link->first != link->last;
}

static inline struct asked *link_place(const struct client_link *link, uint64_t place)
{
    return &link->asked[place & (link->asked_size - 1)];
}

/* ---- greeting.c ---- */

void link_greet(struct client_link *link, uint64_t now_ns);
void link_load_scripts(struct client_link *link);

#endif
