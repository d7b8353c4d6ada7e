#include "rules/file/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

#define TEXT_MAX 512

struct problem_record {
    int severity;
    unsigned file_order; /* number of the first record with this file */
    unsigned order;
    unsigned line;
    unsigned column;
    char *file;
    char text[TEXT_MAX];
};

static void tell(const struct problems *problems, int severity, struct place place,
                 const char *text)
{
    if (problems->tell != NULL) {
        struct weir_rules_message message = {.severity = severity,
                                             .file = place.file,
                                             .line = place.line,
                                             .column = place.column,
                                             .text = text};
        problems->tell(problems->arg, &message);
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

static void note_first(struct problems *problems, struct place place, const char *text)
{
    if (problems->first.text[0] != 0) {
        return;
    }
    if (place.line > 0) {
        (void)fail(&problems->first, WEIR_ERULES, "%s:%u:%u: %s", place.file, place.line,
                   place.column, text);
    } else {
        (void)fail(&problems->first, WEIR_ERULES, "%s: %s", place.file, text);
    }
}

/* Formats a message as one line, whatever bytes a file or its name holds. */
static void format_line(char *to, size_t size, const char *format, va_list list)
    __attribute__((format(printf, 3, 0)));

static void format_line(char *to, size_t size, const char *format, va_list list)
{
    (void)vsnprintf(to, size, format, list);
    for (; *to != 0; to++) {
        *to = (unsigned char)*to < ' ' || *to == 0x7f ? '?' : *to;
    }
}

/* Keeps a message. If there is no memory for it, it is reported at once, out of order. */
static void record(struct problems *problems, int severity, struct place place, const char *format,
                   va_list list) __attribute__((format(printf, 4, 0)));

static void record(struct problems *problems, int severity, struct place place, const char *format,
                   va_list list)
{
    struct problem_record *grown =
        realloc(problems->records, (problems->records_count + 1) * sizeof *grown);
    char *file = strdup(place.file);
    problems->records = grown != NULL ? grown : problems->records;
    if (grown == NULL || file == NULL) {
        char text[TEXT_MAX];
        format_line(text, sizeof text, format, list);
        tell(problems, severity, place, text);
        if (severity == WEIR_RULES_ERROR) {
            note_first(problems, place, text);
        }
        free(file);
        return;
    }
    struct problem_record *r = &problems->records[problems->records_count];
    *r = (struct problem_record){.severity = severity,
                                 .file_order = file_order(problems, place.file),
                                 .order = (unsigned)problems->records_count,
                                 .line = place.line,
                                 .column = place.column,
                                 .file = file};
    format_line(r->text, sizeof r->text, format, list);
    for (char *c = file; *c != 0; c++) {
        *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
    }
    problems->records_count++;
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
        if (r->severity == WEIR_RULES_ERROR) {
            note_first(problems, place, r->text);
        }
        if (i + 1 == problems->records_count && problems->errors > PROBLEMS_TOLD) {
            tell(problems, WEIR_RULES_ERROR, (struct place){r->file, 0, 0},
                 "more errors follow, which are not listed");
        }
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
