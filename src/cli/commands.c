/* Lists the commands, and finds and runs the one that the arguments name. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "rules/value/suggest.h"

static int run_help(int argc, char **argv);
static int run_version(int argc, char **argv);

const struct cli_command cli_help = CLI_PLAIN_COMMAND(
    "help", "[COMMAND]", "print the list of commands, or the options of one", run_help);
const struct cli_command cli_version =
    CLI_PLAIN_COMMAND("version", "", "print the version", run_version);

static void list_one(FILE *out, const struct cli_command *command)
{
    char left[64];
    (void)snprintf(left, sizeof left, "%s %s", command->name, command->operands);
    (void)fprintf(out, "  %s %-22s %s\n", cli_program, left, command->summary);
}

void cli_list(FILE *out)
{
    (void)fprintf(out, "%s %s: rate limiting\n\n", cli_program, weir_version());
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        list_one(out, cli_commands[i]);
    }
    (void)fprintf(out, "\n'%s COMMAND --help' lists the options of one.\n", cli_program);
}

/* For commands without options and operands. Returns CLI_END, or the exit code. */
static int only_the_name(const struct cli_command *command, int argc, char **argv)
{
    struct cli_args args;
    cli_args_init(&args, command, argc, argv);
    int next = cli_next(&args);
    if (next == CLI_OPERAND) {
        return cli_complain(command, "takes no arguments, found '%s'", args.value);
    }
    return next == CLI_END ? CLI_END : next == CLI_HELP ? CLI_OK : CLI_USAGE;
}

/* "weir help replay" is "weir replay --help". */
static int run_help(int argc, char **argv)
{
    static char help[] = "--help";
    if (argc < 2 || argv[1][0] == '-') {
        int code = only_the_name(&cli_help, argc, argv);
        if (code == CLI_END) {
            cli_list(stdout);
            code = CLI_OK;
        }
        return code;
    }
    if (argc > 3) {
        return cli_complain(&cli_help, "found '%s', expected one command", argv[3]);
    }
    char *words[] = {argv[1], argc > 2 ? argv[2] : help, help, NULL};
    return cli_dispatch(argc > 2 ? 3 : 2, words);
}

static int run_version(int argc, char **argv)
{
    int code = only_the_name(&cli_version, argc, argv);
    if (code == CLI_END) {
        (void)puts(weir_version());
        code = CLI_OK;
    }
    return code;
}

/* Returns how many of the words are the name of this command; 0 if they are not. */
static int words_of(const struct cli_command *command, int argc, char **argv)
{
    const char *second = strchr(command->name, ' ');
    size_t first = second != NULL ? (size_t)(second - command->name) : strlen(command->name);
    if (strlen(argv[0]) != first || strncmp(command->name, argv[0], first) != 0) {
        return 0;
    }
    if (second == NULL) {
        return 1;
    }
    return argc > 1 && strcmp(second + 1, argv[1]) == 0 ? 2 : 0;
}

/* For "weir config --help": lists the commands that begin with this word. Returns their number. */
static int list_group(const char *first)
{
    size_t length = strlen(first);
    int listed = 0;
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        const char *name = cli_commands[i]->name;
        if (strncmp(name, first, length) == 0 && name[length] == ' ') {
            list_one(stdout, cli_commands[i]);
            listed++;
        }
    }
    return listed;
}

/*
 * For "config" alone or with an unknown second word: prints which names begin with it. Returns
 * their number.
 */
static int list_second_words(const char *first, const char *found)
{
    size_t length = strlen(first);
    int listed = 0;
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        const char *name = cli_commands[i]->name;
        if (strncmp(name, first, length) == 0 && name[length] == ' ') {
            if (listed == 0) {
                (void)fprintf(stderr, "%s %s: expected ", cli_program, first);
            }
            (void)fprintf(stderr, "%s'%s %s'", listed > 0 ? " or " : "", cli_program, name);
            listed++;
        }
    }
    if (listed > 0) {
        const char *quote = found != NULL ? "'" : "";
        (void)fprintf(stderr, ", found %s%s%s\n", quote, found != NULL ? found : "nothing", quote);
    }
    return listed;
}

static int unknown(int argc, char **argv)
{
    const char *nearest = NULL;
    unsigned best = suggest_limit(text_of(argv[0])) + 1;
    bool help = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    if (help && list_group(argv[0]) > 0) {
        return CLI_OK;
    }
    if (list_second_words(argv[0], argc > 1 ? argv[1] : NULL) > 0) {
        return CLI_USAGE;
    }
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        const char *name = cli_commands[i]->name;
        struct text first = {name, strcspn(name, " ")};
        char word[32];
        (void)snprintf(word, sizeof word, "%.*s", TEXT_ARGS(first));
        unsigned distance = suggest_distance(text_of(argv[0]), word);
        if (distance < best) {
            best = distance;
            nearest = name;
        }
    }
    (void)fprintf(stderr, "%s: unknown command '%s'; ", cli_program, argv[0]);
    if (nearest != NULL) {
        (void)fprintf(stderr, "did you mean '%s'?\n", nearest);
    } else {
        (void)fprintf(stderr, "'%s help' lists them\n", cli_program);
    }
    return CLI_USAGE;
}

int cli_dispatch(int argc, char **argv)
{
    for (size_t i = 0; cli_commands[i] != NULL; i++) {
        int words = words_of(cli_commands[i], argc, argv);
        if (words > 0) {
            return cli_commands[i]->run(argc - words + 1, argv + words - 1);
        }
    }
    return unknown(argc, argv);
}

int cli_main(int argc, char **argv)
{
    static char help[] = "help";
    static char version[] = "version";
    if (argc < 2) {
        cli_list(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        argv[1] = help;
    } else if (strcmp(argv[1], "--version") == 0) {
        argv[1] = version;
    }
    int code = cli_dispatch(argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        (void)fprintf(stderr, "%s: cannot write the output\n", cli_program);
        return CLI_FAILED;
    }
    return code;
}
