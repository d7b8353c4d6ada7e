#include "policy/problems.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"

#define TEXT_MAX 512

static void tell(struct problems *problems, int severity, struct place place, const char *text)
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

void problem(struct problems *problems, struct place place, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    problems->errors++;
    if (problems->errors == 1 && place.line > 0) {
        (void)fail(&problems->first, WEIR_ERULES, "%s:%u:%u: %s", place.file, place.line,
                   place.column, text);
    } else if (problems->errors == 1) {
        (void)fail(&problems->first, WEIR_ERULES, "%s: %s", place.file, text);
    }
    if (problems->errors <= PROBLEMS_TOLD) {
        tell(problems, WEIR_RULES_ERROR, place, text);
    } else if (problems->errors == PROBLEMS_TOLD + 1) {
        tell(problems, WEIR_RULES_ERROR, (struct place){place.file, 0, 0},
             "more errors follow, which are not listed");
    }
}

void warning(struct problems *problems, struct place place, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (++problems->warnings <= PROBLEMS_TOLD) {
        tell(problems, WEIR_RULES_WARNING, place, text);
    }
}

int problems_fail(const struct problems *problems, struct weir_error *error)
{
    return fail(error, WEIR_ERULES, "%s", problems->first.text);
}
