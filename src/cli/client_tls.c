#include "cli/client_tls.h"

#include <stdlib.h>

#include "rules/value/address.h"

struct scheme {
    const char *name;
    bool tls;
};

static const struct scheme schemes[] = {
    {"https://", true}, {"rediss://", true}, {"http://", false}, {"redis://", false}};

static int open_context(struct client_tls *tls, const struct cli_command *command)
{
    const char *variable = getenv("WEIR_TLS_CA");
    const char *ca = variable != NULL && variable[0] != 0 ? variable : NULL;
    struct tls_options options = {.ca = tls->ca != NULL ? tls->ca : ca,
                                  .cert = tls->cert,
                                  .key = tls->key != NULL ? tls->key : tls->cert};
    struct weir_error error;
    if (tls_context_create(&tls->context, &options, &error) != 0) {
        return cli_complain(command, "%s", error.text);
    }
    return CLI_OK;
}

/* Finds the name that the certificate must have: the option, otherwise the host of the address. */
static int find_name(struct client_tls *tls, const struct cli_command *command, const char *address)
{
    const char *port;
    if (tls->name != NULL) {
        (void)snprintf(tls->server, sizeof tls->server, "%s", tls->name);
        return CLI_OK;
    }
    return host_split(address, tls->server, sizeof tls->server, &port)
               ? CLI_OK
               : cli_complain(command, "found '%s', expected ADDRESS:PORT after the scheme",
                              address);
}

int client_tls_open(struct client_tls *tls, const struct cli_command *command, const char *given,
                    char address[CLIENT_ADDRESS_MAX])
{
    size_t i = 0;
    const size_t n = sizeof schemes / sizeof schemes[0];
    while (i < n && strncmp(given, schemes[i].name, strlen(schemes[i].name)) != 0) {
        i++;
    }
    const char *rest = i < n ? given + strlen(schemes[i].name) : given;
    bool asked = tls->ca != NULL || tls->cert != NULL || tls->key != NULL || tls->name != NULL;
    size_t len = strlen(rest);
    len -= i < n && len > 0 && rest[len - 1] == '/';
    if (len >= CLIENT_ADDRESS_MAX) {
        return cli_complain(command, "found an address of %zu bytes, expected fewer than %d", len,
                            CLIENT_ADDRESS_MAX);
    }
    if (!port_complete((struct weir_text){rest, len}, address)) {
        memcpy(address, rest, len);
        address[len] = 0;
    }
    if (i == n || !schemes[i].tls) {
        return !asked ? CLI_OK
                      : cli_complain(command,
                                     "found an option of TLS for '%s', expected an address that "
                                     "begins with https:// or rediss://",
                                     given);
    }
    int code = find_name(tls, command, address);
    return code == CLI_OK ? open_context(tls, command) : code;
}
