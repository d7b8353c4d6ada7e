/*
 * A session is an SSL object with a BIO of our own on both sides. During a call the BIO reads from
 * the caller's ciphertext and appends to the caller's buffer; between calls it has neither.
 */
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "tls/tls_context.h"
#include "tls/tls_hello.h"

#define CAUSE_MAX 160
#define OVERHEAD_MAX 64 /* bytes of a record besides its plaintext; at most 29 with our ciphers */

struct tls_session {
    struct tls_context *context;
    SSL *ssl;
    struct weir_text *in; /* during a call: ciphertext that is left */
    struct buffer *out;   /* during a call: takes ciphertext */
    size_t held;          /* bytes in OpenSSL's buffer that may become plaintext */
    struct tls_hello hello;
    bool begun; /* the first byte has come, and is one of TLS */
    bool failed;
    char name[]; /* server's name or address; "" in a server */
};

/* ---- the BIO ---- */

static int bio_read(BIO *bio, char *to, int size)
{
    struct tls_session *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (s->in == NULL || s->in->len == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    size_t n = s->in->len < (size_t)size ? s->in->len : (size_t)size;
    memcpy(to, s->in->at, n);
    *s->in = text_after(*s->in, n);
    s->held += n;
    return (int)n;
}

/* Fails for good if the buffer is full: tls_send() writes only what fits, so that only a peer that
 * makes us answer without end and reads no answer comes here. */
static int bio_write(BIO *bio, const char *from, int size)
{
    struct tls_session *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    buffer_put(s->out, (struct weir_text){from, (size_t)size});
    return s->out->full ? -1 : size;
}

static long bio_control(BIO *bio, int command, long number, void *arg)
{
    (void)bio;
    (void)number;
    (void)arg;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method;

static void make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weir");
    if (method != NULL) {
        (void)BIO_meth_set_read(method, bio_read);
        (void)BIO_meth_set_write(method, bio_write);
        (void)BIO_meth_set_ctrl(method, bio_control);
    }
}

static bool set_bio(struct tls_session *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, make_method);
    BIO *bio = method != NULL ? BIO_new(method) : NULL;
    if (bio == NULL) {
        return false;
    }
    BIO_set_data(bio, s);
    BIO_set_init(bio, 1);
    SSL_set_bio(s->ssl, bio, bio);
    return true;
}

/* ---- sessions ---- */

/* Makes the client verify this name. Addresses are compared with the certificate's addresses. */
static bool set_name(SSL *ssl, const char *name)
{
    X509_VERIFY_PARAM *p = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(p, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_ip_asc(p, name) == 1) {
        return true;
    }
    return name[0] != 0 && X509_VERIFY_PARAM_set1_host(p, name, 0) == 1 &&
           SSL_set_tlsext_host_name(ssl, name) == 1;
}

struct tls_session *tls_session_create(struct tls_context *context, const char *server_name)
{
    size_t len = server_name != NULL ? strlen(server_name) : 0;
    struct tls_session *s = calloc(1, sizeof *s + len + 1);
    if (s == NULL) {
        return NULL;
    }
    s->context = tls_context_ref(context);
    s->ssl = SSL_new(tls_context_ssl(context));
    if (server_name != NULL) {
        memcpy(s->name, server_name, len + 1);
    }
    bool server = s->ssl != NULL && SSL_is_server(s->ssl);
    if (s->ssl == NULL || !set_bio(s) || (!server && !set_name(s->ssl, s->name))) {
        tls_session_destroy(s);
        ERR_clear_error();
        return NULL;
    }
    if (server) {
        SSL_set_accept_state(s->ssl);
    } else {
        SSL_set_connect_state(s->ssl);
    }
    return s;
}

void tls_session_destroy(struct tls_session *s)
{
    if (s == NULL) {
        return;
    }
    SSL_free(s->ssl);
    tls_context_unref(s->context);
    free(s);
}

/* ---- failures ---- */

static void explain(struct tls_session *s, struct weir_error *error)
{
    char cause[CAUSE_MAX];
    unsigned long code = ERR_peek_error();
    bool from_peer =
        ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) > SSL_AD_REASON_OFFSET;
    long verified = SSL_get_verify_result(s->ssl);
    tls_cause(cause, sizeof cause);
    if (s->out != NULL && s->out->full) {
        (void)fail(error, WEIR_EIO, "TLS: the peer does not read what it asks for");
    } else if (verified == X509_V_ERR_HOSTNAME_MISMATCH ||
               verified == X509_V_ERR_IP_ADDRESS_MISMATCH) {
        (void)fail(error, WEIR_EIO, "TLS: the certificate is not for %.120s", s->name);
    } else if (verified != X509_V_OK) {
        (void)fail(error, WEIR_EIO, "TLS: the peer's certificate is refused: %s",
                   X509_verify_cert_error_string(verified));
    } else {
        (void)fail(error, WEIR_EIO, "TLS: %s%s", from_peer ? "the peer refuses: " : "", cause);
    }
}

static enum tls_result fail_session(struct tls_session *s, struct weir_error *error)
{
    s->failed = true;
    explain(s, error);
    return TLS_FAILED;
}

/* True if a connection can begin with this byte: with a record of a handshake, or with an alert. */
static bool is_tls(char first)
{
    return first == SSL3_RT_HANDSHAKE || first == SSL3_RT_ALERT;
}

/* ---- bytes ---- */

/* Reads as much plaintext as there is and fits. The room asked for follows from the ciphertext,
 * which is never shorter, so that small requests do not make large buffers. */
