/* The contents of tests/vectors: which calls, and by the oracle, which answers. */
#ifndef WEIR_TESTS_VECTOR_CASES_H
#define WEIR_TESTS_VECTOR_CASES_H

#include <stdio.h>

struct vector_file {
    const char *name; /* in tests/vectors */
    void (*print)(FILE *out);
};

/* Ends with a NULL name. */
extern const struct vector_file vector_files[];

#endif
