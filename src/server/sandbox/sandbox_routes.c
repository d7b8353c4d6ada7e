/* Routes of sandboxes and checks: each begins a job. */
#include "server/admin/admin.h"
#include "server/sandbox/job.h"
#include "server/sandbox/sandboxes.h"

#define PREFIX "/v1/sandbox/"

/* When a job of a sandbox has ended. */
static void end_work(struct job *job)
{
    if (job->failed) {
        sandbox_remove(job->sandbox);
    }
    sandbox_rest(job->sandbox, uv_now(&job->worker->loop));
}

bool sandbox_begin_work(struct exchange *x, struct sandbox *sandbox, void (*run)(struct job *job))
{
    sandbox->busy = true;
    return job_start(x, &(struct job){.run = run, .ended = end_work, .sandbox = sandbox});
}

static void run_create(struct exchange *x)
{
    struct sandboxes *s = x->server->sandboxes;
    uint64_t now_ms = uv_now(&x->connection->worker->loop);
    struct sandbox *sandbox = sandboxes_take(s, POOL_OPERATORS, now_ms);
    if (sandbox == NULL) {
        http_reply_problem(x, 503,
                           "found 32 sandboxes, expected at most 32: delete one, or wait until one "
                           "has been idle for 5 minutes");
        return;
    }
    if (sandbox_begin_work(x, sandbox, sandbox_make)) {
        admin_audit(x, "sandbox", LOG_COUNT("bytes", x->request->body.len));
    } else {
        sandbox_remove(sandbox);
        sandbox_rest(sandbox, now_ms);
    }
}

/* Returns the sandbox that the path names after the prefix; NULL after a 404. */
static struct sandbox *find(struct exchange *x, enum sandbox_pool pool, const char *prefix)
{
    struct sandbox *sandbox =
        sandboxes_find(x->server->sandboxes, pool, text_after(x->request->path, strlen(prefix)));
    if (sandbox == NULL) {
        http_reply_problem(x, 404,
                           pool == POOL_DEMO
                               ? "there is no such sandbox: it was idle for too long, or another "
                                 "page of this address has begun"
                               : "there is no such sandbox: it was deleted, was idle for too long, "
                                 "or its last step took too long");
    }
    return sandbox;
}

void sandbox_run_step(struct exchange *x, enum sandbox_pool pool, const char *prefix)
{
    struct sandbox *sandbox = find(x, pool, prefix);
    if (sandbox == NULL) {
        return;
    }
    if (sandbox->busy) {
        http_reply_problem(x, 409, "the sandbox is at work: send the next step after the reply");
    } else if (!sandbox_begin_work(x, sandbox, sandbox_step)) {
        sandbox->busy = false;
    }
}

void sandbox_run_delete(struct exchange *x, enum sandbox_pool pool, const char *prefix)
{
    struct sandbox *sandbox = find(x, pool, prefix);
    if (sandbox != NULL) {
        sandbox_remove(sandbox);
        http_reply(x, 204, NULL, NULL);
    }
}

static void run_step(struct exchange *x)
{
    sandbox_run_step(x, POOL_OPERATORS, PREFIX);
}

static void run_delete(struct exchange *x)
{
    sandbox_run_delete(x, POOL_OPERATORS, PREFIX);
}

static void run_check(struct exchange *x)
{
    char decoded[HTTP_HEAD_MAX];
    struct http_pair pair;
    struct weir_text query = x->request->query;
    bool from_file = http_next_pair(&query, decoded, &pair);
    if (from_file && (!text_is(pair.name, "source") || !text_is(pair.value, "file") ||
                      query.len > 0 || x->request->body.len > 0)) {
        http_reply_problem(
            x, 400,
            "found another query or both, expected rules in the body, or ?source=file and no body");
        return;
    }
    (void)job_start(x, &(struct job){.run = check_rules_of, .from_file = from_file});
}

const struct http_route sandbox_routes[] = {
    {"POST", "/v1/config/check", HTTP_AT, ROLE_ADMIN, run_check,
     .summary = "checks a rule file without using it, and tells what it would change"},
    {"POST", "/v1/sandbox", HTTP_AT, ROLE_ADMIN, run_create,
     .summary = "makes a sandbox: rules to try out"},
    {"POST", "/v1/sandbox", HTTP_BELOW, ROLE_ADMIN, run_step,
     .summary = "asks the rules of a sandbox, at times of your choice"},
    {"DELETE", "/v1/sandbox", HTTP_BELOW, ROLE_ADMIN, run_delete, .summary = "removes a sandbox"},
    {.path = NULL},
};
