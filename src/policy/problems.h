/* What is wrong with a rule file, told as it is found, all of it. */
#ifndef WEIR_POLICY_PROBLEMS_H
#define WEIR_POLICY_PROBLEMS_H

#include <weir_rules.h>

/* Where something stands. */
struct place {
    const char *file;
    unsigned line;
    unsigned column;
};

struct problems {
    weir_rules_message_fn tell; /* may be NULL */
    void *arg;
    unsigned errors;
    unsigned warnings;
    struct weir_error first; /* "file:line:column: text" of the first error */
};

/* More than these are counted, not told: a wrong file should not fill a disk. */
#define PROBLEMS_TOLD 100

void problem(struct problems *problems, struct place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void warning(struct problems *problems, struct place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The first error into *error (may be NULL); returns WEIR_ERULES. */
int problems_fail(const struct problems *problems, struct weir_error *error);

#endif
