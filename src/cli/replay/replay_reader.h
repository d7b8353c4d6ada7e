/*
 * Splits a command stream into lines, from bytes that arrive in pieces of any size. Pure: it
 * does no I/O and no allocation, and the result does not depend on where the pieces end.
 *
 *     CAPACITY                         a whole number from 0 up
 *     WINDOW
 *     N                                how many lines follow
 *     request CLIENT TIMESTAMP [COST]  words between blanks or tabs
 *
 * Lines end with LF or CRLF; the last one may lack its line end.
 */
#ifndef WEIR_CLI_REPLAY_REPLAY_READER_H
#define WEIR_CLI_REPLAY_REPLAY_READER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "common/text.h"

/*
 * The longest line, without its line end. A buffer of two bytes more holds any line that is
 * read.
 */
#define REPLAY_LINE_MAX 65536

/* Initialise it to zero. */
struct replay_reader {
    uint64_t line;    /* number of the last line taken, from 1 */
    uint64_t dropped; /* discarded bytes of a line whose end has not been found yet */
    size_t searched;  /* bytes of the next line that were searched and have no line end */
};

enum replay_outcome {
    REPLAY_MORE,    /* no complete line is left; if `end` is true: no line at all */
    REPLAY_LINE,    /* *line is set, without its line end */
    REPLAY_TOO_LONG /* a line of more than REPLAY_LINE_MAX bytes has ended */
};

/*
 * Takes the next line from `bytes`, which begin where the last call's *used ended; `end`: no
 * bytes follow them. The caller drops *used bytes, also after REPLAY_MORE: a line that is too
 * long is not kept until it ends.
 */
enum replay_outcome replay_reader_next(struct replay_reader *r, struct weir_text bytes, bool end,
                                       size_t *used, struct weir_text *line);

struct replay_request {
    struct weir_text client; /* 1 to WEIR_KEY_MAX bytes, inside the line */
    int64_t time;
    uint64_t cost; /* 1 unless the line says otherwise */
};

/* Returns true if the line has nothing but blanks and tabs. */
bool replay_line_is_blank(struct weir_text line);

/* Both return 0, or WEIR_EINVAL with "found ..., expected ..."; then *out is undefined. */
int replay_number_parse(struct weir_text line, const char *what, int64_t *out,
                        struct weir_error *error);
int replay_request_parse(struct weir_text line, struct replay_request *out,
                         struct weir_error *error);

#endif
