/*
 * One connection: bytes in, bytes out, and bounds on both. The protocol decides
 * what the bytes mean.
 *
 * An idle connection holds no buffer. A read goes into memory of the thread; the
 * protocol consumes complete requests right there and puts the replies into
 * another buffer of the thread, which is written at once. Only what is
 * incomplete, or could not be written yet, is kept with the connection.
 *
 * Replies that the client does not fetch pile up to a bound, so that a client may send a long
 * pipeline before it reads; from there on nothing more is read from it. A client that fetches
 * nothing for write_ms is cut off. When the connections of a thread together keep too many bytes
 * of replies, or of incomplete requests and handshakes, some are closed (crowd.h). Replies that a
 * session keeps, because its client has not opened the window of HTTP/2 for them, count like those
 * that the network does not take (connection_keep_reply).
 *
 * Bytes of the network come in at one place, on_read(), and go out at one, connection_write(). If
 * the connection speaks TLS, a session lies between those and the protocol (connection_tls.c).
 *
 * A connection that is to end is shut down for writing, and what the client still
 * sends is thrown away for a moment. If it were closed with bytes unread, the network
 * would destroy replies that the client has not fetched yet.
 */
#ifndef WEIR_SERVER_LOOP_CONNECTION_H
#define WEIR_SERVER_LOOP_CONNECTION_H

#include "common/log.h"
#include "rules/value/address.h"
#include "server/access/access.h"
#include "server/loop/crowd.h"
#include "server/loop/pending.h"
#include "server/loop/overload.h"
#include "server/loop/server.h"
#include "tls/tls.h"

struct connection;

struct protocol {
    const char *name;    /* of the listener, in options, messages and metrics */
    const char *address; /* where it listens by default */
    bool roles[ROLES];   /* the roles that use it; without secrets they are open to every client */
    enum server_protocol kind;
    const void *rows;     /* of the protocol's own making: HTTP's tables of routes; may be NULL */
    const char *refusal;  /* sent to connections beyond the bound; may be NULL */
    const char *unsealed; /* sent to clients that do not speak TLS where it is spoken */
    const char *alpn[2];  /* its name in TLS, then NULL; none: clients need not name it */
    bool reserve;         /* answers some requests on those (c->beyond) */
    size_t session_bytes; /* size of c->session, which starts zeroed */
    bool unordered;       /* replies say which request they answer, and need not wait for others */
    /*
     * Consumes complete requests from the front of `input` and puts replies into
     * c->worker->replies. Stops early when connection_takes() returns false, and is
     * then called again for the rest. Returns how many bytes were used, or
     * CONNECTION_CLOSE if the connection is to end once the replies are out. If it has set
     * c->session_waits, it is called again when there is room, with empty input if none has come.
     */
    int64_t (*consume)(struct connection *c, struct weir_text input);
    /* Puts what the client is told before the connection ends: when the server begins to stop, and
     * (`last`) when the connection is shut down; NULL: nothing. */
    void (*farewell)(struct connection *c, bool last);
    /* Answers requests of which the session keeps the beginning for longer than request_ms. Returns
     * whether the connection must end for one of them; NULL: the session keeps none. */
    bool (*late)(struct connection *c, uint64_t now_ms);
    /* Frees memory that c->session refers to, and sets c->session_kept to 0. Called when no more
     * requests are taken; NULL: there is no such memory. */
    void (*finish)(struct connection *c);
};

#define CONNECTION_CLOSE INT64_C(-1)

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
    struct buffer input;   /* the beginning of a request, or requests that wait for room */
    struct buffer output;  /* being written */
    struct buffer backlog; /* to be written next */
    uv_write_t write;
    uint64_t accepted_ms;  /* times are of the loop */
    uint64_t since_ms;     /* when the present silence, request or write began */
    size_t unsent;         /* bytes of `output` not written at that time */
    size_t session_kept;   /* bytes that the session keeps of requests; the protocol sets it */
    size_t unfetched;      /* bytes of replies that the session keeps: connection_keep_reply() */
    size_t passed;         /* bytes of them that have gone out since unfetched_ms */
    uint64_t unfetched_ms; /* when the client had fetched all, or another SERVER_FLUSH_BYTES */
    size_t owed;           /* while stopping: bytes that had arrived before, not yet read */
    struct overload_place place;
    struct pending_list pending; /* answers that have not come, and replies that wait for them */
    struct address peer;         /* family 0: a unix socket */
    struct access_pass pass;     /* the secret or certificate that the client has shown, its role */
    struct tls_session *tls;     /* NULL: plain text */
    unsigned wrong;              /* number of wrong secrets that the client has tried */
    uint32_t row; /* of its address in the tally and the crowds; TALLY_NONE: not counted there */
    struct crowd_place places[CROWDS];
    bool beyond; /* accepted beyond the bound. Unless there is room when its first request has come,
                  * it gets only what the protocol keeps a reserve for, and ends */
    bool up;     /* the handshake of TLS is done */
    bool half;   /* the client has said, in TLS, that it will send no more requests */
    bool told;   /* the client has been told, by the protocol and by TLS, that this ends */
    bool streaming;     /* its last reply does not end: connection_stream() */
    bool session_waits; /* the session has replies or requests that wait for room */
    bool writing;
    bool reading;
    bool stopping; /* the server ends: only the bytes `owed` are still decided */
    bool asked;    /* at least one request has come */
    bool ending;   /* no more requests are taken; leave() when the replies are out */
    bool leaving;  /* shut down for writing, input is thrown away */
    bool closing;  /* uv_close() has been called */
    _Alignas(16) unsigned char session[];
};

