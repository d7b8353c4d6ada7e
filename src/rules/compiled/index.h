/*
 * From what a request carries to the limits that may apply to it, in a time
 * that does not grow with the number of limits. (It does with the number of patterns
 * that have '**' twice before their end, or different segments such as 'a*' in the
 * same place: these are tried one by one.) Made once, then only read, by any number
 * of threads.
 *
 * Every entry says: if `attribute` has a value that `pattern` matches, limit
 * `limit` is a candidate. A limit may have many entries. Paths may be patterns
 * (rules/value/pattern.h); other attributes are compared as they are.
 */
#ifndef WEIR_RULES_COMPILED_INDEX_H
#define WEIR_RULES_COMPILED_INDEX_H

#include <stdint.h>

#include "common/text.h"

struct index_entry {
    unsigned attribute;  /* INDEX_PATH or any other number */
    unsigned limit;      /* below INDEX_LIMITS_MAX */
    struct text pattern; /* copied; path: a checked path pattern; else the value itself */
};

#define INDEX_PATH 0u

struct index;

/* 0, WEIR_ENOMEM or, without random numbers, WEIR_EIO. */
int index_create(const struct index_entry *entries, size_t n, struct index **out);
void index_destroy(struct index *index);

/*
 * Limits that were found. A bit of `words` says that this word of `bits` counts; the
 * others are as good as 0, and need not be cleared, nor looked at.
 */
#define INDEX_LIMITS_MAX 4096
struct index_found {
    uint64_t words; /* 0 before the first is found */
    uint64_t bits[INDEX_LIMITS_MAX / 64];
};

static inline void index_found_set(struct index_found *found, unsigned limit)
{
    uint64_t word = UINT64_C(1) << limit / 64;
    uint64_t before = (found->words & word) != 0 ? found->bits[limit / 64] : 0;
    found->bits[limit / 64] = before | UINT64_C(1) << limit % 64;
    found->words |= word;
}

/* Adds every limit that matches to those found. */
void index_find_path(const struct index *index, struct text path, struct index_found *found);
void index_find_value(const struct index *index, unsigned attribute, struct text value,
                      struct index_found *found);

#endif
