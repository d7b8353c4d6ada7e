#include "support/tls/certificates.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 160
#define PATHS 16 /* a power of two */
#define DAY_S 86400L

static void require(int condition)
{
    if (!condition) {
        (void)fprintf(stderr, "certificates of the test: failed\n");
        ERR_print_errors_fp(stderr);
        exit(1);
    }
}

const char *certificates_path(const struct certificates *c, const char *file)
{
    static _Thread_local char paths[PATHS][PATH_BYTES];
    static _Thread_local unsigned next;
    char *path = paths[next++ % PATHS];
    require(snprintf(path, PATH_BYTES, "%s/%s", c->folder, file) < PATH_BYTES);
    return path;
}

static const char *path_of(const struct certificates *c, const char *name, const char *ending)
{
    char file[96];
    require(snprintf(file, sizeof file, "%s%s", name, ending) < (int)sizeof file);
    return certificates_path(c, file);
}

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    require(extension != NULL && X509_add_ext(cert, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

static X509 *read_certificate(const char *path)
{
    FILE *file = fopen(path, "re");
    require(file != NULL);
    X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);
    require(cert != NULL && fclose(file) == 0);
    return cert;
}

static EVP_PKEY *read_key(const char *path)
{
    FILE *file = fopen(path, "re");
    require(file != NULL);
    EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
    require(key != NULL && fclose(file) == 0);
    return key;
}

static void fill(X509 *cert, X509 *issuer, const struct certificate *m)
{
    uint64_t number;
    X509_NAME *subject = X509_get_subject_name(cert);
    require(RAND_bytes((unsigned char *)&number, sizeof number) == 1);
    require(X509_set_version(cert, 2) == 1);
    require(ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), number >> 1) == 1);
    require(X509_gmtime_adj(X509_getm_notBefore(cert), m->from_s) != NULL);
    require(X509_gmtime_adj(X509_getm_notAfter(cert), m->end_s) != NULL);
    require(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                       (const unsigned char *)m->common_name, -1, -1, 0) == 1);
    require(X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1);
    add_extension(cert, issuer, NID_basic_constraints,
                  issuer == cert ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (issuer == cert) {
        add_extension(cert, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
    }
    if (m->names != NULL) {
        add_extension(cert, issuer, NID_subject_alt_name, m->names);
    }
}

static FILE *open_new(const char *path)
{
    FILE *file = fopen(path, "we");
    require(file != NULL);
    return file;
}

/* Writes both files aside and renames them, the key first, as a careful renewal does. */
static void write_files(const struct certificates *c, const char *name, X509 *cert, EVP_PKEY *key)
{
    FILE *file = open_new(path_of(c, name, ".key.new"));
    require(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1 && fclose(file) == 0);
    file = open_new(path_of(c, name, ".crt.new"));
    require(PEM_write_X509(file, cert) == 1 && fclose(file) == 0);
    require(rename(path_of(c, name, ".key.new"), path_of(c, name, ".key")) == 0);
    require(rename(path_of(c, name, ".crt.new"), path_of(c, name, ".crt")) == 0);
}

void certificates_add(const struct certificates *c, const struct certificate *m)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    require(key != NULL && cert != NULL && X509_set_pubkey(cert, key) == 1);
    X509 *issuer = m->issuer != NULL ? read_certificate(path_of(c, m->issuer, ".crt")) : cert;
    EVP_PKEY *issuer_key = m->issuer != NULL ? read_key(path_of(c, m->issuer, ".key")) : key;
    fill(cert, issuer, m);
    require(X509_sign(cert, issuer_key, EVP_sha256()) > 0);
    write_files(c, m->name, cert, key);
    if (m->issuer != NULL) {
        X509_free(issuer);
        EVP_PKEY_free(issuer_key);
    }
    X509_free(cert);
    EVP_PKEY_free(key);
}

void certificates_make(struct certificates *c)
{
    static const char here[] = "DNS:localhost,IP:127.0.0.1,IP:::1";
    static const struct certificate all[] = {
        {"ca", NULL, "Test CA", NULL, -DAY_S, DAY_S},
        {"other-ca", NULL, "Other CA", NULL, -DAY_S, DAY_S},
        {"server", "ca", "server", here, -DAY_S, DAY_S},
        {"client", "ca", "client", "DNS:client.test,URI:urn:test:client", -DAY_S, DAY_S},
        {"other", "other-ca", "other", here, -DAY_S, DAY_S},
        {"expired", "ca", "expired", here, -DAY_S, -3600},
    };
    (void)strcpy(c->folder, "/tmp/weir-tls-XXXXXX");
    require(mkdtemp(c->folder) != NULL);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        certificates_add(c, &all[i]);
    }
}

void certificates_remove(struct certificates *c)
{
    DIR *folder = opendir(c->folder);
    const struct dirent *e;
    while (folder != NULL && (e = readdir(folder)) != NULL) {
        (void)unlinkat(dirfd(folder), e->d_name, 0);
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    (void)rmdir(c->folder);
}
