/*
 * The demo (--demo): sandboxes for clients of the role check, so that a person without the admin
 * secret can play with the algorithms. Rules come from the rows below, never from the client. What
 * clients can take is bounded by S3 of sandboxes.h and J4 of job.h.
 */
#include "base/error.h"
#include "server/sandbox/job.h"
#include "server/sandbox/sandboxes.h"

#define PREFIX "/v1/demo/"

/* ---- scenarios ---- */

/* One limit as a line of a rule file. The page shows the same numbers (play_setup.js). */
#define ONE_RULE(algorithm, when, more)                                                            \
    "  - {name: " #algorithm ", " when "key: [user], algorithm: " #algorithm                       \
    ", rate: 10/10s, " more "max_keys: 64}\n"
#define AT(algorithm, more) ONE_RULE(algorithm, "when: {path: /" #algorithm "}, ", more)
#define SCENARIO(algorithm, more)                                                                  \
    {                                                                                              \
#algorithm, "limits:\n" ONE_RULE(algorithm, "", more)                                      \
    }

static const struct scenario {
    const char *id;
    const char *rules;
} scenarios[] = {
    SCENARIO(token_bucket, "burst: 10, "),
    SCENARIO(leaky_bucket, "queue: 9, "),
    SCENARIO(fixed_window, ""),
    SCENARIO(sliding_window, ""),
    SCENARIO(sliding_log, ""),
    {"all", "limits:\n" AT(token_bucket, "burst: 10, ") AT(leaky_bucket, "queue: 9, ")
                AT(fixed_window, "") AT(sliding_window, "") AT(sliding_log, "")},
};

/* Returns the rules of the scenario that the body names, or NULL with the reason. */
static const char *find_rules(struct weir_text body, struct weir_error *error)
{
    struct arena arena = ARENA_INIT;
    struct weir_text id = {NULL, 0};
    const char *rules = NULL;
    int e = sandbox_read_member(body, "scenario", &arena, &id, error);
    for (size_t i = 0; e == 0 && i < sizeof scenarios / sizeof scenarios[0]; i++) {
        rules = text_is(id, scenarios[i].id) ? scenarios[i].rules : rules;
    }
    if (e == 0 && rules == NULL) {
        (void)fail(error, WEIR_EINVAL,
                   "scenario: found '%.*s', expected token_bucket, leaky_bucket, fixed_window, "
                   "sliding_window, sliding_log or all",
                   TEXT_CUT(id, 32));
    }
    arena_finish(&arena);
    return rules;
}

/* ---- routes ---- */

/* Returns whether the demo is on; replies if not. */
static bool is_on(struct exchange *x)
{
    if (!x->server->options.demo) {
        http_reply_problem(x, 404, "the demo is off: weir serve --demo turns it on");
    }
    return x->server->options.demo;
}

/* Takes a place for the client, which loses the sandbox that it had. Returns NULL after a reply. */
static struct sandbox *take(struct exchange *x)
{
    struct sandboxes *s = x->server->sandboxes;
    const struct address *client = &x->connection->peer;
    struct sandbox *before = sandboxes_of_client(s, client);
    if (before != NULL && before->busy) { /* it keeps its place until its job has ended */
        http_reply_problem(x, 409,
                           "the sandbox of this address is at work: try again after its reply");
        return NULL;
    }
    if (before != NULL) {
        sandbox_remove(before);
    }
    struct sandbox *sandbox = sandboxes_take(s, POOL_DEMO, uv_now(&x->connection->worker->loop));
    if (sandbox == NULL) {
        http_reply_problem(x, 503,
                           "all 4 places of the demo are taken: one is free when its viewer leaves "
                           "or has been idle for a minute");
        return NULL;
    }
    sandbox->owner = *client;
    return sandbox;
}

static void run_create(struct exchange *x)
{
    struct weir_error error = {0};
    if (!is_on(x)) {
        return;
    }
    const char *rules = find_rules(x->request->body, &error);
    if (rules == NULL) {
        http_reply_failure(x, WEIR_EINVAL, &error);
        return;
    }
    struct sandbox *sandbox = take(x);
    if (sandbox == NULL) {
        return;
    }
    sandbox->scenario = rules;
    if (!sandbox_begin_work(x, sandbox, sandbox_play)) {
        sandbox->busy = false;
        sandbox_remove(sandbox);
    }
}

static void run_step(struct exchange *x)
{
    if (is_on(x)) {
        sandbox_run_step(x, POOL_DEMO, PREFIX);
    }
}

static void run_delete(struct exchange *x)
{
    if (is_on(x)) {
        sandbox_run_delete(x, POOL_DEMO, PREFIX);
    }
}

#define AT_MOST .body_most = DEMO_BODY_MAX, .body_hint = "fewer asks"

const struct http_route demo_routes[] = {
    {"POST", "/v1/demo", HTTP_AT, ROLE_CHECK, run_create, AT_MOST,
     .summary = "with --demo: makes a sandbox with built-in rules"},
    {"POST", "/v1/demo", HTTP_BELOW, ROLE_CHECK, run_step, AT_MOST,
     .summary = "asks the rules of such a sandbox"},
    {"DELETE", "/v1/demo", HTTP_BELOW, ROLE_CHECK, run_delete, AT_MOST,
     .summary = "removes such a sandbox"},
    {.path = NULL},
};
