#include "tls/tls_context.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/atomic.h"
#include "base/error.h"

#if OPENSSL_VERSION_MAJOR < 3
#error "weir needs OpenSSL 3"
#endif

#define ALPN_MAX 64 /* bytes of ALPN in the form that TLS sends */
#define CAUSE_MAX 160

enum { CA, CERT, KEY, FILES };

/* Identifies the state of a file: a changed file has another stamp. All zero: there is no file. */
struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
};

struct tls_context {
    SSL_CTX *ssl;
    uint64_t users;
    bool server;
    enum tls_client_cert client_cert;
    char *paths[FILES];           /* NULL: not given */
    struct stamp stamps[FILES];   /* taken before the files were read */
    unsigned char alpn[ALPN_MAX]; /* each protocol with its length before it */
    unsigned alpn_len;
};

/* ---- errors ---- */

void tls_cause(char *text, size_t size)
{
    unsigned long code = ERR_peek_error();
    const char *reason = ERR_SYSTEM_ERROR(code) ? NULL : ERR_reason_error_string(code);
    if (ERR_SYSTEM_ERROR(code)) {
        errno = ERR_GET_REASON(code);
        (void)snprintf(text, size, "%m");
    } else if (reason != NULL) {
        (void)snprintf(text, size, "%s", reason);
    } else {
        (void)snprintf(text, size, "error %lx of OpenSSL", code);
    }
    ERR_clear_error();
}

/* Reports a file that OpenSSL does not take. */
static int refuse(struct weir_error *error, const char *path, const char *what)
{
    char cause[CAUSE_MAX];
    tls_cause(cause, sizeof cause);
    return fail(error, WEIR_EINVAL, "%s: %s: %s", path, what, cause);
}

/* ---- files ---- */

static struct stamp take_stamp(const char *path)
{
    struct stat s;
    if (path == NULL || stat(path, &s) != 0) {
        return (struct stamp){0};
    }
    return (struct stamp){s.st_dev, s.st_ino, s.st_size, s.st_mtim, s.st_ctim};
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_stamp(const struct stamp *a, const struct stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           same_time(a->modified, b->modified) && same_time(a->changed, b->changed);
}

bool tls_context_changed(const struct tls_context *c)
{
    for (int i = 0; i < FILES; i++) {
        struct stamp now = take_stamp(c->paths[i]);
        if (!same_stamp(&now, &c->stamps[i])) {
            return true;
        }
    }
    return false;
}

/* Opens a file to report why it cannot be read. OpenSSL's own texts do not always say so. */
static int check_readable(const char *path, struct weir_error *error)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return fail_errno(error, "cannot be read", path);
    }
    (void)fclose(file);
    return 0;
}

static int read_ca(struct tls_context *c, struct weir_error *error)
{
    const char *path = c->paths[CA];
    struct stat s;
    if (path == NULL) {
        return c->server || SSL_CTX_set_default_verify_paths(c->ssl) == 1
                   ? 0
                   : refuse(error, X509_get_default_cert_dir(), "not a folder of CA certificates");
    }
    if (stat(path, &s) == 0 && S_ISDIR(s.st_mode)) {
        return SSL_CTX_load_verify_dir(c->ssl, path) == 1
                   ? 0
                   : refuse(error, path, "not a folder of CA certificates");
    }
    int e = check_readable(path, error);
    if (e != 0) {
        return e;
    }
    if (SSL_CTX_load_verify_file(c->ssl, path) != 1) {
        return refuse(error, path, "expected CA certificates in PEM form");
    }
    if (c->server) { /* tells clients which certificates are of use here */
        SSL_CTX_set_client_CA_list(c->ssl, SSL_load_client_CA_file(path));
    }
    return 0;
}

static int read_own(struct tls_context *c, struct weir_error *error)
{
    const char *cert = c->paths[CERT];
    const char *key = c->paths[KEY];
    if (cert == NULL) {
        return 0;
    }
    int e = check_readable(cert, error);
    e = e != 0 ? e : check_readable(key, error);
    if (e != 0) {
        return e;
    }
    if (SSL_CTX_use_certificate_chain_file(c->ssl, cert) != 1) {
        return refuse(error, cert, "expected a certificate in PEM form");
    }
    /* A key that does not fit is refused here, because the certificate is there already. */
    if (SSL_CTX_use_PrivateKey_file(c->ssl, key, SSL_FILETYPE_PEM) != 1) {
        return refuse(error, key, "expected the certificate's key, in PEM form, not encrypted");
    }
    return 0;
}

