/*
 * Reads rows of comma-separated fields (RFC 4180) from memory: quoted fields with doubled quotes
 * and commas or line ends inside, LF or CRLF, a missing final line end, a leading byte order mark.
 * In addition, blank lines and lines that begin with # (blanks may come before it) are skipped, and
 * spaces and tabs around fields, outside of the quotes, are trimmed. Nothing is allocated.
 */
#ifndef WEIR_RULES_VALUE_CSV_H
#define WEIR_RULES_VALUE_CSV_H

#include <weir.h>

#include "common/text.h"

#define CSV_FIELDS_MAX 8
#define CSV_ROW_MAX 16384 /* bytes of one row: of all its fields together, unquoted */

struct csv_field {
    struct weir_text text;
    unsigned line;   /* from 1; of the field's first byte or quote, */
    unsigned column; /* in bytes from 1, without a byte order mark */
};

struct csv {
    struct weir_text rest; /* begins at the start of a line */
    unsigned line;         /* of the next byte */
    unsigned fields;       /* 0 after a bad row */
    struct csv_field field[CSV_FIELDS_MAX];
    char unquoted[CSV_ROW_MAX]; /* holds fields that were in quotes until the next row */
};

void csv_init(struct csv *csv, struct weir_text file);

/*
 * Reads the next row into csv->field. Returns 1; 0 at the end; WEIR_EINVAL for a bad row, with
 * *error (may be NULL) and its place in field[0].line/.column. After a bad row the next call
 * continues with the line after that place. Fields lie in the file or in csv->unquoted, may be
 * empty and may hold any byte.
 */
int csv_next(struct csv *csv, struct weir_error *error);

#endif
