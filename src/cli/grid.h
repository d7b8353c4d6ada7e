/*
 * Prints text from other sources on a terminal: makes it safe, and sets it in columns. A name or
 * a key may contain any byte; control characters are shown, never sent to the terminal.
 */
#ifndef WEIR_CLI_GRID_H
#define WEIR_CLI_GRID_H

#include <stdint.h>
#include <stdio.h>

#include "common/buffer.h"

/* Appends a text. A byte that is not visible is written as \xNN. With `lines`, LF and tabs stay. */
void safe_put(struct buffer *b, struct weir_text text, bool lines);

/* Prints a text in the same way. */
void safe_print(FILE *out, struct weir_text text, bool lines);

/* Return the beginning of a safe text: at most this many columns or lines (0: all). */
struct weir_text safe_cut(struct weir_text text, size_t places);
struct weir_text safe_lines(struct weir_text text, size_t lines);

struct grid_column {
    const char *title; /* NULL in the first column: the grid has no titles */
    bool right;        /* align right, for numbers */
};

#define GRID_COLUMNS_MAX 17

/* Rows of cells. Cells are added one after the other; a row is full when each column has one. */
struct grid {
    const struct grid_column *columns;
    unsigned count;
    struct buffer text; /* text of all cells, each followed by a NUL */
    size_t cells;
};

void grid_init(struct grid *g, const struct grid_column *columns, unsigned count);
void grid_finish(struct grid *g);

void grid_put(struct grid *g, struct weir_text text); /* makes the text safe */
void grid_put_count(struct grid *g, uint64_t number);

/*
 * Writes aligned lines, each cut at `width` columns unless that is 0; at most `rows` rows unless
 * 0.
 */
void grid_print(const struct grid *g, struct buffer *out, size_t width, size_t rows);

#endif
