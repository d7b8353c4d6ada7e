#include "cli/buffer_format.h"
#include "cli/grid.h"
#include "cli/limit_order.h"
#include "cli/notice_line.h"
#include "cli/top/top_command.h"
#include "rules/value/quantity.h"

#define LINE_MAX_BYTES 4096

#define NUMBER_MAX 48

/* ---- numbers ---- */

/* Formats a number as 0.25, 12, 12345, 123k or 1.2M: a few digits are enough to watch. */
static const char *number(double n, char text[NUMBER_MAX])
{
    static const char *const units[] = {"", "k", "M", "G", "T"};
    unsigned unit = 0;
    while (n >= (unit == 0 ? 99999.5 : 999.5) && unit < 4) {
        n /= 1000;
        unit++;
    }
    bool whole = unit == 0 && n == (double)(uint64_t)n;
    int decimals = unit > 0 ? n < 99.95 : 2 * (n < 9.995);
    decimals = whole ? 0 : decimals;
    (void)snprintf(text, NUMBER_MAX, "%.*f%s", decimals, n, units[unit]);
    return text;
}

static const char *member(const json_t *object, const char *name, char text[NUMBER_MAX])
{
    return number(json_number(object, name), text);
}

/* Formats a member that is a number of seconds, or "-". */
static const char *seconds(const json_t *object, const char *name, char text[NUMBER_MAX])
{
    double s = json_number(object, name);
    (void)snprintf(text, NUMBER_MAX, "-");
    if (json_is_number(json_object_get(object, name))) {
        (void)snprintf(text, NUMBER_MAX,
                       s < 1e-3 ? "%.1fus"
                       : s < 1  ? "%.2fms"
                                : "%.2fs",
                       s < 1e-3 ? s * 1e6
                       : s < 1  ? s * 1e3
                                : s);
    }
    return text;
}

/* ---- the lines above the limits ---- */

/* Writes the members of an object of numbers: "  resp 12  http 3". */
static void put_members(struct buffer *line, json_t *object)
{
    char text[NUMBER_MAX];
    for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
        const char *name = json_object_iter_key(at);
        buffer_format(line, "  %s %s", name, member(object, name, text));
    }
}

static void put_quantiles(struct buffer *line, const json_t *latency)
{
    char half[NUMBER_MAX];
    char most[NUMBER_MAX];
    buffer_format(line, " p50 %s p99 %s", seconds(latency, "p50", half),
                  seconds(latency, "p99", most));
}

static void put_latency(struct buffer *line, json_t *all)
{
    for (void *at = json_object_iter(all); at != NULL; at = json_object_iter_next(all, at)) {
        buffer_format(line, "  %s", json_object_iter_key(at));
        put_quantiles(line, json_object_iter_value(at));
    }
}

/* Writes "breakers open 2 of 6: 10.0.0.5:6379, 10.0.0.6:6379", or nothing if all are closed. */
static void put_breakers(struct buffer *line, json_t *breakers)
{
    struct buffer names;
    size_t open = 0;
    buffer_init(&names, LINE_MAX_BYTES);
    for (void *at = json_object_iter(breakers); at != NULL;
         at = json_object_iter_next(breakers, at)) {
        if (json_is_true(json_object_iter_value(at))) {
            buffer_format(&names, "%s%s", open++ == 0 ? ": " : ", ", json_object_iter_key(at));
        }
    }
    if (open > 0) {
        buffer_format(line, "    breakers open %zu of %zu", open, json_object_size(breakers));
        buffer_put(line, buffer_text(&names));
    }
    buffer_finish(&names);
}

static void put_store(struct buffer *line, const json_t *store)
{
    char nodes[NUMBER_MAX];
    char calls[NUMBER_MAX];
    char degraded[NUMBER_MAX];
    buffer_format(line, "store        %s  nodes %s  calls/s %s  degraded/s %s ",
                  json_is_true(json_object_get(store, "up")) ? "up" : "AWAY",
                  member(store, "nodes", nodes), member(store, "calls_per_second", calls),
                  member(store, "degraded_per_second", degraded));
    put_quantiles(line, json_object_get(store, "latency_seconds"));
    put_breakers(line, json_object_get(store, "breakers_open"));
}

