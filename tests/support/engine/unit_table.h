/* A bare key table in which a word is the time at which its key will be fresh. */
#ifndef WEIR_TESTS_SUPPORT_UNIT_TABLE_H
#define WEIR_TESTS_SUPPORT_UNIT_TABLE_H

#include "table/table.h"
#include "support/engine/unit_limiter.h"

struct unit_table {
    struct table table;
    struct table_counts counts;
    struct table_shape shape;
    void *memory;
};

struct unit_table *unit_table_make(uint64_t max_keys, uint64_t record_bytes);
void unit_table_free(struct unit_table *t);

/* Returns the n-th key of an endless sequence. */
struct table_key unit_table_key(const struct unit_table *t, uint64_t n);

/* Claims a slot under the key's stripe, as a limiter does; the key must be absent. */
struct claim unit_table_claim(struct unit_table *t, struct table_key key, uint64_t word,
                              uint64_t now, bool evict);

/* Reads the key's word under its stripe. Returns false if the key is absent. */
bool unit_table_word(struct unit_table *t, struct table_key key, uint64_t *word);

/* Returns how many slots hold the key, with or without marks. */
unsigned unit_table_copies(const struct unit_table *t, struct table_key key);

/* Counts the slots in use. */
uint64_t unit_table_used(const struct unit_table *t);

#endif
