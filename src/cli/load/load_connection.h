/* A connection of the load generator: requests that are out, and when they should have been sent. */
#ifndef WEIR_CLI_LOAD_LOAD_CONNECTION_H
#define WEIR_CLI_LOAD_LOAD_CONNECTION_H

#include "cli/load/load.h"

#define LOAD_INPUT_BYTES 65536 /* a reply fits into it */

struct load_connection {
    int fd;             /* -1: it could not be opened again */
    unsigned depth;     /* of the ring and of `out` */
    unsigned oldest;    /* place in the ring of the request that is answered next */
    unsigned in_flight; /* requests in the ring */
    uint64_t *due_ns;   /* the ring */
    char *out;          /* depth copies of the request */
    size_t sent;        /* of out */
    size_t made;        /* of out: up to here they are to be sent */
    char *in;
    size_t in_len;
    bool wants_write; /* the network is full, the poll tells when it is not */
    bool touched;     /* has something to be sent now */
};

/* Where to connect to; 0 or WEIR_E... */
struct load_target {
    int family;
    unsigned len;
    _Alignas(8) unsigned char address[128];
};
int load_target_parse(const char *text, struct load_target *target, struct weir_error *error);

/* 0 or -1 with errno set; load_connection_finish() also then. */
int load_connection_init(struct load_connection *c, const struct load_request *request,
                         unsigned depth);
int load_connection_open(struct load_connection *c, const struct load_target *target);
void load_connection_close(struct load_connection *c);
void load_connection_finish(struct load_connection *c);

/* Whether one more request may be put. */
static inline bool load_connection_has_room(const struct load_connection *c, size_t request_len)
{
    return c->fd >= 0 && c->in_flight < c->depth && c->made < c->depth * request_len;
}

/* Puts a request that is due at a time. There is room. */
void load_connection_put(struct load_connection *c, const struct load_request *request,
                         uint64_t key, uint64_t due_ns);

/* Sends what has been put, as far as the network takes it. False if the connection has ended. */
bool load_connection_send(struct load_connection *c);

/* Takes the time at which the request that is answered next was due. */
uint64_t load_connection_take(struct load_connection *c);

#endif
