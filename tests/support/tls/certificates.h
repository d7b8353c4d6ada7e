/*
 * Certificates of a test, made when it runs, in a folder of its own that ends with it. Errors end
 * the test program.
 *
 *     ca.crt          a CA
 *     server.crt/key  by it, for localhost, 127.0.0.1 and ::1
 *     client.crt/key  by it: common name "client", alternative names client.test and
 *                     urn:test:client
 *     other-ca.crt, other.crt/key   another CA, and a certificate by it for localhost, 127.0.0.1
 *     expired.crt/key by ca, for localhost and 127.0.0.1; it has ended an hour ago
 */
#ifndef WEIR_TESTS_SUPPORT_TLS_CERTIFICATES_H
#define WEIR_TESTS_SUPPORT_TLS_CERTIFICATES_H

struct certificates {
    char folder[64];
};

void certificates_make(struct certificates *c);
void certificates_remove(struct certificates *c); /* with all files of the folder */

/* Returns the path of a file of the folder, such as "ca.crt". Valid for the next 15 calls of the
 * thread. */
const char *certificates_path(const struct certificates *c, const char *file);

struct certificate {
    const char *name;   /* files name.crt and name.key are written, each by a rename */
    const char *issuer; /* name of the CA, or NULL: it is a CA itself */
    const char *common_name;
    const char *names;  /* as OpenSSL writes them, "DNS:localhost,IP:::1", or NULL */
    long from_s, end_s; /* validity, relative to now */
};

/* Makes one more, or another one under the same name. */
void certificates_add(const struct certificates *c, const struct certificate *made);

#endif
