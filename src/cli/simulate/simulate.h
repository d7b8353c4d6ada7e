/*
 * weir simulate, in parts:
 *
 *   simulate.c          the command: options, defaults, what goes with what
 *   simulate_report.c   each traffic against each subject, shown
 *   simulate_traffic.c  the shapes: who asks when
 *   simulate_random.c   exponential gaps in integers
 *   simulate_trace.c    traffic from a file
 *   simulate_subject.c  who decides: an algorithm or a rule file
 *   simulate_run.c      one traffic against one subject
 *   simulate_window.c   the most that was admitted in any window
 *   simulate_quantity.c times and multiples, as they are shown
 *   simulate_table.c, simulate_chart.c, simulate_svg.c, simulate_html.c  the result
 *
 * No clock, no floating point: the same arguments give the same bytes on every machine.
 */
#ifndef WEIR_CLI_SIMULATE_SIMULATE_H
#define WEIR_CLI_SIMULATE_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <weir.h>
#include <weir_rules.h>

#include "rules/value/quantity.h"

/* The most requests of one run, retries included. */
#define SIM_REQUESTS_MAX UINT64_C(5000000)
#define SIM_CLIENTS_MAX 100000u
#define SIM_DURATION_MAX (30 * 365 * WEIR_DAY)
/* Of the limiters of one run: a sliding_log is as large as its quota times its clients. */
#define SIM_BYTES_MAX (UINT64_C(1) << 30)
/* Results are kept in this many equal parts of the duration: many divisors, for all charts. */
#define SIM_BINS 240
#define SIM_SUBJECTS_MAX 16
#define SIM_SHAPES_MAX 8
#define SIM_ATTRIBUTES_MAX 16

/* ---- traffic ----------------------------------------------------------- */

struct sim_request {
    uint64_t time_ns;
    uint64_t cost;
    uint32_t client; /* from 0 */
    uint32_t turn;   /* of two at the same time the lower one asks first */
};

struct sim_traffic {
    const char *name; /* of the shape, or the trace's file */
    const char *about;
    struct sim_request *requests; /* in the order in which they are asked */
    size_t count;
    uint32_t clients;
    uint64_t duration_ns; /* from 0 on */
    uint64_t base_ns;     /* what 0 is for the limits: a week's multiple off the trace's own time */
    __int128 first_ns;    /* a trace's own time of its first request */
    bool come_back;       /* who is denied asks again when told to */
    bool costs;           /* some cost more than 1 */
    struct text *names;   /* of the clients of a trace; NULL: they are numbered */
    struct text *events; /* JSON lines, by the requests' turns; NULL: the trace has no attributes */
    char *file;          /* where names and events are */
    char *title;         /* where `about` is, if a trace has one */
};

struct sim_plan;

/* A shape by its row; NULL behind the last. */
const char *sim_shape_name(size_t row);
const char *sim_shape_about(size_t row);

/* 0, WEIR_ENOMEM, or WEIR_EINVAL and in *error that there would be too many. */
int sim_traffic_make(const struct sim_plan *plan, size_t shape, struct sim_traffic *out,
                     struct weir_error *error);
int sim_trace_read(const struct sim_plan *plan, struct sim_traffic *out, struct weir_error *error);
/* Begins the trace with a window of the period, and ends it with one. */
void sim_trace_place(struct sim_traffic *trace, uint64_t period_ns);
void sim_traffic_sort(struct sim_traffic *traffic); /* by time, else as they are */
void sim_traffic_finish(struct sim_traffic *traffic);

/* The next of a stream of well mixed 64-bit numbers (splitmix64). */
uint64_t sim_random(uint64_t *state);
/* -ln(u) for u = (random + 1) / 2^64, in 2^-32: exponentially distributed, mean 1. */
uint64_t sim_exponential(uint64_t random);

/* ---- what was asked for ------------------------------------------------ */

struct sim_plan {
    size_t shapes[SIM_SHAPES_MAX];
    size_t shapes_count;
    const char *trace;
    uint64_t unit_ns; /* of the trace's times */
    struct rate rate;
    uint64_t burst; /* 0: the count */
    uint64_t queue;
    bool queue_given;
    int algorithms[SIM_SUBJECTS_MAX];
    size_t algorithms_count;
    bool algorithms_given;
    const char *rules[SIM_SUBJECTS_MAX];
    size_t rules_count;
    const char *path;
    const char *method;
    struct weir_rules_attribute attributes[SIM_ATTRIBUTES_MAX];
    size_t attributes_count;
    uint32_t clients;
    uint64_t load; /* percent of the rate that each client asks for */
    uint64_t duration_ns;
    uint64_t seed;
    const char *out;
    bool ascii;
};

/* The defaults that depend on others; trace may be NULL. CLI_OK, or CLI_USAGE after a word. */
int sim_plan_settle(struct sim_plan *plan, const struct sim_traffic *trace);

