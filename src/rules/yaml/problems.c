#include "rules/yaml/problems.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "common/array.h"

/* Bytes of a message. What is longer is cut: an error quotes what was found, which may be of any
 * length. A warning may have a section of a rule file to be pasted, which must not be cut. */
#define TEXT_MAX 512
#define WARNING_MAX 8192

struct problem_record {
    int severity;
    unsigned file_order; /* number of the first record with this file */
    unsigned order;
    unsigned line;
    unsigned column;
    char *file;
    char *text;
};

/* Tells the caller, and notes the first error. */
static void tell(struct problems *problems, int severity, struct place place, const char *text)
{
    struct weir_rules_message message = {severity, place.file, place.line, place.column, text};
    if (problems->tell != NULL) {
        problems->tell(problems->arg, &message);
    }
    if (severity != WEIR_RULES_ERROR || problems->first.text[0] != 0) {
        return;
    }
    if (place.line > 0) {
        (void)fail(&problems->first, WEIR_ERULES, "%s:%u:%u: %s", place.file, place.line,
                   place.column, text);
    } else {
        (void)fail(&problems->first, WEIR_ERULES, "%s: %s", place.file, text);
    }
}

static unsigned file_order(const struct problems *problems, const char *file)
{
    for (size_t i = 0; i < problems->records_count; i++) {
        if (strcmp(problems->records[i].file, file) == 0) {
            return problems->records[i].file_order;
        }
    }
    return (unsigned)problems->records_count;
}

/* Replaces control characters, which a file or its name may hold, so that the text is one line. */
static void make_line(char *text)
{
    for (; *text != 0; text++) {
        *text = (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text;
    }
}

/* Keeps a message. If there is no memory for it, it is reported at once, out of order. */
static void record(struct problems *problems, int severity, struct place place, const char *format,
                   va_list list) __attribute__((format(printf, 4, 0)));

static void record(struct problems *problems, int severity, struct place place, const char *format,
                   va_list list)
{
    struct problem_record r = {.severity = severity,
                               .file_order = file_order(problems, place.file),
                               .order = (unsigned)problems->records_count,
                               .line = place.line,
                               .column = place.column,
                               .file = strdup(place.file)};
    char text[WARNING_MAX];
    (void)vsnprintf(text, severity == WEIR_RULES_WARNING ? sizeof text : TEXT_MAX, format, list);
    make_line(text);
    r.text = strdup(text);
    if (r.file != NULL) {
        make_line(r.file);
    }
    if (r.file == NULL || r.text == NULL ||
        !array_append(&problems->records, &problems->records_count, sizeof r, &r)) {
        tell(problems, severity, place, text);
        free(r.text);
        free(r.file);
    }
}

void problem(struct problems *problems, struct place place, const char *format, ...)
{
    if (++problems->errors <= PROBLEMS_TOLD) {
        va_list list;
        va_start(list, format);
        record(problems, WEIR_RULES_ERROR, place, format, list);
        va_end(list);
    }
}

void warning(struct problems *problems, struct place place, const char *format, ...)
{
    if (++problems->warnings <= PROBLEMS_TOLD) {
        va_list list;
        va_start(list, format);
        record(problems, WEIR_RULES_WARNING, place, format, list);
        va_end(list);
    }
}

void change(struct problems *problems, struct place place, const char *format, ...)
{
    if (++problems->notes <= PROBLEMS_TOLD) {
        va_list list;
        va_start(list, format);
        record(problems, WEIR_RULES_NOTE, place, format, list);
        va_end(list);
    }
}

const char *problem_without_path(const struct weir_error *error, const char *path)
{
    size_t n = strlen(path);
    bool named = strncmp(error->text, path, n) == 0 && strncmp(error->text + n, ": ", 2) == 0;
    return named ? error->text + n + 2 : error->text;
}

static int compare_numbers(unsigned a, unsigned b)
{
    return (a > b) - (a < b);
}

static int compare(const void *left, const void *right)
{
    const struct problem_record *a = left;
    const struct problem_record *b = right;
    int c = compare_numbers(a->file_order, b->file_order);
    c = c != 0 ? c : compare_numbers(a->line, b->line);
    c = c != 0 ? c : compare_numbers(a->column, b->column);
    return c != 0 ? c : compare_numbers(a->order, b->order);
}

void problems_finish(struct problems *problems)
{
    if (problems->records_count > 0) {
        qsort(problems->records, problems->records_count, sizeof *problems->records, compare);
    }
    for (size_t i = 0; i < problems->records_count; i++) {
        struct problem_record *r = &problems->records[i];
        struct place place = {r->file, r->line, r->column};
        tell(problems, r->severity, place, r->text);
        if (i + 1 == problems->records_count && problems->errors > PROBLEMS_TOLD) {
            tell(problems, WEIR_RULES_ERROR, (struct place){r->file, 0, 0},
                 "more errors were found, which are not listed");
        }
        free(r->text);
        free(r->file);
    }
    free(problems->records);
    problems->records = NULL;
    problems->records_count = 0;
}

int problems_fail(struct problems *problems, struct weir_error *error)
{
    problems_finish(problems);
    return fail(error, WEIR_ERULES, "%s", problems->first.text);
}
