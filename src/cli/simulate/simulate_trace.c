/*
 * Reads traffic from a file in the formats of weir replay: lines `request CLIENT TIME [COST]`,
 * with or without the three lines of numbers in front of them; or JSON lines with attributes.
 * The client of a JSON line is its user, or if it has none its api_key, its ip, or "-". Empty
 * lines and lines that begin with # are skipped, but if the first line begins with #, it is the
 * trace's title.
 *
 * Requests are asked in the order of their times. The table of a limit may have forgotten a key
 * that is fresh, and the answer to a request from the past would depend on that. Times
 * keep their place within the window: a whole number of periods is subtracted from all of them,
 * so that the run begins in the window that starts at 0. The limits see times that differ from
 * the trace's own by a whole number of weeks, so that days of the week and hours are kept too
 * (unless a week is not a whole number of periods).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/replay/replay_input.h"
#include "cli/replay/replay_trace.h"
#include "cli/simulate/simulate.h"
#include "common/array.h"
#include "common/utf8.h"

#define BYTES_MAX (UINT64_C(256) << 20) /* of all names and events */
#define BLOCK_BYTES (1u << 20)
#define COST_MAX UINT64_C(1000000000)

struct trace_line {
    struct weir_text name;
    struct weir_text event; /* len 0: a request without attributes */
    __int128 time_ns;
    uint64_t cost;
};

struct trace_file {
    const struct sim_plan *plan;
    struct sim_traffic *out;
    struct trace_line *lines;
    size_t count;
    uint64_t bytes; /* of all names and events */
    unsigned numbers_seen;
};

/* Adds a request that was read. event: the line that has the attributes, or empty. */
static int add_request(struct trace_file *t, struct trace_line *line, struct weir_text event,
                       struct weir_error *error)
{
    if (line->cost > COST_MAX) {
        return fail(error, WEIR_EINVAL, "found a cost of %" PRIu64 ", expected at most %" PRIu64,
                    line->cost, COST_MAX);
    }
    if (t->count == SIM_REQUESTS_MAX) {
        return fail(error, WEIR_EINVAL,
                    "found more than %" PRIu64 " requests, which is the maximum", SIM_REQUESTS_MAX);
    }
    struct arena *memory = &t->out->memory;
    t->bytes += line->name.len + event.len;
    line->name = arena_text(memory, line->name);
    line->event = event.len > 0 ? arena_text(memory, event) : event;
    if (t->bytes > BYTES_MAX || memory->failed ||
        !array_append(&t->lines, &t->count, sizeof *line, line)) {
        return fail(error, WEIR_ENOMEM, "out of memory");
    }
    return 0;
}

static int read_request(struct trace_file *t, struct weir_text text, struct weir_error *error)
{
    struct replay_request request;
    int e = replay_request_parse(text, &request, error);
    if (e != 0) {
        return e;
    }
    struct trace_line line = {
        .name = request.client,
        .time_ns = (__int128)request.time * (__int128)t->plan->unit_ns,
        .cost = request.cost,
    };
    return add_request(t, &line, TEXT(""), error);
}

/* Returns the name of the client: the first of these attributes that the event has, or "-". */
static struct weir_text client_of(const struct replay_event *event)
{
    static const char *const names[] = {"user", "api_key", "ip"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        for (size_t i = 0; i < event->attributes_count; i++) {
            const struct weir_rules_attribute *a = &event->attributes[i];
            if (text_is((struct weir_text){a->name, a->name_len}, names[n]) && a->value_len > 0) {
                return (struct weir_text){a->value, a->value_len};
            }
        }
    }
    return TEXT("-");
}

static int read_event(struct trace_file *t, struct weir_text text, struct weir_error *error)
{
    struct replay_event event;
    int e = replay_event_parse(&event, text, t->plan->unit_ns, error);
    if (e != 0) {
        return e;
    }
    struct trace_line line = {
        .name = client_of(&event),
        .time_ns = event.time_ns,
        .cost = event.cost > 0 ? event.cost : 1,
    };
    e = add_request(t, &line, text, error);
    replay_event_finish(&event);
    return e;
}

/* Keeps the title. It will be printed on a terminal, so every invisible character becomes '?'. */
static int take_title(struct trace_file *t, struct weir_text title, struct weir_error *error)
{
    if (title.len == 0) {
        return 0;
    }
    t->out->title = strndup(title.at, title.len);
    if (t->out->title == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory");
    }
    t->out->about = t->out->title;
    struct weir_text rest = text_of(t->out->title);
    for (char *at = t->out->title; rest.len > 0;) {
        bool visible;
        size_t n = utf8_take(&rest, &visible).len;
        memset(at, '?', visible ? 0 : n);
        at += n;
    }
    return 0;
}

static int read_line(struct trace_file *t, uint64_t number, struct weir_text text,
                     struct weir_error *error)
{
    int64_t ignored;
    text = text_trim(text);
    if (text.len == 0) {
        return 0;
    }
    if (text.at[0] == '#') {
        return number == 1 ? take_title(t, text_trim(text_after(text, 1)), error) : 0;
    }
    /* Skips the capacity, the window and n, with which the classic form begins. */
    if (t->count == 0 && t->numbers_seen < 3 &&
        replay_number_parse(text, "", &ignored, NULL) == 0) {
        t->numbers_seen++;
        return 0;
    }
    bool event = text.at[0] == '{';
    if (t->count > 0 && event != (t->lines[0].event.len > 0)) {
        return fail(error, WEIR_EINVAL, "found %s, expected %s as in the lines before",
                    event ? "a JSON object" : "a line", event ? "a line" : "a JSON object");
    }
    return event ? read_event(t, text, error) : read_request(t, text, error);
}

