/*
 * Draws the picture: for each subject, the units offered and admitted over time, and below them
 * the units within the period that ends at each moment, next to the quota. The file is
 * self-contained and follows the reader's light or dark colour scheme. Lengths are whole tenths
 * of a pixel, so that the same result gives the same bytes.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/maths.h"
#include "cli/simulate/simulate.h"
#include "common/utf8.h"

#define TENTHS 10
#define LEFT 52
#define RIGHT 20
#define WIDE 640   /* width of the plot if there is one panel */
#define NARROW 376 /* width if two panels are side by side */
#define HEADING 84
#define PANEL 240 /* from the top of one panel to the top of the next */
#define BARS 80
#define PER_BAR (SIM_BINS / BARS)
#define BARS_TOP 38
#define BARS_HEIGHT 60
#define BARS_BOTTOM (BARS_TOP + BARS_HEIGHT)
#define CURVE_TOP 126
#define CURVE_HEIGHT 80
#define CURVE_BOTTOM (CURVE_TOP + CURVE_HEIGHT)
#define NAME_MAX_BYTES 36
#define ABOUT_MAX_BYTES 100
#define LEGEND 254 /* its width */

/* ---- text -------------------------------------------------------------- */

void sim_xml_text(FILE *out, const char *text)
{
    static const char special[] = "&<>\"";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    struct weir_text rest = text_of(text);
    while (rest.len > 0) {
        bool visible;
        struct weir_text c = utf8_take(&rest, &visible);
        const char *at = visible && c.len == 1 ? strchr(special, c.at[0]) : NULL;
        if (at != NULL) {
            (void)fputs(names[at - special], out);
        } else {
            (void)fwrite(visible ? c.at : "?", visible ? c.len : 1, 1, out);
        }
    }
}

/* Writes a text as printf() does, at most 511 bytes of it. */
static void __attribute__((format(printf, 5, 6)))
text_at(FILE *out, int x, int y, const char *class, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    (void)fprintf(
        out, class[0] != 0 ? "<text x=\"%d\" y=\"%d\" class=\"%s\">" : "<text x=\"%d\" y=\"%d\"%s>",
        x, y, class);
    sim_xml_text(out, text);
    (void)fputs("</text>\n", out);
}

/* Draws a name. Only the end of a long path is shown, because it distinguishes files. */
static void draw_name(FILE *out, int x, int y, const char *class, const char *name)
{
    size_t length = strlen(name);
    const char *tail = name + (length > NAME_MAX_BYTES ? length - NAME_MAX_BYTES : 0);
    while ((*tail & 0xc0) == 0x80) { /* do not cut a character in two */
        tail++;
    }
    text_at(out, x, y, class, "%s%s", tail == name ? "" : "\xe2\x80\xa6", tail);
}

/* Returns how many bytes of a text to show: whole characters, at most ABOUT_MAX_BYTES. */
static int whole_characters(const char *text)
{
    size_t n = strnlen(text, ABOUT_MAX_BYTES);
    while ((text[n] & 0xc0) == 0x80) {
        n--;
    }
    return (int)n;
}

/* ---- lines and areas --------------------------------------------------- */

/* One panel: its position, and the scale of its heights. */
struct panel {
    FILE *out;
    const struct sim_section *section;
    const struct sim_result *result;
    int x, y, width;
    uint64_t bars_top;  /* units that reach the full height of the bars */
    uint64_t curve_top; /* units that reach the full height of the curve */
};

static int scaled(uint64_t units, uint64_t top, int height)
{
    return (int)((unsigned __int128)units * (unsigned)(height * TENTHS) / top);
}

/* Returns the left end of part i of n equal parts of the plot, in tenths of a pixel. */
static int part(const struct panel *p, size_t i, size_t n)
{
    return p->x * TENTHS + (int)((size_t)(p->width * TENTHS) * i / n);
}

