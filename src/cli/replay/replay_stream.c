/* Replays the classic form: capacity, window, n, and n requests. */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "cli/replay/replay_command.h"

/* ---- the limit ---- */

/*
 * Sets capacity and window from the rate. A stepped bucket counts in whole timestamps, so the
 * period must be a multiple of the unit.
 */
static int stepped_from_rate(struct replay_limit *l, struct weir_error *error)
{
    if (l->rate.period_ns % l->unit_ns != 0) {
        return fail(error, WEIR_EINVAL,
                    "--rate: found a period of %" PRIu64
                    " ns, expected a multiple of the unit, %" PRIu64
                    " ns, for stepped_bucket; see --unit",
                    l->rate.period_ns, l->unit_ns);
    }
    if (l->rate.count > INT64_MAX || l->rate.period_ns / l->unit_ns > INT64_MAX) {
        return fail(error, WEIR_EINVAL,
                    "--rate: found %" PRIu64 " per %" PRIu64 " ns, expected numbers below 2^63",
                    l->rate.count, l->rate.period_ns);
    }
    l->capacity = (int64_t)l->rate.count;
    l->window = (int64_t)(l->rate.period_ns / l->unit_ns);
    return 0;
}

/* Sets the rate from the stream's capacity and window. */
static int rate_from_stream(struct replay_limit *l, struct weir_error *error)
{
    if (l->capacity == 0 || l->window == 0) {
        return fail(error, WEIR_EINVAL, "found a %s of 0, expected at least 1 for %s; see --rate",
                    l->capacity == 0 ? "capacity" : "window", weir_algorithm_name(l->algorithm));
    }
    l->rate.count = (uint64_t)l->capacity;
    if (__builtin_mul_overflow((uint64_t)l->window, l->unit_ns, &l->rate.period_ns)) {
        return fail(error, WEIR_EINVAL, "found a window of %" PRId64 ", expected at most 100 years",
                    l->window);
    }
    return 0;
}

/*
 * Warns of a stepped bucket that limits next to nothing: if more than one token comes back in each
 * tick, a refill of whole tokens moves `last` by less than a tick, which rounds down to 0, so that
 * the same tick is refilled again for the next request.
 */
static void warn_of_steps(const struct replay_limit *l)
{
    if (l->algorithm == 0 && l->window > 0 && l->capacity > l->window) {
        (void)cli_complain(&cli_replay,
                           "warning: found a capacity of %" PRId64 " above the window of %" PRId64
                           ": stepped_bucket then admits nearly every request, by its rounding; "
                           "--algorithm token_bucket limits them",
                           l->capacity, l->window);
    }
}

/* ---- the head ---- */

enum { CAPACITY, WINDOW, REQUESTS, HEAD };

/* Reads one number of the head. Returns 0, or an exit code after a message. */
static int read_head_line(struct replay *r, const char *what, int64_t *number)
{
    struct weir_error error;
    struct weir_text line;
    int outcome = replay_input_next(&r->input, &line, &error);
    if (outcome < 0) {
        return cli_fail(&cli_replay, "%s", error.text);
    }
    if (outcome == REPLAY_LINE && replay_number_parse(line, what, number, &error) == 0) {
        return 0;
    }
    if (outcome == REPLAY_MORE) {
        (void)fail(&error, WEIR_EINVAL, "found the end of the input, expected %s", what);
    } else if (outcome == REPLAY_TOO_LONG) {
        (void)fail(&error, WEIR_EINVAL, "found a line of more than %d bytes, expected %s",
                   REPLAY_LINE_MAX, what);
    }
    replay_complain(r, r->input.reader.line + (outcome == REPLAY_MORE), error.text);
    return CLI_USAGE;
}

static int read_head(struct replay *r, int64_t head[HEAD])
{
    static const char *const names[HEAD] = {"the capacity", "the window", "the number of requests"};
    for (int i = 0; i < HEAD; i++) {
        int code = read_head_line(r, names[i], &head[i]);
        if (code != 0) {
            return code;
        }
    }
    return 0;
}

/* ---- the requests ---- */

/* How many requests are read ahead of the one that is decided. */
#define AHEAD 32

struct replay_pending {
    struct replay_ask ask;
    uint64_t line;
};

struct stream {
    struct replay *r;
    struct replay_engine *engine;
    uint64_t scale;
    uint64_t n;      /* number of requests that the head announces */
    uint64_t lines;  /* lines found so far */
    uint64_t blanks; /* empty lines at the end so far; they count only if another line follows */
    bool out_of_memory;
    unsigned pending_count;
    struct replay_pending pending[AHEAD];
};

