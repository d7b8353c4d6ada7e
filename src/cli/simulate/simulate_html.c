/*
 * Writes an HTML page with the pictures and the tables: one file, no script, no external
 * resources.
 */
#include <inttypes.h>

#include "cli/simulate/simulate.h"

static void put_row(FILE *out, const struct sim_section *s, const struct sim_result *r)
{
    char multiple[SIM_TEXT];
    char wait[SIM_TEXT];
    (void)fputs("<tr><td>", out);
    sim_xml_text(out, r->name);
    (void)fprintf(out,
                  "</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td>%" PRIu64 "</td><td%s>%" PRIu64
                  " = %s</td><td>%s</td></tr>\n",
                  r->offered, r->admitted, r->denied, r->worst > r->bound ? " class=\"over\"" : "",
                  r->worst, sim_multiple(r->worst, s->plan->rate.count, multiple),
                  sim_time(r->longest_wait_ns, wait));
}

static void put_bindings(FILE *out, const struct sim_result *r)
{
    for (size_t i = 0; i < r->bindings_count; i++) {
        (void)fputs("<p class=\"note\">", out);
        sim_xml_text(out, r->name);
        (void)fputs(": bound by ", out);
        sim_xml_text(out, r->bindings[i].limit);
        (void)fprintf(out, ": admitted %" PRIu64 ", denied %" PRIu64 "</p>\n",
                      r->bindings[i].admitted, r->bindings[i].denied);
    }
}

static void put_section(FILE *out, const struct sim_section *s)
{
    char period[SIM_TEXT];
    sim_svg(out, s, 1, false);
    (void)fputs("<table>\n<tr><th></th><th>offered</th><th>admitted</th><th>denied</th>"
                "<th>worst</th><th>longest wait</th></tr>\n",
                out);
    for (size_t i = 0; i < s->results_count; i++) {
        put_row(out, s, &s->results[i]);
    }
    (void)fputs("</table>\n", out);
    for (size_t i = 0; i < s->results_count; i++) {
        put_bindings(out, &s->results[i]);
    }
    (void)fprintf(
        out,
        "<p class=\"note\">Worst: the most units of one client that were admitted in any "
        "window of %s, aligned or not, and their ratio to the quota; delayed units count "
        "when they are released. Longest wait: from the first question until the client may "
        "act, or may ask again.%s</p>\n",
        sim_time(s->plan->rate.period_ns, period),
        s->traffic->costs ? " All numbers are units: a request counts as much as it costs." : "");
}

void sim_html(FILE *out, const struct sim_section *sections, size_t n)
{
    (void)fputs("<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n"
                "<head>\n<meta charset=\"utf-8\"/>\n"
                "<meta name=\"viewport\" content=\"width=device-width\"/>\n"
                "<title>",
                out);
    sim_xml_title(out, sections, n);
    (void)fprintf(out, "</title>\n<style>\n%s%s</style>\n</head>\n<body>\n", sim_html_style,
                  sim_svg_style);
    for (size_t i = 0; i < n; i++) {
        put_section(out, &sections[i]);
    }
    (void)fputs("</body>\n</html>\n", out);
}
