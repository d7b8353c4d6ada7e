/*
 * The lines of a command stream, from bytes that come in pieces of any size. Pure:
 * no I/O, no allocation, and what it says does not depend on where the pieces end.
 *
 *     CAPACITY                            a whole number from 0 up
 *     WINDOW
 *     N                                   how many lines follow
 *     request CLIENT TIMESTAMP [COST]     words between blanks or tabs
 *
 * Lines end with LF or CRLF, the last one perhaps with nothing.
 */
#ifndef WEIR_CLI_REPLAY_REPLAY_READER_H
#define WEIR_CLI_REPLAY_REPLAY_READER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "common/text.h"

/* The longest line, its end not counted. A buffer of two bytes more holds any line that is read. */
#define REPLAY_LINE_MAX 65536

/* Zero to begin with. */
struct replay_reader {
    uint64_t line;    /* number of the line that was last taken, from 1 */
    uint64_t dropped; /* bytes of a line without end so far that are gone */
    size_t searched;  /* bytes of the next line that were seen before and hold no end */
};

enum replay_outcome {
    REPLAY_MORE,    /* no whole line is left; once `end` is true: no line at all */
    REPLAY_LINE,    /* *line, without its end */
    REPLAY_TOO_LONG /* a line of more than REPLAY_LINE_MAX bytes is over */
};

/*
 * Takes the next line off `bytes`, which begin where the last call's *used ended;
 * `end`: nothing follows them. *used are done with, for REPLAY_MORE too: a line
 * that is too long is not kept until it ends.
 */
enum replay_outcome replay_reader_next(struct replay_reader *r, struct text bytes, bool end,
                                       size_t *used, struct text *line);

struct replay_request {
    struct text client; /* 1 to WEIR_KEY_MAX bytes, inside the line */
    int64_t time;
    uint64_t cost; /* 1 unless the line says otherwise */
};

/* Nothing but blanks and tabs. */
bool replay_line_is_blank(struct text line);

/* Both: 0, or WEIR_EINVAL with "found ..., expected ..."; then *out is undefined. */
int replay_number_parse(struct text line, const char *what, int64_t *out, struct weir_error *error);
int replay_request_parse(struct text line, struct replay_request *out, struct weir_error *error);

#endif
