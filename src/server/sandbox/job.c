#include "server/sandbox/job.h"

#include <assert.h>
#include <stdlib.h>

#include "server/sandbox/sandboxes.h"

/* ---- replies ---- */

void job_reply_json(struct job *job, int status, json_t *json)
{
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (text == NULL) {
        job_reply_problem(job, 500, "out of memory");
        return;
    }
    buffer_put(&job->reply, text_of(text));
    free(text);
    job->status = status;
    job->type = "application/json";
}

/* Replaces what has been put by a problem. */
static void put_problem(struct job *job, int status, const char *detail, int reason)
{
    buffer_finish(&job->reply);
    buffer_init(&job->reply, JOB_REPLY_BYTES);
    http_put_problem(&job->reply, status, detail, reason);
    job->status = status;
    job->type = "application/problem+json";
}

void job_reply_problem(struct job *job, int status, const char *detail)
{
    put_problem(job, status, detail, status == 503 ? WEIR_REASON_OVERLOAD : 0);
}

void job_reply_failure(struct job *job, int e, const struct weir_error *error)
{
    const struct answer_error *row = answer_error(e);
    put_problem(job, row->status, answer_words_of_error(e, error), row->reason);
}

/* ---- running ---- */

static void put_reply(struct pending *p)
{
    struct http_request request;
    struct exchange x = http_resume(p, &request);
    buffer_put(&x.body, buffer_text(&p->body));
    http_reply(&x, p->wire.status, p->wire.type, NULL);
    buffer_finish(&x.body);
}

static void on_work(uv_work_t *work)
{
    struct job *job = work->data;
    job->run(job);
    if (job->reply.full) {
        job_reply_problem(job, 422,
                          "the reply would have more than 8388608 bytes: ask for less at a time");
    }
}

static void on_end(uv_work_t *work, int status);

static bool is_of_demo(const struct job *job)
{
    return job->sandbox != NULL && job->sandbox->pool == POOL_DEMO;
}

static void run(struct job *job)
{
    (void)uv_queue_work(&job->worker->loop, &job->work, on_work, on_end); /* cannot fail */
}

/* Lets a job of the demo run now, or after those that came before it (J4). */
static void take_turn(struct sandboxes *s, struct job *job)
{
    struct job **last = &s->turn;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = job;
    if (s->turn == job) {
        run(job);
    }
}

/* Counts a job as ended; the next one of the demo begins. */
static void leave(struct sandboxes *s, const struct job *job)
{
    if (!is_of_demo(job)) {
        assert(s->jobs > 0);
        s->jobs--;
        return;
    }
    assert(s->turn == job); /* J4: one after another */
    s->turn = job->next;
    if (s->turn != NULL) {
        run(s->turn);
    }
}

static void on_end(uv_work_t *work, int status)
{
    struct job *job = work->data;
    struct pending *p = job->pending;
    struct worker *w = job->worker;
    (void)status; /* jobs are never cancelled */
    leave(w->server->sandboxes, job);
    if (job->ended != NULL) {
        job->ended(job);
    }
    buffer_finish(&p->body);
    p->body = job->reply;
    p->wire.status = job->status;
    p->wire.type = job->type;
    free(job);
    pending_answered(p); /* frees it if its connection has closed */
    pending_flush(w);
}

static struct job *copy(struct exchange *x, const struct job *like)
{
    struct weir_text body = x->request->body;
    struct job *job = malloc(sizeof *job + body.len);
    struct pending *p = job != NULL ? pending_batch(x->connection->worker) : NULL;
    if (p == NULL) {
        free(job);
        return NULL;
    }
    *job = *like;
    memcpy(job + 1, body.len > 0 ? body.at : "", body.len);
    job->body = (struct weir_text){(const char *)(job + 1), body.len};
    job->work.data = job;
    job->worker = x->connection->worker;
    job->server = x->server;
    job->pending = p;
    buffer_init(&job->reply, JOB_REPLY_BYTES);
    return job;
}

bool job_start(struct exchange *x, const struct job *like)
{
    struct sandboxes *s = x->server->sandboxes;
    if (!is_of_demo(like) && s->jobs >= JOBS_MAX) {
        http_reply_problem(x, 503, "too many checks and sandboxes are at work: try again");
        return false;
    }
    struct job *job = copy(x, like);
    if (job == NULL) {
        http_reply_problem(x, 500, "out of memory");
        return false;
    }
    job->pending->decided = true; /* no store is asked */
    http_keep(x, job->pending, put_reply);
    if (is_of_demo(job)) {
        take_turn(s, job);
    } else {
        s->jobs++;
        run(job);
    }
    return true;
}
