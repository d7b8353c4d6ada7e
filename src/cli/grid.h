/*
 * Text from somewhere else on a terminal: made harmless, and set in columns.
 * A name or a key may hold any byte; what drives a terminal is shown, not obeyed.
 */
#ifndef WEIR_CLI_GRID_H
#define WEIR_CLI_GRID_H

#include <stdint.h>

#include "common/buffer.h"

/* Appends a text; a byte that is not visible is written \xNN. With `lines`, LF and tabs stay. */
void safe_put(struct buffer *b, struct text text, bool lines);

/* Places that it takes on a terminal, as long as no character takes two. */
size_t safe_width(struct text text);

/* The beginning of a harmless text: so many places (0: all), so many lines (0: all). */
struct text safe_cut(struct text text, size_t places);
struct text safe_lines(struct text text, size_t lines);

struct grid_column {
    const char *title; /* NULL in the first one: the grid has none */
    bool right;        /* numbers */
};

#define GRID_COLUMNS_MAX 16

/* Rows of cells. Cells are put one after the other; a row is full when each column has one. */
struct grid {
    const struct grid_column *columns;
    unsigned count;
    struct buffer text; /* of all cells, each with a NUL behind it */
    size_t cells;
};

void grid_init(struct grid *g, const struct grid_column *columns, unsigned count);
void grid_finish(struct grid *g);

void grid_put(struct grid *g, struct text text); /* made harmless here */
void grid_put_count(struct grid *g, uint64_t number);

/* As aligned lines, each cut at `width` places if that is not 0; at most `rows` rows if not 0. */
void grid_print(const struct grid *g, struct buffer *out, size_t width, size_t rows);

#endif
