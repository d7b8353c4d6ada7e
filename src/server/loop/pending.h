/*
 * Answers that come later, from the store that a fleet shares, and replies that are delayed
 * (delays.h).
 *
 * A struct pending is one request whose answer has not come, with all memory that is needed for it
 * from the connection down to the store (common/remote.h, R3): it lies at the beginning of its own
 * arena, and rules and store take their parts from there. What the request asks, and its answer,
 * are the floor's above (server/operations/awaited.h): here it is a `question` of so many bytes.
 *
 * The replies of a connection leave in the order of its requests, unless its protocol is
 * `unordered`: then each leaves when its answer has come. A request whose answer has not come yet
 * keeps its place by its struct pending in the connection's list, and the replies to later requests
 * wait in its `behind`. Meanwhile the connection goes on reading and deciding, so that the
 * questions of a pipeline are at the store together: up to SERVER_PENDING questions (a batch may go
 * beyond that, because it is decided as a whole), or until SERVER_OUTPUT_BYTES of replies wait.
 *
 *     struct asker asker = {.worker = w, ...};
 *     int e = operation_run(&asker, operation, &ask, &answer, &error);
 *     if (e == ANSWER_LATER) {
 *         asker.pending->wire.proto = 3;
 *         pending_keep(asker.pending, c, put_later);
 *     } else { put(...) }                          // the answer is there already
 *
 * An answer that comes at once costs no allocation: the thread's spare object is used again.
 *
 * D1  All of it belongs to one thread. Answers never come while the question is being asked.
 * D2  A struct pending is freed when its reply has been put, or, if its connection has closed by
 *     then, when its answer comes. Every pending question is answered exactly once (R2).
 * D3  Answers that come in one turn of the loop are written together, before the loop sleeps.
 * D4  A batch (of HTTP, or an EXEC) is one struct pending, and each of its parts is a question of
 *     its own. The batch is answered when all its parts are. Text between the answers of its parts
 *     waits with it and is counted as a reply that waits.
 */
#ifndef WEIR_SERVER_LOOP_PENDING_H
#define WEIR_SERVER_LOOP_PENDING_H

#include "common/arena.h"
#include "server/loop/server.h"

#define SERVER_PENDING 1024 /* questions of one connection whose reply has not been put yet */

struct connection;
struct pending;
struct worker;

/* Puts the reply, made from p->question or p->error, into the thread's replies; that of a part,
 * where the `put` of its batch expects it. */
typedef void (*pending_put_fn)(struct pending *p);

/* What a reply needs to know about its request. */
struct pending_wire {
    int proto;          /* version of RESP: 2 or 3 */
    int32_t stream;     /* of HTTP/2: the stream that is answered */
    unsigned operation; /* enum operation */
    bool close;         /* HTTP: the connection ends after the reply */
    bool old;           /* HTTP/1.0: the reply must say keep-alive */
    bool head;          /* HEAD: no body */
    int status;         /* HTTP: of a reply whose body a job has composed (sandbox/job.h) */
    const char *type;   /* the type of that body; NULL: there is none */
};

struct pending {
    struct arena memory;     /* of the request, this struct included */
    struct arena_mark empty; /* when nothing but this struct was taken */
    struct pending *next;
    struct worker *worker;
    struct connection *connection; /* NULL if it has closed, or if this is a part */
    struct pending *batch;         /* the batch that this is a part of; NULL: none */
    struct pending *parts;         /* parts of this batch, in order */
    struct pending *last_part;
    unsigned parts_count;
    unsigned parts_out; /* parts that have no answer yet */
    bool answered;
    bool decided;       /* no store was asked: the answer was known when the place was kept */
    bool refusal;       /* the refusal of a wrong secret (penalty.h), or a batch that has one */
    bool held;          /* has a place for held replies (delays.h) */
    size_t delay_place; /* its number in the heap of delays, from 1 on; 0: it is not delayed */
    uint64_t due_ms;    /* when its delay ends, by the loop's clock */
    pending_put_fn put;
    uint64_t began_ns;
    int error; /* 0, or WEIR_E... */
    struct pending_wire wire;
    struct buffer behind;              /* replies to later requests, which wait for this one */
    struct buffer body;                /* batch: text before its first part; part: text after it */
    size_t body_bytes;                 /* batch: of its `body` and those of its parts */
    void *question;                    /* not zeroed */
    void (*let_go)(struct pending *p); /* frees what the question holds; NULL: nothing */
};

/* The pending replies of one connection. */
struct pending_list {
    struct pending *first;
    struct pending *last;
    struct pending *sent;         /* its `behind` is being written */
    unsigned count;               /* entries, and the parts of batches */
    size_t held;                  /* bytes of all `behind` and, of batches, of all `body` */
    struct connection *next;      /* in worker->ready, the list of those with answers to write */
    struct connection **previous; /* link that points here; NULL: not in worker->ready */
};

/* Returns whether the next reply of the connection is held back. */
static inline bool pending_is_held(const struct pending_list *list)
{
    return list->first != NULL && list->first->held && list->first->delay_place != 0;
}

static inline bool pending_has_room(const struct pending_list *list)
{
    return list->count < SERVER_PENDING && list->held < SERVER_OUTPUT_BYTES;
}

/* Creates an object whose question has so many bytes; NULL if out of memory. The caller must keep
 * it, as below, or destroy it. */
struct pending *pending_create(struct worker *w, size_t question_bytes);
void pending_destroy(struct pending *p); /* NULL is allowed */

/* Returns the thread's spare object, with empty memory, or NULL if out of memory. It stays the
 * thread's until it is kept. All callers give the same number of bytes. */
struct pending *pending_spare(struct worker *w, size_t question_bytes);

/* Keeps the place of the request that is being answered; `put` composes its reply later. */
void pending_keep(struct pending *p, struct connection *c, pending_put_fn put);

/* Creates a batch, which has no question of its own. */
static inline struct pending *pending_batch(struct worker *w)
{
    return pending_create(w, 0);
}

/* Appends a part to a batch. `body` holds what was put since the part before; its bytes are moved
 * out. pending_end_parts() moves the text after the last part. */
void pending_keep_part(struct pending *p, struct pending *batch, struct buffer *body,
                       pending_put_fn put);
void pending_end_parts(struct pending *batch, struct buffer *body);

/* Tells that the answer in p->question, or p->error, has been set. */
void pending_answered(struct pending *p);

/* ---- for connection.c ---- */

/* Moves the replies that were put after the connection's last pending request
 * into its `behind`. */
void pending_hold_back(struct connection *c);

/*
 * Puts replies that need not wait any more into the thread's replies, as many as are written at
 * once. *behind is the text that follows them if it is too large to be copied. Returns true if
 * there is more. The caller calls pending_release() when all of it is written.
 */
bool pending_collect(struct connection *c, struct weir_text *behind);
void pending_release(struct connection *c);

/* Drops the replies of a connection that has closed. */
void pending_abandon(struct connection *c);

/* ---- for worker.c ---- */

/* Resumes every connection that has answers to write. pending_finish() frees the spare one. */
void pending_flush(struct worker *w);
void pending_finish(struct worker *w);

#endif
