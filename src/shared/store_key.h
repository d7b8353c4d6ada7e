/*
 * Where a key's state lies in the store:
 *
 *     <prefix>:1:<limit>:<kind>:{<subject>}[<subject>]
 *
 * 1 is the version of this format and of the states; the kind says what a state means
 * (shared/params.h). The subject in braces alone decides the slot of a Redis Cluster. It is the
 * limit's key, or with `shard` that text, and then the key follows behind it: all limits that shard
 * by one thing share a slot, and can be asked in one call.
 *
 * A subject is 'r' and the bytes themselves, up to 64 of them and without '}', which would end the
 * hash tag; or 'h' and the first 128 bits of their SHA-256 in hexadecimal. So a subject is never
 * empty, whatever its bytes are, and the two kinds never meet. Prefix and limit hold no braces, so
 * the first '{' is this one.
 */
#ifndef WEIR_SHARED_STORE_KEY_H
#define WEIR_SHARED_STORE_KEY_H

#include <stdint.h>

#include <weir.h>

#include "common/text.h"
#include "shared/params.h"

#define STORE_VERSION "1"
#define STORE_PREFIX_MAX 64
#define STORE_LIMIT_MAX 256 /* a name and a tier's */
#define STORE_RAW_MAX 64
#define STORE_KEY_MAX                                                                              \
    (STORE_PREFIX_MAX + STORE_LIMIT_MAX + sizeof((struct store_params *)0)->kind +                 \
     2 * (size_t)(STORE_RAW_MAX + 1) + 9)

struct store_key {
    size_t len;
    char at[STORE_KEY_MAX];
};

/* What is the same for all keys of a limit: "<prefix>:1:<limit>:<kind>:{". */
struct store_key_head {
    size_t len;
    char at[STORE_KEY_MAX];
};

/* WEIR_EINVAL: a prefix or a limit's name that is empty (only the prefix may be), long, or has braces. */
int store_key_head(struct text prefix, struct text limit, const struct store_params *params,
                   struct store_key_head *head, struct weir_error *error);

/* `shard` may be empty (at NULL): the key itself decides. */
void store_key(const struct store_key_head *head, struct text shard, struct text key,
               struct store_key *out);

static inline struct text store_key_text(const struct store_key *key)
{
    return (struct text){key->at, key->len};
}

#endif
