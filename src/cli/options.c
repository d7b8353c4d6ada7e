/* Reads arguments by the rows of a command, and prints its help. */
#include "cli/cli.h"

void cli_args_init(struct cli_args *args, const struct cli_command *command, int argc, char **argv)
{
    *args = (struct cli_args){.command = command, .argc = argc, .argv = argv, .next = 1};
}

static void print_words(const struct cli_command *command)
{
    const char *help;
    const char *usage = command->word != NULL ? command->word(0, &help) : NULL;
    for (size_t i = 0; usage != NULL; usage = command->word(++i, &help)) {
        (void)printf("%s  %-38s %s\n", i == 0 ? "\n" : "", usage, help);
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
    struct suggestion s = suggest_begin(name);
    for (size_t i = 0; i < args->command->options_count; i++) {
        suggest_offer(&s, args->command->options[i].name);
    }
    (void)cli_unknown(args->command, "option", &s);
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
        (void)cli_complain(args->command, "%s: found the value '%s', expected none", o->name,
                           equals + 1);
        return CLI_BAD;
    }
    if (equals != NULL) {
        args->value = equals + 1;
    } else if (args->next < args->argc) {
        args->value = args->argv[args->next++];
    } else {
        (void)cli_complain(args->command, "%s: found no value, expected %s", o->name, o->argument);
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

/* Checks the number of operands by what the command's row says. */
static int check_operands(const struct cli_command *c, const struct cli_given *given)
{
    bool several = strstr(c->operands, "...") != NULL;
    if (c->operands[0] == 0 && given->count > 0) {
        return cli_complain(c, "found '%s', expected options only", given->operands[0]);
    }
    if (given->count > 1 && !several) {
        const char *name = c->operands + (c->operands[0] == '[');
        return cli_complain(c, "found '%s' and '%s', expected one %.*s", given->operands[0],
                            given->operands[1], (int)strcspn(name, "]"), name);
    }
    if (given->count == 0 && c->operands[0] != 0 && c->operands[0] != '[') {
        return cli_complain(c, "found nothing, expected %s; '%s %s --help' describes it",
                            c->operands, cli_program, c->name);
    }
    return CLI_END;
}

int cli_read(const struct cli_command *command, int argc, char **argv, void *settings,
             struct cli_given *given)
{
    struct cli_given ignored;
    struct cli_args args;
    given = given != NULL ? given : &ignored;
    *given = (struct cli_given){.operands = argv};
    cli_args_init(&args, command, argc, argv);
    for (int row; (row = cli_next(&args)) != CLI_END;) {
        if (row == CLI_HELP || row == CLI_BAD) {
            return row == CLI_HELP ? CLI_OK : CLI_USAGE;
        }
        if (row == CLI_OPERAND) {
            argv[given->count++] = argv[args.next - 1];
            continue;
        }
        const struct cli_option *o = &command->options[row];
        struct cli_value value = {command, o, o->name, args.value != NULL ? args.value : ""};
        given->options |= UINT32_C(1) << row;
        if (cli_read_value(&value, settings) != CLI_OK) {
            return CLI_USAGE;
        }
    }
    return check_operands(command, given);
}
