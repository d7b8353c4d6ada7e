#include <stdlib.h>

#include "cli/grid.h"
#include "cli/top/top_command.h"
#include "rules/value/quantity.h"

#define LINE_MAX_BYTES 4096

/* ---- one line ---- */

static void put(struct buffer *line, const char *text)
{
    buffer_put(line, text_of(text));
}

static void put_text(struct buffer *line, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    safe_put(line, (struct text){json_string_value(value), json_string_length(value)}, false);
}

/* Writes a number as 0.25, 12, 12345, 123k or 1.2M: a few significant digits are enough to watch. */
static void put_number(struct buffer *line, double n)
{
    static const char units[] = " kMGT";
    char text[48];
    unsigned unit = 0;
    for (double most = 99999.5; n >= most && unit < 4; most = 999.5) {
        n /= 1000;
        unit++;
    }
    bool whole = unit == 0 && n == (double)(uint64_t)n;
    int decimals = whole ? 0 : unit > 0 ? n < 99.95 : n < 9.995 ? 2 : 0;
    int length = snprintf(text, sizeof text, "%.*f", decimals, n);
    buffer_put(line, (struct text){text, (size_t)length});
    buffer_put(line, unit > 0 ? (struct text){&units[unit], 1} : TEXT(""));
}

/* Writes the members of an object of numbers: "  resp 12  http 3". */
static void put_members(struct buffer *line, const json_t *object)
{
    json_t *all = (json_t *)(uintptr_t)object; /* the iterator does not change it */
    for (void *at = json_object_iter(all); at != NULL; at = json_object_iter_next(all, at)) {
        put(line, "  ");
        safe_put(line, text_of(json_object_iter_key(at)), false);
        put(line, " ");
        put_number(line, json_number_value(json_object_iter_value(at)));
    }
}

static void put_seconds(struct buffer *line, const json_t *seconds)
{
    double s = json_number_value(seconds);
    char text[32];
    if (!json_is_number(seconds)) {
        put(line, "-");
        return;
    }
    int length = s < 1e-3 ? snprintf(text, sizeof text, "%.1fus", s * 1e6)
                 : s < 1  ? snprintf(text, sizeof text, "%.2fms", s * 1e3)
                          : snprintf(text, sizeof text, "%.2fs", s);
    buffer_put(line, (struct text){text, (size_t)length});
}

/* ---- the lines above the limits ---- */

static void put_title(struct buffer *line, const json_t *report, const char *address)
{
    char text[QUANTITY_MAX];
    double uptime = json_number(report, "uptime_s");
    put(line, "weir ");
    put_text(line, report, "version");
    put(line, " at ");
    safe_put(line, text_of(address), false);
    put(line, "  ");
    put_text(line, report, "state");
    put(line, ", up ");
    put(line, duration_print((uint64_t)uptime * WEIR_SECOND, text));
    put(line, ", rules ");
    put_number(line, json_number(report, "generation"));
    put(line, ", mode ");
    put_text(line, report, "mode");
}

static void put_latency(struct buffer *line, const json_t *report, const char *address)
{
    json_t *all = json_object_get(report, "latency_seconds");
    (void)address;
    put(line, "latency    ");
    for (void *at = json_object_iter(all); at != NULL; at = json_object_iter_next(all, at)) {
        put(line, "  ");
        safe_put(line, text_of(json_object_iter_key(at)), false);
        put(line, " p50 ");
        put_seconds(line, json_object_get(json_object_iter_value(at), "p50"));
        put(line, " p99 ");
        put_seconds(line, json_object_get(json_object_iter_value(at), "p99"));
    }
}

static void put_decisions(struct buffer *line, const json_t *report, const char *address)
{
    (void)address;
    put(line, "decisions/s");
    put_members(line, json_object_get(report, "decisions_per_second"));
}

static void put_requests(struct buffer *line, const json_t *report, const char *address)
{
    (void)address;
    put(line, "requests/s ");
    put_members(line, json_object_get(report, "requests_per_second"));
    put(line, "    connections");
    put_members(line, json_object_get(report, "connections"));
}

