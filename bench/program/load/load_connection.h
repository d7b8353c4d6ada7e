/*
 * A connection of the load generator: its requests in flight, and when each should have been
 * sent.
 */
#ifndef WEIR_BENCH_LOAD_CONNECTION_H
#define WEIR_BENCH_LOAD_CONNECTION_H

#include "cli/client_tls.h"
#include "cli/connect_address.h"
#include "load/load_grpc.h"

#define LOAD_INPUT_BYTES 65536 /* largest reply */

struct load_connection {
    int fd;             /* -1: could not be opened again */
    unsigned depth;     /* size of the ring and of `out`, in requests */
    unsigned oldest;    /* index in the ring of the request that is answered next */
    unsigned in_flight; /* requests in the ring */
    uint64_t *due_ns;   /* the ring: when each request was due */
    char *out;          /* requests, and frames that the server asked for */
    size_t out_size;
    size_t sent; /* bytes of `out` that are sent */
    size_t made; /* bytes of `out` that are to be sent */
    char *in;
    size_t in_len;
    struct tls_session *session;  /* NULL: plain text */
    struct buffer cipher;         /* what the session wants to send */
    struct load_streams *streams; /* NULL: not gRPC */
    bool wants_write;             /* the socket's buffer is full; epoll tells when it is not */
    bool touched;                 /* is in the generator's list of connections to send on */
};

/*
 * Return 0, or -1 with errno set. load_connection_finish() must be called in both cases. open()
 * tries the addresses of the list in turn, and finishes the handshake of TLS and the opening of
 * HTTP/2.
 */
int load_connection_init(struct load_connection *c, const struct load_request *request,
                         unsigned depth);
int load_connection_open(struct load_connection *c, const struct addrinfo *target,
                         const struct load_request *request, const struct client_tls *tls);
void load_connection_close(struct load_connection *c);
void load_connection_finish(struct load_connection *c);

/* Returns true if there is room for one more request. */
static inline bool load_connection_has_room(const struct load_connection *c, size_t request_len)
{
    return c->fd >= 0 && c->in_flight < c->depth && c->made < c->depth * request_len;
}

/* Returns how many bytes wait to be sent. */
static inline size_t load_connection_unsent(const struct load_connection *c)
{
    return c->made - c->sent + buffer_len(&c->cipher);
}

/* Adds a request that is due at this time. The connection must have room. */
void load_connection_put(struct load_connection *c, const struct load_request *request,
                         uint64_t key, uint64_t due_ns);

/* Appends bytes to be sent that are no request. Returns false if there is no room. */
bool load_connection_queue(struct load_connection *c, struct weir_text bytes);

/*
 * Sends the added requests, as far as the socket takes them. Returns false if the connection has
 * ended.
 */
bool load_connection_send(struct load_connection *c);

/* Receives bytes of replies into `in`. Returns their number, 0 at the end, -1 with errno. */
ssize_t load_connection_receive(struct load_connection *c);

/* Removes the oldest request in flight, and returns the time at which it was due. */
uint64_t load_connection_take(struct load_connection *c);

#endif
