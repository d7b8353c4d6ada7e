/* Prints the messages of all commands on standard error. */
#include <stdarg.h>

#include "cli/cli.h"
#include "cli/grid.h"
#include "cli/output/colour.h"

int cli_complain(const struct cli_command *command, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)fprintf(stderr, "%s%s%s%s:%s ", colour_begin(stderr, COLOUR_TITLE), cli_program,
                  command != NULL ? " " : "", command != NULL ? command->name : "",
                  colour_end(stderr));
    (void)vfprintf(stderr, format, list);
    (void)fputc('\n', stderr);
    va_end(list);
    return CLI_USAGE;
}

void cli_complain_of(const struct cli_command *command, struct weir_text text)
{
    struct buffer safe;
    buffer_init(&safe, 4 * text.len + 1); /* a byte that is not visible takes four: \xNN */
    safe_put(&safe, text, false);
    (void)cli_complain(command, "%.*s", TEXT_ARGS(buffer_text(&safe)));
    buffer_finish(&safe);
}

int cli_expected(const struct cli_value *value, const char *format, ...)
{
    char expected[256];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(expected, sizeof expected, format, list);
    va_end(list);
    return cli_complain(value->command, "%s: found '%s', expected %s", value->from, value->text,
                        expected);
}

int cli_unknown(const struct cli_command *command, const char *what, const struct suggestion *s)
{
    if (s->nearest != NULL) {
        return cli_complain(command, "unknown %s '%.*s'; did you mean '%s'?", what,
                            TEXT_ARGS(s->word), s->nearest);
    }
    return cli_complain(command, "unknown %s '%.*s'; '%s%s%s --help' lists them", what,
                        TEXT_ARGS(s->word), cli_program, command != NULL ? " " : "",
                        command != NULL ? command->name : "");
}

void cli_tell_rules(void *arg, const struct weir_rules_message *message)
{
    (void)arg;
    char place[32] = "";
    if (message->line > 0) {
        (void)snprintf(place, sizeof place, ":%u:%u", message->line, message->column);
    }
    bool warning = message->severity == WEIR_RULES_WARNING;
    (void)fprintf(stderr, "%s%s%s:%s %s%s\n",
                  colour_begin(stderr, warning ? COLOUR_WARNING : COLOUR_BAD), message->file, place,
                  colour_end(stderr), warning ? "warning: " : "", message->text);
}
