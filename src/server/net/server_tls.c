/*
 * The certificates of the listeners. There are two contexts of the same files: one for HTTP, which
 * names its protocol (ALPN), and one for the others. A thread that accepts a connection takes the
 * present one under a lock; the handshake that follows costs far more. A session keeps its context,
 * so that a renewal ends no connection.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "common/log.h"
#include "rules/file/config.h"
#include "server/net/worker.h"

struct server_tls {
    pthread_mutex_t reloading;
    pthread_mutex_t lock;            /* guards `contexts` */
    struct tls_context *contexts[2]; /* [1]: with ALPN */
};

bool server_speaks_tls(const struct server *server, unsigned listener)
{
    const struct server_options *o = &server->options;
    return o->tls.cert != NULL && o->tls.listener[listener] &&
           !listener_is_unix(o->listen[listener]);
}

struct tls_session *server_tls_session(struct server *server, const struct protocol *protocol)
{
    struct server_tls *tls = server->tls;
    (void)pthread_mutex_lock(&tls->lock);
    struct tls_context *context = tls_context_ref(tls->contexts[protocol->alpn]);
    (void)pthread_mutex_unlock(&tls->lock);
    struct tls_session *session = tls_session_create(context, NULL);
    tls_context_unref(context);
    return session;
}

static int read_context(const struct server_tls_options *o, bool alpn, struct tls_context **context,
                        struct weir_error *error)
{
    static const char *const http[] = {"http/1.1", NULL};
    static const enum tls_client_cert kinds[CLIENT_CERTS] = {
        [CLIENT_CERT_NONE] = TLS_CLIENT_CERT_NONE,
        [CLIENT_CERT_OPTIONAL] = TLS_CLIENT_CERT_OPTIONAL,
        [CLIENT_CERT_REQUIRED] = TLS_CLIENT_CERT_REQUIRED};
    const struct tls_options options = {.server = true,
                                        .ca = o->client_ca,
                                        .cert = o->cert,
                                        .key = o->key != NULL ? o->key : o->cert,
                                        .client_cert = kinds[o->client_cert],
                                        .alpn = alpn ? http : NULL};
    return tls_context_create(context, &options, error);
}

/* Reads the files into both contexts. */
static int read_contexts(const struct server_tls_options *o, struct tls_context *contexts[2],
                         struct weir_error *error)
{
    contexts[0] = contexts[1] = NULL;
    int e = read_context(o, false, &contexts[0], error);
    e = e != 0 ? e : read_context(o, true, &contexts[1], error);
    if (e != 0) {
        tls_context_unref(contexts[0]);
    }
    return e;
}

int server_tls_open(struct server *server, struct weir_error *error)
{
    if (server->options.tls.cert == NULL) {
        return 0;
    }
    server->tls = calloc(1, sizeof *server->tls);
    if (server->tls == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for TLS");
    }
    (void)pthread_mutex_init(&server->tls->reloading, NULL);
    (void)pthread_mutex_init(&server->tls->lock, NULL);
    return read_contexts(&server->options.tls, server->tls->contexts, error);
}

void server_tls_close(struct server *server)
{
    if (server->tls != NULL) {
        tls_context_unref(server->tls->contexts[0]);
        tls_context_unref(server->tls->contexts[1]);
        (void)pthread_mutex_destroy(&server->tls->reloading);
        (void)pthread_mutex_destroy(&server->tls->lock);
        free(server->tls);
        server->tls = NULL;
    }
}

static void publish(struct server_tls *tls, struct tls_context *contexts[2])
{
    for (int i = 0; i < 2; i++) {
        (void)pthread_mutex_lock(&tls->lock);
        struct tls_context *old = tls->contexts[i];
        tls->contexts[i] = contexts[i];
        (void)pthread_mutex_unlock(&tls->lock);
        tls_context_unref(old);
    }
}

static int renew(struct server *server, struct weir_error *error)
{
    struct tls_context *contexts[2];
    if (!tls_context_changed(server->tls->contexts[1])) {
        return 0;
    }
    int e = read_contexts(&server->options.tls, contexts, error);
    if (e != 0) {
        (void)fetch_add(&server->renewals_failed, 1);
        LOG(LEVEL_ERROR, "the old certificate stays", LOG_STRING("why", error->text));
        return e;
    }
    publish(server->tls, contexts);
    (void)fetch_add(&server->renewals, 1);
    LOG(LEVEL_INFO, "certificate renewed", LOG_STRING("file", server->options.tls.cert));
    return 0;
}

int server_tls_reload(struct server *server, struct weir_error *error)
{
    if (server->tls == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&server->tls->reloading);
    int e = renew(server, error);
    (void)pthread_mutex_unlock(&server->tls->reloading);
    return e;
}

int64_t server_tls_expires(const struct server *server)
{
    struct server_tls *tls = server->tls;
    if (tls == NULL) {
        return 0;
    }
    (void)pthread_mutex_lock(&tls->lock);
    int64_t s = tls_context_expires(tls->contexts[0]);
    (void)pthread_mutex_unlock(&tls->lock);
    return s;
}

/* Warns of listeners that other machines can reach without TLS. That of metrics has no secrets and
 * shows no keys. */
void server_tls_warn(const struct server *server)
{
    char address[SERVER_ADDRESS_MAX];
    for (unsigned i = 0; i < PROTOCOL_METRICS; i++) {
        const char *at = server_address(server, (enum server_protocol)i, address, sizeof address);
        if (strcmp(at, "off") != 0 && !listener_is_unix(at) && !server_speaks_tls(server, i) &&
            !server->workers[listener_is_for_clients(i) ? 0 : server->threads]
                 .listeners[i]
                 .loopback) {
            LOG(LEVEL_WARNING,
                "other machines can reach a listener that does not speak TLS: keys and secrets can "
                "be read on the way; expected --tls-cert FILE or server.tls, or a proxy on this "
                "machine that speaks it",
                LOG_STRING("listener", protocol_of(i)->name), LOG_STRING("address", at));
        }
    }
}
