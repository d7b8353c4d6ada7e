/*
 * Draws the chart for a terminal: one column for each part of the time, with admitted units as
 * solid blocks from below and denied units as light ones on top of them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/simulate/simulate.h"

#define COLUMNS 60
#define PER_COLUMN (SIM_BINS / COLUMNS)
#define ROWS 5
#define EIGHTHS (ROWS * 8)

#define BLOCKS {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, "░", "│", "└", "─", "┴"

static const struct look {
    const char *level[9]; /* for admitted units, by eighths of a cell */
    const char *denied;
    const char *wall, *corner, *floor, *mark;
    const char *admitted_on, *denied_on, *off;
} looks[] = {
    [SIM_ASCII] =
        {{" ", "#", "#", "#", "#", "#", "#", "#", "#"}, ".", "|", "+", "-", "+", "", "", ""},
    [SIM_BLOCKS] = {BLOCKS, "", "", ""},
    [SIM_COLOUR] = {BLOCKS, "\033[36m", "\033[90m", "\033[0m"},
};

static bool says_utf8(const char *value)
{
    return strstr(value, "UTF-8") != NULL || strstr(value, "utf8") != NULL ||
           strstr(value, "UTF8") != NULL || strstr(value, "utf-8") != NULL;
}

/* Reads the environment in the order of setlocale(), without changing the process's locale. */
static bool locale_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != 0) {
            return says_utf8(value);
        }
    }
    return false;
}

enum sim_style sim_terminal_style(bool ascii, bool terminal)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    if (ascii || !locale_is_utf8()) {
        return SIM_ASCII;
    }
    bool plain = !terminal || (no_colour != NULL && no_colour[0] != 0) || kind == NULL ||
                 strcmp(kind, "dumb") == 0;
    return plain ? SIM_BLOCKS : SIM_COLOUR;
}

/* Returns the height in eighths of a row, rounded, but at least 1 for a number above 0. */
static unsigned height(uint64_t units, uint64_t top)
{
    uint64_t eighths = (uint64_t)(((unsigned __int128)units * EIGHTHS * 2 / top + 1) / 2);
    return eighths == 0 && units > 0 ? 1 : (unsigned)eighths;
}

static unsigned in_cell(unsigned tall, unsigned row)
{
    return tall <= row * 8 ? 0 : tall >= row * 8 + 8 ? 8 : tall - row * 8;
}

/* Draws admitted units if the cell contains any, otherwise denied ones. */
static void draw_cell(FILE *out, const struct look *look, unsigned admitted, unsigned offered,
                      bool halves)
{
    if (halves && admitted > 0 && admitted < 4 && offered > admitted) {
        admitted = 0; /* ASCII has no eighths: less than half a cell shows as denied */
    }
    if (admitted > 0) {
        (void)fprintf(out, "%s%s%s", look->admitted_on, look->level[admitted], look->off);
    } else if (offered > 0) {
        (void)fprintf(out, "%s%s%s", look->denied_on, look->denied, look->off);
    } else {
        (void)fputs(" ", out);
    }
}

static void draw_row(FILE *out, const struct look *look, const struct sim_result *r, uint64_t top,
                     unsigned row)
{
    char cells[COLUMNS][2];
    size_t used = 0;
    for (size_t c = 0; c < COLUMNS; c++) {
        uint64_t in = sim_total(r->admitted_in, c * PER_COLUMN, PER_COLUMN);
        uint64_t all = sim_total(r->offered_in, c * PER_COLUMN, PER_COLUMN);
        cells[c][0] = (char)in_cell(height(in, top), row);
        cells[c][1] = (char)in_cell(height(all, top), row);
        used = cells[c][1] > 0 ? c + 1 : used;
    }
    if (row == ROWS - 1) {
        (void)fprintf(out, "  %8" PRIu64 " %s", top, look->wall);
    } else {
        (void)fprintf(out, "  %8s %s", "", look->wall);
    }
    for (size_t c = 0; c < used; c++) {
        draw_cell(out, look, (unsigned)cells[c][0], (unsigned)cells[c][1],
                  look == &looks[SIM_ASCII] && row > 0);
    }
    (void)fputc('\n', out);
}

/* Returns the column that contains this time. */
static size_t column_of(uint64_t time_ns, uint64_t duration_ns)
{
    return (size_t)((unsigned __int128)time_ns * COLUMNS / duration_ns);
}

static void draw_floor(FILE *out, const struct look *look, const struct sim_section *s)
{
    uint64_t step = sim_axis_step(s);
    uint64_t next = step;
    (void)fprintf(out, "  %8s %s", "0", look->corner);
    for (size_t c = 0; c < COLUMNS; c++) {
        bool mark = next < s->traffic->duration_ns && c == column_of(next, s->traffic->duration_ns);
        (void)fputs(mark ? look->mark : look->floor, out);
        next += mark ? step : 0;
    }
    (void)fputc('\n', out);
}

/* Prints the label of each mark centred under it, and leaves out a label that has no room. */
static void draw_times(FILE *out, const struct sim_section *s)
{
    char line[COLUMNS + SIM_TEXT];
    char label[SIM_TEXT];
    uint64_t step = sim_axis_step(s);
    size_t used = 1;
    memset(line, ' ', sizeof line);
    line[0] = '0';
    for (uint64_t at = step; at <= s->traffic->duration_ns; at += step) {
        size_t length = strlen(sim_time_like(at, step, label));
        size_t centre = column_of(at, s->traffic->duration_ns);
        if (centre >= used + 1 + length / 2) {
            memcpy(line + centre - length / 2, label, length);
            used = centre - length / 2 + length;
        }
    }
    (void)fprintf(out, "  %8s  %.*s\n", "", (int)used, line);
}

static void draw_one(FILE *out, const struct look *look, const struct sim_section *s,
                     const struct sim_result *r, uint64_t top)
{
    char multiple[SIM_TEXT];
    char title[SIM_TEXT];
    (void)snprintf(title, sizeof title, "worst %s",
                   sim_multiple(r->worst, s->plan->rate.count, multiple));
    (void)fprintf(out, "\n  %-54s%17s\n", r->name, title);
    for (unsigned row = ROWS; row-- > 0;) {
        draw_row(out, look, r, top, row);
    }
    draw_floor(out, look, s);
}

void sim_chart(FILE *out, const struct sim_section *section, enum sim_style style)
{
    const struct look *look = &looks[style];
    uint64_t top = sim_tallest(section, PER_COLUMN);
    char each[SIM_TEXT];
    char circumstances[256];
    (void)fprintf(out, "%s: %s\n%s\n\n", section->traffic->name, section->traffic->about,
                  sim_circumstances(section, circumstances, sizeof circumstances));
    (void)fprintf(out, "  %s%s%s admitted  %s%s%s denied  of what was offered in each %s\n",
                  look->admitted_on, look->level[8], look->off, look->denied_on, look->denied,
                  look->off, sim_time(section->traffic->duration_ns / COLUMNS, each));
    for (size_t i = 0; i < section->results_count; i++) {
        draw_one(out, look, section, &section->results[i], top);
    }
    draw_times(out, section);
    (void)fputc('\n', out);
}
