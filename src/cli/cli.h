/*
 * The subcommands of the program `weir`: each has a folder or file of its own and a row in
 * program.c. Options are rows too: parsing, --help, the manual page and the completion of shells
 * are derived from them.
 *
 *   commands.c       finds and runs a command
 *   options.c        reads the arguments of a command, and prints its help
 *   option_values.c  reads the value of an option
 *   messages.c       prints errors
 */
#ifndef WEIR_CLI_CLI_H
#define WEIR_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir_rules.h>

#include "rules/value/suggest.h"

/* Exit codes. */
#define CLI_OK 0
#define CLI_FAILED 1 /* it ran but did not succeed */
#define CLI_USAGE 2  /* bad input; nothing was done */
#define CLI_STATE 3  /* weir serve: a state file failed while it was in use */
#define CLI_DENIED 4 /* weir check, weir ask: the verdict is deny */
#define CLI_NEVER 5  /* weir check, weir ask: the verdict is never */

struct cli_command;
struct cli_given;
struct cli_option;

/* The text that an option got, and where it comes from. */
struct cli_value {
    const struct cli_command *command;
    const struct cli_option *option;
    const char *from; /* "--threads", "WEIR_THREADS" */
    const char *text; /* "" for a switch */
};

/* Reads the text into *to. Returns CLI_OK, or CLI_USAGE after a message. */
typedef int (*cli_read_fn)(const struct cli_value *value, void *to);

struct cli_option {
    const char *name;     /* "--rate" */
    const char *argument; /* its argument, "N/PERIOD"; NULL for a switch */
    const char *help;     /* one line, without a full stop */
    cli_read_fn read;
    size_t to;      /* offset of the member that gets the value, in the command's settings */
    uint64_t least; /* of numbers and durations; other readers may use it as they like */
    uint64_t most;  /* 0: any */
    /* The values, if they are few: with NULL after the last, or by number. For cli_read_choice(),
     * which needs the first form, and for shells. */
    const char *const *choices;
    const char *(*choice)(size_t i);
};

/* A subcommand of a command: "key get" of ctl. */
struct cli_word {
    const char *usage; /* "key get LIMIT KEY..." */
    const char *help;
    uint64_t options; /* bit i: it takes the option of row i */
};

struct cli_command {
    const char *name;     /* "config show": one or two words */
    const char *operands; /* "FILE", "[FILE]", "WORD...", "[WORD...]"; "": it takes none */
    const char *summary;  /* one line, without a full stop */
    const struct cli_option *options; /* at most 64 */
    size_t options_count;
    const void *defaults; /* the settings if no option is given; NULL: it has none */
    size_t settings_bytes;
    /* Runs it with what was given. The settings are its own. Returns the exit code. */
    int (*run)(const struct cli_given *given, void *settings);
    /* Gets its i-th subcommand. Returns false after the last. NULL: it has no subcommands. */
    bool (*word)(size_t i, struct cli_word *word);
    bool verbatim; /* each argument is an operand, also --help: another program reads them */
};

#define CLI_COMMAND(name, operands, summary, rows, defaults, run)                                  \
    {                                                                                              \
        name, operands, summary, rows, sizeof(rows) / sizeof(rows)[0], &(defaults),                \
            sizeof(defaults), run, NULL, false                                                     \
    }

/* The row of each subcommand, defined in its file, listed in program.c. */
extern const struct cli_command cli_ask, cli_bench_load, cli_check, cli_completion,
    cli_config_check, cli_config_convert, cli_config_show, cli_ctl, cli_demo, cli_help, cli_replay,
    cli_simulate, cli_serve, cli_top, cli_version, cli_watch;

/*
 * The program's name and its commands, with NULL after the last. They are defined in program.c;
 * bench/program has its own.
 */
extern const char *const cli_program;
extern const struct cli_command *const cli_commands[];

/* Does the work of main(): parses the command line and runs the command. Returns the exit code. */
int cli_main(int argc, char **argv);

/* Reads the arguments of a command, and runs it. argv[0] is the last word of its name. */
int cli_run(const struct cli_command *command, int argc, char **argv);

/* Returns how many of the words, 1 or 2, are the name; 0 if they are not. */
int cli_words(const char *name, int argc, char **argv);

/* ---- arguments (options.c) ---- */

/* What the command line has besides the values of the options. */
struct cli_given {
    const struct cli_command *command;
    uint64_t options; /* bit i: the option of row i was given */
    int count;
    char **operands; /* in the memory of argv */
};

/*
 * Reads all arguments: each option into the member of *settings that its row names. "--x value" and
 * "--x=value" both work. After "--" every argument is an operand; "-" always is one. Returns
 * CLI_END if the command is to run; otherwise the exit code, after the help or a message.
 */
#define CLI_END (-1)
int cli_read(const struct cli_command *command, int argc, char **argv, void *settings,
             struct cli_given *given);

/*
 * Prints "found nothing, expected one of these:" and the subcommands of a command; only those that
 * begin with the word `first`, such as key, unless it is empty. `found` is what was given instead;
 * NULL: nothing. Returns CLI_USAGE.
 */
int cli_list_words(const struct cli_command *command, struct weir_text first, const char *found);

/* True if the option of this name was given. */
bool cli_is_given(const struct cli_given *given, const char *name);

/* ---- values (option_values.c) ---- */

int cli_read_text(const struct cli_value *value, void *to);   /* const char * */
int cli_read_switch(const struct cli_value *value, void *to); /* bool; a variable says on or off */
int cli_read_count(const struct cli_value *value, void *to);  /* uint64_t */
int cli_read_unsigned(const struct cli_value *value, void *to); /* unsigned */
int cli_read_duration(const struct cli_value *value, void *to); /* uint64_t, in ns */
int cli_read_rate(const struct cli_value *value, void *to);     /* struct rate */
int cli_read_choice(const struct cli_value *value, void *to);   /* int: index of the choice */

/* Reads a value into the settings of its command. */
static inline int cli_read_value(const struct cli_value *value, void *settings)
{
    return value->option->read(value, (char *)settings + value->option->to);
}

/* ---- messages (messages.c) ---- */

/*
 * Prints "weir replay: ", the message and a line end on standard error; command NULL: "weir: ".
 * Returns CLI_USAGE.
 */
int cli_complain(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Does the same for a command that cannot go on. Returns CLI_FAILED. */
#define cli_fail(command, ...) ((void)cli_complain((command), __VA_ARGS__), CLI_FAILED)

/* Prints a message that has text from another program, made safe for a terminal. */
void cli_complain_of(const struct cli_command *command, struct weir_text text);

/* Prints "weir top: --interval: found '1y', expected " and the rest. Returns CLI_USAGE. */
int cli_expected(const struct cli_value *value, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Prints "unknown option '--rat'; did you mean '--rate'?" or, if no known word is near, where the
 * known ones are listed. Returns CLI_USAGE.
 */
int cli_unknown(const struct cli_command *command, const char *what, const struct suggestion *s);

/* Prints an error or warning of a rule file on standard error; for weir_rules_options.message. */
void cli_tell_rules(void *arg, const struct weir_rules_message *message);

#endif