/*
 * Takes a new connection from a listening stream, or refuses it when there are too many. Returns
 * false if there was no memory; the stream then waits until this is called again.
 */
bool connection_accept(struct worker *worker, uv_stream_t *listener,
                       const struct protocol *protocol);

static inline bool connection_is_client(const struct protocol *protocol)
{
    return listener_is_for_clients(protocol->kind);
}

/* Returns the number of connections that count against the same bound, and the bound in *most. */
uint64_t connection_count(const struct connection *c, uint64_t *most);

/* Closes up to `n` idle connections of clients, while there are too many. Called by a thread that
 * another one has asked for room. */
void connection_make_room(struct worker *worker, uint64_t n);

/*
 * A connection whose reply does not end (server/admin/events.h). It is outside of the bounds on
 * operators' connections and is not closed because it is idle or slow: the caller must look at
 * connection_unsent(). Input is thrown away. Its end is never delayed when the server stops.
 */
void connection_stream(struct connection *c);
void connection_push(struct connection *c,
                     struct weir_text text);          /* sends plain bytes of replies */
size_t connection_unsent(const struct connection *c); /* bytes that wait to be fetched */
void connection_end_stream(struct connection *c, struct weir_text last); /* sends it, then ends */

/*
 * Count memory of replies that the session keeps until the client lets them be sent: memory that is
 * taken, bytes that go out, and memory that is freed. A client that lets nothing out for write_ms
 * is cut off. They close no connection, so that a session may call them while it works.
 */
void connection_keep_reply(struct connection *c, size_t bytes);
void connection_pass_reply(struct connection *c, size_t bytes);
void connection_free_reply(struct connection *c, size_t bytes);

/* Returns whether the session may decide one more request: otherwise its client must first fetch
 * replies. Input is read and consumed nevertheless, because it may open the window. */
bool connection_has_room(const struct connection *c);

/* Puts the protocol's refusal into the thread's replies, and counts it. */
void connection_refuse(struct connection *c);

void connection_begin(struct connection *c); /* starts reading */

/* Takes plain bytes of requests, of which the first `stale` have waited for too long. */
void connection_take(struct connection *c, struct weir_text text, size_t stale);

/* Writes bytes of the network; keeps the part that could not be written at once. */
void connection_write(struct connection *c, struct weir_text bytes);

/* Notes how many bytes of requests the connection keeps. If its thread keeps too many, others are
 * closed (crowd_debtor()), but not this one. */
void connection_note_kept(struct connection *c);

/* Notes how many bytes connection_unsent() returns, after any change of that. */
void connection_note_unsent(struct connection *c);

/* ---- TLS (connection_tls.c) ---- */

/* Gives a new connection a session if its listener speaks TLS. Returns false without memory. */
bool connection_open_tls(struct connection *c);

/* Takes bytes of a session. Returns false if no more will come. */
bool connection_unseal(struct connection *c, struct weir_text bytes, size_t stale);

/* Returns the bytes that carry a text, or the end of the session. They are valid until the next
 * call. An error closes the connection. */
struct weir_text connection_seal(struct connection *c, struct weir_text text);
struct weir_text connection_seal_end(struct connection *c);

/* Closes a connection whose client speaks TLS where it is not spoken, and logs it. Returns false
 * if the client does not. */
bool connection_refuse_hello(struct connection *c, struct weir_text input);

/* Ends the counting of a connection that closes (connection_accept.c). */
void connection_uncount(struct connection *c);

#define CONNECTION_WRONG_MAX 10

/* Counts a wrong secret. Returns true from the CONNECTION_WRONG_MAXth on: the
 * connection is to end. */
bool connection_wrong_secret(struct connection *c);

/* Answers what has arrived by now, then ends the connection. */
void connection_stop(struct connection *c);

void connection_close(struct connection *c);

/* Returns how many bytes the kernel holds for the connection. */
size_t connection_unread(const struct connection *c);

/* Called when awaited answers have come: writes the replies and decides input
 * that waited for them. */
void connection_resume(struct connection *c);

/* Logs what has happened to a connection. Clients can cause that at any rate, so each limit lets
 * one line a second pass, with the number of those left out. */
void connection_tell(const struct connection *c, struct log_limit *limit, enum log_level level,
                     const char *what, const char *why);

/* Decides what comes next: read more, pause reading, or end the connection. */
void connection_go_on(struct connection *c);

/* Closes a connection that has been idle, or slow, for too long. Called by the thread's timer
 * (connection_time.c). */
void connection_check_time(struct connection *c, uint64_t now_ms);

#endif
