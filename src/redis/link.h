/*
 * The structs of a client, its calls and its links, for the files of this folder that implement a
 * client. A link is one endpoint, and its connection if it has one. The interface for topologies is
 * in topology.h, that for drivers in client.h.
 *
 * Calls are handled in order. They wait in `waiting`, as arguments, and are put into `out` when the
 * driver asks for bytes; from then on they count as sent, and have one of the `places`, which are
 * in the order of the replies. A call that ends while it waits is just taken out; one that ends
 * after it was sent leaves its place empty, and the reply to it is dropped.
 */
#ifndef WEIR_REDIS_LINK_H
#define WEIR_REDIS_LINK_H

#include "common/buffer.h"
#include "redis/list.h"
#include "redis/timers.h"
#include "redis/topology.h"

enum { TIMER_CALL, TIMER_LINK };

enum call_state {
    CALL_WAITING, /* waits for its turn on call.link */
    CALL_SENT,    /* sent on call.link, at call.place */
    CALL_PAUSED,  /* refused; its timer says when it goes on */
    CALL_PARKED   /* waits until the link of its slot is known */
};

struct pending_call {
    struct list node; /* in the list of waiting, paused or parked calls */
    struct timer timer;
    enum call_state state;
    enum script_how how;
    bool asking;
    bool creates;
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
    char bytes[]; /* the arguments */
};

#define CALL_BYTES_MAX 65536

struct client {
    const struct client_options *options;
    struct client_driver driver;
    const struct topology_ops *ops;
    struct topology *topology;
    struct client_link *master; /* serves all slots, link in any state; NULL: topology_ops.route */
    uint64_t topology_due;
    uint64_t now_ns; /* the latest time that the client was given */
    bool closing;
    bool reap; /* a forgotten link must be freed */

    struct list links;
    size_t link_count;

    struct timers timers;
    struct list paused;
    struct list parked;
    unsigned in_flight;
    unsigned in_flight_most;
    /* Within `done` of a call that ended at its deadline: where the reply's client_late goes. */
    struct client_late **late;

    struct client_metrics counts; /* not yet added to options->metrics */
    char error[256];
    const struct client_link *blamed; /* the link that the error is about; NULL: no single one */
};

/* Returns the bytes of the call that follow its head (script_put_head()). */
static inline struct weir_text call_arguments(const struct pending_call *call)
{
    return (struct weir_text){call->bytes, call->len};
}

enum link_state { LINK_IDLE, LINK_CONNECTING, LINK_GREETING, LINK_READY };

/* A place: something was sent, and its reply is pending. */
struct reply_place {
    client_answer_fn answer; /* NULL: the reply is for a call */
    void *arg;               /* for a call: the struct pending_call; NULL: it has ended */
};

struct client_link {
    struct list node; /* in client.links */
    struct client *client;
    void *data; /* the driver's */
    char host[256];
    char name[300];
    unsigned port;
    bool sentinel;  /* answers questions only: its own AUTH, no SELECT, no scripts, no calls */
    bool announced; /* not in the URL: a Sentinel or a node has named it */
    struct breaker *breaker;

    enum link_state state;
    bool wanted;
    bool woken;      /* the driver knows that there is something to send */
    bool probing;    /* this link makes the breaker's probe */
    bool complained; /* a call got an error; cleared when calls succeed again */
    bool rechecking; /* a check of link_recheck() is pending */
    bool role_asked; /* ROLE was asked; the answer is pending */
    bool forgotten;  /* freed by the next client_tick() */
    /* Number of connections that have ended. A caller compares it before and after a call of
     * another function, to see whether the connection has ended meanwhile. */
    uint64_t life;
    unsigned greeting; /* GREETING: questions that are not answered yet */
    /* Since a connection last lasted for 1 s: 2 for each failed attempt, 1 for each connection that
     * ended sooner (set_retry() in link.c). */
    unsigned tries;
    uint64_t retry_ns;  /* IDLE: no attempt before this time */
    uint64_t retire_ns; /* client_link_retire(): when it is forgotten */
    uint64_t up_ns;
    uint64_t quiet_ns;      /* start of the present silence, while replies are pending */
    uint64_t probe_ns;      /* when a probe was sent */
    uint64_t complained_ns; /* time of the last such error */
    uint64_t recheck_ns;    /* time of the next link_recheck() */
    struct timer timer;

    struct buffer out;
    struct buffer in; /* the beginning of a reply */
    struct reply_place *places;
    uint64_t places_size; /* a power of two, or 0 */
    /* Places that are taken: places[place % places_size]. The numbers continue from one connection
     * to the next. */
    uint64_t first, last;
    uint64_t began; /* the first place of this connection */
    uint64_t good;  /* replies that were no failure, not yet told to the breaker */
    bool well;      /* one of them was not an error */
    bool late;      /* a reply came after its deadline; not yet told to the breaker */
    bool again;     /* the last probe was answered, but late; this one follows it at once */
    /* For each script, `last` when its text was last sent again. A call at an earlier place finds
     * the script loaded if it is sent again (resend_by_text() in resend.c). */
    uint64_t texts[SCRIPT_COUNT];

