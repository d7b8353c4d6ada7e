/*
 * The subcommands of the program `weir`: each has a folder or file of its own and a row in
 * program.c. Options are rows too: parsing, --help and the manual page are derived from them.
 */
#ifndef WEIR_CLI_CLI_H
#define WEIR_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <weir_rules.h>

/* Exit codes. */
#define CLI_OK 0
#define CLI_FAILED 1 /* it ran but did not succeed */
#define CLI_USAGE 2  /* bad input; nothing was done */

struct cli_option {
    const char *name;     /* "--rate" */
    const char *argument; /* its argument, "N/PERIOD"; NULL for a switch */
    const char *help;     /* one line, without a full stop */
};

/* One subcommand of a command that has subcommands, for its --help. */
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
    int (*run)(int argc, char **argv); /* argv[0] is the last word of the name */
    /* Returns its i-th subcommand, NULL after the last. NULL: it has no subcommands. */
    const struct cli_word *(*word)(size_t i);
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

/*
 * The program's name and its commands, with NULL after the last. They are defined in program.c;
 * bench/program has its own.
 */
extern const char *const cli_program;
extern const struct cli_command *const cli_commands[];

/* Does the work of main(): parses the command line and runs the command. Returns the exit code. */
int cli_main(int argc, char **argv);

/* Prints the list of commands. */
void cli_list(FILE *out);

/* Runs the command that argv[0], or argv[0] and argv[1], name. Returns its exit code. */
int cli_dispatch(int argc, char **argv);

/* Reads the arguments of one command, one by one. */
struct cli_args {
    const struct cli_command *command;
    int argc;
    char **argv;
    int next;
    bool plain;        /* "--" has been read: no more options */
    const char *value; /* value of the option, or the operand itself */
};

enum {
    CLI_END = -1,     /* no more arguments */
    CLI_OPERAND = -2, /* an operand, in args->value ("-" too) */
    CLI_BAD = -3,     /* an error has been printed: return CLI_USAGE */
    CLI_HELP = -4     /* the help has been printed: return CLI_OK */
};

void cli_args_init(struct cli_args *args, const struct cli_command *command, int argc, char **argv);

/*
 * Returns the index of the next option's row, or one of the values above. "--x value" and
 * "--x=value" both work. After "--" every argument is an operand.
 */
int cli_next(struct cli_args *args);

/* Prints "weir replay: ", the message and a line end on standard error. Returns CLI_USAGE. */
int cli_complain(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints an error or warning of a rule file on standard error; for weir_rules_options.message. */
void cli_tell_rules(void *arg, const struct weir_rules_message *message);

#endif
