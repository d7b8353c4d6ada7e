/*
 * Finds the limits that may apply to a request, in a time that does not grow with the number of
 * limits. (It does grow with the number of patterns that have '**' twice before their end, or that
 * have different segments such as 'a*' in the same place: these are tried one by one.) An index is
 * made once and then only read, by any number of threads.
 *
 * Every entry means: if `attribute` has the value `text`, or one that the pattern `text` matches,
 * then `limit` is a candidate. A limit may have many entries. Only paths may be patterns
 * (rules/value/pattern.h).
 */
#ifndef WEIR_RULES_COMPILED_INDEX_H
#define WEIR_RULES_COMPILED_INDEX_H

#include <stdint.h>

#include "common/text.h"

struct index_entry {
    unsigned attribute; /* INDEX_PATH or any other number */
    unsigned limit;     /* below INDEX_LIMITS_MAX */
    bool wild;          /* the text is a checked path pattern with wildcards; otherwise a value */
    struct weir_text text; /* copied */
};

#define INDEX_PATH 0u

struct index;

/* Returns 0, WEIR_ENOMEM or, without random numbers, WEIR_EIO. */
int index_create(const struct index_entry *entries, size_t n, struct index **out);
void index_destroy(struct index *index);

/*
 * Limits that were found. A bit of `words` is set if the same word of `bits` is valid. The other
 * words count as 0; they need not be cleared or read.
 */
#define INDEX_LIMITS_MAX 4096
struct index_found {
    uint64_t words; /* 0 before the first limit is found */
    uint64_t bits[INDEX_LIMITS_MAX / 64];
};

static inline void index_found_set(struct index_found *found, unsigned limit)
{
    uint64_t word = UINT64_C(1) << limit / 64;
    uint64_t before = (found->words & word) != 0 ? found->bits[limit / 64] : 0;
    found->bits[limit / 64] = before | UINT64_C(1) << limit % 64;
    found->words |= word;
}

/* Add every limit that matches to *found. */
void index_find_path(const struct index *index, struct weir_text path, struct index_found *found);
void index_find_value(const struct index *index, unsigned attribute, struct weir_text value,
                      struct index_found *found);

#endif
