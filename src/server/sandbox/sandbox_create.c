/* Makes a sandbox from the rules that a request brings, or from those of a scenario. */
#include "base/algorithms.h"
#include "base/clock.h"
#include "base/error.h"
#include "rules/live/live.h"
#include "server/admin/admin.h"
#include "server/sandbox/job.h"
#include "server/sandbox/rule_messages.h"
#include "server/sandbox/sandboxes.h"
#include "wire/jsontext.h"

/* ---- the request ---- */

#define EXPECTED "expected {\"%s\":\"...\"}, not empty, and nothing else"

int sandbox_read_member(struct weir_text body, const char *member, struct arena *arena,
                        struct weir_text *out, struct weir_error *error)
{
    struct jsontext_flaw flaw;
    struct weir_text name;
    struct weir_text value;
    struct weir_text more;
    if (!jsontext_check(&body, 8, &flaw)) {
        return fail(error, WEIR_EINVAL,
                    "the body is not JSON, " EXPECTED ": line %u, column %u: %s", member, flaw.line,
                    flaw.column, flaw.words);
    }
    if (!jsontext_is(body, '{') || !jsontext_next_member(&body, &name, &value) ||
        name.len != strlen(member) + 2 || memcmp(name.at + 1, member, strlen(member)) != 0 ||
        !jsontext_is(value, '"') || value.len == 2 || jsontext_next_member(&body, &name, &more)) {
        return fail(error, WEIR_EINVAL, "found another body, " EXPECTED, member);
    }
    char *room = arena_room(arena, value.len);
    *out = room != NULL ? jsontext_bytes(value, room) : (struct weir_text){NULL, 0};
    return room != NULL ? 0 : WEIR_ENOMEM;
}

/* ---- the reply ---- */

static json_t *number_or_null(bool known, uint64_t number)
{
    return known ? json_integer((json_int_t)number) : json_null();
}

static int add_limit(void *arg, const struct weir_rules_limit *limit)
{
    bool rated = limit->count != WEIR_UNLIMITED;
    bool burst = algorithm_has(limit->algorithm, HAS_BURST);
    bool queue = algorithm_has(limit->algorithm, HAS_QUEUE);
    json_t *one = json_pack("{s:s, s:s, s:s, s:s?, s:o, s:o, s:o, s:o}", "name", limit->name,
                            "tier", limit->tier, "algorithm", weir_algorithm_name(limit->algorithm),
                            "rate", limit->rate, "count", number_or_null(rated, limit->count),
                            "period_ms", number_or_null(rated, limit->period_ns / WEIR_MILLISECOND),
                            "burst", number_or_null(rated && burst, limit->burst), "queue",
                            number_or_null(rated && queue, limit->burst));
    return json_array_append_new(arg, one) == 0 ? 0 : WEIR_ENOMEM;
}

static void reply_made(struct job *job)
{
    const struct sandbox *sandbox = job->sandbox;
    char id[33];
    json_t *limits = json_array();
    int e = weir_rules_limits(sandbox->rules, add_limit, limits);
    id_print(sandbox->id, id);
    job_reply_json(
        job, 201,
        e == 0 ? json_pack("{s:s, s:I, s:O}", "sandbox", id, "expires_in_s",
                           (json_int_t)(job->server->sandboxes->idle_ms[sandbox->pool] / 1000),
                           "limits", limits)
               : NULL);
    json_decref(limits);
}

/* Makes the sandbox from rules, if `e` is 0, and replies. */
static void make(struct job *job, int e, struct weir_text yaml, struct weir_error *error)
{
    struct sandbox *sandbox = job->sandbox;
    struct rule_messages messages = {json_array(), false};
    if (e == 0) {
        e = rules_open_sandbox(&sandbox->rules, yaml, rule_messages_add, &messages, error);
    }
    if (e == 0) {
        sandbox->made_ns = clock_unix_ns();
        sandbox->style = (struct http_style){sandbox->rules->started.server.headers,
                                             job->server->options.auth_deny_status};
        reply_made(job);
    } else if (e == WEIR_ERULES) {
        job_reply_problem(job, 422, error->text);
        admin_put_messages(&job->reply, messages.list);
    } else {
        job_reply_failure(job, e, error);
    }
    job->failed = job->status != 201;
    json_decref(messages.list);
}

void sandbox_make(struct job *job)
{
    struct arena arena = ARENA_INIT;
    struct weir_error error = {0};
    struct weir_text yaml = {NULL, 0};
    int e = sandbox_read_member(job->body, "rules", &arena, &yaml, &error);
    make(job, e, yaml, &error);
    arena_finish(&arena);
}

void sandbox_play(struct job *job)
{
    struct weir_error error = {0};
    make(job, 0, text_of(job->sandbox->scenario), &error);
}
