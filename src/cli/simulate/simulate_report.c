/* Runs each traffic against each subject, prints the results and draws them into a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/simulate/simulate.h"

struct report {
    const struct sim_plan *plan;
    struct sim_traffic traffic[SIM_SHAPES_MAX];
    struct sim_result *results[SIM_SHAPES_MAX];
    struct sim_section sections[SIM_SHAPES_MAX];
    size_t count;
};

/*
 * Runs one subject. An algorithm that is compared by default, but cannot hold such a quota, is
 * left out after a message that says why: *left_out is true and the code is CLI_OK.
 */
static int run_subject(const struct sim_plan *plan, const struct sim_traffic *traffic, size_t i,
                       struct sim_result *result, bool *left_out)
{
    struct sim_subject subject;
    struct weir_error error = {0};
    int e = sim_subject_open(&subject, plan, i, traffic->clients, &error);
    *left_out = e != 0 && subject.rules == NULL && i < plan->algorithms_count &&
                !plan->algorithms_given && (e == WEIR_EQUOTA || e == WEIR_ERATE);
    if (e == 0) {
        e = sim_run(&subject, traffic, plan->rate.period_ns, result, &error);
        result->bound = sim_bound(plan, i, traffic);
    }
    sim_subject_close(&subject);
    if (e == 0) {
        return CLI_OK;
    }
    /* Errors of a rule file already contain the file's name. */
    (void)cli_complain(&cli_simulate, "%s%s%s", i < plan->algorithms_count ? subject.name : "",
                       i < plan->algorithms_count ? ": " : "", error.text);
    return *left_out ? CLI_OK : CLI_USAGE;
}

static int run_section(const struct sim_plan *plan, const struct sim_traffic *traffic,
                       struct sim_result *results, struct sim_section *section)
{
    *section = (struct sim_section){.plan = plan, .traffic = traffic, .results = results};
    for (size_t i = 0; i < sim_subjects(plan); i++) {
        bool left_out;
        int code = run_subject(plan, traffic, i, &results[section->results_count], &left_out);
        if (code != CLI_OK) {
            return code;
        }
        section->results_count += !left_out;
    }
    return CLI_OK;
}

/* Makes the traffic of each section from its shape, and runs it. A trace has been read before. */
static int run_all(struct report *report)
{
    const struct sim_plan *plan = report->plan;
    size_t wanted = plan->trace != NULL ? 1 : plan->shapes_count;
    struct weir_error error = {0};
    int code = CLI_OK;
    for (size_t i = 0; i < wanted && code == CLI_OK; i++) {
        if (plan->trace == NULL &&
            sim_traffic_make(plan, (size_t)plan->shapes[i], &report->traffic[i], &error) != 0) {
            return cli_complain(&cli_simulate, "%s", error.text);
        }
        report->results[i] = calloc(sim_subjects(plan), sizeof *report->results[i]);
        if (report->results[i] == NULL) {
            return cli_complain(&cli_simulate, "out of memory");
        }
        code = run_section(plan, &report->traffic[i], report->results[i], &report->sections[i]);
        report->count++;
    }
    return code;
}

/*
 * Reads the trace, fills in the plan's defaults, then places the trace. The order matters: the
 * default rate may come from the rules and the trace, and the trace is placed by the rate.
 */
static int settle(struct report *report, struct sim_plan *plan)
{
    struct sim_traffic *trace = plan->trace != NULL ? &report->traffic[0] : NULL;
    struct weir_error error = {0};
    if (trace != NULL && sim_trace_read(plan, trace, &error) != 0) {
        return cli_complain(&cli_simulate, "%s", error.text);
    }
    int code = sim_plan_settle(plan, trace);
    if (code == CLI_OK && trace != NULL) {
        sim_trace_place(trace, plan->rate.period_ns);
    }
    return code;
}

static void show(const struct report *report)
{
    enum sim_style style = sim_terminal_style(report->plan->ascii, isatty(STDOUT_FILENO) == 1);
    for (size_t i = 0; i < report->count; i++) {
        if (i > 0) {
            (void)fputc('\n', stdout);
        }
        sim_chart(stdout, &report->sections[i], style);
        sim_table(stdout, &report->sections[i]);
    }
}

static int draw(const struct report *report)
{
    const char *path = report->plan->out;
    bool html = path[strlen(path) - 1] == 'l';
    FILE *f = fopen(path, "w");
    if (f != NULL && html) {
        sim_html(f, report->sections, report->count);
    } else if (f != NULL) {
        sim_svg(f, report->sections, report->count, true);
    }
    bool failed = f == NULL || ferror(f) != 0;
    if (f != NULL) {
        failed |= fclose(f) != 0;
    }
    if (failed) {
        (void)cli_complain(&cli_simulate, "cannot write %s: %s", path, strerror(errno));
        return CLI_FAILED;
    }
    return CLI_OK;
}

int sim_report(struct sim_plan *plan)
{
    struct report report = {.plan = plan};
    int code = settle(&report, plan);
    if (code == CLI_OK) {
        code = run_all(&report);
    }
    if (code == CLI_OK) {
        show(&report);
    }
    if (code == CLI_OK && plan->out != NULL) {
        code = draw(&report);
    }
    for (size_t i = 0; i < SIM_SHAPES_MAX; i++) {
        free(report.results[i]);
        sim_traffic_finish(&report.traffic[i]);
    }
    return code;
}
