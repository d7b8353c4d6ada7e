/*
 * A step of a sandbox: a list of asks, each at a virtual time of its own. The whole list is checked
 * before the first ask is decided, so that a bad one changes nothing.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "server/sandbox/explain_json.h"
#include "server/sandbox/job.h"
#include "server/sandbox/sandboxes.h"
#include "wire/jsontext.h"

#define STEP_VALUES 32768 /* values and names in one body */

/* ---- reading ---- */

struct step_ask {
    struct ask ask; /* its cost and attributes */
    uint64_t at_ns; /* UINT64_MAX: not given */
    bool peek;
    bool explain;
    bool headers;
};

/* Reads a number of milliseconds, which may have a fraction. */
static int read_time(struct weir_text value, uint64_t *at_ns, struct weir_error *error)
{
    char number[64];
    bool good = value.len < sizeof number &&
                (value.at[0] == '-' || (value.at[0] >= '0' && value.at[0] <= '9'));
    memcpy(number, value.at, good ? value.len : 0);
    number[good ? value.len : 0] = 0;
    double ms = good ? strtod(number, NULL) : -1;
    if (!(ms >= 0 && ms <= (double)SANDBOX_TIME_MAX_MS)) {
        return fail(error, WEIR_EINVAL,
                    "at_ms: found %.*s, expected a number of milliseconds from 0 to %llu",
                    TEXT_CUT(value, 32), (unsigned long long)SANDBOX_TIME_MAX_MS);
    }
    uint64_t whole = (uint64_t)ms;
    *at_ns = whole * WEIR_MILLISECOND + (uint64_t)((ms - (double)whole) * WEIR_MILLISECOND);
    return 0;
}

static int read_switch(const char *name, struct weir_text value, bool *on, struct weir_error *error)
{
    if (!text_is(value, "true") && !text_is(value, "false")) {
        return fail(error, WEIR_EINVAL, "%s: found %.*s, expected true or false", name,
                    TEXT_CUT(value, 32));
    }
    *on = text_is(value, "true");
    return 0;
}

static int read_member(struct weir_text name, struct weir_text value, struct step_ask *to,
                       struct arena *arena, struct weir_error *error)
{
    if (text_is(name, "\"at_ms\"")) {
        return read_time(value, &to->at_ns, error);
    }
    if (text_is(name, "\"peek\"")) {
        return read_switch("peek", value, &to->peek, error);
    }
    if (text_is(name, "\"explain\"")) {
        return read_switch("explain", value, &to->explain, error);
    }
    if (text_is(name, "\"headers\"")) {
        return read_switch("headers", value, &to->headers, error);
    }
    if (text_is(name, "\"cost\"") || text_is(name, "\"attributes\"")) {
        return http_read_member(name, value, ASK_BIT(ASK_COST) | ASK_BIT(ASK_ATTRIBUTES), &to->ask,
                                arena, error);
    }
    return fail(error, WEIR_EINVAL,
                "found %.*s, expected at_ms, attributes, cost, peek, explain or headers",
                TEXT_CUT(name, 64));
}

/* Reads one ask, which is not before `earliest_ns`. */
static int read_ask(struct weir_text object, uint64_t earliest_ns, struct step_ask *to,
                    struct arena *arena, struct weir_error *error)
{
    struct weir_text name;
    struct weir_text value;
    int e = jsontext_is(object, '{')
                ? 0
                : fail(error, WEIR_EINVAL, "found another value, expected an object");
    ask_init(&to->ask);
    to->at_ns = UINT64_MAX;
    to->peek = false;
    to->explain = false;
    to->headers = false;
    while (e == 0 && jsontext_next_member(&object, &name, &value)) {
        e = read_member(name, value, to, arena, error);
    }
    if (e == 0 && (to->at_ns == UINT64_MAX || (to->ask.given & ASK_BIT(ASK_ATTRIBUTES)) == 0)) {
        e = fail(error, WEIR_EINVAL, "found no member '%s', which is required",
                 to->at_ns == UINT64_MAX ? "at_ms" : "attributes");
    }
    if (e == 0 && to->at_ns < earliest_ns) {
        e = fail(
            error, WEIR_EINVAL,
            "at_ms: found a time %llu us before that of the ask before, expected the same or a "
            "later one",
            (unsigned long long)((earliest_ns - to->at_ns) / 1000));
    }
    return e;
}

