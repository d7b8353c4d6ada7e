/*
 * From what a request carries to the limits that may apply to it, in a time
 * that does not grow with the number of limits. (It does with the number of patterns
 * that have '**' twice before their end, or different segments such as 'a*' in the
 * same place: these are tried one by one.) Made once, then only read, by any number
 * of threads.
 *
 * Every entry says: if `attribute` has a value that `pattern` matches, limit
 * `limit` is a candidate. A limit may have many entries. Paths may be patterns
 * (policy/pattern.h); other attributes are compared as they are.
 */
#ifndef WEIR_POLICY_INDEX_H
#define WEIR_POLICY_INDEX_H

#include <stdint.h>

#include "base/text.h"

struct index_entry {
    unsigned attribute;  /* INDEX_PATH or any other number */
    unsigned limit;      /* 0 .. limits - 1 */
    struct text pattern; /* copied; path: a checked path pattern; else the value itself */
};

#define INDEX_PATH 0u

struct index;

/* 0, WEIR_ENOMEM or, without random numbers, WEIR_EIO. */
int index_create(const struct index_entry *entries, size_t n, struct index **out);
void index_destroy(struct index *index);

/* Sets the bit of every limit that matches in limits[] (bit i % 64 of word i / 64); clears none. */
void index_find_path(const struct index *index, struct text path, uint64_t *limits);
void index_find_value(const struct index *index, unsigned attribute, struct text value,
                      uint64_t *limits);

#endif
