/* Reads arguments by the rows of a command, and prints its help. */
#include "cli/cli.h"

static void print_word(FILE *out, const struct cli_word *word)
{
    (void)fprintf(out, "  %-38s %s\n", word->usage, word->help);
}

static void print_words(const struct cli_command *command)
{
    struct cli_word word;
    for (size_t i = 0; command->word != NULL && command->word(i, &word); i++) {
        (void)fputs(i == 0 ? "\n" : "", stdout);
        print_word(stdout, &word);
    }
}

int cli_list_words(const struct cli_command *command, struct weir_text first, const char *found)
{
    const char *quote = found != NULL ? "'" : "";
    struct cli_word word;
    (void)cli_complain(command, "%.*s%sfound %s%s%s, expected one of these:", TEXT_ARGS(first),
                       first.len > 0 ? ": " : "", quote, found != NULL ? found : "nothing", quote);
    for (size_t i = 0; command->word(i, &word); i++) {
        struct weir_text usage = text_of(word.usage);
        if (text_equal(text_before(usage, ' '), first) || first.len == 0) {
            print_word(stderr, &word);
        }
    }
    return CLI_USAGE;
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

/*
 * Reads "--name=value", or "--name" and the next argument, which may be NULL. Sets *took_next if it
 * used that one.
 */
static int read_option(const struct cli_command *command, const char *word, const char *next,
                       void *settings, struct cli_given *given, bool *took_next)
{
    const char *equals = strchr(word, '=');
    struct weir_text name = {word, equals != NULL ? (size_t)(equals - word) : strlen(word)};
    struct suggestion s = suggest_begin(name);
    size_t i = 0;
    while (i < command->options_count && !text_is(name, command->options[i].name)) {
        suggest_offer(&s, command->options[i++].name);
    }
    if (i == command->options_count) {
        return cli_unknown(command, "option", &s);
    }
    const struct cli_option *o = &command->options[i];
    struct cli_value value = {command, o, o->name, equals != NULL ? equals + 1 : next};
    *took_next = o->argument != NULL && equals == NULL;
    given->options |= UINT64_C(1) << i;
    if (o->argument == NULL && equals != NULL) {
        return cli_complain(command, "%s: found the value '%s', expected none", o->name,
                            equals + 1);
    }
    if (o->argument == NULL) {
        value.text = "";
    } else if (value.text == NULL) {
        return cli_complain(command, "%s: found no value, expected %s", o->name, o->argument);
    }
    return cli_read_value(&value, settings);
}

bool cli_is_given(const struct cli_given *given, const char *name)
{
    size_t i = 0;
    while (i < given->command->options_count &&
           strcmp(given->command->options[i].name, name) != 0) {
        i++;
    }
    return (given->options >> i & 1) != 0;
}

/* Checks the number of operands by what the command's row says. */
static int check_operands(const struct cli_command *c, const struct cli_given *given)
{
    bool several = strstr(c->operands, "...") != NULL || strchr(c->operands, ' ') != NULL;
    if (c->operands[0] == 0 && given->count > 0) {
        return cli_complain(c, "found '%s', expected options only", given->operands[0]);
    }
    if (given->count > 1 && !several) {
        const char *name = c->operands + (c->operands[0] == '[');
        return cli_complain(c, "found '%s' and '%s', expected one %.*s", given->operands[0],
                            given->operands[1], (int)strcspn(name, "]"), name);
    }
    if (given->count == 0 && c->word != NULL) {
        return cli_list_words(c, TEXT(""), NULL);
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
    bool plain = false; /* "--" has been read: no more options */
    *given = (struct cli_given){.command = command, .operands = argv};
    if (command->verbatim) {
        given->count = argc - 1;
        given->operands = argv + 1;
        return CLI_END;
    }
    for (int i = 1; i < argc; i++) {
        bool took_next = false;
        if (plain || argv[i][0] != '-' || argv[i][1] == 0) {
            argv[given->count++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            plain = true;
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(command);
            return CLI_OK;
        } else if (read_option(command, argv[i], i + 1 < argc ? argv[i + 1] : NULL, settings, given,
                               &took_next) != CLI_OK) {
            return CLI_USAGE;
        }
        i += took_next;
    }
    return check_operands(command, given);
}
