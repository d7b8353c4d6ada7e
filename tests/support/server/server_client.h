/*
 * A server in this process with a clock that the test sets, and a client that blocks. Any thread
 * may use them; an error ends the program.
 */
#ifndef WEIR_TESTS_SUPPORT_SERVER_CLIENT_H
#define WEIR_TESTS_SUPPORT_SERVER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/loop/server.h"

/* ---- the server ---- */

struct server_store; /* support/server/server_store.h */

struct server_world {
    struct server server;
    uint64_t now_ns;
    char address[128];          /* of RESP */
    struct server_store *store; /* decides shared limits; NULL: there is none */
};

/* Returns the options of a server that listens for RESP on a free port of the loopback. */
struct server_options server_world_options(void);

void server_world_start(struct server_world *w, const char *rules,
                        const struct server_options *options);
/* Does the same with a store, whose clock is the server's. */
void server_world_start_shared(struct server_world *w, const char *rules,
                               const struct server_options *options, struct server_store *store);
void server_world_stop(struct server_world *w);

/* Sets the time; with a store, in whole microseconds. */
void server_world_set_time(struct server_world *w, uint64_t now_ns);

/* Returns how many files this process has open. */
unsigned server_open_files(void);

/* ---- the client ---- */

struct server_client {
    int fd;
    char *at; /* received bytes that have not been read as a reply */
    size_t begin, end, size;
    char reply[4096];
};

/* "ADDRESS:PORT" or "unix:PATH". */
void server_connect(struct server_client *c, const char *address);

/* Does the same as another client: from 127.0.0.`from`. */
void server_connect_from(struct server_client *c, const char *address, unsigned from);
void server_disconnect(struct server_client *c);

/* Sends raw bytes. Returns false if the server has closed the connection. */
bool server_send(struct server_client *c, const char *bytes, size_t len);

/* Sends words that are separated by spaces as an array of bulk strings; "''" is an empty one. */
bool server_say(struct server_client *c, const char *words);
size_t server_pack(const char *words, char *bytes, size_t size);

/*
 * Returns the next reply: +PONG, -ERR text, 12, 'bulk', null, [1 'two'], {'key' 1, 'other' 2};
 * "end" if the server has closed the connection, "reset" if it has reset it. Valid until the next
 * call.
 */
const char *server_reply(struct server_client *c);

/* Sends the words and returns the reply. */
const char *server_ask(struct server_client *c, const char *words);
/* The same for arguments that may have spaces in them; NULL after the last. */
const char *server_ask_array(struct server_client *c, const char *const *argv);
#define SERVER_ASK(client, ...) server_ask_array(client, (const char *const[]){__VA_ARGS__, NULL})

/* Sends each line and compares the reply; "..." at its end stands for any text. */
struct server_line {
    const char *say;
    const char *hear;
};
void server_talk(struct server_client *c, const struct server_line *lines, size_t n);
#define SERVER_TALK(client, ...)                                                                   \
    server_talk((client), (const struct server_line[]){__VA_ARGS__},                               \
                sizeof((const struct server_line[]){__VA_ARGS__}) / sizeof(struct server_line))

#endif
