/*
 * MULTI, EXEC, DISCARD, WATCH, UNWATCH.
 *
 * After MULTI the commands of a connection are checked and queued. EXEC decides them in order, each
 * on its own, as if they came in a pipeline: a denial undoes nothing, and other clients may be
 * decided in between. An error that can be seen without deciding (an unknown command, its
 * arguments, the client's role) is told when the command is queued; then EXEC refuses all of them
 * and nothing is charged. Later errors are elements of the reply of EXEC.
 *
 * The queue is one buffer with the requests in the form in which they arrive, so that its memory
 * has a bound and EXEC reads them as any request. It is counted as input that the connection keeps.
 *
 * Answers that come later, from the store of a fleet, are parts of a batch (pending.h, D4): the
 * reply is put when all of them have come. If the client closes before that, the batch is freed
 * with its last answer.
 */
#include <stdlib.h>

#include "server/resp/resp_commands.h"

#define QUEUE_COMMANDS 1024
#define QUEUE_BYTES (1u << 20)

/* Bytes of replies after which EXEC decides no more, so that all of them fit into the thread's
 * buffer with earlier replies, one large reply and a short error for each command. */
#define EXEC_BYTES (SERVER_REPLY_BYTES / 2)
#define LATER_BYTES 256 /* of an answer that comes later, at most */

struct resp_queue {
    struct buffer requests;
    unsigned count;
    bool failed; /* a command could not be queued: EXEC will refuse all of them */
};

/* ---- the queue ---- */

static void note_bytes(struct connection *c, const struct resp_queue *q)
{
    c->session_kept = q != NULL ? sizeof *q + q->requests.size : 0;
}

void resp_drop_queue(struct connection *c)
{
    struct resp_session *session = resp_session_of(c);
    if (session->queue != NULL) {
        buffer_finish(&session->queue->requests);
        free(session->queue);
        session->queue = NULL;
        note_bytes(c, NULL);
    }
}

/* Frees what is queued: EXEC will not need it. */
static void fail_queue(struct command *c)
{
    struct resp_queue *q = c->session->queue;
    q->failed = true;
    buffer_finish(&q->requests);
    note_bytes(c->connection, q);
}

/* Returns false after an error reply. */
static bool append(struct command *c, struct resp_queue *q)
{
    if (q->count == QUEUE_COMMANDS) {
        resp_put_errorf(c->out,
                        "ERR MULTI: found more than %d commands, expected at most that many",
                        QUEUE_COMMANDS);
        return false;
    }
    resp_put_array(&q->requests, c->argc);
    for (unsigned i = 0; i < c->argc; i++) {
        resp_put_bulk(&q->requests, c->argv[i]);
    }
    if (q->requests.full) {
        resp_put_errorf(c->out,
                        "ERR MULTI: found commands of more than %u bytes, expected at most that "
                        "many (or out of memory)",
                        QUEUE_BYTES);
        return false;
    }
    q->count++;
    note_bytes(c->connection, q);
    return true;
}

void resp_queue_command(struct command *c, const struct command_row *row)
{
    struct resp_queue *q = c->session->queue;
    bool good = resp_check(c, row);
    if (good && row->at_once) {
        c->row = row;
        row->run(c);
    } else if (!good && row != NULL && row->run == resp_run_exec) { /* clients do not repeat EXEC */
        resp_drop_queue(c->connection);
    } else if (!good || (!q->failed && !append(c, q))) {
        fail_queue(c);
    } else {
        c->result = REQUEST_UNTOLD; /* EXEC counts it */
        resp_put_simple(c->out, TEXT("QUEUED"));
    }
}

void resp_run_multi(struct command *c)
{
    if (c->session->queue != NULL) {
        resp_put_error(c->out, TEXT("ERR MULTI calls can not be nested"));
        return;
    }
    struct resp_queue *q = calloc(1, sizeof *q);
    if (q == NULL) {
        resp_put_error(c->out, TEXT("ERR MULTI: out of memory"));
        return;
    }
    buffer_init(&q->requests, QUEUE_BYTES);
    c->session->queue = q;
    note_bytes(c->connection, q);
    resp_put_simple(c->out, TEXT("OK"));
}