/* Calls `fn` with each ask of the list, until it returns an error. */
typedef int (*ask_fn)(struct job *job, const struct step_ask *ask, size_t number,
                      struct weir_error *error);

static int each_ask(struct job *job, struct weir_text list, ask_fn fn, struct weir_error *error)
{
    uint64_t earliest_ns = job->sandbox->now_ns;
    struct weir_text item;
    int e = 0;
    for (size_t i = 0; e == 0 && jsontext_next_item(&list, &item); i++) {
        struct arena arena = ARENA_INIT;
        struct step_ask ask;
        struct weir_error why = {0};
        e = i < SANDBOX_ASKS_MAX
                ? read_ask(item, earliest_ns, &ask, &arena, &why)
                : fail(&why, WEIR_EINVAL, "found too many asks in a step, expected at most %d",
                       SANDBOX_ASKS_MAX);
        if (e != 0) {
            (void)fail(error, e, "asks[%zu]: %.400s", i, why.text);
        } else {
            earliest_ns = ask.at_ns;
            e = fn(job, &ask, i, error);
        }
        arena_finish(&arena);
    }
    return e;
}

/* Finds the list in {"asks":[...]}. */
static int find_asks(struct weir_text body, struct weir_text *list, struct weir_error *error)
{
    struct jsontext_flaw flaw;
    struct weir_text name;
    struct weir_text more;
    if (!jsontext_check(&body, STEP_VALUES, &flaw)) {
        return fail(error, WEIR_EINVAL,
                    "the body is not JSON with at most %d values and names: line %u, column %u: %s",
                    STEP_VALUES, flaw.line, flaw.column, flaw.words);
    }
    if (!jsontext_is(body, '{') || !jsontext_next_member(&body, &name, list) ||
        !text_is(name, "\"asks\"") || !jsontext_is(*list, '[') ||
        jsontext_next_member(&body, &name, &more)) {
        return fail(error, WEIR_EINVAL,
                    "found another body, expected {\"asks\":[...]} and nothing else");
    }
    return 0;
}

/* Explanations and header fields are for operators: they tell more than a decision. */
static int accept_ask(struct job *job, const struct step_ask *ask, size_t number,
                      struct weir_error *error)
{
    if (job->sandbox->pool == POOL_DEMO && (ask->explain || ask->headers)) {
        return fail(error, WEIR_EINVAL,
                    "asks[%zu]: found '%s', which sandboxes of the demo do not have; it needs the "
                    "role admin and /v1/sandbox",
                    number, ask->explain ? "explain" : "headers");
    }
    return 0;
}

/* ---- header fields ---- */

/* Puts [["Name","value"],...] from the head of a reply. */
static void put_fields(struct buffer *to, struct weir_text head)
{
    const char *before = "[";
    (void)text_cut(&head, '\n'); /* the status line */
    buffer_put(to, TEXT("["));
    for (;;) {
        struct weir_text value = text_cut(&head, '\n');
        if (value.len <= 1) { /* the blank line at its end */
            break;
        }
        struct weir_text name = text_cut(&value, ':');
        buffer_put(to, text_of(before));
        jsontext_put_string(to, name);
        buffer_put_char(to, ',');
        jsontext_put_string(to, text_trim(value));
        buffer_put_char(to, ']');
        before = ",[";
    }
    buffer_put(to, TEXT("]"));
}

/* Returns the time at which the reply would be sent. Times from 0 on are counted from the making of
 * the sandbox: in header fields they would be dates of 1970. */
static uint64_t date_of(const struct sandbox *sandbox, uint64_t at_ns)
{
    return at_ns < SANDBOX_DATES_MS * WEIR_MILLISECOND ? sandbox->made_ns + at_ns : at_ns;
}

/* Puts the header fields that /v1/auth would send, from the reply that it would write. */
static void put_headers(struct job *job, const struct step_ask *ask, const struct answer *a)
{
    struct http_request request = {.method = TEXT("POST"), .keep_alive = true};
    struct buffer out;
    struct exchange x = {.style = job->sandbox->style,
                         .request = &request,
                         .out = &out,
                         .now_ns = date_of(job->sandbox, ask->at_ns),
                         .operation = OPERATION_CHECK};
    buffer_init(&out, SERVER_FLUSH_BYTES);
    buffer_init(&x.body, SERVER_FLUSH_BYTES);
    http_auth_reply(&x, 0, a, NULL);
    buffer_put(&job->reply, TEXT(",\"headers\":"));
    put_fields(&job->reply, buffer_text(&out));
    buffer_finish(&x.body);
    buffer_finish(&out);
}

