/* The admin listener of a running server, as the commands `ctl` and `top` see it. */
#ifndef WEIR_CLI_ADMIN_CLIENT_H
#define WEIR_CLI_ADMIN_CLIENT_H

#include <jansson.h>

#include "cli/cli.h"
#include "cli/http_client.h"

#define ADMIN_ADDRESS "127.0.0.1:8082" /* without --admin and WEIR_ADMIN */
#define ADMIN_TIMEOUT_MS 10000

struct admin_client {
    const struct cli_command *command; /* for what is said */
    struct http_peer peer;
    const char *source; /* where the secret is from; NULL: there is none */
    char secret[HTTP_CLIENT_SECRET_MAX + 1];
};

/*
 * The address from --admin, else WEIR_ADMIN; the secret from --secret-file, else WEIR_ADMIN_SECRET
 * or WEIR_ADMIN_SECRETS: the first line of it that is not empty. Both arguments may be NULL.
 * CLI_OK, or the exit code after a complaint.
 */
int admin_open(struct admin_client *c, const struct cli_command *command, const char *address,
               const char *secret_file);

/* CLI_OK and a result with a status of 2xx, or an exit code after a complaint. */
int admin_call(const struct admin_client *c, const struct http_call *call,
               struct http_result *result);

/* The same with what a server said: *out is the caller's, NULL if it said nothing. */
int admin_call_json(const struct admin_client *c, const struct http_call *call, json_t **out);
int admin_get_json(const struct admin_client *c, const char *target, json_t **out);

/* Why a call did not succeed, in one harmless line without a line end. */
void admin_explain_error(const struct admin_client *c, const struct weir_error *error,
                         struct buffer *out);
void admin_explain_status(const struct admin_client *c, const struct http_response *response,
                          struct buffer *out);

/* Messages about rules on standard error, a line each. */
void admin_tell_messages(const json_t *messages);

/* "weir ctl: " and the text and a line end on standard error. */
void admin_say(const struct admin_client *c, const struct buffer *text);

#endif