void resp_run_discard(struct command *c)
{
    if (c->session->queue == NULL) {
        resp_put_error(c->out, TEXT("ERR DISCARD without MULTI"));
        return;
    }
    resp_drop_queue(c->connection);
    resp_put_simple(c->out, TEXT("OK"));
}

void resp_run_watch(struct command *c)
{
    resp_put_error(c->out, c->session->queue != NULL
                               ? TEXT("ERR WATCH inside MULTI is not allowed")
                               : TEXT("ERR WATCH is not supported: EXEC decides each command on "
                                      "its own, whatever else changes; leave WATCH out"));
}

/* ---- EXEC ---- */

/* A queue that is being decided. */
struct exec {
    struct command *c;
    struct pending *batch; /* gets answers that come later */
    struct buffer *out;    /* replies since the last one that comes later */
    size_t bytes;          /* of all replies */
};

/* Runs one command of the queue, or puts an error if no more may be decided: the reply would be too
 * large, or the connection ends because of wrong secrets. */
static void decide_one(struct exec *x, const struct resp_request *request)
{
    struct command one = resp_begin(x->c->connection);
    size_t before = buffer_len(x->out);
    one.out = x->out;
    one.batch = x->batch;
    one.argc = request->argc;
    one.argv = request->argv;
    if (x->c->close || x->bytes > EXEC_BYTES) {
        resp_put_error(x->out, x->c->close ? TEXT("ERR not run: the connection ends")
                                           : TEXT("ERR not run: the replies before it are too "
                                                  "large"));
        return;
    }
    resp_run(&one, resp_find_command(one.argv[0]));
    resp_count(&one, before);
    x->c->close = one.close;
    size_t after = buffer_len(x->out);
    x->bytes += after > before ? after - before : LATER_BYTES;
}

static void decide_all(struct exec *x, const struct resp_queue *q)
{
    struct resp_request request;
    const char *complaint;
    struct weir_text rest = buffer_text(&q->requests);
    resp_put_array(x->out, q->count);
    while (rest.len > 0 && resp_parse(rest, &resp_limits, &request, &complaint) == RESP_REQUEST) {
        decide_one(x, &request);
        rest = text_after(rest, request.used);
    }
}

static void put_later(struct pending *batch)
{
    struct buffer *out = &batch->worker->replies;
    buffer_put(out, buffer_text(&batch->body));
    for (struct pending *part = batch->parts; part != NULL; part = part->next) {
        part->put(part);
        buffer_put(out, buffer_text(&part->body));
    }
}

/* Decides the queue. If any answer comes later, the whole reply does. */
static void decide(struct command *c, const struct resp_queue *q)
{
    struct buffer text;
    struct exec x = {c, pending_batch(c->connection->worker), &text, 0};
    if (x.batch == NULL) {
        resp_put_error(c->out, TEXT("ERR EXEC: out of memory, nothing was decided"));
        return;
    }
    buffer_init(&text, SERVER_REPLY_BYTES);
    decide_all(&x, q);
    if (x.batch->parts != NULL) {
        pending_end_parts(x.batch, &text);
        resp_keep(c, x.batch, put_later);
    } else {
        buffer_put(c->out, buffer_text(&text));
        pending_destroy(x.batch);
    }
    c->out->full = c->out->full || text.full; /* ends the connection */
    buffer_finish(&text);
}

void resp_run_exec(struct command *c)
{
    struct resp_queue *q = c->session->queue;
    if (q == NULL) {
        resp_put_error(c->out, TEXT("ERR EXEC without MULTI"));
        return;
    }
    if (q->failed) {
        resp_put_error(c->out, TEXT("EXECABORT Transaction discarded because of previous errors."));
    } else {
        c->session->queue = NULL; /* commands are run now, not queued */
        decide(c, q);
        c->session->queue = q;
    }
    resp_drop_queue(c->connection);
}
