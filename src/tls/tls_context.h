/* A context as sessions see it, and the texts of OpenSSL's errors. */
#ifndef WEIR_TLS_TLS_CONTEXT_H
#define WEIR_TLS_TLS_CONTEXT_H

#include <openssl/ssl.h>

#include "tls/tls.h"

/* Returns OpenSSL's settings, which live as long as the context. */
SSL_CTX *tls_context_ssl(const struct tls_context *context);

/* Writes the first failure of this thread in OpenSSL, which is the cause of the others, and forgets
 * all of them. */
void tls_cause(char *text, size_t size);

#endif
