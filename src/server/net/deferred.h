/*
 * Answers that come later: from the store that a fleet shares.
 *
 * The replies of a connection leave in the order of its requests. A request whose answer is not there
 * yet keeps its place, a struct deferred in the connection's list, and what is replied behind it waits
 * in its `behind`. Meanwhile the connection goes on reading and deciding, so that the questions of a
 * pipeline are out together: up to SERVER_PENDING of them, or as many bytes as a client may owe us.
 *
 *     struct later later = {.worker = w};
 *     int e = answer_check(..., &later, &a, &error);
 *     if (e == ANSWER_LATER) { later.kept->wire.proto = 3; deferred_keep(later.kept, c, put_later); }
 *     else { put(...) }                            // as if there were nothing of all this
 *
 * What is answered at once costs nothing: the spare one is the thread's, and is used again.
 *
 * D1  All of it belongs to one thread. Answers never come while the question is being asked.
 * D2  A deferred is freed when its reply has been put, or, if its connection has closed by then, when
 *     its answer comes; every question that is out comes back once (common/remote.h, R2).
 * D3  Answers that come in one turn of the loop are written together, before the loop sleeps.
 * D4  A batch is one deferred, whose parts are questions of their own. It is answered when they are.
 */
#ifndef WEIR_SERVER_NET_DEFERRED_H
#define WEIR_SERVER_NET_DEFERRED_H

#include "server/ask/later.h"

#define SERVER_PENDING 1024 /* questions of one connection that are out, or wait for one that is */

struct connection;
struct deferred;
struct worker;

/* Puts the reply, out of d->answer or d->error, into the thread's replies; of a part, into its batch. */
typedef void (*deferred_put_fn)(struct deferred *d);

/* The little that a reply needs of its request. */
struct deferred_wire {
    int proto;          /* RESP */
    int mode;           /* WEIR_CHECK, WEIR_PEEK */
    unsigned operation; /* enum operation */
    bool close;         /* HTTP: the connection ends behind it */
    bool old;           /* HTTP/1.0 that was to be kept open */
    bool head;          /* HEAD: no body */
};

struct deferred {
    struct deferred *next;
    struct worker *worker;
    struct connection *connection; /* NULL: it has closed, or this is a part */
    struct deferred *batch;        /* that this is a part of; NULL: none */
    struct deferred *parts;        /* of this batch, in order, ... */
    struct deferred *last_part;
    unsigned parts_count;
    unsigned parts_out; /* ... and how many have no answer yet */
    bool answered;
    deferred_put_fn put;
    uint64_t began_ns;
    int error; /* 0, or WEIR_E... */
    struct answer answer;
    struct deferred_wire wire;
    struct later_question later;
    void *data;                       /* of whoever asks more than one question; freed by ... */
    void (*drop)(struct deferred *d); /* ... this; NULL: nothing to free */
    struct buffer behind;             /* replies that wait for this one */
    struct buffer body;               /* of a batch: before its first part; of a part: behind it */
};

/* Of a connection. */
struct deferred_list {
    struct deferred *first;
    struct deferred *last;
    struct deferred *sent;   /* its `behind` is being written */
    unsigned count;          /* with the parts of batches */
    size_t held;             /* bytes of all `behind` */
    struct connection *next; /* of those that have answers to write, in the thread's list; ... */
    struct connection **previous; /* ... NULL: not in it */
};

static inline bool deferred_has_room(const struct deferred_list *list)
{
    return list->count < SERVER_PENDING && list->held < SERVER_OUTPUT_BYTES;
}

/* The thread's spare one; NULL: no memory. Nothing has to be done with it. */
struct deferred *deferred_spare(struct worker *w);

/* The request that is being answered gets its reply later, by `put`. */
void deferred_keep(struct deferred *d, struct connection *c, deferred_put_fn put);

/* A batch; NULL: no memory. It is kept, as above, or destroyed. */
struct deferred *deferred_batch(struct worker *w);
void deferred_destroy(struct deferred *d);

/* A part of a batch: `body` is what has been put since the part before; it is taken. */
void deferred_keep_part(struct deferred *d, struct deferred *batch, struct buffer *body,
                        deferred_put_fn put);
void deferred_end_parts(struct deferred *batch,
                        struct buffer *body); /* what is behind the last one */

/* d->answer or d->error is there. */
void deferred_answered(struct deferred *d);

/* ---- for connection.c ---- */

/* What has been put into the thread's replies behind the last of the connection's waits with it. */
void deferred_hold_back(struct connection *c);

/*
 * Puts replies that wait for nothing any more into the thread's replies, as many as are written at
 * once; *behind is what follows them and is too large to be copied. True if there is more. Then
 * deferred_release(), when all of it is written.
 */
bool deferred_collect(struct connection *c, struct text *behind);
void deferred_release(struct connection *c);

/* The connection has closed. */
void deferred_abandon(struct connection *c);

/* ---- for worker.c ---- */

/* Resumes every connection that has answers. */
void deferred_flush(struct worker *w);
void deferred_finish(struct worker *w);

#endif
