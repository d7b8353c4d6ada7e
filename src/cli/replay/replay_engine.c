#include "cli/replay/replay_engine.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/maths.h"
#include "cli/replay/replay_clients.h"
#include "cli/replay/stepped_bucket.h"
#include "limit/plan.h"

struct replay_engine {
    struct replay_limit limit;
    struct replay_clients clients;
    /* Not used by stepped_bucket: */
    const struct algo_ops *ops;
    struct algo_params params;
    i128 offset_ns; /* windows begin so long after multiples of their period */
    i128 epoch_ns;  /* earliest time that the states can express */
    bool has_epoch;
};

/* ---- stepped_bucket ---- */

/* Returns how long after `now` it takes until `tokens` have come back since `last`. */
static uint64_t wait_for(const struct replay_limit *l, i128 tokens, int64_t last, int64_t now)
{
    if (tokens <= 0) {
        return 0;
    }
    if (l->capacity == 0 || l->window == 0) {
        return REPLAY_NEVER;
    }
    i128 at = last + (tokens * l->window + l->capacity - 1) / l->capacity;
    /*
     * Not negative. If several tokens come back per tick, it may be 0, because `last` is a whole
     * tick.
     */
    return at > INT64_MAX ? REPLAY_NEVER : (uint64_t)(at - now);
}

static int decide_stepped(struct replay_engine *e, const struct replay_ask *ask,
                          struct replay_answer *answer, struct weir_error *error)
{
    const struct replay_limit *l = &e->limit;
    if (ask->cost != 1) {
        return fail(error, WEIR_EINVAL,
                    "found a cost of %" PRIu64 ", expected 1: a stepped bucket gives one token at "
                    "a time; other costs need --algorithm",
                    ask->cost);
    }
    const struct stepped_bucket *bucket = replay_clients_take(&e->clients, ask->client, l->capacity,
                                                              l->window, ask->time, &answer->allow);
    if (bucket == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for %" PRIu64 " clients",
                    e->clients.count + 1);
    }
    answer->remaining = (uint64_t)bucket->tokens;
    answer->retry = answer->allow ? 0 : wait_for(l, 1, bucket->last, ask->time);
    answer->reset = wait_for(l, (i128)l->capacity - bucket->tokens, bucket->last, ask->time);
    answer->delay = 0;
    return 0;
}

/* ---- the algorithms of the library ---- */

static int64_t clamp(i128 x)
{
    return x < INT64_MIN ? INT64_MIN : x > INT64_MAX ? INT64_MAX : (int64_t)x;
}

static i128 floor_div(i128 a, i128 b)
{
    return a / b - (a % b < 0);
}

/*
 * Chooses the epoch. States are words relative to it and have a limited range: at a million per
 * second, less than five years. The stream's first request shows where its times are, and is put
 * in the middle of the range. Windows still begin at multiples of their period since 0, weeks on a
 * Monday. Calendar months are counted from 1970.
 */
static void choose_epoch(struct replay_engine *e, i128 first_ns)
{
    bool windows = algorithm_has(e->limit.algorithm, IS_WINDOW);
    bool months = windows && e->limit.rate.period_ns == WEIR_MONTH;
    i128 step = windows ? (i128)e->limit.rate.period_ns : 1;
    i128 periods = floor_div(first_ns, step) - (i128)(e->params.max_time / 2) / step;
    e->epoch_ns = months ? 0 : periods * step + e->offset_ns;
    e->has_epoch = true;
}

static int off_the_line(const struct replay_engine *e, int64_t time, struct weir_error *error)
{
    i128 unit = (i128)e->limit.unit_ns;
    return fail(error, WEIR_ETIME,
                "found the time %" PRId64 ", expected %" PRId64 " to %" PRId64
                ": at this rate, times further from the first request do not fit",
                time, clamp(floor_div(e->epoch_ns + unit - 1, unit)),
                clamp(floor_div(e->epoch_ns + e->params.max_time, unit)));
}

static int line_time(struct replay_engine *e, int64_t time, uint64_t *now, struct weir_error *error)
{
    i128 time_ns = (i128)time * e->limit.unit_ns;
    if (!e->has_epoch) {
        if (time_ns < INT64_MIN || time_ns > INT64_MAX) {
            return fail(error, WEIR_ETIME,
                        "found the time %" PRId64 ", expected one within 292 years of 0", time);
        }
        choose_epoch(e, time_ns);
    }
    i128 since = time_ns - e->epoch_ns;
    if (since < 0 || since > e->params.max_time) {
        return off_the_line(e, time, error);
    }
    *now = (uint64_t)since;
    return 0;
}

