/*
 * gRPC: unary calls over HTTP/2. nghttp2 frames and unframes; this folder turns calls into
 * operations and answers into messages.
 *
 *   grpc.c          the connection: bytes -> streams -> calls -> bytes
 *   grpc_call.c     one call: its header fields, its message, its reply or its error
 *   grpc_limiter.c  weir.v1.Limiter: a method for each operation, and Batch
 *   grpc_rls.c      envoy.service.ratelimit.v3.RateLimitService
 *   grpc_health.c   grpc.health.v1.Health
 *
 * A stream belongs to its connection. Its memory is bounded: GRPC_STREAMS streams of a connection,
 * GRPC_FIELDS_BYTES of header fields and SERVER_REQUEST_BYTES of message each. Streams, heads that
 * are not complete, and messages that are not decided, count as bytes that the connection keeps.
 * Replies that the client's window does not let out count like other unsent bytes
 * (connection_keep_reply); while there are too many, the frames of the client are read, but its
 * calls wait. A client that sends many frames and few calls (floods of PING, SETTINGS, resets) is
 * told to calm down, and its connection ends.
 *
 * A call that a fleet's store decides is answered later, and calls that follow it need not wait:
 * the protocol is `unordered` (connection.h).
 */
#ifndef WEIR_SERVER_GRPC_GRPC_H
#define WEIR_SERVER_GRPC_GRPC_H

#include <nghttp2/nghttp2.h>

#include "server/operations/operations.h"
#include "server/loop/worker.h"

#define GRPC_STREAMS 256       /* calls of one connection at the same time */
#define GRPC_CALL_BYTES 2048   /* memory of a call without messages, nghttp2's included */
#define GRPC_SPARE_BYTES 1024  /* the largest buffer of a call whose memory is used again */
#define GRPC_FIELDS_BYTES 8192 /* header fields of a call; of some methods, those that are read */
#define GRPC_HEAD_COST 2      /* memory for a byte of a head that is not complete; by Huffman 8/5 */
#define GRPC_FRAMES 2000      /* frames of a connection that may come at once */
#define GRPC_FRAMES_CALL 10   /* frames more for each call */
#define GRPC_FRAMES_SECOND 20 /* frames more for each second */

/* Status codes of gRPC. */
enum grpc_status {
    GRPC_OK = 0,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_UNAUTHENTICATED = 16
};

struct grpc_call;

struct grpc_method {
    const char *service; /* "weir.v1.Limiter" */
    const char *name;    /* "Check" */
    enum role role;      /* that a caller needs */
    unsigned operation;  /* enum operation; of methods that run one */
    /* Reads the message and ends the call, now or later, by grpc_reply() or grpc_fail(). */
    void (*run)(struct grpc_call *call, struct weir_text message);
    /* Answers a call that would be refused because of what is in it, and returns true; or returns
     * false, and it is refused. NULL: all are. */
    bool (*decline)(struct grpc_call *call, const char *why);
};

/* One stream, and the call on it. */
struct grpc_call {
    struct connection *connection;
    struct grpc_call *next; /* list of the connection's calls */
    struct grpc_call **from;
    int32_t stream;
    bool post;
    bool typed;        /* its content-type is that of gRPC */
    bool compressed;   /* its messages are encoded in a way that is not known here */
    bool too_large;    /* its header fields, or its message */
    bool own_secret;   /* it has the field Weir-Secret */
    bool wrong_secret; /* it has shown a secret that is not valid */
    bool watching;     /* the reply goes on: grpc.health.v1.Health/Watch */
    bool ended;        /* no more is added to `reply` */
    bool answered;
    bool headed;   /* its header fields are complete */
    bool complete; /* its message is complete, or is not waited for any more */
    bool waits;    /* its message is complete, and there is no room for the reply */
    const struct grpc_method *method; /* NULL: the path names none */
    enum role role;
    uint64_t begun_ms;    /* when its first frame came, by the loop's clock */
    uint64_t deadline_ns; /* by clock_boot_ns(); UINT64_MAX: none */
    size_t fields_bytes;
    struct buffer request; /* the message with its prefix, as far as it has come */
    struct buffer reply;   /* what is still to be sent of the reply */
    size_t message_at;     /* where in `reply` the last message begins */
    size_t reply_kept;     /* memory of `reply` that connection_keep_reply() has counted */
};

