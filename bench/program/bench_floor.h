/*
 * Floors: the least work that a limiter must do. They are in a file of their own, so that the
 * compiler does not inline them and they cost a call, as the library's functions do.
 */
#ifndef WEIR_BENCH_FLOOR_H
#define WEIR_BENCH_FLOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "table/table.h"

struct floors {
    struct hash_secret secret;
    struct line *lines;
    uint64_t count; /* number of lines: together as many bytes as the table has */
};

/* Returns NULL if out of memory. */
struct floors *floors_create(uint64_t bytes, bool huge);
void floors_destroy(struct floors *f);

/*
 * Hashes the key, takes a line's address from the hash, and does one 16-byte compare-and-swap
 * there.
 */
uint64_t floor_hash_cas(const struct floors *f, const void *key, size_t len);

/* Reads a line whose address depends on the key and on `last`, the value read before. */
uint64_t floor_line_read(const struct floors *f, const void *key, size_t len, uint64_t last);

#endif
