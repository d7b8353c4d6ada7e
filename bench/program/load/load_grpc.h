/*
 * gRPC calls of the load generator: HTTP/2 without TLS, one message each way.
 *
 * A call is a HEADERS and a DATA frame, made once; for each call only the number of its stream and
 * its keys are overwritten. Clients of gRPC send the header fields once for each connection and
 * then refer to them (HPACK); so does this one: the opening of a connection contains the first
 * call, and all further calls refer to its fields. The first call is not counted.
 *
 * Streams end in any order. The connection's ring holds the calls from the oldest one in flight on;
 * a call that has ended stays there with the time 0 until those before it have ended.
 */
#ifndef WEIR_BENCH_LOAD_GRPC_H
#define WEIR_BENCH_LOAD_GRPC_H

#include <nghttp2/nghttp2.h>

#include "load/load.h"

#define LOAD_FRAME_HEAD_BYTES 9
/* Servers return the window of bytes that a connection may send before half of it (32 KiB) is
 * used. While fewer bytes than that are in flight, the generator need not count them. */
#define LOAD_GRPC_IN_FLIGHT_BYTES 32768

struct load_connection;

/* The additional state of a connection that speaks gRPC. */
struct load_streams {
    nghttp2_hd_inflater *inflater;
    uint32_t next;    /* number of the next stream */
    uint64_t unread;  /* bytes of messages since the window was enlarged */
    uint8_t *verdict; /* for each place of the ring, what the message said */
};

/* Makes a call and the opening of a connection; `message` is hexadecimal, with {key} in it. Returns
 * 0 or WEIR_E... */
int load_grpc_make(struct load_request *request, const char *path, const char *message,
                   struct weir_error *error);

/* Writes the number of a call's stream into a copy of the request. */
void load_grpc_set_stream(const struct load_request *request, char *copy, uint32_t stream);

/* Returns NULL if out of memory. */
struct load_streams *load_streams_create(unsigned depth);
void load_streams_destroy(struct load_streams *s);

/* A call that has ended. */
struct load_ended {
    bool opening;    /* the first call of the connection */
    uint64_t due_ns; /* of the others; 0: no call has ended */
    enum load_verdict verdict;
};

/*
 * Reads the frame at the start of the input, and queues the frames that it asks for. Returns its
 * length; 0: incomplete; LOAD_BROKEN: not HTTP/2.
 */
int64_t load_grpc_read(struct load_connection *c, struct weir_text input, struct load_ended *ended);

#endif