/* Runs, shows and draws it: the command's exit code. */
int sim_report(struct sim_plan *plan);

/* ---- who decides ------------------------------------------------------- */

/* What one limit of a rule file did in a run. */
struct sim_binding {
    char limit[WEIR_RULES_NAME];
    uint64_t admitted; /* units: it was the scarcest */
    uint64_t denied;   /* units: it said no */
};

#define SIM_BINDINGS_MAX 16

struct sim_subject {
    const char *name;
    struct weir *limiter; /* an algorithm, or ... */
    struct weir_rules *rules;
    const struct sim_plan *plan;
    struct sim_binding bindings[SIM_BINDINGS_MAX]; /* rules: by the order of their first word */
    size_t bindings_count;
};

/* Fresh, for as many clients as there are. 0, or WEIR_E... and *error. */
int sim_subject_open(struct sim_subject *subject, const struct sim_plan *plan, size_t index,
                     uint32_t clients, struct weir_error *error);
int sim_subject_ask(struct sim_subject *subject, const struct sim_traffic *traffic,
                    const struct sim_request *request, struct weir_answer *answer,
                    struct weir_error *error);
void sim_subject_close(struct sim_subject *subject);
size_t sim_subjects(const struct sim_plan *plan);

/* The rate of the limit of the first rule file that binds the first request. trace may be NULL. */
int sim_rules_rate(const struct sim_plan *plan, const struct sim_traffic *trace, struct rate *rate,
                   struct weir_error *error);

/* ---- what came of it --------------------------------------------------- */

/*
 * All in units: a request counts as much as it costs. A request that is admitted
 * with a delay is counted as admitted when it was asked, and in windows when it
 * is released.
 */
struct sim_result {
    const char *name;
    uint64_t offered; /* admitted + denied; retries count each time */
    uint64_t admitted;
    uint64_t denied;
    uint64_t never; /* of the denied: can never fit */
    uint64_t offered_in[SIM_BINS];
    uint64_t admitted_in[SIM_BINS];
    uint64_t running[SIM_BINS]; /* one client's in the last period, the highest in each part */
    uint64_t worst;             /* one client's in any period: the highest of all */
    uint64_t longest_wait_ns;   /* until it may act, or may ask again; from when it first asked */
    struct sim_binding bindings[SIM_BINDINGS_MAX];
    size_t bindings_count;
};

int sim_run(struct sim_subject *subject, const struct sim_traffic *traffic, uint64_t period_ns,
            struct sim_result *result, struct weir_error *error);

struct sim_release {
    uint64_t time_ns;
    uint64_t units;
    uint32_t client;
};

/*
 * Fills worst and running: for each client the units released in (t - period, t],
 * for every t. Sorts the releases.
 */
void sim_windows(struct sim_release *releases, size_t n, uint64_t period_ns, uint64_t duration_ns,
                 struct sim_result *result);

/* The part of the duration that a time is in. */
size_t sim_bin(uint64_t time_ns, uint64_t duration_ns);

/* One traffic and what each subject made of it. */
struct sim_section {
    const struct sim_plan *plan;
    const struct sim_traffic *traffic;
    const struct sim_result *results;
    size_t results_count;
};

/* ---- showing it -------------------------------------------------------- */

#define SIM_TEXT 96

/* "1.5 s": at most two decimals; in the unit that suits it, or that suits `like_ns`. */
const char *sim_time(uint64_t ns, char *buffer);
const char *sim_time_like(uint64_t ns, uint64_t like_ns, char *buffer);
/* "2.00x" */
const char *sim_multiple(uint64_t part, uint64_t whole, char *buffer);
/* "100/min for each of 3 clients, 150 % of it offered during 4 min" */
const char *sim_circumstances(const struct sim_section *section, char *buffer, size_t size);
/* Where the time axis has marks: at each end of a window, or fewer. The number of steps. */
uint64_t sim_axis_step(const struct sim_section *section);
uint64_t sim_largest(const uint64_t *bins, size_t first, size_t n);
uint64_t sim_total(const uint64_t *bins, size_t first, size_t n);

enum sim_style { SIM_ASCII, SIM_BLOCKS, SIM_COLOUR };
enum sim_style sim_terminal_style(bool ascii, bool terminal);
void sim_chart(FILE *out, const struct sim_section *section, enum sim_style style);
void sim_table(FILE *out, const struct sim_section *section);

void sim_svg(FILE *out, const struct sim_section *sections, size_t n);
void sim_html(FILE *out, const struct sim_section *sections, size_t n);
void sim_svg_section(FILE *out, const struct sim_section *section); /* without the style */
extern const char sim_svg_style[];
/* Text of a file's name or a trace as it may stand in XML. */
void sim_xml_text(FILE *out, const char *text);

#endif
