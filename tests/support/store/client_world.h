/*
 * A store client whose loop is the test: connections are bytes in memory, and time passes when the
 * test says so. Sockets are numbered in the order in which their links first connected.
 */
#ifndef WEIR_TESTS_SUPPORT_CLIENT_WORLD_H
#define WEIR_TESTS_SUPPORT_CLIENT_WORLD_H

#include "common/buffer.h"
#include "redis/breaker.h"
#include "redis/client.h"
#include "shared/core/script.h"
#include "wire/resp.h"

#define WORLD_SOCKETS 8
#define WORLD_MS 1000000ull
#define WORLD_DEADLINE (5 * WORLD_MS)

struct client_world;

enum world_state { WORLD_CLOSED, WORLD_CONNECTING, WORLD_UP };

struct world_socket {
    struct client_link *link;
    enum world_state state;
    unsigned attempts;
    unsigned closed; /* how often the client closed it */
    bool woken;
    unsigned wakes;
    char host[256];
    unsigned port;
    struct buffer sent; /* bytes that the client has sent and the test has not read */
};

struct client_world {
    struct client *client;
    struct client_options options;
    struct store_url url;
    struct client_metrics metrics;
    struct weir_text password;
    uint64_t now;
    struct world_socket sockets[WORLD_SOCKETS];
    unsigned count;
    bool inside; /* a function of the driver is running, or `done` must not be called */
};

/* A call and its outcome. */
struct world_call {
    struct client_world *world;
    unsigned done; /* how often `done` was called */
    enum client_end end;
    bool has_reply;
    char type;
    enum store_refusal refusal;
    int64_t integer;
    uint64_t at;
};

/* Starts a world. Worlds may share `breakers`; with NULL the client makes and frees its own. */
void world_start(struct client_world *w, const char *url, struct breakers *breakers);
void world_prepare(struct client_world *w, const char *url, struct breakers *breakers);
void world_create(struct client_world *w); /* after world_prepare() and changes of options */
void world_stop(struct client_world *w);

/* world_tick() calls client_tick() now. world_pass() lets time pass and calls it at each time that
 * is due on the way. */
void world_tick(struct client_world *w);
void world_pass(struct client_world *w, uint64_t ns);

/* Calls client_call() for the key and returns its result. deadline 0 means the usual one. */
int world_call(struct client_world *w, struct world_call *call, const char *key, uint64_t deadline);

/* Completes the connection and answers the greeting of a client without a password. */
void world_greet(struct client_world *w, unsigned i);

/* What a client sends as a probe (questions.c), and the one that writes to the key k. */
#define WORLD_PROBE "EVAL return K "
#define WORLD_PROBE_OF_K WORLD_PROBE "1 k"
void world_up(struct client_world *w, unsigned i);
bool world_say(struct client_world *w, unsigned i, const char *bytes);
bool world_say_bytes(struct client_world *w, unsigned i, struct weir_text bytes);
void world_down(struct client_world *w, unsigned i);
/* Moves the bytes that the client has to send into `sent`. */
void world_flush(struct client_world *w, unsigned i);
/* Returns the next command that the client sent, as words separated by spaces; "" if there is none.
 * Words of more than 32 bytes (texts and hashes of scripts) are cut to their first 8. */
const char *world_heard(struct client_world *w, unsigned i);
/* Skips the next n commands, which must have been sent. */
void world_pass_over(struct client_world *w, unsigned i, unsigned n);

#endif