static enum tls_result read_plain(struct tls_session *s, struct buffer *plain,
                                  struct weir_error *error)
{
    for (;;) {
        size_t want = s->held + s->in->len;
        size_t space = plain->most - buffer_len(plain);
        want = want > TLS_RECORD_BYTES ? TLS_RECORD_BYTES : want > 0 ? want : 1;
        want = want > space ? space : want;
        if (want == 0) {
            return TLS_OK;
        }
        char *room = buffer_room(plain, want);
        if (room == NULL) {
            s->failed = true;
            (void)fail(error, WEIR_ENOMEM, "TLS: out of memory for what was received");
            return TLS_FAILED;
        }
        size_t n = 0;
        int e = SSL_read_ex(s->ssl, room, want, &n);
        if (e == 1) {
            buffer_add(plain, n);
            s->held = (size_t)SSL_pending(s->ssl);
            continue;
        }
        switch (SSL_get_error(s->ssl, e)) {
        case SSL_ERROR_WANT_READ:
            return TLS_OK;
        case SSL_ERROR_ZERO_RETURN:
            return TLS_ENDED;
        default:
            return fail_session(s, error);
        }
    }
}

enum tls_result tls_receive(struct tls_session *s, struct weir_text *cipher, struct buffer *plain,
                            struct buffer *out, struct weir_error *error)
{
    if (s->failed) {
        (void)fail(error, WEIR_EIO, "TLS: the session has failed before");
        return TLS_FAILED;
    }
    if (!s->begun && cipher->len > 0) {
        if (!is_tls(cipher->at[0])) {
            (void)fail(error, WEIR_EIO, "TLS: the peer does not speak TLS");
            return TLS_PLAIN;
        }
        s->begun = true;
    }
    if (SSL_is_server(s->ssl) && !tls_is_up(s) && !tls_hello_follow(&s->hello, *cipher)) {
        s->failed = true;
        (void)fail(error, WEIR_EIO, "TLS: found a message of more than %u bytes in the handshake",
                   TLS_HELLO_BYTES);
        return TLS_FAILED;
    }
    ERR_clear_error();
    s->in = cipher;
    s->out = out;
    enum tls_result result = read_plain(s, plain, error);
    s->in = NULL;
    s->out = NULL;
    return result;
}

enum tls_result tls_send(struct tls_session *s, struct weir_text *plain, struct buffer *out,
                         struct weir_error *error)
{
    enum tls_result result = s->failed ? TLS_FAILED : TLS_OK;
    if (s->failed) {
        (void)fail(error, WEIR_EIO, "TLS: the session has failed before");
        return TLS_FAILED;
    }
    ERR_clear_error();
    s->out = out;
    while (result == TLS_OK && plain->len > 0 && tls_is_up(s)) {
        size_t space = out->most - buffer_len(out);
        size_t n = plain->len < TLS_RECORD_BYTES ? plain->len : TLS_RECORD_BYTES;
        if (space <= OVERHEAD_MAX) {
            break;
        }
        n = n < space - OVERHEAD_MAX ? n : space - OVERHEAD_MAX;
        if (SSL_write_ex(s->ssl, plain->at, n, &n) == 1) {
            *plain = text_after(*plain, n);
        } else {
            result = fail_session(s, error);
        }
    }
    s->out = NULL;
    return result;
}

void tls_end(struct tls_session *s, struct buffer *out)
{
    if (s->failed || !tls_is_up(s)) {
        return;
    }
    ERR_clear_error();
    s->out = out;
    (void)SSL_shutdown(s->ssl);
    s->out = NULL;
    ERR_clear_error();
}

/* ---- what the handshake has found ---- */

bool tls_is_up(const struct tls_session *s)
{
    return SSL_is_init_finished(s->ssl) == 1;
}

bool tls_has_part(const struct tls_session *s)
{
    return SSL_has_pending(s->ssl) == 1;
}

struct weir_text tls_alpn(const struct tls_session *s)
{
    const unsigned char *name;
    unsigned len;
    SSL_get0_alpn_selected(s->ssl, &name, &len);
    return (struct weir_text){len > 0 ? (const char *)name : "", len};
}

/* Returns the peer's certificate if it is verified, or NULL. */
static X509 *peer(const struct tls_session *s)
{
    bool verifies = (SSL_get_verify_mode(s->ssl) & SSL_VERIFY_PEER) != 0;
    return verifies && tls_is_up(s) && SSL_get_verify_result(s->ssl) == X509_V_OK
               ? SSL_get0_peer_certificate(s->ssl)
               : NULL;
}

static bool is_name(const ASN1_STRING *found, struct weir_text name)
{
    struct weir_text bytes = {(const char *)ASN1_STRING_get0_data(found),
                              (size_t)ASN1_STRING_length(found)};
    return text_equal(bytes, name);
}

static bool has_common_name(X509 *cert, struct weir_text name)
{
    const X509_NAME *subject = X509_get_subject_name(cert);
    int at = -1;
    while ((at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0) {
        unsigned char *utf8 = NULL;
        int len =
            ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
        bool same = len > 0 && text_equal((struct weir_text){(char *)utf8, (size_t)len}, name);
        OPENSSL_free(utf8);
        if (same) {
            return true;
        }
    }
    return false;
}

bool tls_peer_has_name(const struct tls_session *s, struct weir_text name)
{
    X509 *cert = peer(s);
    if (cert == NULL || name.len == 0) {
        return false;
    }
    bool found = has_common_name(cert, name);
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; !found && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *each = sk_GENERAL_NAME_value(names, i);
        found = (each->type == GEN_DNS && is_name(each->d.dNSName, name)) ||
                (each->type == GEN_URI && is_name(each->d.uniformResourceIdentifier, name));
    }
    GENERAL_NAMES_free(names);
    return found;
}

bool tls_peer_name(const struct tls_session *s, char *name, size_t size)
{
    X509 *cert = peer(s);
    name[0] = 0;
    return cert != NULL && X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName,
                                                     name, (int)size) > 0;
}