static int read_lines(struct trace_file *t, struct replay_input *in, struct weir_error *error)
{
    struct weir_text line;
    for (;;) {
        struct weir_error what;
        int e = replay_input_next(in, &line, error);
        if (e < 0 || e == REPLAY_MORE) {
            return e < 0 ? e : 0;
        }
        e = e == REPLAY_TOO_LONG
                ? fail(&what, WEIR_EINVAL, "found a line of more than %d bytes", REPLAY_LINE_MAX)
                : read_line(t, in->reader.line, line, &what);
        if (e != 0) {
            return fail(error, e, "%.64s:%" PRIu64 ": %.160s", in->name, in->reader.line,
                        what.text);
        }
    }
}

static int by_name(const void *a, const void *b)
{
    const struct trace_line *x = *(const struct trace_line *const *)a;
    const struct trace_line *y = *(const struct trace_line *const *)b;
    size_t shorter = x->name.len < y->name.len ? x->name.len : y->name.len;
    int order = memcmp(x->name.at, y->name.at, shorter);
    return order != 0 ? order : (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

/* Numbers the clients in the order of their names. */
static int number_clients(const struct trace_file *t)
{
    struct sim_traffic *out = t->out;
    const struct trace_line **sorted = malloc(t->count * sizeof *sorted);
    out->names = malloc(t->count * sizeof *out->names);
    if (sorted == NULL || out->names == NULL) {
        free((void *)sorted);
        return WEIR_ENOMEM;
    }
    for (size_t i = 0; i < t->count; i++) {
        sorted[i] = &t->lines[i];
    }
    qsort((void *)sorted, t->count, sizeof *sorted, by_name);
    for (size_t i = 0; i < t->count; i++) {
        if (i == 0 || !text_equal(sorted[i]->name, sorted[i - 1]->name)) {
            out->names[out->clients++] = sorted[i]->name;
        }
        out->requests[sorted[i] - t->lines].client = out->clients - 1;
    }
    free((void *)sorted);
    return 0;
}

/* Sets the requests' times, relative to the earliest one, and costs. Returns 0 or WEIR_EINVAL. */
static int take_times(const struct trace_file *t, struct weir_error *error)
{
    struct sim_traffic *out = t->out;
    __int128 last = t->lines[0].time_ns;
    out->first_ns = last;
    for (size_t i = 1; i < t->count; i++) {
        __int128 time = t->lines[i].time_ns;
        out->first_ns = time < out->first_ns ? time : out->first_ns;
        last = time > last ? time : last;
    }
    if (last - out->first_ns > (__int128)SIM_DURATION_MAX) {
        return fail(error, WEIR_EINVAL,
                    "%s: found times that are more than 30 years apart; is --unit right?",
                    t->plan->trace);
    }
    for (size_t i = 0; i < t->count; i++) {
        out->requests[i].time_ns = (uint64_t)(t->lines[i].time_ns - out->first_ns);
        out->requests[i].cost = t->lines[i].cost;
        out->costs |= t->lines[i].cost != 1;
    }
    return 0;
}

static int take_events(const struct trace_file *t)
{
    struct weir_text *events = malloc(t->count * sizeof *events);
    if (events == NULL) {
        return WEIR_ENOMEM;
    }
    for (size_t i = 0; i < t->count; i++) {
        events[i] = t->lines[i].event;
    }
    t->out->events = events;
    return 0;
}

static int fill(struct trace_file *t, struct weir_error *error)
{
    if (t->count == 0) {
        return fail(error, WEIR_EINVAL,
                    "%s: found no request, expected lines 'request CLIENT TIME [COST]'",
                    t->plan->trace);
    }
    t->out->count = t->count;
    t->out->requests = calloc(t->count, sizeof *t->out->requests);
    if (t->out->requests == NULL || number_clients(t) != 0 ||
        (t->lines[0].event.len > 0 && take_events(t) != 0)) {
        return fail(error, WEIR_ENOMEM, "out of memory");
    }
    int e = take_times(t, error);
    if (e == 0) {
        sim_traffic_sort(t->out);
    }
    return e;
}

/* Returns the time modulo the period. The result is not negative, even for a time before 0. */
static uint64_t rest(__int128 time_ns, uint64_t period_ns)
{
    __int128 period = (__int128)period_ns;
    return (uint64_t)((time_ns % period + period) % period);
}

void sim_trace_place(struct sim_traffic *trace, uint64_t period_ns)
{
    const uint64_t week_ns = 7 * WEIR_DAY;
    uint64_t shift = rest(trace->first_ns, period_ns);
    uint64_t last = trace->requests[trace->count - 1].time_ns + shift;
    trace->duration_ns = (last / period_ns + 1) * period_ns;
    trace->base_ns = week_ns % period_ns == 0 ? rest(trace->first_ns - shift, week_ns) : 0;
    for (size_t i = 0; i < trace->count; i++) {
        trace->requests[i].time_ns += shift;
    }
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != 0 ? slash + 1 : path;
}

int sim_trace_read(const struct sim_plan *plan, struct sim_traffic *out, struct weir_error *error)
{
    struct trace_file t = {.plan = plan, .out = out};
    struct replay_input in;
    bool standard = strcmp(plan->trace, "-") == 0;
    *out = (struct sim_traffic){.name = standard ? "trace" : last_part(plan->trace),
                                .about = "requests from a file",
                                .memory = {.block_bytes = BLOCK_BYTES}};
    int e = replay_input_open(&in, standard ? NULL : plan->trace, error);
    if (e != 0) {
        return e;
    }
    e = read_lines(&t, &in, error);
    replay_input_close(&in);
    if (e == 0) {
        e = fill(&t, error);
    }
    free(t.lines);
    if (e != 0) {
        sim_traffic_finish(out);
    }
    return e;
}