static bool has_fleet(const json_t *report)
{
    return json_is_object(json_object_get(report, "store"));
}

/* Makes the line safe for a terminal, cuts it, moves it to `out` and empties it. */
static void end_line(struct buffer *line, unsigned width, struct buffer *out)
{
    struct buffer safe;
    buffer_init(&safe, 4 * LINE_MAX_BYTES);
    safe_put(&safe, buffer_text(line), false);
    buffer_put(out, safe_cut(buffer_text(&safe), width));
    buffer_put_char(out, '\n');
    buffer_finish(&safe);
    buffer_take(line, buffer_len(line));
}

#define HEAD_LINES 6 /* and one more if there is a fleet, and those of the notices */
#define NOTICES_SHOWN 2

/* Returns how many lines the notices take. */
static size_t notice_lines(const json_t *report)
{
    size_t n = json_array_size(json_object_get(report, "notices"));
    return n > NOTICES_SHOWN ? NOTICES_SHOWN + 1 : n;
}

static void put_notices(const json_t *report, unsigned width, struct buffer *out)
{
    const json_t *notices = json_object_get(report, "notices");
    size_t n = json_array_size(notices);
    struct buffer line;
    buffer_init(&line, LINE_MAX_BYTES);
    for (size_t i = 0; i < n && i < NOTICES_SHOWN; i++) {
        const json_t *notice = json_array_get(notices, i);
        buffer_format(&line, "%-12s ", json_text(notice, "severity"));
        notice_line_put(&line, notice);
        end_line(&line, width, out);
    }
    if (n > NOTICES_SHOWN) {
        buffer_format(&line, "and %zu more, which `weir ctl status` prints", n - NOTICES_SHOWN);
        end_line(&line, width, out);
    }
    buffer_finish(&line);
}

static void put_head(const json_t *report, const char *address, unsigned width, struct buffer *out)
{
    char text[QUANTITY_MAX];
    char generation[NUMBER_MAX];
    struct buffer line;
    buffer_init(&line, LINE_MAX_BYTES);
    buffer_format(&line, "weir %s at %s  %s, up %s, rules %s, mode %s",
                  json_text(report, "version"), address, json_text(report, "state"),
                  duration_print((uint64_t)json_number(report, "uptime_s") * WEIR_SECOND, text),
                  member(report, "generation", generation), json_text(report, "mode"));
    end_line(&line, width, out);
    put_notices(report, width, out);
    buffer_put(&line, TEXT("requests/s "));
    put_members(&line, json_object_get(report, "results_per_second"));
    end_line(&line, width, out);
    buffer_put(&line, TEXT("by listener"));
    put_members(&line, json_object_get(report, "requests_per_second"));
    buffer_put(&line, TEXT("    connections"));
    put_members(&line, json_object_get(report, "connections"));
    end_line(&line, width, out);
    buffer_put(&line, TEXT("decisions/s"));
    put_members(&line, json_object_get(report, "decisions_per_second"));
    end_line(&line, width, out);
    buffer_put(&line, TEXT("latency    "));
    put_latency(&line, json_object_get(report, "latency_seconds"));
    end_line(&line, width, out);
    buffer_format(&line, "cpu          %.1f %%    memory %.1f MB    threads %.0f    held %.0f",
                  json_number(report, "cpu_percent"), json_number(report, "memory_bytes") / 1e6,
                  json_number(report, "threads"), json_number(report, "held"));
    end_line(&line, width, out);
    if (has_fleet(report)) {
        put_store(&line, json_object_get(report, "store"));
        end_line(&line, width, out);
    }
    buffer_finish(&line);
}

/* ---- tables ---- */

static void grid_put_member(struct grid *g, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    grid_put(g, (struct weir_text){json_string_value(value) != NULL ? json_string_value(value) : "",
                                   json_string_length(value)});
}