static void put_machine(struct buffer *line, const json_t *report, const char *address)
{
    char text[64];
    double memory = json_number(report, "memory_bytes");
    (void)address;
    (void)snprintf(text, sizeof text, "cpu          %.1f %%    memory %.1f MB    threads %.0f",
                   json_number(report, "cpu_percent"), memory / 1e6,
                   json_number(report, "threads"));
    put(line, text);
}

/* Writes "breakers open 2 of 6: 10.0.0.5:6379, 10.0.0.6:6379", or nothing if all are closed. */
static void put_breakers(struct buffer *line, json_t *breakers)
{
    char text[64];
    size_t open = 0;
    for (void *at = json_object_iter(breakers); at != NULL;
         at = json_object_iter_next(breakers, at)) {
        open += json_is_true(json_object_iter_value(at));
    }
    (void)snprintf(text, sizeof text, "    breakers open %zu of %zu", open,
                   json_object_size(breakers));
    put(line, open > 0 ? text : "");
    const char *before = ": ";
    for (void *at = json_object_iter(breakers); at != NULL;
         at = json_object_iter_next(breakers, at)) {
        if (json_is_true(json_object_iter_value(at))) {
            put(line, before);
            safe_put(line, text_of(json_object_iter_key(at)), false);
            before = ", ";
        }
    }
}

static void put_store(struct buffer *line, const json_t *report, const char *address)
{
    static const struct {
        const char *text;
        const char *name;
    } numbers[] = {{"  nodes ", "nodes"},
                   {"  calls/s ", "calls_per_second"},
                   {"  degraded/s ", "degraded_per_second"}};
    const json_t *store = json_object_get(report, "store");
    const json_t *latency = json_object_get(store, "latency_seconds");
    (void)address;
    put(line, json_is_true(json_object_get(store, "up")) ? "store        up" : "store        AWAY");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        put(line, numbers[i].text);
        put_number(line, json_number(store, numbers[i].name));
    }
    put(line, "  p50 ");
    put_seconds(line, json_object_get(latency, "p50"));
    put(line, " p99 ");
    put_seconds(line, json_object_get(latency, "p99"));
    put_breakers(line, json_object_get(store, "breakers_open"));
}

static void (*const head[])(struct buffer *line, const json_t *report, const char *address) = {
    put_title, put_decisions, put_requests, put_latency, put_machine, put_store};

/* Returns the number of head lines. The last one, put_store, is shown only if there is a fleet. */
static size_t head_lines(const json_t *report)
{
    bool fleet = json_is_object(json_object_get(report, "store"));
    return sizeof head / sizeof head[0] - (fleet ? 0 : 1);
}

/* ---- tables ---- */

static void grid_put_member(struct grid *g, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    grid_put(g, (struct text){json_string_value(value) != NULL ? json_string_value(value) : "",
                              json_string_length(value)});
}

static void grid_put_number(struct grid *g, double number)
{
    struct buffer text;
    buffer_init(&text, LINE_MAX_BYTES);
    put_number(&text, number);
    grid_put(g, buffer_text(&text));
    buffer_finish(&text);
}

/* Puts a number, or "-" for null: then its value is in the store of a fleet. */
static void grid_put_known(struct grid *g, const json_t *number)
{
    if (json_is_null(number)) {
        grid_put(g, TEXT("-"));
    } else {
        grid_put_number(g, json_number_value(number));
    }
}

static void grid_put_fill(struct grid *g, const json_t *fill)
{
    char text[16] = "-";
    if (!json_is_null(fill)) {
        (void)snprintf(text, sizeof text, "%.1f%%", 100 * json_number_value(fill));
    }
    grid_put(g, text_of(text));
}

