/*
 * Answers that come later, from the store that a fleet shares.
 *
 * The replies of a connection leave in the order of its requests. A request whose answer has not
 * come yet keeps its place by a struct deferred in the connection's list, and the replies to later
 * requests wait in its `behind`. Meanwhile the connection goes on reading and deciding, so that the
 * questions of a pipeline are at the store together: up to SERVER_PENDING questions, or until
 * SERVER_OUTPUT_BYTES of replies wait.
 *
 *     struct later later = {.worker = w};
 *     int e = answer_check(..., &later, &a, &error);
 *     if (e == ANSWER_LATER) {
 *         later.kept->wire.proto = 3;
 *         deferred_keep(later.kept, c, put_later);
 *     } else { put(...) }                          // the answer is there already
 *
 * An answer that comes at once costs no allocation: the thread's spare deferred is used again.
 *
 * D1  All of it belongs to one thread. Answers never come while the question is being asked.
 * D2  A deferred is freed when its reply has been put, or, if its connection has closed by then,
 *     when its answer comes. Every pending question is answered exactly once (common/remote.h, R2).
 * D3  Answers that come in one turn of the loop are written together, before the loop sleeps.
 * D4  A batch is one deferred, and each of its parts is a question of its own. The batch is
 *     answered when all its parts are.
 */
#ifndef WEIR_SERVER_NET_DEFERRED_H
#define WEIR_SERVER_NET_DEFERRED_H

#include "server/ask/later.h"

#define SERVER_PENDING 1024 /* questions of one connection whose reply has not been put yet */

struct connection;
struct deferred;
struct worker;

/* Puts the reply, made from d->answer or d->error, into the thread's replies; a
 * part's, into its batch. */
typedef void (*deferred_put_fn)(struct deferred *d);

/* What a reply needs to know about its request. */
struct deferred_wire {
    int proto;          /* version of RESP: 2 or 3 */
    int mode;           /* WEIR_CHECK, WEIR_PEEK */
    unsigned operation; /* enum operation */
    bool close;         /* HTTP: the connection ends after the reply */
    bool old;           /* HTTP/1.0: the reply must say keep-alive */
    bool head;          /* HEAD: no body */
};

struct deferred {
    struct deferred *next;
    struct worker *worker;
    struct connection *connection; /* NULL if it has closed, or if this is a part */
    struct deferred *batch;        /* the batch that this is a part of; NULL: none */
    struct deferred *parts;        /* parts of this batch, in order */
    struct deferred *last_part;
    unsigned parts_count;
    unsigned parts_out; /* parts that have no answer yet */
    bool answered;
    deferred_put_fn put;
    uint64_t began_ns;
    int error; /* 0, or WEIR_E... */
    struct answer answer;
    struct deferred_wire wire;
    struct later_question later;
    void *data;                       /* for the module that asked; freed by `drop` */
    void (*drop)(struct deferred *d); /* frees `data`; NULL: nothing to free */
    struct buffer behind;             /* replies to later requests, which wait for this one */
    struct buffer body;               /* batch: text before its first part; part: text after it */
};

/* The deferred replies of one connection. */
struct deferred_list {
    struct deferred *first;
    struct deferred *last;
    struct deferred *sent;        /* its `behind` is being written */
    unsigned count;               /* entries, and the parts of batches */
    size_t held;                  /* bytes of all `behind` */
    struct connection *next;      /* in worker->ready, the list of those with answers to write */
    struct connection **previous; /* link that points here; NULL: not in worker->ready */
};

static inline bool deferred_has_room(const struct deferred_list *list)
{
    return list->count < SERVER_PENDING && list->held < SERVER_OUTPUT_BYTES;
}

/* Returns the thread's spare deferred, or NULL if out of memory. It stays the
 * thread's until it is kept. */
struct deferred *deferred_spare(struct worker *w);

/* Keeps the place of the request that is being answered; `put` composes its reply later. */
void deferred_keep(struct deferred *d, struct connection *c, deferred_put_fn put);

/* Creates a batch; NULL if out of memory. The caller must keep it, as above, or destroy it. */
struct deferred *deferred_batch(struct worker *w);
void deferred_destroy(struct deferred *d);

/* Appends a part to a batch. `body` holds what was put since the part before; its bytes are moved
 * out. deferred_end_parts() moves the text after the last part. */
void deferred_keep_part(struct deferred *d, struct deferred *batch, struct buffer *body,
                        deferred_put_fn put);
void deferred_end_parts(struct deferred *batch, struct buffer *body);

/* Tells that d->answer or d->error has been set. */
void deferred_answered(struct deferred *d);

/* ---- for connection.c ---- */

/* Moves the replies that were put after the connection's last deferred request
 * into its `behind`. */
void deferred_hold_back(struct connection *c);

/*
 * Puts replies that need not wait any more into the thread's replies, as many as are written at
 * once. *behind is the text that follows them if it is too large to be copied. Returns true if
 * there is more. The caller calls deferred_release() when all of it is written.
 */
bool deferred_collect(struct connection *c, struct text *behind);
void deferred_release(struct connection *c);

/* Drops the replies of a connection that has closed. */
void deferred_abandon(struct connection *c);

/* ---- for worker.c ---- */

/* Resumes every connection that has answers to write. deferred_finish() frees the spare one. */
void deferred_flush(struct worker *w);
void deferred_finish(struct worker *w);

#endif
