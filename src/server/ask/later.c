#include "server/ask/later.h"

#include "server/net/deferred.h"
#include "server/net/worker.h"

struct text later_key(const struct later_question *q)
{
    return text_after(buffer_text(&q->bytes), q->shard_len);
}

static struct text shard_of(const struct later_question *q)
{
    return (struct text){q->found.shard.at != NULL ? buffer_text(&q->bytes).at : NULL,
                         q->shard_len};
}

void later_finish(struct later_question *q)
{
    if (q->kept) {
        weir_rules_limit_let_go(q->found.limit);
        q->kept = false;
    }
    buffer_finish(&q->bytes);
}

/* Copies what only lives as long as the request. Returns false if out of memory. */
static bool remember(struct later_question *q, struct weir_rules_value limit, const void *key,
                     size_t key_len, const struct weir_rules_found *found)
{
    q->found = *found;
    q->found.tier = (struct weir_rules_value){NULL, 0};
    q->shard_len = found->shard.len;
    memcpy(q->limit, limit.at, limit.len); /* the limit exists, so its name fits */
    q->limit[limit.len] = 0;
    q->bytes.most = SIZE_MAX;
    q->bytes.full = false;
    buffer_take(&q->bytes, buffer_len(&q->bytes));
    buffer_put(&q->bytes, (struct text){found->shard.at, found->shard.len});
    buffer_put(&q->bytes, (struct text){key, key_len});
    return !q->bytes.full;
}

static void on_done(void *arg, int error, const struct remote_answer *answer)
{
    struct deferred *d = arg;
    d->later.step(d, error, answer);
}

static int ask(struct deferred *d, const struct later_call *call, struct remote_answer *answer)
{
    struct weir_fleet *fleet = d->worker->server->fleet.fleet;
    struct later_question *q = &d->later;
    struct remote_part part = {
        .limit = q->found.remote, .shard = shard_of(q), .key = later_key(q), .cost = call->cost};
    struct remote_question asked = {.verb = call->verb,
                                    .parts = &part,
                                    .n = 1,
                                    .time_ns = call->time_ns,
                                    .now_ns = call->now_ns};
    return remote_ops(fleet)->ask(fleet, d->worker->where, &asked, answer, on_done, d);
}

int later_ask(struct later *later, struct weir_rules_value limit, const void *key, size_t key_len,
              const struct weir_rules_found *found, const struct later_call *call,
              later_step_fn step, struct remote_answer *answer)
{
    if (later == NULL || later->worker->where == NULL) {
        return WEIR_ENOTSUP;
    }
    struct deferred *d = deferred_spare(later->worker);
    if (d == NULL || !remember(&d->later, limit, key, key_len, found)) {
        return WEIR_ENOMEM;
    }
    d->later.step = step;
    int e = ask(d, call, answer);
    if (e != REMOTE_PENDING) {
        return e == REMOTE_ANSWERED ? 0 : e;
    }
    weir_rules_limit_keep(found->limit);
    d->later.kept = true;
    later->kept = d;
    return ANSWER_LATER;
}

void later_ask_again(struct deferred *d, const struct later_call *call, later_step_fn step)
{
    struct remote_answer answer;
    d->later.step = step;
    int e = ask(d, call, &answer);
    if (e != REMOTE_PENDING) {
        step(d, e == REMOTE_ANSWERED ? 0 : e, &answer);
    }
}