static struct replay_client *get_client(struct replay_engine *e, struct hash hash)
{
    struct replay_client *client = replay_clients_get(&e->clients, hash);
    if (client != NULL && e->params.capacity > 0 && client->state.limit.record == NULL) {
        client->state.limit.record = calloc(e->params.capacity, sizeof(uint64_t));
        return client->state.limit.record != NULL ? client : NULL;
    }
    return client;
}

/* Does what weir_check_at() does, without a table. */
static void check(const struct replay_engine *e, struct replay_client *client,
                  const struct algo_ask *ask, struct weir_answer *a)
{
    const struct algo_params *p = &e->params;
    uint64_t *word = &client->state.limit.word;
    uint64_t *record = client->state.limit.record;
    struct algo_step step = algo_decide(e->ops, p, (struct algo_state){*word, record}, ask);
    bool allow = step.verdict == WEIR_ALLOW;
    if (allow && record != NULL) {
        e->ops->note(p, (struct algo_state){step.base, record}, ask->now, ask->cost);
    }
    if (allow || step.pulled) {
        *word = step.word;
    }
    *a = (struct weir_answer){.verdict = step.verdict, .granted = allow ? ask->cost : 0};
    a->retry_after_ns = step.verdict == WEIR_NEVER ? WEIR_FOREVER : 0;
    algo_describe(e->ops, p, (struct algo_state){*word, record}, ask, a);
}

static int decide_limit(struct replay_engine *e, const struct replay_ask *ask,
                        struct replay_answer *answer, struct weir_error *error)
{
    struct algo_ask question = {.cost = ask->cost};
    struct weir_answer a;
    int failed = line_time(e, ask->time, &question.now, error);
    if (failed != 0) {
        return failed;
    }
    struct replay_client *client = get_client(e, ask->client);
    if (client == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for %" PRIu64 " clients", e->clients.count);
    }
    check(e, client, &question, &a);
    *answer = (struct replay_answer){a.verdict == WEIR_ALLOW, a.remaining, a.retry_after_ns,
                                     a.reset_after_ns, a.delay_ns};
    return 0;
}

static int plan_limit(struct replay_engine *e, struct weir_error *error)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir_options filled;
    struct plan plan;
    o.algorithm = e->limit.algorithm;
    o.count = e->limit.rate.count;
    o.period_ns = e->limit.rate.period_ns;
    o.burst = e->limit.burst;
    o.queue = e->limit.queue;
    o.undelayed = e->limit.undelayed;
    o.max_keys = 1; /* no table will be made */
    o.flags = WEIR_EXPLICIT_TIME;
    int failed = plan_make(&o, &filled, &plan, error);
    if (failed == 0) {
        e->ops = plan.ops;
        e->params = plan.params;
        e->offset_ns = (i128)plan.fixed.offset_ns;
    }
    return failed;
}

/* ---- both ---- */

int replay_engine_create(struct replay_engine **out, const struct replay_limit *limit,
                         struct weir_error *error)
{
    struct replay_engine *e = calloc(1, sizeof *e);
    *out = NULL;
    if (e == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory");
    }
    e->limit = *limit;
    int failed = limit->algorithm != 0 ? plan_limit(e, error) : 0;
    if (failed == 0) {
        failed = replay_clients_init(&e->clients);
        failed = failed != 0 ? fail(error, failed, "%s", weir_strerror(failed)) : 0;
    }
    if (failed != 0) {
        free(e);
        return failed;
    }
    *out = e;
    return 0;
}

void replay_engine_destroy(struct replay_engine *e)
{
    if (e == NULL) {
        return;
    }
    for (uint64_t i = 0; e->params.capacity > 0 && i <= e->clients.mask; i++) {
        free(e->clients.places[i].state.limit.record);
    }
    replay_clients_finish(&e->clients);
    free(e);
}

struct replay_ask replay_engine_prepare(const struct replay_engine *e,
                                        const struct replay_request *request)
{
    struct replay_ask ask = {
        replay_clients_hash(&e->clients, request->client.at, request->client.len), request->time,
        request->cost};
    replay_clients_prefetch(&e->clients, ask.client);
    return ask;
}

int replay_engine_decide(struct replay_engine *e, const struct replay_ask *ask,
                         struct replay_answer *answer, struct weir_error *error)
{
    return e->limit.algorithm == 0 ? decide_stepped(e, ask, answer, error)
                                   : decide_limit(e, ask, answer, error);
}

uint64_t replay_engine_scale(const struct replay_engine *e)
{
    return e->limit.algorithm == 0 ? 1 : e->limit.unit_ns;
}

uint64_t replay_engine_clients(const struct replay_engine *e)
{
    return e->clients.count;
}