/* ---- settings ---- */

/* Called for an encrypted key. Without it OpenSSL asks at the terminal. */
static int no_password(char *to, int size, int writing, void *arg)
{
    (void)to;
    (void)size;
    (void)writing;
    (void)arg;
    return 0;
}

/* Chooses the server's first protocol that the client offers. */
static int choose_alpn(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_len,
                       const unsigned char *offered, unsigned offered_len, void *arg)
{
    const struct tls_context *c = arg;
    unsigned char *found;
    (void)ssl;
    if (SSL_select_next_proto(&found, chosen_len, c->alpn, c->alpn_len, offered, offered_len) !=
        OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *chosen = found;
    return SSL_TLSEXT_ERR_OK;
}

static int set_alpn(struct tls_context *c, const char *const *protocols, struct weir_error *error)
{
    for (; protocols != NULL && *protocols != NULL; protocols++) {
        size_t len = strlen(*protocols);
        if (len == 0 || len >= sizeof c->alpn - c->alpn_len) {
            return fail(error, WEIR_EINVAL,
                        "found the protocol \"%s\" for ALPN, expected 1 to %d "
                        "bytes for all of them",
                        *protocols, ALPN_MAX - 1);
        }
        c->alpn[c->alpn_len] = (unsigned char)len;
        memcpy(c->alpn + c->alpn_len + 1, *protocols, len);
        c->alpn_len += 1 + (unsigned)len;
    }
    if (c->alpn_len == 0) {
        return 0;
    }
    if (c->server) {
        SSL_CTX_set_alpn_select_cb(c->ssl, choose_alpn, c);
    } else if (SSL_CTX_set_alpn_protos(c->ssl, c->alpn, c->alpn_len) != 0) {
        return fail(error, WEIR_ENOMEM, "out of memory for TLS");
    }
    return 0;
}

static void set_verification(const struct tls_context *c)
{
    int mode = SSL_VERIFY_PEER;
    if (c->server && c->client_cert == TLS_CLIENT_CERT_NONE) {
        mode = SSL_VERIFY_NONE;
    } else if (c->server && c->client_cert == TLS_CLIENT_CERT_REQUIRED) {
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    }
    SSL_CTX_set_verify(c->ssl, mode, NULL);
}

/*
 * Idle connections give their buffers back. Only the certificates of `cert` are sent, not the CA of
 * the clients' certificates as well. A server keeps no sessions; the one ticket that a client gets
 * holds all that is needed to resume, and ends with this context.
 */
static int set_protocol(const struct tls_context *c, struct weir_error *error)
{
    SSL_CTX *ssl = c->ssl;
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_default_passwd_cb(ssl, no_password);
    if (SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_cipher_list(ssl, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1 ||
        SSL_CTX_set_num_tickets(ssl, 1) != 1 || SSL_CTX_set_max_early_data(ssl, 0) != 1 ||
        SSL_CTX_set_session_id_context(ssl, (const unsigned char *)"weir", 4) != 1) {
        char cause[CAUSE_MAX];
        tls_cause(cause, sizeof cause);
        return fail(error, WEIR_EINVAL, "OpenSSL refuses TLS 1.2 and later: %s", cause);
    }
    return 0;
}

/* ---- contexts ---- */

static int check_options(const struct tls_options *o, struct weir_error *error)
{
    if ((o->cert == NULL) != (o->key == NULL)) {
        return fail(error, WEIR_EINVAL, "TLS: found %s without %s, expected both",
                    o->cert != NULL ? "a certificate" : "a key",
                    o->cert != NULL ? "its key" : "its certificate");
    }
    if (o->server && o->cert == NULL) {
        return fail(error, WEIR_EINVAL, "TLS: a server needs a certificate and its key");
    }
    if (o->server && o->client_cert != TLS_CLIENT_CERT_NONE && o->ca == NULL) {
        return fail(error, WEIR_EINVAL, "TLS: client certificates need a CA to verify them with");
    }
    return 0;
}

/* Threads may still use OpenSSL when the program calls exit(), so that it must not clean up. */
static void start_openssl(void)
{
    (void)OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
}

static struct tls_context *allocate(const struct tls_options *o)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *paths[FILES] = {[CA] = o->ca, [CERT] = o->cert, [KEY] = o->key};
    struct tls_context *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return NULL;
    }
    (void)pthread_once(&once, start_openssl);
    ERR_clear_error();
    c->users = 1;
    c->server = o->server;
    c->client_cert = o->client_cert;
    c->ssl = SSL_CTX_new(o->server ? TLS_server_method() : TLS_client_method());
    bool copied = true;
    for (int i = 0; i < FILES; i++) {
        c->paths[i] = paths[i] != NULL ? strdup(paths[i]) : NULL;
        copied = copied && (c->paths[i] != NULL || paths[i] == NULL);
        c->stamps[i] = take_stamp(c->paths[i]);
    }
    if (c->ssl == NULL || !copied) {
        tls_context_unref(c);
        return NULL;
    }
    return c;
}