    struct list waiting;
    size_t waiting_bytes;
};

/* ---- client.c ---- */

void client_tell_metrics(struct client *c);

/* ---- call.c ---- */

/* Ends a call that is in no list and has no place. C1: this is the only function that calls
 * `done`. */
void call_finish(struct client *c, struct pending_call *call, enum client_end end,
                 const struct store_reply *reply, uint64_t now_ns);
/* Ends a call in any state, without a reply. */
void call_end(struct client *c, struct pending_call *call, enum client_end end, uint64_t now_ns);
/* Its timer is due: it goes on after a pause, or ends (C1). */
void call_tick(struct client *c, struct pending_call *call, uint64_t now_ns);

/* Returns the link that calls of this slot go to, in any state. If it returns NULL, *hope says
 * whether the link may be known soon. */
struct client_link *call_route(struct client *c, unsigned slot, uint64_t now_ns, bool *hope);
/* Keeps a call until its link is known: client_reroute(). */
void call_park(struct client *c, struct pending_call *call);
/* link_put() gives a call to the link, which must have room for it. */
bool link_has_room(const struct client_link *link, size_t bytes);
void link_put(struct client_link *link, struct pending_call *call, uint64_t now_ns);

/* Tells the client_late of a place, if it has one, that no reply will come. */
void link_end_late(struct client_link *link, const struct reply_place *place, uint64_t now_ns);

void link_wake(struct client_link *link);
/* link_has_places() returns whether n more replies may be pending, `most` in all.
 * link_take_place() takes the place of the next reply. */
bool link_has_places(struct client_link *link, uint64_t n, uint64_t most);
void link_take_place(struct client_link *link, client_answer_fn answer, void *arg);

/* ---- resend.c ---- */

/* Gives the call to the link of its slot, parks it if that link will be known soon, or ends it
 * NOT_RUN with `refusal`. The call must be in no list. Sets its timer to its deadline. */
void call_resend(struct client *c, struct pending_call *call, const struct store_reply *refusal,
                 uint64_t now_ns);
/* Handles a reply that proves that the call did not run: sends it again or ends it (C2). */
void call_refused(struct client *c, struct pending_call *call, const struct store_reply *reply,
                  uint64_t now_ns);
struct weir_text call_key(const struct pending_call *call); /* its first key */

/* ---- link.c ---- */

void link_free(struct client_link *link); /* must be idle and without calls */
/* Closes the connection through the driver, without calling the functions that wait for replies. */
void link_abandon(struct client_link *link);
void link_tick(struct client_link *link, uint64_t now_ns); /* its timer is due */
void link_set_timer(struct client_link *link, uint64_t now_ns);
/* Report to the breaker of the link: replies that were no failure, and a failure. */
void link_note_successes(struct client_link *link, uint64_t now_ns);
void link_note_failure(struct client_link *link, uint64_t now_ns);
void link_ready(struct client_link *link, uint64_t now_ns);
/* Begins a probe of the open breaker, if one is due. */
void link_try_probe(struct client_link *link, uint64_t now_ns);

/* Closes the connection as a failure; the reason is for client_last_error(). */
void link_fail(struct client_link *link, uint64_t now_ns, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- questions.c ---- */

void link_greet(struct client_link *link, uint64_t now_ns);
/* Both need a link that is READY: link_probe() one whose `probing` is set, link_recheck() one whose
 * `complained` is set. */
void link_probe(struct client_link *link, uint64_t now_ns);
void link_recheck(struct client_link *link, uint64_t now_ns);
/* Asks how full the endpoint's memory is, if that is due. The link must be READY. */
void link_ask_memory(struct client_link *link, uint64_t now_ns);
/* Sets client_last_error() to the reason why this link does not work. */
void link_blame(struct client_link *link, struct weir_text why);
/* Records that the link answers calls with this error, for client_last_error(). */
void link_complain(struct client_link *link, struct weir_text error);
/* The same, and reports a failure to the breaker, with the key of a refused call. */
void link_refuses(struct client_link *link, struct weir_text error, struct weir_text key,
                  uint64_t now_ns);
/* Writes the part of an error that may be shown into `room`, and returns it. It leaves out
 * passwords, and the arguments of an unknown command, which may contain a key. */
#define LINK_SHOWN_MAX 120
struct weir_text link_shown_error(const struct client_link *link, struct weir_text error,
                                  char room[LINK_SHOWN_MAX]);
void link_clear_complaint(struct client_link *link); /* calls succeed again */

/* A client_answer_fn for replies that do not matter. */
void link_ignore_reply(void *arg, struct client_link *link, const struct store_reply *reply,
                       uint64_t now_ns);

static inline bool link_waits(const struct client_link *link)
{
    return link->first != link->last;
}

static inline struct reply_place *link_place(const struct client_link *link, uint64_t place)
{
    return &link->places[place & (link->places_size - 1)];
}

#endif
