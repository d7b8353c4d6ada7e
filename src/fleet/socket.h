/*
 * The connection of a link. Sockets are plain descriptors that libuv watches, not its streams:
 * bytes go straight from the client's buffer to the kernel, a partial write needs no copy, and the
 * next address of a name can be tried at once, by the same code for TCP and unix sockets.
 *
 *     NEW -> RESOLVING -> CONNECTING -> SECURING -> UP      and from each of them to CLOSED, once
 *
 * SECURING is the handshake of TLS. Without TLS there is neither this state nor a session.
 */
#ifndef WEIR_FLEET_SOCKET_H
#define WEIR_FLEET_SOCKET_H

#include "fleet/fleet_thread.h"
#include "tls/tls.h"

#define FLEET_HOST_MAX 256

enum socket_state { NEW, RESOLVING, CONNECTING, SECURING, UP, CLOSED };

struct fleet_socket {
    struct fleet_thread *thread;
    struct client_link *link; /* NULL: the socket is closed */
    struct fleet_socket *next, **from;
    struct fleet_socket *next_listed;
    bool listed;
    bool blocked; /* waits for the kernel to take more */
    enum socket_state state;
    int fd;
    uv_poll_t *poll;
    struct tls_session *tls; /* from SECURING on, with TLS */
    struct buffer sealed;    /* with TLS: ciphertext that the kernel has not taken */
    uint64_t give_up_ns;     /* until UP: end of the whole attempt */
    uint64_t step_ns;        /* until UP: end of the attempt with this address */
    char host[FLEET_HOST_MAX];
    unsigned port;
    struct lookup *lookup;      /* pending lookup of its host */
    struct addrinfo *addresses; /* result of the lookup; freed by uv_freeaddrinfo() */
    struct addrinfo *address;   /* next address to try */
};

/* ---- socket.c ---- */

/* Lists the socket for the next fleet_sockets_work(). */
void socket_list(struct fleet_socket *s);
/* Watches the descriptor: for bytes, and if it is blocked also for room in the kernel. */
void socket_watch(struct fleet_socket *s, bool blocked);
/* Handles an event of the descriptor. */
void socket_event(uv_poll_t *poll, int status, int events);
/* Keeps the cause for the message about the store. */
void socket_note_reason(struct fleet_socket *s, const char *reason);
/* Closes the descriptor and ends its TLS, to try another address. */
void socket_close_descriptor(struct fleet_socket *s);
/* Closes the socket and tells the client. */
void socket_end(struct fleet_socket *s, uint64_t now_ns);

/* ---- socket_connect.c ---- */

/* Begins to connect. Returns false if it cannot. */
bool socket_begin(struct fleet_socket *s, uint64_t now_ns);
/* Handles the end of connect(). */
void socket_connected(struct fleet_socket *s, uint64_t now_ns);
/* Tries the next address; ends the socket if there is none. */
void socket_connect_next(struct fleet_socket *s, uint64_t now_ns);
/* The connection can be used: tells the client, with its password. */
void socket_up(struct fleet_socket *s, uint64_t now_ns);
/* Ends a pending lookup, and forgets its addresses. */
void socket_forget_names(struct fleet_socket *s);

/* ---- socket_tls.c ---- */

/* Begins the handshake of a connected socket. */
void socket_secure(struct fleet_socket *s, uint64_t now_ns);
/* Decrypts bytes that were read and passes them on. Returns false if the socket is closed, or
 * connects to another address. */
bool socket_unseal(struct fleet_socket *s, struct weir_text cipher, uint64_t now_ns);
/* Encrypts what the client has to send, if the kernel has taken all that was encrypted before.
 * Returns the bytes for the kernel. */
struct weir_text socket_seal(struct fleet_socket *s);
/* Says goodbye, as far as the kernel takes it at once, and frees the session. */
void socket_end_tls(struct fleet_socket *s);

#endif
