#include "cli/grid.h"

#include "cli/buffer_format.h"
#include "common/utf8.h"

#define SAFE_BYTES_MAX (64u << 20)
#define GRID_BYTES_MAX (16u << 20)
#define CELL_PLACES_MAX 64 /* a longer cell is cut, except in the last column */

/* ---- safe text ---- */

void safe_put(struct buffer *b, struct weir_text text, bool lines)
{
    while (text.len > 0) {
        bool visible;
        struct weir_text c = utf8_take(&text, &visible);
        bool kept = visible || (lines && (c.at[0] == '\n' || c.at[0] == '\t'));
        buffer_put(b, kept ? c : TEXT(""));
        for (size_t i = 0; !kept && i < c.len; i++) {
            buffer_format(b, "\\x%02x", (unsigned)(unsigned char)c.at[i]);
        }
    }
}

void safe_print(FILE *out, struct weir_text text, bool lines)
{
    struct buffer safe;
    buffer_init(&safe, SAFE_BYTES_MAX);
    safe_put(&safe, text, lines);
    (void)fwrite(buffer_text(&safe).at, 1, buffer_len(&safe), out);
    buffer_finish(&safe);
}

/* Returns the columns that a text takes on a terminal, if no character takes two. */
static size_t width_of(struct weir_text text)
{
    size_t places = 0;
    for (size_t i = 0; i < text.len; i++) {
        places += ((unsigned char)text.at[i] & 0xc0) != 0x80;
    }
    return places;
}

struct weir_text safe_cut(struct weir_text text, size_t places)
{
    size_t n = 0;
    for (size_t i = 0; places > 0 && i < text.len; i++) {
        bool first = ((unsigned char)text.at[i] & 0xc0) != 0x80;
        if (first && n++ == places) {
            text.len = i;
        }
    }
    return text;
}

struct weir_text safe_lines(struct weir_text text, size_t lines)
{
    size_t n = 0;
    for (size_t i = 0; lines > 0 && i < text.len; i++) {
        if (text.at[i] == '\n' && ++n == lines) {
            text.len = i + 1;
        }
    }
    return text;
}

/* ---- columns ---- */

void grid_init(struct grid *g, const struct grid_column *columns, unsigned count)
{
    *g = (struct grid){.columns = columns, .count = count};
    buffer_init(&g->text, GRID_BYTES_MAX);
}

void grid_finish(struct grid *g)
{
    buffer_finish(&g->text);
}

void grid_put(struct grid *g, struct weir_text text)
{
    struct buffer safe;
    buffer_init(&safe, GRID_BYTES_MAX);
    safe_put(&safe, text, false);
    struct weir_text whole = buffer_text(&safe);
    bool last = g->cells % g->count == g->count - 1;
    struct weir_text kept = safe_cut(whole, last ? 0 : CELL_PLACES_MAX);
    buffer_put(&g->text, kept.len == whole.len ? whole : safe_cut(whole, CELL_PLACES_MAX - 3));
    buffer_put(&g->text, kept.len == whole.len ? TEXT("") : TEXT("..."));
    buffer_put_char(&g->text, 0);
    g->cells++;
    buffer_finish(&safe);
}

void grid_put_count(struct grid *g, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    grid_put(g, text_of(text));
}

static bool has_titles(const struct grid *g)
{
    return g->columns[0].title != NULL;
}

static void measure(const struct grid *g, size_t rows, size_t widths[GRID_COLUMNS_MAX])
{
    struct weir_text rest = buffer_text(&g->text);
    for (unsigned i = 0; i < g->count; i++) {
        widths[i] = has_titles(g) ? strlen(g->columns[i].title) : 0;
    }
    for (size_t i = 0; i < rows * g->count; i++) {
        size_t places = width_of(text_cut(&rest, 0));
        size_t *widest = &widths[i % g->count];
        *widest = places > *widest ? places : *widest;
    }
}

static void put_cell(struct buffer *line, struct weir_text cell, size_t width, bool right,
                     bool last)
{
    size_t places = width_of(cell);
    int blanks = places < width ? (int)(width - places) : 0;
    buffer_format(line, "%*s", right ? blanks : 0, "");
    buffer_put(line, cell);
    buffer_format(line, "%*s", last ? 0 : right ? 2 : blanks + 2, "");
}

static void end_line(struct buffer *line, struct buffer *out, size_t width)
{
    struct weir_text text = buffer_text(line);
    buffer_put(out, safe_cut(text, width));
    buffer_put_char(out, '\n');
    buffer_take(line, text.len);
}

void grid_print(const struct grid *g, struct buffer *out, size_t width, size_t rows)
{
    size_t widths[GRID_COLUMNS_MAX];
    struct weir_text rest = buffer_text(&g->text);
    struct buffer line;
    size_t all = g->text.full ? 0 : g->cells / g->count;
    rows = rows == 0 || rows > all ? all : rows;
    measure(g, rows, widths);
    buffer_init(&line, GRID_BYTES_MAX);
    for (size_t row = has_titles(g) ? 0 : 1; row <= rows; row++) {
        for (unsigned i = 0; i < g->count; i++) {
            struct weir_text cell = row == 0 ? text_of(g->columns[i].title) : text_cut(&rest, 0);
            put_cell(&line, cell, widths[i], g->columns[i].right, i + 1 == g->count);
        }
        end_line(&line, out, width);
    }
    buffer_finish(&line);
}
