/*
 * The subcommands of the program `weir`: one folder or file each, one row in program.c each.
 * Options are rows too: parsing, --help and the manual page are made from them.
 */
#ifndef WEIR_CLI_CLI_H
#define WEIR_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <weir_rules.h>

/* Exit codes. */
#define CLI_OK 0
#define CLI_FAILED 1 /* it ran, and did not succeed */
#define CLI_USAGE 2  /* bad input; nothing was done */

struct cli_option {
    const char *name;     /* "--rate" */
    const char *argument; /* what stands behind it, "N/PERIOD"; NULL for a switch */
    const char *help;     /* one line, without a full stop */
};

/* A command that has commands of its own lists them. */
struct cli_word {
    const char *usage; /* "delete NAME" */
    const char *help;  /* one line, without a full stop */
};

struct cli_command {
    const char *name;     /* "config show": one or two words */
    const char *operands; /* "[FILE]", "" */
    const char *summary;  /* one line, without a full stop */
    const struct cli_option *options;
    size_t options_count;
    int (*run)(int argc, char **argv);        /* argv[0] is the last word of the name */
    const struct cli_word *(*word)(size_t i); /* its own commands; NULL: behind the last, or none */
};

#define CLI_COMMAND(name, operands, summary, rows, run)                                            \
    {                                                                                              \
        name, operands, summary, rows, sizeof(rows) / sizeof(rows)[0], run, NULL                   \
    }
#define CLI_PLAIN_COMMAND(name, operands, summary, run)                                            \
    {                                                                                              \
        name, operands, summary, NULL, 0, run, NULL                                                \
    }

/* The row of each subcommand, defined in its file, listed in program.c. */
extern const struct cli_command cli_bench_load, cli_config_check, cli_config_show, cli_ctl,
    cli_demo, cli_help, cli_replay, cli_simulate, cli_serve, cli_top, cli_version;

/* The program's name and its commands, NULL behind the last: program.c, and bench/program has its own. */
extern const char *const cli_program;
extern const struct cli_command *const cli_commands[];

/* What main() does, whatever the commands are. */
int cli_main(int argc, char **argv);

/* Prints the list of commands. */
void cli_list(FILE *out);

/* Runs the command that argv[0] (and [1]) name; its exit code. */
int cli_dispatch(int argc, char **argv);

/* Reads the arguments of one command, one by one. */
struct cli_args {
    const struct cli_command *command;
    int argc;
    char **argv;
    int next;
    bool plain;        /* "--" was there: no more options */
    const char *value; /* of the option, or the operand itself */
};

enum {
    CLI_END = -1,     /* no more */
    CLI_OPERAND = -2, /* not an option: args->value ("-" too) */
    CLI_BAD = -3,     /* said why on standard error: return CLI_USAGE */
    CLI_HELP = -4     /* --help was asked for and printed: return CLI_OK */
};

void cli_args_init(struct cli_args *args, const struct cli_command *command, int argc, char **argv);

/*
 * The index of the next option's row, or one of the above. "--x value" and "--x=value" work; behind
 * "--" everything is an operand.
 */
int cli_next(struct cli_args *args);

/* "weir replay: " and the message and a line end on standard error; returns CLI_USAGE. */
int cli_complain(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Errors and warnings of a rule file on standard error, for weir_rules_options.message. */
void cli_tell_rules(void *arg, const struct weir_rules_message *message);

#endif
