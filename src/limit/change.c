/* Versions of the parameters, and changing them while others decide. */
#include <string.h>

#include "base/error.h"
#include "limit/limiter.h"

_Static_assert(sizeof(struct algo_params) <= REGION_PARAMS_MAX, "parameters fit their place");

void params_publish(struct region_header *head, const struct algo_params *params)
{
    uint64_t next = load_relaxed(&head->version) + 1;
    memcpy(head->params[next % REGION_VERSIONS].bytes, params, sizeof *params);
    store_release(&head->version, next); /* pairs with params_now() */
}

static void set_burst(struct limit_spec *spec, uint64_t burst_or_queue)
{
    if (spec->algorithm == WEIR_TOKEN_BUCKET) {
        spec->burst = burst_or_queue != 0 ? burst_or_queue : spec->count;
    } else {
        spec->queue = burst_or_queue;
    }
}

static int change_locked(struct weir *w, uint64_t count, uint64_t burst_or_queue,
                         struct weir_error *error)
{
    uint64_t version;
    const struct algo_params *old = params_now(w, &version);
    struct algo_params next;
    struct algo_layout layout = {old->shift, old->capacity, true};
    memset(&next, 0, sizeof next);
    next.spec = old->spec;
    next.spec.count = count;
    set_burst(&next.spec, burst_or_queue);
    struct limit_spec spec = next.spec;
    int e = w->ops->compile(&spec, &layout, &next, error);
    if (e == 0) {
        params_publish(w->head, &next);
    }
    return e;
}

int weir_change(struct weir *w, uint64_t count, uint64_t burst_or_queue, struct weir_error *error)
{
    if (w == NULL) {
        return fail(error, WEIR_EINVAL, "the limiter is NULL");
    }
    if (count == 0) {
        return fail(error, WEIR_ERATE, "count is 0, expected at least 1");
    }
    int id = w->ops->id;
    if (burst_or_queue != 0 && id != WEIR_TOKEN_BUCKET && id != WEIR_LEAKY_BUCKET) {
        return fail(error, WEIR_EINVAL, "%s has neither burst nor queue, expected 0", w->ops->name);
    }
    lock_take(&w->head->change);
    int e = change_locked(w, count, burst_or_queue, error);
    lock_release(&w->head->change);
    return e;
}
