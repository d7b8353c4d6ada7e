/*
 * The name of a key's state in the store:
 *
 *     <prefix>:1:<limit>:<kind>:{<subject>}[<subject>]
 *
 * 1 is the version of this format and of the states; the kind says what a state means
 * (shared/params.h). The subject in braces alone decides the slot in a Redis Cluster. It is the
 * limit's key; or, with `shard`, it is that text, and the key follows after the braces. So all
 * limits that are sharded by the same thing share a slot, and can be asked in one call.
 *
 * A subject is 'r' and the bytes themselves, if these are at most 64 and have no '}', which would
 * end the hash tag; otherwise it is 'h' and the first 128 bits of their SHA-256 in hexadecimal. So
 * a subject is never empty, whatever its bytes are, and the two forms are never equal. Prefix and
 * limit have no braces, so the first '{' is the one before the subject.
 */
#ifndef WEIR_SHARED_STORE_KEY_H
#define WEIR_SHARED_STORE_KEY_H

#include <stdint.h>

#include <weir.h>

#include "common/text.h"
#include "shared/params.h"

#define STORE_VERSION "1"
#define STORE_PREFIX_MAX 64
#define STORE_LIMIT_MAX 256 /* the name of a limit and of its tier */
#define STORE_RAW_MAX 64
#define STORE_KEY_MAX                                                                              \
    (STORE_PREFIX_MAX + STORE_LIMIT_MAX + sizeof((struct store_params *)0)->kind +                 \
     2 * (size_t)(STORE_RAW_MAX + 1) + 9)

struct store_key {
    size_t len;
    char at[STORE_KEY_MAX];
};

/* The part that is the same for all keys of a limit: "<prefix>:1:<limit>:<kind>:{". */
struct store_key_head {
    size_t len;
    char at[STORE_KEY_MAX];
};

/* Makes the head. Returns 0, or WEIR_EINVAL if the prefix or the limit's name is too long or has
 * braces, or if the name is empty (the prefix may be empty). */
int store_key_head(struct text prefix, struct text limit, const struct store_params *params,
                   struct store_key_head *head, struct weir_error *error);

/* Makes the store's key. If shard.at is NULL, the limit's key decides the slot. */
void store_key(const struct store_key_head *head, struct text shard, struct text key,
               struct store_key *out);

static inline struct text store_key_text(const struct store_key *key)
{
    return (struct text){key->at, key->len};
}

#endif