static void decide(struct stream *s, const struct replay_pending *p)
{
    struct weir_error error;
    struct replay_answer answer;
    char text[REPLAY_PRINT_MAX];
    int e = replay_engine_decide(s->engine, &p->ask, &answer, &error);
    if (e != 0) {
        replay_complain(s->r, p->line, error.text);
        s->out_of_memory = e == WEIR_ENOMEM;
        return;
    }
    size_t n = replay_print_answer(text, &answer, s->r->settings, s->scale);
    (void)fwrite(text, 1, n, stdout);
    s->r->allowed += answer.allow;
    s->r->denied += !answer.allow;
}

static void decide_pending(struct stream *s)
{
    for (unsigned i = 0; i < s->pending_count && !s->out_of_memory; i++) {
        decide(s, &s->pending[i]);
    }
    s->pending_count = 0;
}

/*
 * Decides and flushes what was read, so that a program that writes line by line through a pipe
 * gets the answers before it has to write the next line.
 */
static void before_read(void *arg)
{
    decide_pending(arg);
    (void)fflush(stdout);
}

static void refuse_line(struct stream *s, uint64_t line, const char *text)
{
    decide_pending(s); /* first, because it may print errors of earlier lines */
    replay_complain(s->r, line, text);
}

/* Counts a line. Returns false if there are more lines than announced. */
static bool is_expected(struct stream *s)
{
    return ++s->lines <= s->n;
}

static void refuse_blanks(struct stream *s)
{
    for (; s->blanks > 0; s->blanks--) {
        if (is_expected(s)) {
            refuse_line(s, s->r->input.reader.line - s->blanks,
                        "found an empty line, expected 'request CLIENT TIMESTAMP'");
        }
    }
}

static void take_request(struct stream *s, struct weir_text line)
{
    struct replay_request request;
    struct weir_error error;
    uint64_t number = s->r->input.reader.line;
    if (replay_request_parse(line, &request, &error) != 0) {
        refuse_line(s, number, error.text);
        return;
    }
    s->pending[s->pending_count++] =
        (struct replay_pending){replay_engine_prepare(s->engine, &request), number};
    if (s->pending_count == AHEAD) {
        decide_pending(s);
    }
}

static int take_line(void *arg, int outcome, struct weir_text line)
{
    struct stream *s = arg;
    struct weir_error error;
    if (outcome == REPLAY_LINE && replay_line_is_blank(line)) {
        s->blanks++;
        return 0;
    }
    refuse_blanks(s);
    if (!is_expected(s)) {
        return 0;
    }
    if (outcome == REPLAY_LINE) {
        take_request(s, line);
    } else {
        (void)fail(&error, WEIR_EINVAL,
                   "found a line of more than %d bytes, expected 'request CLIENT TIMESTAMP'",
                   REPLAY_LINE_MAX);
        refuse_line(s, s->r->input.reader.line, error.text);
    }
    return s->out_of_memory ? CLI_FAILED : 0;
}

static int take_all(struct stream *s)
{
    int code = replay_each_line(s->r, take_line, s);
    decide_pending(s);
    code = s->out_of_memory ? CLI_FAILED : code;
    s->r->clients = replay_engine_clients(s->engine);
    replay_report_end(s->r);
    if (code == 0 && s->lines != s->n) {
        return cli_complain(&cli_replay,
                            "found %" PRIu64 " line%s of requests, expected %" PRIu64
                            " as line 3 says",
                            s->lines, s->lines == 1 ? "" : "s", s->n);
    }
    return code != 0 ? code : s->r->bad > 0 ? CLI_USAGE : CLI_OK;
}

int replay_stream(struct replay *r)
{
    int64_t head[HEAD];
    struct replay_limit limit = r->settings->limit;
    bool has_rate = r->settings->rate_text != NULL;
    struct weir_error error;
    struct replay_engine *engine;
    int code = read_head(r, head);
    if (code != 0) {
        return code;
    }
    limit.capacity = head[CAPACITY];
    limit.window = head[WINDOW];
    int e = limit.algorithm == 0 && has_rate    ? stepped_from_rate(&limit, &error)
            : limit.algorithm != 0 && !has_rate ? rate_from_stream(&limit, &error)
                                                : 0;
    if (e != 0 || replay_engine_create(&engine, &limit, &error) != 0) {
        return cli_complain(&cli_replay, "%s", error.text);
    }
    warn_of_steps(&limit);
    struct stream s = {.r = r,
                       .engine = engine,
                       .scale = replay_engine_scale(engine),
                       .n = (uint64_t)head[REQUESTS]};
    r->input.before_read = before_read;
    r->input.arg = &s;
    replay_report_begin(r, &s.lines, s.n);
    code = take_all(&s);
    replay_engine_destroy(engine);
    return code;
}
