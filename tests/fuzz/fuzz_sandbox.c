/*
 * A sandbox and its steps: the input is the body of POST /v1/sandbox, then bodies of POST
 * /v1/sandbox/ID, separated by bytes 0. If the first body makes no sandbox, the steps are those of
 * a sandbox with rules of our own. Each reply is JSON; a step answers every ask or none; and a
 * second sandbox with the same rules gives the same answers.
 */
#include <jansson.h>
#include <stdlib.h>

#include "server/sandbox/job.h"
#include "server/sandbox/sandboxes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

#define OUR_RULES                                                                                  \
    "{\"rules\":\"attributes: {user: [header:X-User]}\\n"                                          \
    "limits:\\n"                                                                                   \
    "  - {name: api, when: {path: /api/**}, key: [user|ip], rate: 2/s}\\n"                         \
    "  - {name: queue, key: [user], algorithm: leaky_bucket, rate: 1/s, queue: 2}\\n"              \
    "  - {name: log, key: [], algorithm: sliding_log, rate: 9/min}\\n\"}"

static struct sandboxes sandboxes = {.idle_ms = {1000, 1000}, .step_ns = 60 * WEIR_SECOND};
static struct server server = {.sandboxes = &sandboxes};

/* Runs a job as the pool does. Its reply is JSON. The caller finishes job->reply. */
static void run(struct job *job, void (*work)(struct job *job), struct sandbox *sandbox,
                struct weir_text body)
{
    *job = (struct job){.server = &server, .sandbox = sandbox, .body = body};
    buffer_init(&job->reply, JOB_REPLY_BYTES);
    work(job);
}

static json_t *reply_of(const struct job *job)
{
    json_t *json = json_loadb(buffer_text(&job->reply).at, buffer_len(&job->reply),
                              JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    require(json != NULL || job->reply.full);
    return json;
}

/* Makes a sandbox. Returns false if the body is refused. */
static bool make(struct sandbox *sandbox, struct weir_text body)
{
    struct job job;
    *sandbox = (struct sandbox){.used = true};
    run(&job, sandbox_make, sandbox, body);
    require(job.status == 201 || job.status == 400 || job.status == 422 || job.status == 500);
    require((job.status == 201) == (sandbox->rules != NULL) && job.failed == (job.status != 201));
    json_decref(reply_of(&job));
    buffer_finish(&job.reply);
    return sandbox->rules != NULL;
}

/* Takes a step. Returns its reply, without header fields: these have the time of the sandbox. */
static json_t *step(struct sandbox *sandbox, struct weir_text body)
{
    struct job job;
    uint64_t before_ns = sandbox->now_ns;
    run(&job, sandbox_step, sandbox, body);
    json_t *reply = reply_of(&job);
    json_t *answers = json_object_get(reply, "answers");
    require(reply == NULL || (job.status == 200) == (answers != NULL));
    require(job.status == 200 || (job.status >= 400 && sandbox->now_ns == before_ns));
    require(sandbox->now_ns >= before_ns);
    json_t *asked = json_loadb(body.at, body.len, JSON_ALLOW_NUL, NULL);
    require(asked == NULL || answers == NULL ||
            json_array_size(json_object_get(asked, "asks")) == json_array_size(answers));
    json_decref(asked);
    for (size_t i = 0; i < json_array_size(answers); i++) {
        (void)json_object_del(json_array_get(answers, i), "headers");
    }
    buffer_finish(&job.reply);
    return reply;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_text rest = {(const char *)data, size};
    struct weir_text rules = text_cut(&rest, 0);
    struct sandbox two[2];
    for (size_t i = 0; i < 2; i++) {
        require(make(&two[i], rules) || make(&two[i], TEXT(OUR_RULES)));
    }
    while (rest.len > 0) {
        struct weir_text body = text_cut(&rest, 0);
        json_t *one = step(&two[0], body);
        json_t *other = step(&two[1], body);
        require(json_equal(one, other) || one == NULL);
        json_decref(one);
        json_decref(other);
    }
    weir_rules_close(two[0].rules);
    weir_rules_close(two[1].rules);
    return 0;
}
