/*
 * The certificates of the listeners. Each listener has a context of the same files, because each
 * names its own protocol (ALPN). A thread that accepts a connection takes the
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
#include "server/loop/worker.h"

struct server_tls {
    pthread_mutex_t reloading;
    pthread_mutex_t lock; /* guards `contexts` */
    struct tls_context *contexts[PROTOCOLS];
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
    struct tls_context *context = tls_context_ref(tls->contexts[protocol->kind]);
    (void)pthread_mutex_unlock(&tls->lock);
    struct tls_session *session = tls_session_create(context, NULL);
    tls_context_unref(context);
    return session;
}

static int read_context(const struct server_options *o, unsigned listener,
                        struct tls_context **context, struct weir_error *error)
{
    static const enum tls_client_cert kinds[CLIENT_CERTS] = {
        [CLIENT_CERT_NONE] = TLS_CLIENT_CERT_NONE,
        [CLIENT_CERT_OPTIONAL] = TLS_CLIENT_CERT_OPTIONAL,
        [CLIENT_CERT_REQUIRED] = TLS_CLIENT_CERT_REQUIRED};
    const struct protocol *spoken =
        o->speaks[listener] != NULL ? o->speaks[listener] : protocol_of(listener);
    const struct tls_options options = {.server = true,
                                        .ca = o->tls.client_ca,
                                        .cert = o->tls.cert,
                                        .key = o->tls.key != NULL ? o->tls.key : o->tls.cert,
                                        .client_cert = kinds[o->tls.client_cert],
                                        .alpn = spoken->alpn[0] != NULL ? spoken->alpn : NULL};
    return tls_context_create(context, &options, error);
}

static void release(struct tls_context *contexts[PROTOCOLS])
{
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        tls_context_unref(contexts[i]);
        contexts[i] = NULL;
    }
}

/* Reads the files into all contexts, or into none. */
static int read_contexts(const struct server_options *o, struct tls_context *contexts[PROTOCOLS],
                         struct weir_error *error)
{
    int e = 0;
    memset(contexts, 0, PROTOCOLS * sizeof contexts[0]);
    for (unsigned i = 0; e == 0 && i < PROTOCOLS; i++) {
        e = read_context(o, i, &contexts[i], error);
    }
    if (e != 0) {
        release(contexts);
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
    return read_contexts(&server->options, server->tls->contexts, error);
}

void server_tls_close(struct server *server)
{
    if (server->tls != NULL) {
        release(server->tls->contexts);
        (void)pthread_mutex_destroy(&server->tls->reloading);
        (void)pthread_mutex_destroy(&server->tls->lock);
        free(server->tls);
        server->tls = NULL;
    }
}

/* Puts the new contexts in the place of the old ones, and releases those. */
static void publish(struct server_tls *tls, struct tls_context *contexts[PROTOCOLS])
{
    struct tls_context *old[PROTOCOLS];
    (void)pthread_mutex_lock(&tls->lock);
    memcpy(old, tls->contexts, sizeof old);
    memcpy(tls->contexts, contexts, sizeof old);
    (void)pthread_mutex_unlock(&tls->lock);
    release(old);
}

static int renew(struct server *server, struct weir_error *error)
{
    struct tls_context *contexts[PROTOCOLS];
    if (!tls_context_changed(server->tls->contexts[0])) {
        return 0;
    }
    int e = read_contexts(&server->options, contexts, error);
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
