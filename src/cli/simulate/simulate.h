/*
 * weir simulate. Its files:
 *
 *   simulate.c          the command: options, defaults, which options exclude or need each other
 *   simulate_report.c   runs each traffic against each subject and shows the results
 *   simulate_traffic.c  the shapes of traffic: at which times each client sends requests
 *   simulate_random.c   exponentially distributed gaps, computed in integers
 *   simulate_trace.c    traffic from a file
 *   simulate_subject.c  the subjects that decide: an algorithm or a rule file
 *   simulate_run.c      runs one traffic against one subject
 *   simulate_window.c   the most that was admitted in any window
 *   simulate_quantity.c formats times and multiples for display
 *   simulate_table.c, simulate_chart.c, simulate_svg.c, simulate_html.c  show the result, the last
 *                       two with a style sheet of the same name
 *
 * It reads no clock and uses no floating point: the same arguments give the same bytes on every
 * machine.
 */
#ifndef WEIR_CLI_SIMULATE_SIMULATE_H
#define WEIR_CLI_SIMULATE_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <weir.h>
#include <weir_rules.h>

#include "common/arena.h"
#include "rules/value/quantity.h"

/* The largest number of requests in one run, retries included. */
#define SIM_REQUESTS_MAX UINT64_C(5000000)
#define SIM_CLIENTS_MAX 100000u
#define SIM_DURATION_MAX (30 * 365 * WEIR_DAY)
/* Largest size of the limiters of one run, in bytes: a sliding_log needs quota times clients. */
#define SIM_BYTES_MAX (UINT64_C(1) << 30)
/*
 * Results are kept in this many equal parts of the duration. 240 has many divisors, so each
 * chart can group the parts evenly.
 */
#define SIM_BINS 240
#define SIM_SUBJECTS_MAX 16
#define SIM_SHAPES_MAX 8
#define SIM_ATTRIBUTES_MAX 16

/* ---- traffic ----------------------------------------------------------- */

struct sim_request {
    uint64_t time_ns;
    uint64_t cost;
    uint32_t client; /* numbered from 0 */
    uint32_t turn;   /* among requests at the same time, the lowest turn asks first */
};

struct sim_traffic {
    const char *name; /* name of the shape, or of the trace's file */
    const char *about;
    struct sim_request *requests; /* in the order in which they are asked */
    size_t count;
    uint32_t clients;
    uint64_t duration_ns; /* the traffic covers [0, duration_ns) */
    /*
     * Time that the limits see when the simulation is at 0. It differs from the trace's own time
     * by a whole number of weeks, or is 0 if a week is not a whole number of periods.
     */
    uint64_t base_ns;
    __int128 first_ns;       /* the first request's time as the trace gives it */
    bool come_back;          /* a denied client asks again after its retry time */
    bool costs;              /* some requests have a cost other than 1 */
    struct weir_text *names; /* names of a trace's clients; NULL: clients are numbered */
    /* JSON lines, indexed by the requests' turns; NULL: the trace has no attributes. */
    struct weir_text *events;
    struct arena memory; /* of names and events, as the trace has them */
    char *title;         /* memory that `about` points to, if the trace has a title */
};

struct sim_plan;

/* Returns the name of the shape in this row; NULL after the last row. */
const char *sim_shape_name(size_t row);

/*
 * Fill *out with the traffic of a shape, or of the plan's trace. Return 0, or WEIR_E... and say
 * why in *error: WEIR_ENOMEM, or WEIR_EINVAL for too many requests or a line that cannot be
 * read.
 */
int sim_traffic_make(const struct sim_plan *plan, size_t shape, struct sim_traffic *out,
                     struct weir_error *error);
int sim_trace_read(const struct sim_plan *plan, struct sim_traffic *out, struct weir_error *error);
/*
 * Shifts the trace's times so that time 0 is the start of a window of this period, and sets the
 * duration so that it ends with a whole window.
 */
void sim_trace_place(struct sim_traffic *trace, uint64_t period_ns);
void sim_traffic_sort(struct sim_traffic *traffic); /* by time; equal times keep their order */
void sim_traffic_finish(struct sim_traffic *traffic);

/*
 * Returns -ln(u) for u = (random + 1) / 2^64, in units of 2^-32: exponentially distributed with
 * mean 1.
 */
uint64_t sim_exponential(uint64_t random);

/* ---- the plan: what the options ask for ---------------------------------- */