static void grid_put_number(struct grid *g, const json_t *object, const char *name)
{
    char text[NUMBER_MAX] = "-"; /* null: its value is in the store of a fleet */
    if (!json_is_null(json_object_get(object, name))) {
        (void)member(object, name, text);
    }
    grid_put(g, text_of(text));
}

static void grid_put_fill(struct grid *g, const json_t *fill)
{
    char text[16] = "-";
    if (!json_is_null(fill)) {
        (void)snprintf(text, sizeof text, "%.1f%%", 100 * json_number_value(fill));
    }
    grid_put(g, text_of(text));
}

static const char *const rates[] = {"allow", "deny", "never", "shadow"};

static void put_limit(struct grid *g, const json_t *limit, bool fleet)
{
    static const char *const texts[] = {"name", "tier", "rate", "mode"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        grid_put_member(g, limit, texts[i]);
    }
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        grid_put_number(g, limit, rates[i]);
    }
    grid_put_number(g, limit, "keys");
    grid_put_fill(g, json_object_get(limit, "fill"));
    grid_put_number(g, limit, "evicted");
    if (fleet) {
        grid_put_number(g, limit, "degraded");
    }
}

static void fill_denied(struct grid *g, const json_t *denied)
{
    for (size_t i = 0; i < json_array_size(denied); i++) {
        const json_t *row = json_array_get(denied, i);
        grid_put_number(g, row, "count");
        grid_put_member(g, row, "reason");
        grid_put_member(g, row, "limit");
        grid_put_member(g, row, "key");
    }
}

/* The last column is shown only if there is a fleet. */
static const struct grid_column limit_columns[] = {
    {"LIMIT", false},  {"TIER", false},  {"RATE", false},   {"MODE", false},
    {"ALLOW/S", true}, {"DENY/S", true}, {"NEVER/S", true}, {"SHADOW/S", true},
    {"KEYS", true},    {"FILL", true},   {"EVICT/S", true}, {"DEGRADED/S", true}};
#define LIMIT_COLUMNS (sizeof limit_columns / sizeof limit_columns[0])

/* Writes the table of denied keys. The title of its first column says for which time it is. */
static void put_denied(const json_t *report, unsigned width, size_t rows, struct buffer *out)
{
    char title[32] = "DENIED";
    struct grid_column columns[] = {
        {title, true}, {"REASON", false}, {"LIMIT", false}, {"KEY", false}};
    struct grid g;
    if (json_is_integer(json_object_get(report, "denied_minutes"))) {
        (void)snprintf(title, sizeof title, "DENIED/%.0fMIN",
                       json_number(report, "denied_minutes"));
    }
    grid_init(&g, columns, sizeof columns / sizeof columns[0]);
    fill_denied(&g, json_object_get(report, "denied"));
    grid_print(&g, out, width, rows);
    grid_finish(&g);
}

/* ---- the whole view ---- */

/* The limits get those rows below the head that the denied keys leave free, and at least half. */
void top_view(const json_t *report, const char *address, unsigned width, unsigned rows,
              struct buffer *out)
{
    json_t *limits = limits_by_denied(json_object_get(report, "limits"));
    const json_t *denied = json_object_get(report, "denied");
    bool fleet = has_fleet(report);
    size_t some = json_array_size(denied);
    size_t above = HEAD_LINES + fleet + notice_lines(report) + 4;
    size_t left = rows > above ? rows - above : rows > 0 ? 1 : SIZE_MAX;
    size_t of_denied = some < left / 2 ? some : left / 2;
    struct grid g;
    put_head(report, address, width, out);
    buffer_put_char(out, '\n');
    grid_init(&g, limit_columns, fleet ? LIMIT_COLUMNS : LIMIT_COLUMNS - 1);
    for (size_t i = 0; i < json_array_size(limits); i++) {
        put_limit(&g, json_array_get(limits, i), fleet);
    }
    grid_print(&g, out, width, left - of_denied);
    grid_finish(&g);
    json_decref(limits);
    if (of_denied > 0) {
        buffer_put_char(out, '\n');
        put_denied(report, width, of_denied, out);
    }
}
