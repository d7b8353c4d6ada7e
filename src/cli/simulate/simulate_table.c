/* Prints the table under the charts, and explains its columns. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/simulate/simulate.h"

static int name_width(const struct sim_section *s)
{
    int width = 14;
    for (size_t i = 0; i < s->results_count; i++) {
        int length = (int)strlen(s->results[i].name);
        width = length > width ? length : width;
    }
    return width;
}

/* Prints how much each limit of a rule file admitted and denied, and how much can never fit. */
static void print_bindings(FILE *out, const struct sim_result *r)
{
    for (size_t i = 0; i < r->bindings_count; i++) {
        const struct sim_binding *b = &r->bindings[i];
        (void)fprintf(out, "  %s: bound by %s: admitted %" PRIu64 ", denied %" PRIu64 "\n", r->name,
                      b->limit, b->admitted, b->denied);
    }
    if (r->never > 0) {
        (void)fprintf(out, "  %s: of the denied, %" PRIu64 " can never fit\n", r->name, r->never);
    }
}

static void print_row(FILE *out, const struct sim_section *s, const struct sim_result *r, int width)
{
    char multiple[SIM_TEXT];
    char wait[SIM_TEXT];
    char worst[2 * SIM_TEXT];
    (void)snprintf(worst, sizeof worst, "%" PRIu64 " = %s", r->worst,
                   sim_multiple(r->worst, s->plan->rate.count, multiple));
    (void)fprintf(out, "  %-*s  %8" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "  %15s  %12s\n", width,
                  r->name, r->offered, r->admitted, r->denied, worst,
                  sim_time(r->longest_wait_ns, wait));
}

static void explain(FILE *out, const struct sim_section *s)
{
    char period[SIM_TEXT];
    (void)fprintf(out,
                  "\n  worst: the most units of one client admitted in any window of %s, aligned\n"
                  "    or not, and their ratio to the quota; delayed units count when released\n"
                  "  longest wait: from the first question until the client may act or ask again\n",
                  sim_time(s->plan->rate.period_ns, period));
    if (s->traffic->costs) {
        (void)fprintf(out, "  all numbers are units: a request counts as much as it costs\n");
    }
}

void sim_table(FILE *out, const struct sim_section *section)
{
    int width = name_width(section);
    (void)fprintf(out, "  %-*s  %8s  %8s  %8s  %15s  %12s\n", width, "", "offered", "admitted",
                  "denied", "worst", "longest wait");
    for (size_t i = 0; i < section->results_count; i++) {
        print_row(out, section, &section->results[i], width);
    }
    for (size_t i = 0; i < section->results_count; i++) {
        print_bindings(out, &section->results[i]);
    }
    explain(out, section);
}
