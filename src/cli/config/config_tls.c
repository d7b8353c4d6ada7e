#include "cli/config/config_tls.h"

#include <stdlib.h>

#include "rules/value/address.h"
#include "tls/tls.h"

/* ---- the certificate ---- */

static void check_files(const struct config *config, const char *path, struct problems *problems)
{
    const struct server_tls_config *tls = &config->server.tls;
    char *cert = config_beside(config, tls->cert);
    char *key = tls->key.len > 0 ? config_beside(config, tls->key) : NULL;
    char *ca = tls->client_ca.len > 0 ? config_beside(config, tls->client_ca) : NULL;
    struct tls_options options = {.server = true,
                                  .cert = cert,
                                  .key = key != NULL ? key : cert,
                                  .ca = ca,
                                  .client_cert =
                                      ca != NULL ? TLS_CLIENT_CERT_REQUIRED : TLS_CLIENT_CERT_NONE};
    struct tls_context *context = NULL;
    struct weir_error error;
    if (tls_context_create(&context, &options, &error) != 0) {
        warning(problems, (struct place){path, 0, 0}, "the certificate cannot be used: %s",
                error.text);
    }
    tls_context_unref(context);
    free(cert);
    free(key);
    free(ca);
}

/* ---- listeners ---- */

/* Returns whether other machines may reach an address. A name may mean any address. */
static bool is_exposed(struct weir_text listen)
{
    static const uint8_t six[16] = {[15] = 1}; /* ::1 */
    struct address address;
    if (text_is(listen, "off") || text_starts(listen, "unix:") ||
        text_starts(listen, "localhost:")) {
        return false;
    }
    return address_parse(listen, &address, NULL) != 0 ||
           (address.family == 4 ? address.bytes[0] != 127
                                : memcmp(address.bytes, six, sizeof six) != 0);
}

static bool speaks_tls(const struct server_tls_config *tls, const char *listener)
{
    bool found = tls->listeners.count == 0;
    for (size_t i = 0; i < tls->listeners.count; i++) {
        found = found || text_is(tls->listeners.at[i], listener);
    }
    return tls->cert.len > 0 && found;
}

void config_check_tls(const struct config *config, const char *path, struct problems *problems)
{
    const struct server_config *server = &config->server;
    const struct {
        const char *name;
        struct weir_text listen;
    } listeners[] = {{"http", server->http},
                     {"resp", server->resp},
                     {"grpc", server->grpc},
                     {"admin", server->admin}};
    for (size_t i = 0; i < sizeof listeners / sizeof listeners[0]; i++) {
        if (is_exposed(listeners[i].listen) && !speaks_tls(&server->tls, listeners[i].name)) {
            warning(problems, config->server_place,
                    "found %s at '%.*s' without TLS, where other machines can read keys and "
                    "secrets on the way; expected 'tls', or a proxy on this machine that speaks it",
                    listeners[i].name, TEXT_ARGS(listeners[i].listen));
        }
    }
    if (server->tls.cert.len > 0) {
        check_files(config, path, problems);
    }
}