/* ---- deciding ---- */

/* Puts the explanation of an ask into `to`, as things are before it is decided; nothing if the
 * rules cannot read it. */
static void explain(const struct job *job, const struct weir_rules_question *question,
                    uint64_t at_ns, struct buffer *to)
{
    struct weir_rules *rules = job->sandbox->rules;
    struct weir_rules_question peek = *question;
    struct weir_rules_answer told;
    struct answer a;
    struct buffer rest;
    peek.mode = WEIR_PEEK;
    buffer_init(&rest, JOB_REPLY_BYTES);
    if (weir_rules_ask_at(rules, &peek, at_ns, &told, NULL) == 0 &&
        explain_put_rest(&rest, rules, &peek, at_ns, NULL) == 0) {
        answer_from_rules(&told, &a);
        explain_put(to, &a, buffer_text(&rest));
        to->full = to->full || rest.full;
    }
    buffer_finish(&rest);
}

static void put_answer(struct job *job, const struct step_ask *ask, const struct answer *a,
                       const struct buffer *explained)
{
    struct buffer *to = &job->reply;
    http_put_answer(to, a, OPERATION_CHECK);
    to->end--; /* members are added before the end of the object */
    buffer_put(to, TEXT(",\"status\":"));
    buffer_put_i64(to, http_auth_status(&job->sandbox->style, a));
    if (ask->headers) {
        put_headers(job, ask, a);
    }
    if (buffer_len(explained) > 0) {
        buffer_put(to, TEXT(",\"explain\":"));
        buffer_put(to, buffer_text(explained));
    }
    to->full = to->full || explained->full;
    buffer_put_char(to, '}');
}

static void decide(struct job *job, const struct step_ask *ask)
{
    struct weir_rules_answer told;
    struct weir_error error = {0};
    struct weir_rules_question q = {.attributes = ask->ask.attributes,
                                    .attributes_count = ask->ask.attributes_count,
                                    .cost = ask->ask.number[ASK_COST],
                                    .mode = ask->peek ? WEIR_PEEK : WEIR_CHECK,
                                    .flags =
                                        WEIR_RULES_SHOW | (ask->headers ? WEIR_RULES_HOLD : 0)};
    struct buffer explained;
    buffer_init(&explained, JOB_REPLY_BYTES);
    if (ask->explain) {
        explain(job, &q, ask->at_ns, &explained);
    }
    int e = weir_rules_ask_at(job->sandbox->rules, &q, ask->at_ns, &told, &error);
    if (e == 0) {
        struct answer a;
        answer_from_rules(&told, &a);
        put_answer(job, ask, &a, &explained);
    } else if (e == WEIR_ETIME) {
        http_put_problem(&job->reply, 400,
                         "at_ms: found a time that a limit of this rate cannot count from 0, "
                         "expected one nearer to 0",
                         0);
    } else {
        const struct answer_error *row = answer_error(e);
        http_put_problem(&job->reply, row->status, answer_words_of_error(e, &error), row->reason);
    }
    buffer_finish(&explained);
}

/* Returned besides WEIR_E...: the step has taken too long. */
#define STEP_TOO_LONG 1

static int decide_ask(struct job *job, const struct step_ask *ask, size_t number,
                      struct weir_error *error)
{
    (void)error;
    if (clock_boot_ns() >= job->until_ns) {
        return STEP_TOO_LONG;
    }
    buffer_put(&job->reply, number > 0 ? TEXT(",") : TEXT(""));
    decide(job, ask);
    job->sandbox->now_ns = ask->at_ns;
    return 0;
}

void sandbox_step(struct job *job)
{
    struct weir_error error = {0};
    struct weir_text asks;
    job->until_ns = clock_boot_ns() + job->server->sandboxes->step_ns;
    int e = find_asks(job->body, &asks, &error);
    e = e != 0 ? e : each_ask(job, asks, accept_ask, &error);
    if (e == 0) {
        buffer_put(&job->reply, TEXT("{\"answers\":["));
        e = each_ask(job, asks, decide_ask, &error);
        buffer_put(&job->reply, TEXT("]}"));
    }
    job->status = 200;
    job->type = "application/json";
    if (e == STEP_TOO_LONG) {
        job->failed = true;
        job_reply_problem(job, 422, "the step took too long, and the sandbox was removed");
    } else if (e != 0) {
        job_reply_failure(job, e, &error);
    }
}
