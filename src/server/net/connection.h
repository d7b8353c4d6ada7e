/*
 * One connection: bytes in, bytes out, and bounds on both. What the bytes mean
 * is the protocol's business.
 *
 * An idle connection holds no buffer. A read goes into memory of the thread; the
 * protocol consumes complete requests right there and puts the replies into
 * another buffer of the thread, which is written at once. Only what is
 * incomplete, or could not be written yet, is kept with the connection.
 *
 * Replies that the client does not fetch pile up to a bound, so that a client may
 * send a long pipeline before it reads; from there on nothing more is read from
 * it. A client that fetches nothing for write_ms is cut off. So is, when all of a thread keep too
 * much together, who has most of it: of replies, or of a request that has not arrived as a whole.
 *
 * A connection that is to end is shut down for writing, and what still comes is
 * thrown away for a moment: closed with bytes unread, the network would destroy
 * replies that the client has not fetched yet.
 */
#ifndef WEIR_SERVER_NET_CONNECTION_H
#define WEIR_SERVER_NET_CONNECTION_H

#include "rules/value/address.h"
#include "server/net/access.h"
#include "server/net/deferred.h"
#include "server/net/overload.h"
#include "server/net/server.h"

struct connection;

struct protocol {
    const char *name;
    enum server_protocol kind;
    const char *refusal;  /* said to connections beyond the bound; may be NULL */
    size_t session_bytes; /* of c->session, zeroed */
    /*
     * Consumes complete requests from the front of `input`, puts replies into
     * c->worker->replies, and stops early when connection_takes() no more: it is
     * called again for the rest. How many bytes were used; CONNECTION_CLOSE if the
     * connection is to end once the replies are out.
     */
    int64_t (*consume)(struct connection *c, struct text input);
    void (*close)(struct connection *c); /* may be NULL */
};

#define CONNECTION_CLOSE INT64_C(-1)

extern const struct protocol protocol_resp;
extern const struct protocol protocol_http;
extern const struct protocol protocol_admin; /* HTTP too, with other routes (http.c) */

struct connection {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    struct worker *worker;
    const struct protocol *protocol;
    struct connection *next;
    struct connection *previous;
    struct buffer input;   /* the beginning of a request, or what waits for output to go */
    struct buffer output;  /* being written */
    struct buffer backlog; /* to be written next */
    uv_write_t write;
    uint64_t since_ms; /* when the present silence, request or write began */
    size_t unsent;     /* of output at that time */
    size_t kept;       /* of input: as it is counted in the thread's */
    size_t owed;       /* while stopping: bytes that had arrived before */
    struct overload_place place;
    struct deferred_list pending; /* answers that have not come, and what waits for them */
    struct address peer;          /* family 0: a unix socket */
    struct access_pass pass;      /* what it has shown */
    unsigned wrong;               /* secrets that it has tried */
    bool entered;                 /* counted among its address's */
    bool writing;
    bool reading;
    bool stopping; /* the server ends: what is owed, no more */
    bool asked;    /* at least one request */
    bool ending;   /* no more requests; leave when the replies are out */
    bool leaving;  /* shut down for writing, input is thrown away */
    bool closing;  /* uv_close() has been called */
    _Alignas(16) unsigned char session[];
};

/*
 * Takes a new connection from a listening stream, or refuses it when there are too many. False if
 * there was no memory: the stream waits until this is called again.
 */
bool connection_accept(struct worker *worker, uv_stream_t *listener,
                       const struct protocol *protocol);

/* Operators have places of their own: they come when there are too many of the others. */
static inline bool connection_is_client(const struct protocol *protocol)
{
    return protocol->kind != PROTOCOL_ADMIN;
}

void connection_begin(struct connection *c); /* to read */

#define CONNECTION_WRONG_MAX 10

/* Counts a wrong secret; true if it was one too many: the connection is to end. */
bool connection_wrong_secret(struct connection *c);

/* Answers what has arrived by now, then ends. */
void connection_stop(struct connection *c);

void connection_close(struct connection *c);

/* Answers that were awaited have come: replies are written, and input that waited for them is decided. */
void connection_resume(struct connection *c);

/* Into the log (connection_tell.c). */
enum connection_refusal {
    CONNECTION_TOO_MANY,
    CONNECTION_TOO_MANY_OF_ADDRESS,
    CONNECTION_REFUSALS
};
void connection_tell_refused(const struct connection *c, enum connection_refusal why);
void connection_tell_late(const struct connection *c);

/* Closes what has been idle, or slow, for too long. Called by the thread's clock. */
void connection_check_time(struct connection *c, uint64_t now_ms);

#endif
