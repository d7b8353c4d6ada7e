/* Decision vectors as text; tests/vectors/README.md describes the format. */
#ifndef WEIR_TESTS_ORACLE_VECTOR_H
#define WEIR_TESTS_ORACLE_VECTOR_H

#include <stdio.h>

#include "support/oracle/oracle_trace.h"

/* Nanoseconds in the unit of a vector's times. */
enum oracle_unit { ORACLE_NS = 1, ORACLE_US = 1000 };

/* The expected answer of a line; times in the vector's unit, rounded up. */
struct oracle_expected {
    int verdict;
    uint64_t remaining;
    uint64_t retry;
    uint64_t reset;
    uint64_t delay;
};

/* One section of a file: a limit and the calls under it. */
struct oracle_vector {
    struct oracle_trace trace;
    enum oracle_unit unit;
    bool stepped; /* stepped_bucket: only op.key, op.time_ns (an int64_t) and verdict are used */
    int64_t capacity;
    int64_t window;
    char keys[ORACLE_KEYS][64];
    struct oracle_expected *expected;
    size_t room;
};

/* Reads the sections of a file one after the other. */
struct oracle_reader {
    FILE *in;
    char line[512];
    unsigned number;
    bool held; /* `line` is the first line of the next section */
};

/* Returns 1 and *v (free it with oracle_vector_finish()); 0 at the end; -1 at a bad line, whose
 * number is in reader->number. */
int oracle_vector_read(struct oracle_reader *reader, struct oracle_vector *v);
void oracle_vector_finish(struct oracle_vector *v);

/* Returns the values of *a in the unit. */
struct oracle_expected oracle_expect(const struct weir_answer *a, enum oracle_unit unit);

/* Prints a section with the oracle's answers. */
void oracle_vector_print(FILE *out, const struct oracle_trace *t, enum oracle_unit unit);
void oracle_vector_print_stepped(FILE *out, const struct oracle_trace *t, int64_t capacity,
                                 int64_t window);

#endif
