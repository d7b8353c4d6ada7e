/* Lists the commands, and finds and runs the one that the arguments name. */
#include <stdlib.h>

#include "cli/cli.h"

static void list_one(FILE *out, const struct cli_command *command)
{
    char left[64];
    (void)snprintf(left, sizeof left, "%s %s", command->name, command->operands);
    (void)fprintf(out, "  %s %-27s %s\n", cli_program, left, command->summary);
}

static void list_all(FILE *out)
{
    (void)fprintf(out, "%s %s: rate limiting\n\n", cli_program, weir_version());
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        list_one(out, cli_commands[i]);
    }
    (void)fprintf(out, "\n'%s COMMAND --help' lists the options of a command.\n", cli_program);
}

int cli_words(const char *name, int argc, char **argv)
{
    const char *second = strchr(name, ' ');
    struct weir_text first = {name, strcspn(name, " ")};
    if (argc < (second != NULL ? 2 : 1) || !text_is(first, argv[0])) {
        return 0;
    }
    return second == NULL ? 1 : strcmp(second + 1, argv[1]) == 0 ? 2 : 0;
}

/* Lists the commands that begin with a word, after a heading. Returns false if there are none. */
static bool list_group(FILE *out, const char *first, const char *heading)
{
    size_t length = strlen(first);
    bool listed = false;
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        const char *name = cli_commands[i]->name;
        if (strncmp(name, first, length) == 0 && name[length] == ' ') {
            (void)fputs(listed ? "" : heading, out);
            list_one(out, cli_commands[i]);
            listed = true;
        }
    }
    return listed;
}

/* For "weir config" alone, with another second word, and for words that begin no command. */
static int unknown(int argc, char **argv)
{
    struct suggestion s = suggest_begin(text_of(argv[0]));
    const char *found = argc > 1 ? argv[1] : "nothing";
    const char *quote = argc > 1 ? "'" : "";
    char heading[256];
    (void)snprintf(heading, sizeof heading, "%s %s: found %s%s%s, expected one of these:\n",
                   cli_program, argv[0], quote, found, quote);
    if ((strcmp(found, "--help") == 0 || strcmp(found, "-h") == 0) &&
        list_group(stdout, argv[0], "")) {
        return CLI_OK;
    }
    if (list_group(stderr, argv[0], heading)) {
        return CLI_USAGE;
    }
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        const char *name = cli_commands[i]->name;
        char word[32];
        (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(name, " "), name);
        unsigned distance = s.distance;
        suggest_offer(&s, word);
        s.nearest = s.distance < distance ? name : s.nearest;
    }
    return cli_unknown(NULL, "command", &s);
}

int cli_run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_given given;
    void *settings = calloc(1, command->settings_bytes + 1);
    if (settings == NULL) {
        return cli_fail(command, "out of memory");
    }
    if (command->defaults != NULL) {
        memcpy(settings, command->defaults, command->settings_bytes);
    }
    int code = cli_read(command, argc, argv, settings, &given);
    code = code == CLI_END ? command->run(&given, settings) : code;
    free(settings);
    return code;
}

/* Runs the command that argv[0], or argv[0] and argv[1], name. Returns its exit code. */
static int dispatch(int argc, char **argv)
{
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        int words = cli_words(cli_commands[i]->name, argc, argv);
        if (words > 0) {
            return cli_run(cli_commands[i], argc - words + 1, argv + words - 1);
        }
    }
    return unknown(argc, argv);
}

/* "weir help replay" is "weir replay --help". */
static int run_help(const struct cli_given *given, void *settings)
{
    static char help[] = "--help";
    (void)settings;
    if (given->count == 0) {
        list_all(stdout);
        return CLI_OK;
    }
    if (given->count > 2) {
        return cli_complain(&cli_help, "found '%s', expected one command", given->operands[2]);
    }
    char *words[] = {given->operands[0], given->count > 1 ? given->operands[1] : help, help, NULL};
    return dispatch(given->count + 1, words);
}

static int run_version(const struct cli_given *given, void *settings)
{
    (void)given;
    (void)settings;
    (void)puts(weir_version());
    return CLI_OK;
}

int cli_main(int argc, char **argv)
{
    static char help[] = "help";
    static char version[] = "version";
    if (argc < 2) {
        list_all(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        argv[1] = help;
    } else if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-v") == 0) {
        argv[1] = version;
    }
    int code = dispatch(argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        return cli_fail(NULL, "cannot write the output");
    }
    return code;
}

const struct cli_command cli_help = {
    "help", "[COMMAND...]", "print the list of commands, or the options of one", .run = run_help};
const struct cli_command cli_version = {"version", "", "print the version", .run = run_version};
