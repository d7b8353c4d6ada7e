/* How rules reach a fleet: common/remote.h. */
#include "base/atomic.h"
#include "base/clock.h"
#include "fleet/fleet_thread.h"
#include "fleet/loop.h"

static int open_limit(struct weir_fleet *fleet, const struct remote_spec *spec, void **limit,
                      struct weir_error *error)
{
    struct store_limit *made = NULL;
    int e = store_limit_open(fleet->shared, spec, &made, error);
    *limit = made;
    return e;
}

static void hold(void *limit)
{
    store_limit_hold(limit);
}

static void release(void *limit)
{
    store_limit_release(limit);
}

static int change(void *limit, const struct weir_options *options, struct weir_error *error)
{
    return store_limit_change(limit, options, error);
}

static void counts(const void *limit, struct remote_counts *out)
{
    const struct remote_counts *c = &((const struct store_limit *)limit)->counts;
    out->mode = store_limit_mode(limit);
    out->keys = load_relaxed(&c->keys);
    out->allowed = load_relaxed(&c->allowed);
    out->denied = load_relaxed(&c->denied);
    out->never = load_relaxed(&c->never);
    out->remembered = load_relaxed(&c->remembered);
    for (int i = 0; i < REMOTE_FAILURES; i++) {
        out->degraded[i] = load_relaxed(&c->degraded[i]);
    }
}

static int ask(struct weir_fleet *fleet, void *where, struct remote_question *question,
               struct remote_answer *answer)
{
    if (where != NULL) {
        return fleet_thread_ask(where, question, answer);
    }
    if (fleet->loop == NULL) {
        return WEIR_EINVAL;
    }
    int e = fleet_loop_try(fleet->loop, question, answer);
    return e != REMOTE_PENDING ? e : fleet_loop_send(fleet->loop, question, answer);
}

const struct remote_ops fleet_ops = {
    .open = open_limit,
    .hold = hold,
    .release = release,
    .change = change,
    .counts = counts,
    .bytes = store_question_bytes,
    .ask = ask,
};
