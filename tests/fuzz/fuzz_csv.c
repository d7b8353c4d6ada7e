/*
 * A file of comma-separated fields: each call makes progress by whole lines; fields lie in the file
 * or in csv->unquoted, at the place that they name; a row written again, in quotes, is
 * read as the same row; and any bytes at all can be one quoted field.
 */
#include <stdlib.h>

#include "rules/value/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition) {
        abort();
    }
}

static bool lies_in(struct weir_text part, const char *at, size_t len)
{
    return part.at >= at && part.len <= len && (size_t)(part.at - at) <= len - part.len;
}

/* The byte at a line and column, both from 1; the file has no byte order mark. */
static const char *byte_at(struct weir_text file, unsigned line, unsigned column)
{
    const char *at = file.at;
    const char *end = file.at + file.len;
    for (; line > 1; line--) {
        at = memchr(at, '\n', (size_t)(end - at));
        require(at != NULL);
        at++;
    }
    require(column >= 1 && column - 1 <= (size_t)(end - at));
    require(memchr(at, '\n', column - 1) == NULL);
    return at + column - 1;
}

static void check_field(const struct csv *csv, struct weir_text file, const struct csv_field *field)
{
    const char *at = byte_at(file, field->line, field->column);
    bool quoted = at < file.at + file.len && *at == '"';
    if (lies_in(field->text, csv->unquoted, sizeof csv->unquoted)) {
        require(quoted);
    } else {
        require(lies_in(field->text, file.at, file.len));
        require(field->text.at == at && !quoted);
        require(memchr(field->text.at, '"', field->text.len) == NULL);
    }
}

/* Two bytes for each of the largest row, and the quotes and commas. */
static char written[2 * CSV_ROW_MAX + 3 * CSV_FIELDS_MAX + 1];

static size_t write_field(struct weir_text text, size_t n)
{
    written[n++] = '"';
    for (size_t i = 0; i < text.len; i++) {
        written[n++] = text.at[i];
        if (text.at[i] == '"') {
            written[n++] = '"';
        }
    }
    written[n++] = '"';
    return n;
}

static void check_written_again(const struct csv *csv)
{
    static struct csv again;
    size_t n = 0;
    for (unsigned i = 0; i < csv->fields; i++) {
        n = write_field(csv->field[i].text, n);
        written[n++] = i + 1 < csv->fields ? ',' : '\n';
    }
    csv_init(&again, (struct weir_text){written, n});
    require(csv_next(&again, NULL) == 1 && again.fields == csv->fields);
    for (unsigned i = 0; i < csv->fields; i++) {
        require(text_equal(again.field[i].text, csv->field[i].text));
    }
    require(csv_next(&again, NULL) == 0);
}

static void check_row(const struct csv *csv, struct weir_text file)
{
    size_t bytes = 0;
    require(csv->fields >= 1 && csv->fields <= CSV_FIELDS_MAX);
    for (unsigned i = 0; i < csv->fields; i++) {
        check_field(csv, file, &csv->field[i]);
        bytes += csv->field[i].text.len;
    }
    require(bytes <= CSV_ROW_MAX);
    check_written_again(csv);
}

static void check_error(const struct csv *csv, struct weir_text file,
                        const struct weir_error *error)
{
    require(csv->fields == 0 && error->code == WEIR_EINVAL);
    require(memchr(error->text, 0, sizeof error->text) != NULL);
    require(strstr(error->text, ", expected ") != NULL);
    const char *at = byte_at(file, csv->field[0].line, csv->field[0].column);
    require(at < csv->rest.at || at == file.at + file.len);
    require(csv->rest.len == 0 || csv->line == csv->field[0].line + 1);
}

/* What is left begins with a line, the one that csv->line says. */
static void check_rest(const struct csv *csv, struct weir_text file)
{
    require(csv->rest.at + csv->rest.len == file.at + file.len);
    if (csv->rest.len > 0) {
        require(byte_at(file, csv->line, 1) == csv->rest.at);
    }
}

static void check_one_field(struct weir_text text)
{
    static struct csv csv;
    text.len = text.len < CSV_ROW_MAX ? text.len : CSV_ROW_MAX;
    csv_init(&csv, (struct weir_text){written, write_field(text, 0)});
    require(csv_next(&csv, NULL) == 1);
    require(csv.fields == 1 && text_equal(csv.field[0].text, text));
    require(csv_next(&csv, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct csv csv;
    struct weir_text file = {(const char *)data, size};
    check_one_field(file);
    csv_init(&csv, file);
    file = csv.rest; /* without a byte order mark */
    for (;;) {
        size_t before = csv.rest.len;
        struct weir_error error;
        memset(&error, 'x', sizeof error);
        int e = csv_next(&csv, &error);
        check_rest(&csv, file);
        if (e == 0) {
            require(csv.rest.len == 0 && csv.fields == 0);
            return 0;
        }
        require(csv.rest.len < before);
        if (e == 1) {
            check_row(&csv, file);
        } else {
            require(e == WEIR_EINVAL);
            check_error(&csv, file, &error);
        }
    }
}
