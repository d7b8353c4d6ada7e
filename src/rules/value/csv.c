#include "rules/value/csv.h"

#include "base/error.h"

#define NUMERAL_(number) #number
#define NUMERAL(number) NUMERAL_(number)

/* A place in the file. */
struct csv_place {
    struct weir_text rest;  /* from here to the end of the file */
    const char *line_begin; /* of the line that this place is in */
    unsigned line;
};

/* A row while it is read. */
struct csv_row {
    struct csv *csv;
    struct weir_error *error;
    struct csv_place here;
    size_t bytes; /* of all its fields so far */
};

void csv_init(struct csv *csv, struct weir_text file)
{
    csv->rest = text_starts(file, "\xef\xbb\xbf") ? text_after(file, 3) : file;
    csv->line = 1;
    csv->fields = 0;
}

/* ---- places ---- */

/* Returns the next byte, or -1 at the end of the file. */
static int peek(const struct csv_place *p)
{
    return p->rest.len > 0 ? (unsigned char)p->rest.at[0] : -1;
}

static void step(struct csv_place *p)
{
    bool line_end = p->rest.at[0] == '\n';
    p->rest = text_after(p->rest, 1);
    if (line_end) {
        p->line++;
        p->line_begin = p->rest.at;
    }
}

static void skip_blanks(struct csv_place *p)
{
    while (peek(p) == ' ' || peek(p) == '\t') {
        step(p);
    }
}

static void skip_line(struct csv_place *p)
{
    unsigned line = p->line;
    while (p->rest.len > 0 && p->line == line) {
        step(p);
    }
}

/* True at LF, CRLF, the end of the file, or a CR that ends the file. */
static bool at_line_end(const struct csv_place *p)
{
    bool cr = peek(p) == '\r';
    return p->rest.len == cr || p->rest.at[cr] == '\n';
}

static void set_place(struct csv_field *field, const struct csv_place *p)
{
    field->line = p->line;
    field->column = (unsigned)(p->rest.at - p->line_begin) + 1;
}

/* ---- fields ---- */

/* Reports a bad row: stores the place, and continues with the line after it. */
static int bad(struct csv_row *row, const struct csv_place *at, const char *found,
               const char *expected)
{
    struct csv *csv = row->csv;
    set_place(&csv->field[0], at);
    csv->field[0].text = (struct weir_text){at->rest.at, 0};
    csv->fields = 0;
    row->here = *at;
    skip_line(&row->here);
    return fail(row->error, WEIR_EINVAL, "found %s, expected %s", found, expected);
}

/* Reads from the present place to the comma or the line end. */
static int read_plain(struct csv_row *row, struct csv_field *field)
{
    struct csv_place *p = &row->here;
    struct weir_text text = {p->rest.at, 0};
    for (; peek(p) != ',' && !at_line_end(p); step(p)) {
        if (peek(p) == '"') {
            return bad(row, p, "a quote inside a field",
                       "the whole field in quotes, this one doubled");
        }
        if (peek(p) == '\r') {
            return bad(row, p, "a carriage return inside a line", "LF or CRLF at its end");
        }
        text.len++;
    }
    field->text = text_trim(text);
    return 0;
}

/*
 * Copies the text between the quotes, each doubled quote once, into csv->unquoted: after the other
 * fields of the row, so that it fits if the row does.
 */
static int read_quoted(struct csv_row *row, struct csv_field *field)
{
    struct csv_place open = row->here;
    struct csv_place *p = &row->here;
    char *to = row->csv->unquoted + row->bytes;
    size_t len = 0;
    bool closed = false;
    for (step(p); peek(p) >= 0; step(p)) {
        if (peek(p) == '"') {
            step(p);
            closed = peek(p) != '"';
        }
        if (closed) {
            break;
        }
        if (len == CSV_ROW_MAX - row->bytes) {
            return bad(
                row, &open,
                "a quote that is not closed within the " NUMERAL(CSV_ROW_MAX) " bytes of a row",
                "a closing quote");
        }
        to[len++] = (char)peek(p);
    }
    if (!closed) {
        return bad(row, &open, "a quote that is never closed", "a closing quote");
    }
    field->text = (struct weir_text){to, len};
    skip_blanks(p);
    if (peek(p) != ',' && !at_line_end(p)) {
        return bad(row, p, "text after a closing quote", "a comma or the end of the line");
    }
    return 0;
}

/* ---- rows ---- */

static int read_field(struct csv_row *row)
{
    struct csv *csv = row->csv;
    skip_blanks(&row->here);
    if (csv->fields == CSV_FIELDS_MAX) {
        return bad(row, &row->here, "more than " NUMERAL(CSV_FIELDS_MAX) " fields",
                   "fewer commas, or fields with commas in quotes");
    }
    struct csv_field *field = &csv->field[csv->fields];
    struct csv_place begin = row->here;
    set_place(field, &begin);
    int e = peek(&begin) == '"' ? read_quoted(row, field) : read_plain(row, field);
    if (e != 0) {
        return e;
    }
    if (field->text.len > CSV_ROW_MAX - row->bytes) {
        return bad(row, &begin, "a row of more than " NUMERAL(CSV_ROW_MAX) " bytes",
                   "shorter fields");
    }
    row->bytes += field->text.len;
    csv->fields++;
    return 0;
}

static int read_row(struct csv_row *row)
{
    for (;;) {
        int e = read_field(row);
        if (e != 0) {
            return e;
        }
        if (peek(&row->here) != ',') {
            skip_line(&row->here);
            return 1;
        }
        step(&row->here);
    }
}

/* True for a blank line or a comment. */
static bool is_skipped(struct csv_place p)
{
    skip_blanks(&p);
    return peek(&p) == '#' || at_line_end(&p);
}

int csv_next(struct csv *csv, struct weir_error *error)
{
    struct csv_row row = {.csv = csv, .error = error, .here = {csv->rest, csv->rest.at, csv->line}};
    csv->fields = 0;
    while (row.here.rest.len > 0 && is_skipped(row.here)) {
        skip_line(&row.here);
    }
    int result = row.here.rest.len > 0 ? read_row(&row) : 0;
    csv->rest = row.here.rest;
    csv->line = row.here.line;
    return result;
}