static void put_limit(struct grid *g, const json_t *limit, bool fleet)
{
    static const char *const texts[] = {"name", "tier", "rate", "mode"};
    static const char *const rates[] = {"allow", "deny", "never", "shadow"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        grid_put_member(g, limit, texts[i]);
    }
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        grid_put_number(g, json_number(limit, rates[i]));
    }
    grid_put_known(g, json_object_get(limit, "keys"));
    grid_put_fill(g, json_object_get(limit, "fill"));
    grid_put_known(g, json_object_get(limit, "evicted"));
    if (fleet) {
        grid_put_number(g, json_number(limit, "degraded"));
    }
}

static double traffic(const json_t *limit)
{
    static const char *const rates[] = {"allow", "deny", "never", "shadow"};
    double sum = 0;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        sum += json_number(limit, rates[i]);
    }
    return sum;
}

/* A limit and its place in the rule file, which orders limits with the same traffic. */
struct ranked {
    const json_t *limit;
    double traffic;
    size_t place;
};

static int by_traffic(const void *a, const void *b)
{
    const struct ranked *one = a;
    const struct ranked *two = b;
    if (one->traffic != two->traffic) {
        return one->traffic > two->traffic ? -1 : 1;
    }
    return one->place < two->place ? -1 : one->place > two->place;
}

/* Puts the limits, the busiest first. */
static void fill_limits(struct grid *g, const json_t *limits, bool fleet)
{
    size_t n = json_array_size(limits);
    struct ranked *ranked = calloc(n + 1, sizeof *ranked);
    for (size_t i = 0; ranked != NULL && i < n; i++) {
        const json_t *limit = json_array_get(limits, i);
        ranked[i] = (struct ranked){limit, traffic(limit), i};
    }
    if (ranked != NULL) {
        qsort(ranked, n, sizeof *ranked, by_traffic);
    }
    for (size_t i = 0; ranked != NULL && i < n; i++) {
        put_limit(g, ranked[i].limit, fleet);
    }
    free(ranked);
}

static void fill_denied(struct grid *g, const json_t *denied)
{
    for (size_t i = 0; i < json_array_size(denied); i++) {
        const json_t *row = json_array_get(denied, i);
        grid_put_number(g, json_number(row, "count"));
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
static const struct grid_column denied_columns[] = {
    {"DENIED", true}, {"LIMIT", false}, {"KEY", false}};

/* ---- the whole view ---- */

static void put_head(const json_t *report, const char *address, unsigned width, struct buffer *out)
{
    for (size_t i = 0; i < head_lines(report); i++) {
        struct buffer line;
        buffer_init(&line, LINE_MAX_BYTES);
        head[i](&line, report, address);
        buffer_put(out, safe_cut(buffer_text(&line), width));
        buffer_put_char(out, '\n');
        buffer_finish(&line);
    }
}

/* The limits get those rows below the head that the denied keys leave free, and at least half. */
void top_view(const json_t *report, const char *address, unsigned width, unsigned rows,
              struct buffer *out)
{
    const json_t *limits = json_object_get(report, "limits");
    const json_t *denied = json_object_get(report, "denied");
    bool fleet = json_is_object(json_object_get(report, "store"));
    size_t some = json_array_size(denied);
    size_t above = head_lines(report) + 4;
    size_t left = rows > above ? rows - above : rows > 0 ? 1 : SIZE_MAX;
    size_t of_denied = some < left / 2 ? some : left / 2;
    struct grid g;
    put_head(report, address, width, out);
    buffer_put_char(out, '\n');
    grid_init(&g, limit_columns, fleet ? LIMIT_COLUMNS : LIMIT_COLUMNS - 1);
    fill_limits(&g, limits, fleet);
    grid_print(&g, out, width, left - of_denied);
    grid_finish(&g);
    if (of_denied > 0) {
        buffer_put_char(out, '\n');
        grid_init(&g, denied_columns, sizeof denied_columns / sizeof denied_columns[0]);
        fill_denied(&g, denied);
        grid_print(&g, out, width, of_denied);
        grid_finish(&g);
    }
}
