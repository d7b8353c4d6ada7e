/*
 * Floors. In a file of their own, so that a call of one is a call, like that of
 * the library.
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
    uint64_t count; /* of lines: as many bytes as the table has */
};

/* NULL if there is no memory. */
struct floors *floors_create(uint64_t bytes, bool huge);
void floors_destroy(struct floors *f);

/* The hash of the key, a line address from it, one 16-byte compare-and-swap there. */
uint64_t floor_hash_cas(const struct floors *f, const void *key, size_t len);

/* A read of a line whose address depends on the key and on what was read before. */
uint64_t floor_line_read(const struct floors *f, const void *key, size_t len, uint64_t last);

#endif
