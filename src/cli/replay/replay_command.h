/* weir replay: what its parts share. The command itself is in replay.c. */
#ifndef WEIR_CLI_REPLAY_REPLAY_COMMAND_H
#define WEIR_CLI_REPLAY_REPLAY_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "cli/replay/replay_engine.h"
#include "cli/replay/replay_input.h"
#include "common/text.h"
#include "rules/value/quantity.h"

/* What the command line says. */
struct replay_settings {
    const char *path;  /* NULL: standard input */
    const char *rules; /* a rule file; NULL: one limit */
    int algorithm;     /* enum weir_algorithm; 0: stepped_bucket */
    bool has_rate;     /* else the stream's capacity per window */
    struct rate rate;
    uint64_t burst; /* 0: not said */
    uint64_t queue;
    uint64_t unit_ns; /* of the timestamps */
    bool explain;
    bool quiet; /* no summary, no progress */
};

/* One replay under way: where it reads, and what it has seen. */
struct replay {
    const struct replay_settings *settings;
    struct replay_input input;
    uint64_t allowed;
    uint64_t denied;
    uint64_t bad;     /* complaints about the input */
    uint64_t clients; /* 0: not counted */
    uint64_t begun_ns;
    uint64_t drawn_ns; /* when the bar was last drawn; 0: there is none */
    bool bar;
};

/* Both read r->input to its end, print the decisions and return an exit code. */
int replay_stream(struct replay *r);
int replay_rules(struct replay *r);

/*
 * From the settings and the stream's own first two lines: 0, or WEIR_EINVAL with a text that
 * says what does not go together.
 */
int replay_limit_make(const struct replay_settings *s, int64_t capacity, int64_t window,
                      struct replay_limit *limit, struct weir_error *error);

/* ---- replay_report.c ---- */

/* "weir replay: line 7: text" on standard error; counted. */
void replay_complain(struct replay *r, uint64_t line, const char *text);

/* Redraws the bar if there is one and it is time; `total` 0: not known. */
void replay_progress(struct replay *r, uint64_t done, uint64_t total);

void replay_report_begin(struct replay *r);
void replay_report_end(struct replay *r); /* the summary, unless quiet */

/* ---- replay_print.c ---- */

/* How long a line replay_print_answer() makes at most. */
#define REPLAY_PRINT_MAX 192

/* value / scale, exactly, without trailing zeros; scale is a power of ten. Returns the end. */
char *replay_print_decimal(char *at, uint64_t value, uint64_t scale);

/* " remaining=2 retry=0 reset=10"; durations that are REPLAY_NEVER are "never". Returns the end. */
char *replay_print_details(char *at, const struct replay_answer *a, uint64_t scale, bool delay);

/* The whole line, its end included; returns its length. */
size_t replay_print_answer(char *line, const struct replay_answer *a,
                           const struct replay_settings *s, uint64_t scale);

#endif
