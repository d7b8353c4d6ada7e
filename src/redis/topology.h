/*
 * A topology knows which endpoint serves a slot: a single store (single.c), a master named by
 * Sentinels (sentinel.c), or a node of a Cluster (cluster.c). Each client has one, chosen by its
 * store_url.kind, and uses it on its own thread. A topology never sees a call: it says where calls
 * of a slot go, and what to do when one was refused. Everything else (places, deadlines, resending,
 * breakers) is done by the client.
 *
 * A topology opens links, says which of them it wants to be connected, and asks them questions. A
 * link that is wanted is connected, and connected again after it has ended, as its backoff and the
 * breaker of its endpoint permit: within client_tick() or, as a probe that is due, within
 * client_call().
 *
 *     IDLE --want--> CONNECTING --client_up()--> GREETING --all answered--> READY --> IDLE
 *                         \__________________________\______ failed ________________/
 *
 * GREETING: AUTH, SELECT and the questions of greet(). Calls are sent only when all of them have
 * been answered.
 */
#ifndef WEIR_REDIS_TOPOLOGY_H
#define WEIR_REDIS_TOPOLOGY_H

#include "redis/client.h"

struct topology; /* each kind has its own */

enum topology_next {
    TOPOLOGY_PAUSE,  /* route the call again after a pause */
    TOPOLOGY_NOW,    /* route it again at once; every fourth redirection in a row pauses first */
    TOPOLOGY_ASKING, /* send it to *to, after ASKING */
    TOPOLOGY_END     /* end the call: no endpoint will take it */
};

struct topology_ops {
    size_t size; /* of the topology's own struct; the client allocates it, zeroed, and frees it */
    /* Returns 0 or WEIR_ENOMEM. Opens the links that the topology begins with. */
    int (*create)(struct topology *t, struct client *c, uint64_t now_ns);

    /*
     * Returns the link that calls of this slot go to, in any state. If it returns NULL, *hope says
     * whether the link may be known soon: then the call is kept, up to its deadline, for
     * client_reroute(); without hope it is refused. NULL: all slots are served by client.master,
     * for which there is hope as long as one of the links has not failed.
     */
    struct client_link *(*route)(struct topology *t, unsigned slot, uint64_t now_ns, bool *hope);

    /* The connection is made: ask with client_ask() what must be answered before calls. May be
     * NULL. */
    void (*greet)(struct topology *t, struct client_link *link);
    /* The link is ready. Calls that wait for it are sent without further action. */
    void (*ready)(struct topology *t, struct client_link *link, uint64_t now_ns);
    /* The connection could not be made, or has ended; the calls that were sent on it have ended.
     * Calls that still wait for it are routed again after this function. May be called within
     * client_link_drop(). */
    void (*gone)(struct topology *t, struct client_link *link, uint64_t now_ns);

    /* The link is about to be freed. May be NULL. */
    void (*forgot)(struct topology *t, const struct client_link *link);

    /* A call was refused by the link, but never with NOSCRIPT, which the client handles. It is also
     * called for a refused probe; of the result only TOPOLOGY_END matters then. It does not close
     * the link. */
    enum topology_next (*refused)(struct topology *t, struct client_link *link,
                                  const struct store_reply *reply, uint64_t now_ns,
                                  struct client_link **to);

    /* Handles the topology's own times: asking again, giving up. Returns the next one; UINT64_MAX:
     * none. May be NULL. */
    uint64_t (*tick)(struct topology *t, uint64_t now_ns);
};

extern const struct topology_ops topology_alone;
extern const struct topology_ops topology_sentinel;
extern const struct topology_ops topology_cluster;

/* ---- links ---- */

/* Returns the link of an endpoint, and opens it if it is new; only then `sentinel` is used. NULL:
 * no memory, CLIENT_LINKS_MAX links, no breaker left (breaker.h), not a host name (empty, too long,
 * or with a zero byte), or a host that was announced and must not be followed: one outside of
 * client_options.permits, or with a password in it. */
#define CLIENT_LINKS_MAX 1024
struct client_link *client_link_open(struct client *c, struct weir_text host, unsigned port,
                                     bool sentinel);

/* Sets whether the link is wanted: wanted links are connected, or are being connected. A link that
 * is not wanted stays until its connection ends or is dropped. */
void client_link_want(struct client_link *link, bool wanted, uint64_t now_ns);

/* Closes the connection. That is not a failure of the endpoint, which is merely not the right one.
 * Calls that were sent end UNKNOWN; waiting calls are routed again. `why` is for
 * client_last_error() and contains no secret; NULL: there is nothing to report. A link that is
 * wanted is connected again, with a backoff. */
void client_link_drop(struct client_link *link, const char *why, uint64_t now_ns);

/* Asks a link for its role, unless that answer is pending. Drops it with the reason `otherwise` if
 * it is not a master, and also if it asks for a password. A link that may not ask for the role (an
 * error) is taken for a master, until a call is refused with READONLY. */
void client_link_ask_role(struct client_link *link, char *otherwise);
/* Returns true if the reply to ROLE says that the endpoint is a master. */
bool client_role_is_master(const struct store_reply *reply);

/* Lets the link stay until that time, for replies that are pending. Then it is dropped and, after
 * forgot(), freed. UINT64_MAX: it stays. */
void client_link_retire(struct client_link *link, uint64_t until_ns, uint64_t now_ns);

/* Returns true if calls given to the link now would be refused: it is forgotten, its breaker is
 * open, or it has failed and waits for the next attempt. */
bool client_link_is_hopeless(const struct client_link *link);
bool client_is_hopeless(const struct client *c); /* all its links are */

/* ---- questions ---- */

/* Receives a reply; NULL: the connection ended without one. It may drop links and ask questions.
 * `arg` must outlive the question. */
typedef void (*client_answer_fn)(void *arg, struct client_link *link,
                                 const struct store_reply *reply, uint64_t now_ns);

/* Sends a question. Returns 0; or, without calling `answer`, WEIR_EIO (the link is neither READY
 * nor GREETING) or WEIR_EFULL. A question has no deadline of its own; a link that is silent for
 * long is closed (client.h C4), which ends the question. */
int client_ask(struct client_link *link, const struct weir_text *words, size_t n,
               client_answer_fn answer, void *arg);

/* ---- calls ---- */

/* Route calls again because something new is known: client_reroute() those that were kept without a
 * link, client_link_reroute() those that wait for this link, client_reroute_all() all that are not
 * sent. */
void client_reroute(struct client *c, uint64_t now_ns);
void client_link_reroute(struct client_link *link, uint64_t now_ns);
void client_reroute_all(struct client *c, uint64_t now_ns);

/* Makes sure that tick() is called at due_ns at the latest, even if it last returned a later
 * time. */
void client_tick_by(struct client *c, uint64_t due_ns);

uint64_t client_random(struct client *c, uint64_t below); /* for jitter; 0 if below is 0 */
/* Returns a time between half of the gap and the whole gap from now, so that the clients of all
 * nodes do not ask at the same time. */
uint64_t client_jitter(struct client *c, uint64_t now_ns, uint64_t gap_ns);

/* Returns true, and sets client_last_error(), if the refusal shows that the endpoint is part of a
 * Cluster, which the URL does not say. */
bool client_link_is_of_cluster(const struct client_link *link, const struct store_reply *reply);

/* Sets the text of client_last_error(); it must contain no secrets. */
void client_complain(struct client *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