struct sim_plan {
    int shapes[SIM_SHAPES_MAX]; /* rows of simulate_traffic.c */
    size_t shapes_count;
    const char *trace;
    uint64_t unit_ns; /* unit of the trace's times */
    struct rate rate;
    uint64_t burst; /* 0: the rate's count */
    uint64_t queue;
    bool queue_given;
    uint64_t undelayed;
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

/*
 * Fills in the defaults that depend on other options; trace may be NULL. Returns CLI_OK, or
 * CLI_USAGE after a message.
 */
int sim_plan_settle(struct sim_plan *plan, const struct sim_traffic *trace);

/* Runs the simulation, then prints and draws the results. Returns the command's exit code. */
int sim_report(struct sim_plan *plan);

/* ---- subjects: what decides ---------------------------------------------- */

/* What one limit of a rule file did in a run. */
struct sim_binding {
    char limit[WEIR_RULES_NAME];
    uint64_t admitted; /* units admitted while it was the scarcest limit */
    uint64_t denied;   /* units that it denied */
};

#define SIM_BINDINGS_MAX 16

struct sim_subject {
    const char *name;
    struct weir *limiter; /* set for an algorithm; NULL for a rule file */
    struct weir_rules *rules;
    const struct sim_plan *plan;
    /* The limits of a rule file, in the order in which each first decided a request. */
    struct sim_binding bindings[SIM_BINDINGS_MAX];
    size_t bindings_count;
};

/* Opens a fresh subject for this number of clients. Returns 0, or WEIR_E... and sets *error. */
int sim_subject_open(struct sim_subject *subject, const struct sim_plan *plan, size_t index,
                     uint32_t clients, struct weir_error *error);
int sim_subject_ask(struct sim_subject *subject, const struct sim_traffic *traffic,
                    const struct sim_request *request, struct weir_answer *answer,
                    struct weir_error *error);
void sim_subject_close(struct sim_subject *subject);
size_t sim_subjects(const struct sim_plan *plan);

/*
 * Finds the rate of the limit that binds the first request under the first rule file. trace may
 * be NULL. Returns 0, or WEIR_E... and sets *error.
 */
int sim_rules_rate(const struct sim_plan *plan, const struct sim_traffic *trace, struct rate *rate,
                   struct weir_error *error);

/* ---- results ------------------------------------------------------------- */

/*
 * All numbers are in units: a request counts as much as it costs. A request that is admitted
 * with a delay counts as admitted at the time when it was asked, but in windows at the time when
 * it is released.
 */
struct sim_result {
    const char *name;
    uint64_t offered; /* admitted + denied; retries count each time */
    uint64_t admitted;
    uint64_t denied;
    uint64_t never; /* part of `denied`: larger than the limit can ever grant */
    uint64_t offered_in[SIM_BINS];
    uint64_t admitted_in[SIM_BINS];
    uint64_t running[SIM_BINS]; /* most units of one client within the last period, for each part */
    uint64_t worst;             /* most units of one client within any period of the run */
    uint64_t bound; /* most that the algorithm may admit within any period; UINT64_MAX: not known */
    uint64_t longest_wait_ns; /* from the first question until it may act, or may ask again */
    struct sim_binding bindings[SIM_BINDINGS_MAX];
    size_t bindings_count;
};

/*
 * Returns the most units of one client that the subject of this index may release within any
 * period, by the table in docs/explanation/algorithms.md; UINT64_MAX for a rule file, which may
 * combine several algorithms and quotas.
 */
uint64_t sim_bound(const struct sim_plan *plan, size_t index, const struct sim_traffic *traffic);

int sim_run(struct sim_subject *subject, const struct sim_traffic *traffic, uint64_t period_ns,
            struct sim_result *result, struct weir_error *error);

struct sim_release {
    uint64_t time_ns;
    uint64_t units;
    uint32_t client;
};

/*
 * Fills worst and running: for each client, the units released in (t - period, t], for every t.
 * Sorts the releases.
 */
void sim_windows(struct sim_release *releases, size_t n, uint64_t period_ns, uint64_t duration_ns,
                 struct sim_result *result);

/* Returns the part of the duration, below SIM_BINS, that contains the time. */
size_t sim_bin(uint64_t time_ns, uint64_t duration_ns);

/* One traffic and each subject's result with it. */
struct sim_section {
    const struct sim_plan *plan;
    const struct sim_traffic *traffic;
    const struct sim_result *results;
    size_t results_count;
};

/* ---- output -------------------------------------------------------------- */

#define SIM_TEXT 96

/*
 * Format a time such as "1.5 s", with at most two decimals, in the unit that suits ns or
 * like_ns. The buffer has SIM_TEXT bytes.
 */
const char *sim_time(uint64_t ns, char *buffer);
const char *sim_time_like(uint64_t ns, uint64_t like_ns, char *buffer);
/* Formats part / whole as "2.00x". The buffer has SIM_TEXT bytes. */
const char *sim_multiple(uint64_t part, uint64_t whole, char *buffer);
/* Describes the run: "quota 100/min for each of 3 clients, load 150 %, 4 min". */
const char *sim_circumstances(const struct sim_section *section, char *buffer, size_t size);
/*
 * Returns the distance in ns between two marks on the time axis: one period, or the whole
 * duration if that is shorter; 2, 5, 10, 20, 50 ... periods if there would be more than 8 marks.
 */
uint64_t sim_axis_step(const struct sim_section *section);
/* Returns the sum of n parts. */
uint64_t sim_total(const uint64_t *bins, size_t first, size_t n);
/* Returns the most units, at least 1, that were offered in n neighbouring parts of any result. */
uint64_t sim_tallest(const struct sim_section *section, size_t n);

enum sim_style { SIM_ASCII, SIM_BLOCKS, SIM_COLOUR };
enum sim_style sim_terminal_style(bool ascii, bool terminal);
void sim_chart(FILE *out, const struct sim_section *section, enum sim_style style);
void sim_table(FILE *out, const struct sim_section *section);

/* Draws the sections below each other. Without `style`, the page must contain sim_svg_style. */
void sim_svg(FILE *out, const struct sim_section *sections, size_t n, bool style);
void sim_html(FILE *out, const struct sim_section *sections, size_t n);
/* The style sheets, embedded by the build. Each ends with a NUL, which the size does not count. */
extern const char sim_svg_style[], sim_html_style[];
extern const size_t sim_svg_style_size, sim_html_style_size;
/* Writes a title: the name of the traffic, or the names of all shapes. */
void sim_xml_title(FILE *out, const struct sim_section *sections, size_t n);
/* Writes text that comes from a file's name or a trace, escaped for XML. */
void sim_xml_text(FILE *out, const char *text);

#endif
