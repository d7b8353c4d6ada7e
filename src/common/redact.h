/*
 * Takes secrets out of texts that another program has written, before they are shown. A store that
 * refuses a password may quote it in its error.
 *
 * A secret is not kept: struct redact has a keyed hash of it, its length, and the sum of its bytes,
 * so that few places of a text have to be hashed. It knows the last REDACT_SECRETS that it was
 * told, because an error may quote a password that has been replaced meanwhile. A secret is found
 * in three forms: as it is; percent-encoded, in whole or in part; and percent-decoded. All that a
 * URL has between "://" and '@' is taken out too, because another password may be there.
 */
#ifndef WEIR_COMMON_REDACT_H
#define WEIR_COMMON_REDACT_H

#include <pthread.h>

#include "base/hash.h"
#include "common/text.h"

#define REDACT_SECRETS 8
#define REDACT_SECRET_MAX 1024 /* bytes of a secret; a longer one is known by its beginning */
#define REDACT_MARK "***"

struct redact {
    struct hash_secret key;
    pthread_mutex_t lock; /* guards what follows; held briefly */
    size_t count;         /* how many were ever told */
    struct redacted_secret {
        size_t len; /* 0: none */
        uint64_t sum;
        struct hash hash;
    } secrets[REDACT_SECRETS];
};

/* Returns 0, or WEIR_EIO: the kernel gives no random numbers. There is nothing to finish. */
int redact_init(struct redact *r);

/* Remembers a secret. An empty one is none. May be called from any thread, as all that follow. */
void redact_learn(struct redact *r, struct weir_text secret);

/*
 * Writes the text with REDACT_MARK in place of each secret, and cuts it to `size` bytes. Returns
 * the part of `out` that it has written. r NULL: no secrets are known.
 */
struct weir_text redact_write(struct redact *r, struct weir_text from, char *out, size_t size);

/* Returns whether the text contains a secret. */
bool redact_finds(struct redact *r, struct weir_text text);

#endif
