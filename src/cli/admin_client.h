/* A client of a running server's admin listener, for the commands `ctl` and `top`. */
#ifndef WEIR_CLI_ADMIN_CLIENT_H
#define WEIR_CLI_ADMIN_CLIENT_H

#include <jansson.h>

#include "cli/cli.h"
#include "cli/client_tls.h"
#include "cli/given_secret.h"
#include "cli/http_client.h"
#include "cli/secret_file.h"

#define ADMIN_ADDRESS "127.0.0.1:8082" /* default of --admin and WEIR_ADMIN */
#define ADMIN_TIMEOUT_MS 10000

/* The help of --admin and --secret-file. */
#define ADMIN_HELP                                                                                 \
    "the server's admin listener, with https:// before it if it speaks TLS, or unix:PATH; "        \
    "default "                                                                                     \
    "WEIR_ADMIN, " ADMIN_ADDRESS
#define ADMIN_SECRET_HELP                                                                          \
    "file with a secret of the server in its first line; default WEIR_ADMIN_SECRET, or the one "   \
    "that the server has made"

/* The values of --minutes, the time of a list of the keys that were denied most, and its help. */
extern const char *const admin_minutes[];
#define ADMIN_MINUTES_DEFAULT 2 /* the index of 15 */
#define ADMIN_MINUTES_HELP                                                                         \
    "the time for which the keys that were denied most are listed: 1, 5 or 15 minutes; default 15"

/* Writes the target that asks for n of these keys; 0: as many as the server chooses. */
void admin_put_top(char *target, size_t size, int minutes, uint64_t n);

/* A link to the admin listener with a secret in the part that browsers do not send: printf(3) with
 * "s" if it speaks TLS, otherwise "". */
#define ADMIN_LINK "http%s://%s/#secret=%s"

/*
 * Returns the address for a browser on the same machine: for 0.0.0.0 and [::], which stand for
 * every address of the machine or container, that of loopback, in the buffer.
 */
const char *admin_link_address(const char *address, char buffer[CLIENT_ADDRESS_MAX]);

struct admin_client {
    const struct cli_command *command; /* named in messages */
    struct http_peer peer;
    struct client_tls tls;
    char address[CLIENT_ADDRESS_MAX];
    struct given_secret given;
    struct secret_found found; /* the secret that the server has made, if no other is given */
};

/* The options of these commands; NULL: not given. */
struct admin_options {
    const char *admin;
    const char *secret_file;
    struct client_tls tls;
};

/*
 * Takes the address from --admin, otherwise from WEIR_ADMIN, otherwise ADMIN_ADDRESS. Takes the
 * secret from --secret-file, otherwise from WEIR_ADMIN_SECRET, otherwise from
 * WEIR_ADMIN_SECRETS: the first line that is not empty; otherwise the one that the server has made,
 * if it is on this machine. Returns CLI_OK, or the exit code after a message. The client must not
 * be moved.
 */
int admin_open(struct admin_client *c, const struct cli_command *command,
               const struct admin_options *options);

/* Reads the secret that the server has made again, unless another is given: a server that was
 * started anew has a new one. */
void admin_renew_secret(struct admin_client *c);

/*
 * Sends a request. Returns CLI_OK and a result with a status of 2xx; or an exit code, and writes to
 * `why` what went wrong: one line, safe for a terminal, without a line end. If `why` is NULL, it
 * is printed as a message of the command. The caller finishes the result in both cases.
 */
int admin_call(const struct admin_client *c, const struct http_call *call,
               struct http_result *result, struct buffer *why);

/*
 * Does the same, and parses the answer as JSON. The caller owns *out, which is NULL for an empty
 * answer. *status, if it is not NULL, is set to the status.
 */
int admin_call_json(const struct admin_client *c, const struct http_call *call, json_t **out,
                    int *status, struct buffer *why);

/* Makes a text safe for a terminal, and writes it to `why` or prints it. Returns CLI_FAILED. */
int admin_fail(const struct admin_client *c, struct weir_text text, struct buffer *why);

/* Return a member of an object that is a string, or a number; otherwise "" or 0. */
const char *json_text(const json_t *object, const char *name);
double json_number(const json_t *object, const char *name);

/* Prints messages about rules on standard error, each on a line of its own. */
void admin_tell_messages(const json_t *messages);

#endif
