#include "bench_floor.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "bench_core.h"

/* Writes a pseudo-random number into each line, so that the next address cannot be predicted. */
static void scatter(struct floors *f)
{
    uint64_t x = 1;
    for (uint64_t i = 0; i < f->count; i++) {
        x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        f->lines[i].slot[0].tag = x ^ x >> 29;
    }
}

struct floors *floors_create(uint64_t bytes, bool huge)
{
    struct floors *f = calloc(1, sizeof *f);
    if (f == NULL) {
        return NULL;
    }
    f->count = bytes / sizeof(struct line);
    f->lines = bench_map(f->count * sizeof(struct line), huge);
    if (f->lines == NULL || hash_secret_init(&f->secret) != 0 || pair_init() != 0) {
        floors_destroy(f);
        return NULL;
    }
    scatter(f);
    return f;
}

void floors_destroy(struct floors *f)
{
    if (f != NULL && f->lines != NULL) {
        (void)munmap(f->lines, f->count * sizeof(struct line));
    }
    free(f);
}

uint64_t floor_hash_cas(const struct floors *f, const void *key, size_t len)
{
    struct hash h = hash_sip(&f->secret, key, len);
    struct pair *slot = &f->lines[mul_high(h.low, f->count)].slot[h.high & (LINE_SLOTS - 1)];
    struct pair seen = {load_relaxed(&slot->tag), load_relaxed(&slot->word)};
    struct pair next = {seen.tag, seen.word + 1};
    return seen.word + pair_cas(slot, seen, next);
}

uint64_t floor_line_read(const struct floors *f, const void *key, size_t len, uint64_t last)
{
    uint64_t x = load_le64(key) + len + last;
    return load_relaxed(&f->lines[mul_high(x, f->count)].slot[0].tag);
}