/* The session of one connection. */
struct grpc_session {
    nghttp2_session *h2; /* NULL: nothing has come yet */
    struct grpc_call *calls;
    unsigned waiting;        /* number of calls that wait for room */
    struct grpc_call *spare; /* an ended call, for the memory of the next one; NULL: none */
    uint64_t frames;         /* how many more frames may come; see count_frame() */
    uint64_t frames_ms;      /* when that was computed, by the loop's clock */
    bool greeted;            /* the client's first frame has come */
    bool heading;            /* a head has begun and is not complete */
    size_t head;             /* bytes that have come since it began */
    size_t head_kept;        /* what they count among the bytes that the session keeps */
    bool stale;              /* the present input is too old to be decided (overload.h) */
};

static inline struct grpc_session *grpc_session_of(struct connection *c)
{
    return (struct grpc_session *)(void *)c->session;
}

/* Moves frames that are ready into the thread's replies, and runs calls that have waited for room,
 * until there is no more, or so much that the replies are written first. */
void grpc_put_frames(struct connection *c);

/* ---- one call ---- */

/* Takes a header field of the call. */
void grpc_take_field(struct grpc_call *call, struct weir_text name, struct weir_text value);

/* Refuses the call if its header fields, which are complete, allow no other answer. */
void grpc_check_head(struct grpc_call *call);

/* Takes bytes of the message. */
void grpc_take_bytes(struct grpc_call *call, struct weir_text bytes);

/* Runs the call, whose message is complete, unless it is answered already. Without room for its
 * reply, it waits. */
void grpc_run(struct grpc_call *call);

/* Frees the messages of a call that ends. */
void grpc_drop_request(struct grpc_call *call);
void grpc_drop_reply(struct grpc_call *call);

/* Ends the call with the message that the caller has put into the buffer which grpc_begin_message()
 * returned, and counts the call by `result`. */
struct buffer *grpc_begin_message(struct grpc_call *call);
void grpc_reply(struct grpc_call *call, enum request_result result);

/* Ends the call with an error: `e` is WEIR_E... or RESERVATION_... */
void grpc_fail(struct grpc_call *call, int e, const struct weir_error *error);

/* Ends the call with a status other than OK, and counts it by `result`. */
void grpc_refuse(struct grpc_call *call, enum request_result result, enum grpc_status status,
                 const char *why);

/* Sends a message of a reply that goes on, or ends such a reply. */
void grpc_push(struct grpc_call *call, struct weir_text message);
void grpc_end(struct grpc_call *call);

/* Returns the client of the call, for operation_run(). */
struct asker grpc_asker(const struct grpc_call *call);

/* Keeps the call until its answer has come. grpc_resume() returns it then; NULL if its client has
 * cancelled it. */
void grpc_keep(struct grpc_call *call, struct pending *p, pending_put_fn put);
struct grpc_call *grpc_resume(struct pending *p);

extern const struct protocol protocol_grpc;

/* ---- methods ---- */

/* Returns the method of a path, "/weir.v1.Limiter/Check", or NULL. */
const struct grpc_method *grpc_method(struct weir_text path);

const struct grpc_method *grpc_limiter_methods(size_t *count);
extern const struct grpc_method grpc_rls_methods[];
#define GRPC_RLS_METHODS 1
extern const struct grpc_method grpc_health_methods[];
#define GRPC_HEALTH_METHODS 2

/* Tells the calls of Health/Watch that the server ends. */
void grpc_health_ends(struct grpc_session *session);

#endif
