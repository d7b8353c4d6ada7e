/* What is wrong with a rule file: collected while it is read, told in its order. */
#ifndef WEIR_RULES_FILE_PROBLEMS_H
#define WEIR_RULES_FILE_PROBLEMS_H

#include <weir_rules.h>

/* Where something stands. */
struct place {
    const char *file;
    unsigned line;
    unsigned column;
};

struct problem_record;

struct problems {
    weir_rules_message_fn tell; /* may be NULL */
    void *arg;
    unsigned errors;
    unsigned warnings;
    struct problem_record *records;
    size_t records_count;
    struct weir_error first; /* "file:line:column: text" of the first error, once finished */
};

/* More than these are counted, not told: a wrong file should not fill a disk. */
#define PROBLEMS_TOLD 100

void problem(struct problems *problems, struct place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void warning(struct problems *problems, struct place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Tells what was collected: file by file, as they first had a problem, in the
 * order of lines. Frees it; more may follow, for another call.
 */
void problems_finish(struct problems *problems);

/* Finishes, and copies the first error into *error (may be NULL); returns WEIR_ERULES. */
int problems_fail(struct problems *problems, struct weir_error *error);

#endif
