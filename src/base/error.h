/* Filling struct weir_error. */
#ifndef WEIR_BASE_ERROR_H
#define WEIR_BASE_ERROR_H

#include <weir.h>

/* Writes code and text to *error, unless that is NULL, and returns code. */
int fail(struct weir_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a failed system call: maps errno, appends its text. */
int fail_errno(struct weir_error *error, const char *what, const char *path);

#endif
