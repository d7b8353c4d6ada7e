/* POST /v1/config/check: checks rules, and tells what they would change. */
#include "rules/live/live.h"
#include "server/sandbox/job.h"
#include "server/sandbox/rule_messages.h"
#include "server/sandbox/sandboxes.h"

/* The parts of the reply. The first member is the `arg` of rule_messages_add(). */
struct checked {
    struct rule_messages messages;
    json_t *limits;
    json_t *changes;
};

static void add_limit(void *arg, const char *name, unsigned line)
{
    struct checked *c = arg;
    (void)json_array_append_new(c->limits,
                                json_pack("{s:s, s:i}", "name", name, "line", (int)line));
}

static void add_change(void *arg, const char *line)
{
    struct checked *c = arg;
    (void)json_array_append_new(c->changes, rule_messages_text(line));
}

void check_rules_of(struct job *job)
{
    static const struct rules_check_told tell = {add_limit, add_change, rule_messages_add};
    struct checked c = {{json_array(), job->from_file}, json_array(), json_array()};
    struct weir_error error = {0};
    int e = rules_check(job->server->rules, job->from_file ? NULL : &job->body, &tell, &c, &error);
    if (e == 0 || e == WEIR_ERULES) {
        job_reply_json(job, 200,
                       json_pack("{s:b, s:O, s:O, s:O}", "ok", e == 0, "messages", c.messages.list,
                                 "limits", c.limits, "changes", c.changes));
    } else {
        job_reply_failure(job, e, &error);
    }
    json_decref(c.messages.list);
    json_decref(c.limits);
    json_decref(c.changes);
}