static void put(FILE *out, const char *before, int tenths)
{
    (void)fprintf(out, tenths % TENTHS == 0 ? "%s%d" : "%s%d.%d", before, tenths / TENTHS,
                  tenths % TENTHS);
}

static void line(FILE *out, int x1, int y1, int x2, int y2, const char *class)
{
    (void)fprintf(out, "<path class=\"%s\" d=\"", class);
    put(out, "M", x1);
    put(out, " ", y1);
    put(out, "L", x2);
    put(out, " ", y2);
    (void)fputs("\"/>\n", out);
}

/* Draws a line across the panel. */
static void level(const struct panel *p, int y, const char *class)
{
    line(p->out, p->x * TENTHS, y, (p->x + p->width) * TENTHS, y, class);
}

static void draw_bars(const struct panel *p, const uint64_t *bins, const char *class)
{
    int bottom = (p->y + BARS_BOTTOM) * TENTHS;
    (void)fprintf(p->out, "<path class=\"%s\" d=\"", class);
    for (size_t i = 0; i < BARS; i++) {
        int tall = scaled(sim_total(bins, i * PER_BAR, PER_BAR), p->bars_top, BARS_HEIGHT);
        if (tall > 0) {
            int left = part(p, i, BARS);
            put(p->out, "M", left);
            put(p->out, " ", bottom);
            put(p->out, "v-", tall);
            put(p->out, "h", part(p, i + 1, BARS) - left - TENTHS / 2);
            put(p->out, "v", tall);
            (void)fputs("z", p->out);
        }
    }
    (void)fputs("\"/>\n", p->out);
}

/* Draws the steps of the running count, but nowhere below `least`. */
static void draw_steps(const struct panel *p, uint64_t least, bool closed, const char *class)
{
    int bottom = (p->y + CURVE_BOTTOM) * TENTHS;
    int floor = bottom - scaled(least, p->curve_top, CURVE_HEIGHT);
    int now = floor;
    (void)fprintf(p->out, "<path class=\"%s\" d=\"", class);
    put(p->out, "M", part(p, 0, SIM_BINS));
    put(p->out, " ", floor);
    for (size_t i = 0; i < SIM_BINS; i++) {
        uint64_t units = p->result->running[i] > least ? p->result->running[i] : least;
        int high = bottom - scaled(units, p->curve_top, CURVE_HEIGHT);
        if (high != now) {
            put(p->out, "H", part(p, i, SIM_BINS));
            put(p->out, "V", high);
            now = high;
        }
    }
    put(p->out, "H", part(p, SIM_BINS, SIM_BINS));
    if (closed) {
        put(p->out, "V", floor);
        (void)fputs("z", p->out);
    }
    (void)fputs("\"/>\n", p->out);
}

/* ---- one panel --------------------------------------------------------- */

static int x_of_time(const struct panel *p, uint64_t time_ns)
{
    return p->x * TENTHS + (int)((unsigned __int128)time_ns * (unsigned)(p->width * TENTHS) /
                                 p->section->traffic->duration_ns);
}

static void draw_times(const struct panel *p)
{
    uint64_t step = sim_axis_step(p->section);
    char label[SIM_TEXT];
    for (uint64_t at = 0; at <= p->section->traffic->duration_ns; at += step) {
        int x = x_of_time(p, at);
        line(p->out, x, (p->y + BARS_TOP) * TENTHS, x, (p->y + BARS_BOTTOM) * TENTHS, "grid");
        line(p->out, x, (p->y + CURVE_TOP) * TENTHS, x, (p->y + CURVE_BOTTOM) * TENTHS, "grid");
        bool last = at + step > p->section->traffic->duration_ns && at > 0;
        text_at(p->out, x / TENTHS, p->y + CURVE_BOTTOM + 17, last ? "end" : "middle", "%s",
                sim_time_like(at, step, label));
    }
}