int tls_context_create(struct tls_context **context, const struct tls_options *options,
                       struct weir_error *error)
{
    *context = NULL;
    int e = check_options(options, error);
    if (e != 0) {
        return e;
    }
    struct tls_context *c = allocate(options);
    if (c == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for TLS");
    }
    set_verification(c);
    e = set_protocol(c, error);
    e = e != 0 ? e : set_alpn(c, options->alpn, error);
    e = e != 0 ? e : read_ca(c, error);
    e = e != 0 ? e : read_own(c, error);
    if (e != 0) {
        tls_context_unref(c);
        return e;
    }
    *context = c;
    return 0;
}

struct tls_context *tls_context_ref(struct tls_context *c)
{
    (void)fetch_add(&c->users, 1);
    return c;
}

void tls_context_unref(struct tls_context *c)
{
    if (c == NULL || fetch_sub(&c->users, 1) > 1) {
        return;
    }
    SSL_CTX_free(c->ssl);
    for (int i = 0; i < FILES; i++) {
        free(c->paths[i]);
    }
    free(c);
}

int64_t tls_context_expires(const struct tls_context *c)
{
    struct tm end;
    const X509 *cert = SSL_CTX_get0_certificate(c->ssl);
    return cert != NULL && ASN1_TIME_to_tm(X509_get0_notAfter(cert), &end) == 1 ? timegm(&end) : 0;
}

SSL_CTX *tls_context_ssl(const struct tls_context *c)
{
    return c->ssl;
}

/* Writes the protocols as options again: names that end in `room`, which is as large as c->alpn. */
static void list_alpn(const struct tls_context *c, char *room, const char **list)
{
    size_t n = 0;
    memcpy(room, c->alpn, sizeof c->alpn);
    for (unsigned at = 0; at < c->alpn_len; at += 1U + c->alpn[at]) {
        room[at] = 0;
        list[n++] = room + at + 1;
    }
    room[c->alpn_len] = 0;
    list[n] = NULL;
}

int tls_context_renew(struct tls_context **context, struct weir_error *error)
{
    struct tls_context *old = *context;
    struct tls_context *renewed;
    const char *alpn[ALPN_MAX / 2 + 1];
    char room[ALPN_MAX + 1];
    if (!tls_context_changed(old)) {
        return 0;
    }
    list_alpn(old, room, alpn);
    const struct tls_options options = {.server = old->server,
                                        .ca = old->paths[CA],
                                        .cert = old->paths[CERT],
                                        .key = old->paths[KEY],
                                        .client_cert = old->client_cert,
                                        .alpn = alpn};
    struct stamp tried[FILES];
    for (int i = 0; i < FILES; i++) {
        tried[i] = take_stamp(old->paths[i]);
    }
    int e = tls_context_create(&renewed, &options, error);
    if (e != 0) {
        memcpy(old->stamps, tried, sizeof tried);
        return e;
    }
    *context = renewed;
    tls_context_unref(old);
    return 1;
}
