/*
 * Which endpoint a slot lives at: single (single.c), by Sentinel, in a Cluster. One for each client, by
 * its store_url.kind; of the client's thread. It never sees a call: it says where calls of a slot go,
 * and what to do when one was refused. Everything else (places, deadlines, resending, breakers) is the
 * client's.
 *
 * A topology opens links, says which of them it wants to stand, and asks them things. A link that is
 * wanted is connected, and again after it has ended, by its backoff and its endpoint's breaker: within
 * client_tick(), or, as a probe that is due, within client_call().
 *
 *     IDLE --want--> CONNECTING --client_up()--> GREETING --all answered--> READY --> IDLE
 *                         \__________________________\______ failed ________________/
 *
 * GREETING: AUTH, SELECT and what greet() asks; calls are sent only when all of it has been answered.
 */
#ifndef WEIR_REDIS_TOPOLOGY_H
#define WEIR_REDIS_TOPOLOGY_H

#include "redis/client.h"

struct topology; /* each kind has its own */

enum topology_next {
    TOPOLOGY_PAUSE,  /* route the call again after a pause */
    TOPOLOGY_NOW,    /* route it again at once; after the fourth time with a pause */
    TOPOLOGY_ASKING, /* send it to *to, behind ASKING */
    TOPOLOGY_END     /* it is in vain */
};

struct topology_ops {
    /* 0 or WEIR_ENOMEM. Opens the links that it begins with; the client frees all links after destroy. */
    int (*create)(struct client *c, uint64_t now_ns, struct topology **t);
    void (*destroy)(struct topology *t);

    /*
     * Where calls of this slot go: a link in any state. NULL: *hope says whether somebody is about to
     * know. Then the call is kept, up to its deadline, for client_reroute(); without hope it is refused.
     */
    struct client_link *(*route)(struct topology *t, unsigned slot, uint64_t now_ns, bool *hope);

    /* The connection stands: client_ask() what must be answered before calls. */
    void (*greet)(struct topology *t, struct client_link *link, uint64_t now_ns);
    /* It is ready. Calls that wait for it go out without further ado. */
    void (*ready)(struct topology *t, struct client_link *link, uint64_t now_ns);
    /* It could not be made, or has ended: its calls have, too. What still waits for it is routed again
     * behind this. May be called within client_link_drop(). */
    void (*gone)(struct topology *t, struct client_link *link, uint64_t now_ns);

    /* A call of this slot was refused there (never NOSCRIPT: that is the client's); or a probe, of no slot,
     * for which nothing follows from what is returned. */
    enum topology_next (*refused)(struct topology *t, struct client_link *link, unsigned slot,
                                  const struct store_reply *reply, uint64_t now_ns,
                                  struct client_link **to);

    /* Own times: asking again, giving up. Returns the next one; UINT64_MAX: none. */
    uint64_t (*tick)(struct topology *t, uint64_t now_ns);
};

extern const struct topology_ops topology_alone;
extern const struct topology_ops topology_sentinel;
extern const struct topology_ops topology_cluster;

/* ---- links ---- */

enum {
    LINK_CONTROL =
        1 /* a Sentinel, for questions only: its own AUTH, no SELECT, no scripts, no calls */
};

/* That of the endpoint, opened if it is new (flags then count). NULL: no memory, CLIENT_LINKS_MAX, or
 * no host's name: empty, too long, or with a zero byte. */
#define CLIENT_LINKS_MAX 1024
struct client_link *client_link_open(struct client *c, struct text host, unsigned port,
                                     unsigned flags);

/* Wanted links stand, or are being connected. One that is not wanted stays until it ends, or is dropped. */
void client_link_want(struct client_link *link, bool wanted, uint64_t now_ns);

/* Ends the connection; no failure of the endpoint (it is merely not the right one). Calls that were sent
 * end UNKNOWN; what waits is routed again. `why` (for client_last_error(); NULL: nothing to say) and no
 * secret. If it is wanted it comes again, with a backoff. */
void client_link_drop(struct client_link *link, const char *why, uint64_t now_ns);

/* By its reply to ROLE (greeting.c): dropped if it is no master, as `otherwise` says, or asks for a
 * password. Who may not ask for the role is believed, until a call is READONLY. */
void client_link_judge(struct client_link *link, const struct text *reply, const char *otherwise,
                       uint64_t now_ns);

/* It is not needed any more: dropped, and freed in the next client_tick(). */
void client_link_forget(struct client_link *link, uint64_t now_ns);

bool client_link_is_ready(const struct client_link *link);
/* Calls given to it now would be refused: its breaker is open, or it failed and waits for the next try. */
bool client_link_is_hopeless(const struct client_link *link);
struct text client_link_host(const struct client_link *link);
unsigned client_link_port(const struct client_link *link);
const char *client_link_name(const struct client_link *link); /* host:port, or the path */

/* ---- questions ---- */

/* A whole reply, for redis/value.h or store_reply_read(); NULL: the connection ended without one. It may
 * drop links, and ask. `arg` of the topology outlives its questions. */
typedef void (*client_answer_fn)(void *arg, struct client_link *link, const struct text *reply,
                                 uint64_t now_ns);

/* 0, or WEIR_EIO (not READY nor GREETING) or WEIR_EFULL, and `answer` is not called. Time does not end a
 * question; a link that is silent for long is closed (client.h C4), and ends it. */
int client_ask(struct client_link *link, const struct text *words, size_t n,
               client_answer_fn answer, void *arg);

/* ---- calls ---- */

/* Something new is known: calls that were kept are routed again; those that wait for a link; all that
 * are not sent. */
void client_reroute(struct client *c, uint64_t now_ns);
void client_link_reroute(struct client_link *link, uint64_t now_ns);
void client_reroute_all(struct client *c, uint64_t now_ns);

/* tick() is to be called by then, not only when it last said. */
void client_tick_by(struct client *c, uint64_t due_ns);

const struct client_options *client_options_of(const struct client *c);
uint64_t client_random(struct client *c, uint64_t below); /* for jitter; 0 if below is 0 */

/* What is wrong, for client_last_error(); without secrets. */
void client_complain(struct client *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