static void draw_offered(const struct panel *p)
{
    char each[SIM_TEXT];
    int bottom = p->y + BARS_BOTTOM;
    text_at(p->out, p->x, p->y + BARS_TOP - 6, "", "offered per %s",
            sim_time(p->section->traffic->duration_ns / BARS, each));
    text_at(p->out, p->x + p->width, p->y + BARS_TOP - 6, "end", "admitted %" PRIu64 " of %" PRIu64,
            p->result->admitted, p->result->offered);
    text_at(p->out, p->x - 6, p->y + BARS_TOP + 9, "end", "%" PRIu64, p->bars_top);
    text_at(p->out, p->x - 6, bottom, "end", "0");
    draw_bars(p, p->result->offered_in, "denied");
    draw_bars(p, p->result->admitted_in, "admitted");
    level(p, bottom * TENTHS, "axis");
}

/* Writes the highest value above the middle of the curve's first highest step. */
static void draw_peak(const struct panel *p)
{
    const uint64_t *running = p->result->running;
    size_t first = 0;
    for (size_t i = 1; i < SIM_BINS; i++) {
        first = running[i] > running[first] ? i : first;
    }
    uint64_t peak = running[first];
    if (peak == 0) {
        return;
    }
    size_t end = first;
    while (end < SIM_BINS && running[end] == peak) {
        end++;
    }
    int x = (part(p, first, SIM_BINS) + part(p, end, SIM_BINS)) / 2 / TENTHS;
    int y = p->y + CURVE_BOTTOM - scaled(peak, p->curve_top, CURVE_HEIGHT) / TENTHS - 4;
    text_at(p->out, x, y, peak > p->result->bound ? "middle strong over" : "middle", "%" PRIu64,
            peak);
}

static void draw_running(const struct panel *p)
{
    uint64_t quota = p->section->plan->rate.count;
    int bottom = p->y + CURVE_BOTTOM;
    int limit = bottom * TENTHS - scaled(quota, p->curve_top, CURVE_HEIGHT);
    char time[SIM_TEXT];
    bool queue = strcmp(p->result->name, "leaky_bucket") == 0;
    text_at(p->out, p->x, p->y + CURVE_TOP - 6, "", "%s in the last %s",
            queue ? "released" : "admitted", sim_time(p->section->plan->rate.period_ns, time));
    text_at(p->out, p->x + p->width, p->y + CURVE_TOP - 6, "end", "longest wait %s",
            sim_time(p->result->longest_wait_ns, time));
    draw_steps(p, 0, true, "area");
    draw_steps(p, quota, true, "excess");
    if (p->result->worst > p->result->bound) {
        draw_steps(p, p->result->bound, true, "breach");
    }
    draw_steps(p, 0, false, "curve");
    level(p, limit, "quota");
    level(p, bottom * TENTHS, "axis");
    text_at(p->out, p->x - 6, limit / TENTHS + 4, "end limit", "%" PRIu64, quota);
    if (bottom - limit / TENTHS > 14) {
        text_at(p->out, p->x - 6, bottom, "end", "0");
    }
    draw_peak(p);
}

static void draw_panel(const struct panel *p)
{
    uint64_t quota = p->section->plan->rate.count;
    char multiple[SIM_TEXT];
    draw_name(p->out, p->x, p->y + 12, "name", p->result->name);
    text_at(p->out, p->x + p->width, p->y + 12,
            p->result->worst > p->result->bound ? "end strong over" : "end strong", "worst %s",
            sim_multiple(p->result->worst, quota, multiple));
    draw_times(p);
    draw_offered(p);
    draw_running(p);
}

/* ---- one section ------------------------------------------------------- */

static int plot_width(const struct sim_section *s)
{
    return s->results_count > 1 ? NARROW : WIDE;
}

static int section_width(const struct sim_section *s)
{
    return (LEFT + plot_width(s) + RIGHT) * (s->results_count > 1 ? 2 : 1);
}

