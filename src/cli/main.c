#include <stdio.h>
#include <string.h>

#include <weir.h>

#include "cli/cli.h"

struct command {
    const char *name;
    const char *usage;
    const char *summary;
    int (*run)(int argc, char **argv);
};

static int print_help(int argc, char **argv);
static int print_version(int argc, char **argv);

static const struct command commands[] = {
    {"demo", "demo", "show limiting in action", cli_demo},
    {"bench", "bench core [--json]", "measure the engine next to its floors", cli_bench},
    {"version", "version", "print the version", print_version},
    {"help", "help", "print this list", print_help},
};

#define COMMANDS (sizeof commands / sizeof commands[0])

static void list(FILE *out)
{
    (void)fprintf(out, "weir %s: rate limiting\n\n", weir_version());
    for (size_t i = 0; i < COMMANDS; i++) {
        (void)fprintf(out, "  weir %-22s %s\n", commands[i].usage, commands[i].summary);
    }
}

/* For commands that take no arguments. */
static int refuse_arguments(int argc, char **argv)
{
    if (argc > 1) {
        (void)fprintf(stderr, "weir %s: takes no arguments, found '%s'\n", argv[0], argv[1]);
    }
    return argc > 1 ? CLI_USAGE : CLI_OK;
}

static int print_help(int argc, char **argv)
{
    int code = refuse_arguments(argc, argv);
    if (code == CLI_OK) {
        list(stdout);
    }
    return code;
}

static int print_version(int argc, char **argv)
{
    int code = refuse_arguments(argc, argv);
    if (code == CLI_OK) {
        (void)puts(weir_version());
    }
    return code;
}

static const struct command *find(const char *name)
{
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        name = "help";
    } else if (strcmp(name, "--version") == 0) {
        name = "version";
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        list(stderr);
        return CLI_USAGE;
    }
    const struct command *command = find(argv[1]);
    if (command == NULL) {
        (void)fprintf(stderr, "weir: unknown command '%s'; 'weir help' lists them\n", argv[1]);
        return CLI_USAGE;
    }
    int code = command->run(argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        (void)fprintf(stderr, "weir: cannot write the output\n");
        return CLI_FAILED;
    }
    return code;
}
