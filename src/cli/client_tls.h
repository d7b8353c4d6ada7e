/*
 * TLS of the commands that talk to a server. An address that begins with https:// or rediss:// asks
 * for it; the server's certificate is always verified.
 */
#ifndef WEIR_CLI_CLIENT_TLS_H
#define WEIR_CLI_CLIENT_TLS_H

#include "cli/cli.h"
#include "tls/tls.h"

#define CLIENT_ADDRESS_MAX 512

/* The values of the options for TLS; NULL: not given. Starts zeroed. */
struct client_tls {
    const char *ca;
    const char *cert;
    const char *key;
    const char *name;
    struct tls_context *context;     /* NULL: plain text */
    char server[CLIENT_ADDRESS_MAX]; /* the name that the certificate must have */
};

/* The rows of the options, for a command whose settings have a struct client_tls. */
#define CLIENT_TLS_ROWS(settings, member)                                                          \
    {"--tls-ca", "FILE",                                                                           \
     "CAs of an https:// or rediss:// server; default WEIR_TLS_CA, or those of the system",        \
     cli_read_text, .to = offsetof(settings, member.ca)},                                          \
        {"--tls-cert", "FILE", "certificate to show to such a server; default none",               \
         cli_read_text, .to = offsetof(settings, member.cert)},                                    \
        {"--tls-key", "FILE", "key of that certificate; default in the file of the certificate",   \
         cli_read_text, .to = offsetof(settings, member.key)},                                     \
    {                                                                                              \
        "--tls-name", "NAME", "name that the server's certificate must have; default the address", \
            cli_read_text, .to = offsetof(settings, member.name)                                   \
    }

/*
 * Reads "https://127.0.0.1:8082", "http://...", "rediss://...", "redis://..." or an address without
 * a scheme. Writes the address without scheme and final slash to `address`, and opens the context
 * if the scheme asks for TLS. Returns CLI_OK, or an exit code after a message. The context lives
 * until the end of the process.
 */
int client_tls_open(struct client_tls *tls, const struct cli_command *command, const char *given,
                    char address[CLIENT_ADDRESS_MAX]);

#endif
