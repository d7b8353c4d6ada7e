#include "base/hash.h"

#include <errno.h>
#include <sys/random.h>

#include <weir.h>

#ifdef WEIR_HAVE_XXHASH
#define XXH_INLINE_ALL
#include <xxhash.h>
const bool hash_has_xxh3 = true;
#else
const bool hash_has_xxh3 = false;
#endif

int hash_secret_init(struct hash_secret *secret)
{
    ssize_t got;
    do {
        got =
            getrandom(secret, sizeof *secret, 0); /* all of it, because it is less than 256 bytes */
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof *secret ? 0 : WEIR_EIO;
}

struct hash hash_xxh3(const struct hash_secret *secret, const void *key, size_t len)
{
#ifdef WEIR_HAVE_XXHASH
    XXH128_hash_t h = XXH3_128bits_withSecret(key, len, secret->xxh3, sizeof secret->xxh3);
    return (struct hash){h.low64, h.high64};
#else
    (void)secret, (void)key, (void)len;
    __builtin_trap(); /* weir_open() refuses WEIR_XXH3 in such a build */
#endif
}
