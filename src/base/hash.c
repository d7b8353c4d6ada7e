#include "base/hash.h"

#include <errno.h>
#include <sys/random.h>

#include <weir.h>

#ifdef WEIR_HAVE_XXHASH
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

int hash_secret_init(struct hash_secret *secret)
{
    unsigned char *p = (unsigned char *)secret;
    size_t left = sizeof *secret;
    while (left > 0) {
        ssize_t got = getrandom(p, left, 0);
        if (got < 0 && errno != EINTR) {
            return WEIR_EIO;
        }
        if (got > 0) {
            p += got;
            left -= (size_t)got;
        }
    }
    return 0;
}

#ifdef WEIR_HAVE_XXHASH

const bool hash_has_xxh3 = true;

struct hash hash_xxh3(const struct hash_secret *secret, const void *key, size_t len)
{
    XXH128_hash_t h = XXH3_128bits_withSecret(key, len, secret->xxh3, sizeof secret->xxh3);
    return (struct hash){h.low64, h.high64};
}

#else

const bool hash_has_xxh3 = false;

struct hash hash_xxh3(const struct hash_secret *secret, const void *key, size_t len)
{
    (void)secret, (void)key, (void)len;
    __builtin_trap(); /* weir_open() refuses WEIR_XXH3 in such a build */
}

#endif
