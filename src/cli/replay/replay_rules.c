/*
 * Replays a trace of attributes through a rule file, and prints which limit decided each
 * request.
 */
#include <inttypes.h>
#include <stdio.h>

#include <weir_rules.h>

#include "base/error.h"
#include "cli/replay/replay_command.h"
#include "cli/replay/replay_trace.h"

struct trace {
    struct replay *r;
    struct weir_rules *rules;
    struct replay_event event;
    uint64_t first_ns; /* time of the first request */
    bool placed;       /* place_rules() has been called */
};

/* ---- the rules, and their times ---- */

static uint64_t first_time(void *arg)
{
    const struct trace *t = arg;
    return t->first_ns;
}

/* Times from here on count as calendar times (Unix times), not as times since a start. */
#define CALENDAR_NS (365 * WEIR_DAY)

static int open_rules(struct trace *t)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error;
    o.flags = WEIR_EXPLICIT_TIME;
    o.message = cli_tell_rules;
    int e = weir_rules_open(&t->rules, t->r->settings->rules, &o, &error);
    return e == 0             ? 0
           : e == WEIR_ERULES ? CLI_USAGE /* all errors have been printed */
                              : cli_fail(&cli_replay, "%s", error.text);
}

/*
 * Moves the limits' times to where the trace's times are. A limit's times cover some years from
 * where they begin; those of fast limits less than four. From 0, that does not reach Unix times.
 * For those the rules are opened again with a clock that gives the first request's time, so that
 * the limits' times begin a day before it.
 */
static int place_rules(struct trace *t, struct weir_error *error)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    t->placed = true;
    t->first_ns = t->event.time_ns;
    if (t->first_ns < CALENDAR_NS) {
        return 0;
    }
    weir_rules_close(t->rules);
    o.clock = first_time;
    o.clock_arg = t;
    return weir_rules_open(&t->rules, t->r->settings->rules, &o, error);
}

/* ---- deciding ---- */

/* Returns the name of the limit that decided or, if none did, a word that no limit can be named. */
static const char *decider(const struct weir_rules_answer *a)
{
    if (a->limit[0] != 0) {
        return a->limit;
    }
    if (a->reason == WEIR_REASON_ALLOW_LIST) {
        return "(allow-list)";
    }
    return a->reason == WEIR_REASON_BLOCK_LIST ? "(block-list)" : "-";
}

static void print_details(const struct weir_rules_answer *a, uint64_t unit_ns)
{
    char text[REPLAY_PRINT_MAX];
    const struct weir_answer *w = &a->answer;
    struct replay_answer said = {w->verdict == WEIR_ALLOW, w->remaining, w->retry_after_ns,
                                 w->reset_after_ns, w->delay_ns};
    if (a->tier[0] != 0) {
        (void)printf(" tier=%s", a->tier);
    }
    if (a->limit[0] != 0 && a->reason != WEIR_REASON_MISSING) {
        *replay_print_details(text, &said, unit_ns, w->delay_ns > 0) = 0;
        (void)fputs(text, stdout);
    }
    if (a->missing > 0) {
        (void)printf(" missing=%u", a->missing);
    }
    if (a->shadow_denied > 0) {
        (void)printf(" shadow=%s", a->shadow);
    }
}

static void print_answer(const struct weir_rules_answer *a, const struct replay_settings *s)
{
    (void)fputs(a->answer.verdict == WEIR_ALLOW ? "allow " : "deny ", stdout);
    (void)fputs(decider(a), stdout);
    if (s->explain) {
        print_details(a, s->limit.unit_ns);
    }
    (void)fputc('\n', stdout);
}

static int off_the_line(const struct trace *t, struct weir_error *error)
{
    const char *expected = t->first_ns < CALENDAR_NS ? "from 0 to some years later"
                                                     : "from a day before the first one to some "
                                                       "years later";
    return fail(error, WEIR_ETIME, "found a \"time\" outside the range of a limit, expected %s",
                expected);
}

static int decide_event(struct trace *t, struct weir_error *error)
{
    struct replay *r = t->r;
    struct weir_rules_question q = {.attributes = t->event.attributes,
                                    .attributes_count = t->event.attributes_count,
                                    .cost = t->event.cost};
    struct weir_rules_answer a;
    int e = t->placed ? 0 : place_rules(t, error);
    e = e != 0 ? e : weir_rules_ask_at(t->rules, &q, t->event.time_ns, &a, error);
    if (e == 0) {
        print_answer(&a, r->settings);
        r->allowed += a.answer.verdict == WEIR_ALLOW;
        r->denied += a.answer.verdict != WEIR_ALLOW;
    }
    return e == WEIR_ETIME ? off_the_line(t, error) : e;
}

/* Decides one line. Returns 0, or an exit code if the replay cannot go on. */
static int take_line(void *arg, int outcome, struct weir_text line)
{
    struct trace *t = arg;
    struct weir_error error;
    if (outcome == REPLAY_LINE && replay_line_is_blank(line)) {
        return 0;
    }
    int e = outcome == REPLAY_LINE
                ? replay_event_parse(&t->event, line, t->r->settings->limit.unit_ns, &error)
                : fail(&error, WEIR_EINVAL, "found a line of more than %d bytes, expected less",
                       REPLAY_LINE_MAX);
    if (e == 0) {
        e = decide_event(t, &error);
        replay_event_finish(&t->event);
    }
    if (e != 0) {
        replay_complain(t->r, t->r->input.reader.line, error.text);
    }
    return t->rules == NULL ? CLI_FAILED : 0;
}

/*
 * Flushes the answers, so that a program that writes line by line through a pipe gets them
 * before it has to write the next line.
 */
static void before_read(void *arg)
{
    (void)arg;
    (void)fflush(stdout);
}

/*
 * Warns that a table was too small: which keys it forgot depends on chance, and so do the
 * decisions.
 */
static int tell_forgotten(void *arg, const struct weir_rules_limit *limit)
{
    const struct weir_stats *s = &limit->stats;
    uint64_t forgotten = s->evicted + s->full_denied + s->full_allowed;
    (void)arg;
    if (forgotten > 0) {
        (void)fprintf(stderr,
                      "weir replay: limit %s%s%s had no room for %" PRIu64
                      " keys, so that the decisions depend on chance; raise its max_keys\n",
                      limit->name, limit->tier[0] != 0 ? " tier " : "", limit->tier, forgotten);
    }
    return 0;
}

int replay_rules(struct replay *r)
{
    static struct trace t; /* too large for a stack */
    t = (struct trace){.r = r};
    int code = open_rules(&t);
    if (code != 0) {
        return code;
    }
    r->input.before_read = before_read;
    replay_report_begin(r, &r->input.taken_bytes, r->input.size_bytes);
    code = replay_each_line(r, take_line, &t);
    replay_report_end(r);
    if (t.rules != NULL) {
        (void)weir_rules_limits(t.rules, tell_forgotten, NULL);
    }
    weir_rules_close(t.rules);
    return code != 0 ? code : r->bad > 0 ? CLI_USAGE : CLI_OK;
}
