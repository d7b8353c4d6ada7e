/* Reads arguments by the rows of a command, and prints its help. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "rules/value/suggest.h"

void cli_args_init(struct cli_args *args, const struct cli_command *command, int argc, char **argv)
{
    *args = (struct cli_args){.command = command, .argc = argc, .argv = argv, .next = 1};
}

int cli_complain(const struct cli_command *command, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)fprintf(stderr, "%s %s: ", cli_program, command->name);
    (void)vfprintf(stderr, format, list);
    (void)fputc('\n', stderr);
    va_end(list);
    return CLI_USAGE;
}

static void print_words(const struct cli_command *command)
{
    const struct cli_word *w = command->word != NULL ? command->word(0) : NULL;
    for (size_t i = 0; w != NULL; w = command->word(++i)) {
        (void)printf("%s  %-38s %s\n", i == 0 ? "\n" : "", w->usage, w->help);
    }
}

static void print_help(const struct cli_command *command)
{
    (void)printf("usage: %s %s%s%s%s\n\n%s.\n", cli_program, command->name,
                 command->options_count > 0 ? " [options]" : "",
                 command->operands[0] != 0 ? " " : "", command->operands, command->summary);
    print_words(command);
    for (size_t i = 0; i < command->options_count; i++) {
        const struct cli_option *o = &command->options[i];
        char left[64];
        (void)snprintf(left, sizeof left, "%s %s", o->name, o->argument != NULL ? o->argument : "");
        (void)printf("%s  %-26s %s\n", i == 0 ? "\n" : "", left, o->help);
    }
}

static int unknown(const struct cli_args *args, struct text name)
{
    const char *nearest = NULL;
    unsigned best = suggest_limit(name) + 1;
    for (size_t i = 0; i < args->command->options_count; i++) {
        unsigned distance = suggest_distance(name, args->command->options[i].name);
        if (distance < best) {
            best = distance;
            nearest = args->command->options[i].name;
        }
    }
    if (nearest != NULL) {
        (void)cli_complain(args->command, "unknown option '%.*s'; did you mean '%s'?",
                           TEXT_ARGS(name), nearest);
    } else {
        (void)cli_complain(args->command, "unknown option '%.*s'; '%s %s --help' lists them",
                           TEXT_ARGS(name), cli_program, args->command->name);
    }
    return CLI_BAD;
}

static int found(struct cli_args *args, size_t i, const char *equals)
{
    const struct cli_option *o = &args->command->options[i];
    args->value = NULL;
    if (o->argument == NULL && equals == NULL) {
        return (int)i;
    }
    if (o->argument == NULL) {
        (void)cli_complain(args->command, "%s takes no value, found '%s'", o->name, equals + 1);
        return CLI_BAD;
    }
    if (equals != NULL) {
        args->value = equals + 1;
    } else if (args->next < args->argc) {
        args->value = args->argv[args->next++];
    } else {
        (void)cli_complain(args->command, "%s needs a value: %s", o->name, o->argument);
        return CLI_BAD;
    }
    return (int)i;
}

int cli_next(struct cli_args *args)
{
    if (args->next >= args->argc) {
        return CLI_END;
    }
    const char *word = args->argv[args->next++];
    if (strcmp(word, "--") == 0 && !args->plain) {
        args->plain = true;
        return cli_next(args);
    }
    if (word[0] != '-' || word[1] == 0 || args->plain) {
        args->value = word;
        return CLI_OPERAND;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        print_help(args->command);
        return CLI_HELP;
    }
    const char *equals = strchr(word, '=');
    struct text name = {word, equals != NULL ? (size_t)(equals - word) : strlen(word)};
    for (size_t i = 0; i < args->command->options_count; i++) {
        if (text_is(name, args->command->options[i].name)) {
            return found(args, i, equals);
        }
    }
    return unknown(args, name);
}