static int section_height(const struct sim_section *s)
{
    return HEADING + (int)(s->results_count > 1 ? (s->results_count + 1) / 2 : 1) * PANEL;
}

/* Sets one scale for all panels, so that heights can be compared. */
static void set_scale(struct panel *p)
{
    const struct sim_section *s = p->section;
    p->bars_top = sim_tallest(s, PER_BAR);
    p->curve_top = s->plan->rate.count;
    for (size_t i = 0; i < s->results_count; i++) {
        p->curve_top = max_u64(p->curve_top, s->results[i].worst);
    }
    p->curve_top += p->curve_top / 5 + 1; /* room for a number above the curve */
}

static void draw_legend(FILE *out, int x, int y)
{
    (void)fprintf(out,
                  "<rect class=\"admitted\" x=\"%d\" y=\"%d\" width=\"11\" height=\"11\"/>\n"
                  "<rect class=\"denied\" x=\"%d\" y=\"%d\" width=\"11\" height=\"11\"/>\n",
                  x, y - 10, x + 86, y - 10);
    text_at(out, x + 16, y, "", "admitted");
    text_at(out, x + 102, y, "", "denied");
    line(out, (x + 164) * TENTHS, (y - 4) * TENTHS, (x + 188) * TENTHS, (y - 4) * TENTHS, "quota");
    text_at(out, x + 194, y, "", "the quota");
}

static void draw_heading(FILE *out, const struct sim_section *s)
{
    char text[256];
    draw_name(out, LEFT, 24, "title", s->traffic->name);
    draw_legend(out, section_width(s) - RIGHT - LEGEND, 24);
    text_at(out, LEFT, 44, "", "%.*s", whole_characters(s->traffic->about), s->traffic->about);
    text_at(out, LEFT, 61, "", "%s", sim_circumstances(s, text, sizeof text));
}

static void draw_section(FILE *out, const struct sim_section *s)
{
    struct panel panel = {.out = out, .section = s, .width = plot_width(s)};
    int column = LEFT + plot_width(s) + RIGHT;
    draw_heading(out, s);
    set_scale(&panel);
    for (size_t i = 0; i < s->results_count; i++) {
        panel.result = &s->results[i];
        panel.x = LEFT + (int)(i % 2) * column;
        panel.y = HEADING + (int)(i / 2) * PANEL;
        draw_panel(&panel);
    }
}

void sim_xml_title(FILE *out, const struct sim_section *sections, size_t n)
{
    (void)fputs("weir simulate, ", out);
    if (n > 1) {
        (void)fprintf(out, "%zu shapes of traffic: ", n);
    }
    for (size_t i = 0; i < n; i++) {
        (void)fputs(i > 0 ? ", " : "", out);
        sim_xml_text(out, sections[i].traffic->name);
    }
}

static void open_svg(FILE *out, int width, int height, const struct sim_section *sections, size_t n)
{
    (void)fprintf(out,
                  "<svg class=\"weir\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                  "width=\"%d\" height=\"%d\" role=\"img\">\n<title>",
                  width, height, width, height);
    sim_xml_title(out, sections, n);
    (void)fprintf(out, "</title>\n");
}

static void put_paper(FILE *out, int width, int height, bool style)
{
    if (style) {
        (void)fprintf(out, "<style>\n%s</style>\n", sim_svg_style);
    }
    (void)fprintf(out, "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", width, height);
}

void sim_svg(FILE *out, const struct sim_section *sections, size_t n, bool style)
{
    int height = 0;
    for (size_t i = 0; i < n; i++) {
        height += section_height(&sections[i]);
    }
    open_svg(out, section_width(&sections[0]), height, sections, n);
    put_paper(out, section_width(&sections[0]), height, style);
    height = 0;
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(out, "<g transform=\"translate(0 %d)\">\n", height);
        draw_section(out, &sections[i]);
        (void)fputs("</g>\n", out);
        height += section_height(&sections[i]);
    }
    (void)fputs("</svg>\n", out);
}
