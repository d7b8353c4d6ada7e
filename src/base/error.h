/* Fills struct weir_error. */
#ifndef WEIR_BASE_ERROR_H
#define WEIR_BASE_ERROR_H

#include <inttypes.h> /* for the formats of numbers in texts */

#include <weir.h>

/* Writes code and text to *error, if that is not NULL, and returns code. */
int fail(struct weir_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Does the same for a failed system call. errno gives the code and the end of the text. */
int fail_errno(struct weir_error *error, const char *what, const char *path);

#endif
