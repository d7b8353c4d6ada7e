/*
 * weir check and weir ask: put one question to a running server, over HTTP or RESP, and print the
 * answer. Their exit status tells the verdict.
 *
 *   check.c       the two commands, their options, and where the server is
 *   check_http.c  the question as POST /v1/check or /v1/peek
 *   check_resp.c  the question as WEIR.CHECK, WEIR.PEEK or WEIR.ASK
 */
#ifndef WEIR_CLI_CHECK_CHECK_H
#define WEIR_CLI_CHECK_CHECK_H

#include <jansson.h>

#include "cli/cli.h"
#include "cli/client_tls.h"
#include "cli/given_secret.h"
#include "common/buffer.h"

#define CHECK_TIMEOUT_MS 10000

struct check {
    const struct cli_command *command;
    const char *resp; /* options as given; NULL: not given */
    const char *http;
    const char *secret_file;
    const char *tier;
    uint64_t cost; /* 0: the limit's own */
    uint64_t max_wait_ns;
    bool peek;
    bool json;
    bool verbose;
    char **words; /* check: LIMIT KEY...; ask: NAME=VALUE... */
    int count;
    bool by_attributes; /* ask */
    struct client_tls tls;
    char address[CLIENT_ADDRESS_MAX];
    struct given_secret secret;
};

/* Returns --max-wait in milliseconds, in which the server counts it, rounded up. */
static inline uint64_t check_max_wait_ms(const struct check *c)
{
    return c->max_wait_ns / WEIR_MILLISECOND + (c->max_wait_ns % WEIR_MILLISECOND != 0);
}

/*
 * Put the question. Return CLI_OK with the answer as an object in *said, which the caller owns; or
 * an exit code with what went wrong in `why`, which need not be safe for a terminal.
 */
int check_over_http(const struct check *c, json_t **said, struct buffer *why);
int check_over_resp(const struct check *c, json_t **said, struct buffer *why);

/* For a server that did not answer: adds what to try. Returns the exit code. */
int check_unanswered(const struct check *c, int e, const char *text, struct buffer *why);

/* For a secret that is missing, wrong or of another role: adds where it comes from. */
void check_put_access(const struct check *c, struct buffer *why);

#endif
