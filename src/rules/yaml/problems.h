/* Problems of a rule file: collected while it is read, then reported in the order of the file. */
#ifndef WEIR_RULES_YAML_PROBLEMS_H
#define WEIR_RULES_YAML_PROBLEMS_H

#include <weir_rules.h>

/* A place in a file. */
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
    unsigned notes;
    struct problem_record *records;
    size_t records_count;
    struct weir_error first; /* "file:line:column: text" of the first error, once finished */
};

/* Further problems are counted but not reported: a wrong file should not fill a disk. */
#define PROBLEMS_TOLD 100

void problem(struct problems *problems, struct place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void warning(struct problems *problems, struct place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void change(struct problems *problems, struct place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns an error's text without the path and ": " that it may begin with. */
const char *problem_without_path(const struct weir_error *error, const char *path);

/*
 * Reports what was collected: files in the order of their first problems, each in the order of its
 * lines. Then frees it; more problems may be added and finished by another call.
 */
void problems_finish(struct problems *problems);

/*
 * Calls problems_finish(), and copies the first error into *error (may be NULL); returns
 * WEIR_ERULES.
 */
int problems_fail(struct problems *problems, struct weir_error *error);

#endif
