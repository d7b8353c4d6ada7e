/* weir replay: what its files share. The command itself is in replay_command.c. */
#ifndef WEIR_CLI_REPLAY_REPLAY_COMMAND_H
#define WEIR_CLI_REPLAY_REPLAY_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "cli/cli.h"
#include "cli/replay/replay_engine.h"
#include "cli/replay/replay_input.h"
#include "common/text.h"

/* The command line's settings. */
struct replay_settings {
    const char *rules;     /* a rule file; NULL: one limit */
    const char *rate_text; /* NULL: the limit is the stream's capacity per window */
    struct replay_limit limit;
    bool explain;
    bool quiet; /* no summary, no progress */
};

/* Reads the unit of timestamps, in ns. */
int replay_read_unit(const struct cli_value *value, void *to);

/* A replay in progress: its input, and its counts so far. */
struct replay {
    const struct replay_settings *settings;
    struct replay_input input;
    uint64_t allowed;
    uint64_t denied;
    uint64_t bad;         /* errors found in the input */
    uint64_t clients;     /* 0: not counted */
    const uint64_t *done; /* for the progress bar: lines or bytes taken so far */
    uint64_t total;       /* most that `done` will be; 0: not known */
    uint64_t begun_ns;
    uint64_t drawn_ns; /* when the progress bar was last drawn; 0: it is not on the screen */
    bool bar;
};

/* Both read r->input to its end, print the decisions and return an exit code. */
int replay_stream(struct replay *r);
int replay_rules(struct replay *r);

/*
 * Takes all lines of the input that are left: an outcome of replay_input_next() and the line, if it
 * is one. take() returns 0, or an exit code that ends the replay. Draws the progress. Returns 0, or
 * an exit code after a message.
 */
int replay_each_line(struct replay *r, int (*take)(void *arg, int outcome, struct weir_text line),
                     void *arg);

/* ---- replay_report.c ---- */

/* Prints "weir replay: line 7: text" on standard error, and counts it in r->bad. */
void replay_complain(struct replay *r, uint64_t line, const char *text);

/* Redraws the progress bar if there is one and it is due. */
void replay_progress(struct replay *r);

/* Begins the bar, which shows *done of `total`. */
void replay_report_begin(struct replay *r, const uint64_t *done, uint64_t total);
void replay_report_end(struct replay *r); /* prints the summary, unless quiet */

/* ---- replay_print.c ---- */

/* The longest line that replay_print_answer() writes. */
#define REPLAY_PRINT_MAX 192

/*
 * Writes " remaining=2 retry=0 reset=10"; a duration of REPLAY_NEVER is "never". Returns the
 * end.
 */
char *replay_print_details(char *at, const struct replay_answer *a, uint64_t scale, bool delay);

/* Writes the whole line with its newline. Returns its length. */
size_t replay_print_answer(char *line, const struct replay_answer *a,
                           const struct replay_settings *s, uint64_t scale);

#endif
