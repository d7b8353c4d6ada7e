/* The limits of a process: opens and changes them, counts their references, and answers where the
 * store does not: from memory, or by on_failure. */
#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/maths.h"
#include "shared/store/store_question.h"
#include "shared/store/stores.h"

static const char *const mode_names[] = {"local", "exact", "leased", "synced"};

/* What an algorithm must have for a mode, besides a script; 0: nothing. */
static const unsigned mode_traits[] = {
    [REMOTE_LEASED] = CAN_BE_LEASED,
    [REMOTE_SYNCED] = CAN_BE_SYNCED,
};

static int check_mode(const struct remote_spec *spec, struct weir_error *error)
{
    if (spec->mode <= REMOTE_LOCAL || spec->mode > REMOTE_SYNCED) {
        return fail(error, WEIR_EINVAL, "consistency is %d, expected exact, leased or synced",
                    spec->mode);
    }
    if (spec->on_failure < 0 || spec->on_failure >= REMOTE_FAILURES) {
        return fail(error, WEIR_EINVAL, "on_store_failure is %d, expected local, open or closed",
                    spec->on_failure);
    }
    if (spec->any_rate && (spec->mode != REMOTE_EXACT || spec->deny_cache_ns != 0 ||
                           !algorithm_has(spec->options.algorithm, HAS_BURST))) {
        return fail(error, WEIR_EINVAL,
                    "rates that come with questions need an exact token_bucket without deny_cache");
    }
    const char *name =
        weir_algorithm_name(spec->options.algorithm); /* NULL: store_params() will refuse it */
    unsigned traits = mode_traits[spec->mode];
    if (name != NULL && traits != 0 && !algorithm_has(spec->options.algorithm, traits)) {
        return fail(error, WEIR_EINVAL, "%s cannot be %s", name, mode_names[spec->mode]);
    }
    return 0;
}

/* Returns the mode in which a limit acts. It depends on its numbers and the configured fleet_size,
 * not on the nodes that are alive now: otherwise limits would change between leased and exact as
 * nodes come and go. What a state means does not depend on the mode (store_params_lease()). */
static int mode_of(const struct store_shared *s, int mode, const struct store_params *params)
{
    uint64_t nodes = s->options.fleet_size != 0 ? s->options.fleet_size : 1;
    return mode == REMOTE_LEASED && !lease_is_worth(params, nodes) ? REMOTE_EXACT : mode;
}

static int fill(struct store_limit *limit, const struct remote_spec *spec, struct weir_error *error)
{
    struct store_numbers *numbers = limit->numbers;
    int e = store_params(&spec->options, &numbers->params, error);
    if (e != 0) {
        return e;
    }
    if (spec->mode == REMOTE_LEASED) {
        store_params_lease(&numbers->params);
    }
    numbers->options = spec->options;
    limit->mode = mode_of(limit->shared, spec->mode, &numbers->params);
    limit->on_failure = spec->on_failure;
    limit->deny_cache_ns = spec->deny_cache_ns;
    limit->sync_ns = spec->sync_ns;
    limit->any_rate = spec->any_rate;
    limit->id = fetch_add(&limit->shared->limits, 1) + 1;
    return store_key_head(limit->shared->options.prefix, spec->name, &numbers->params, &limit->head,
                          error);
}

static void end(struct store_limit *limit)
{
    for (struct store_numbers *n = limit->all; n != NULL;) {
        struct store_numbers *older = n->older;
        free(n);
        n = older;
    }
    fallback_destroy(limit->fallback);
    free(limit);
}

static bool needs_fallback(const struct remote_spec *spec)
{
    return spec->on_failure == REMOTE_FAIL_LOCAL || spec->options.on_full == WEIR_EVICT;
}

int store_limit_open(struct store_shared *s, const struct remote_spec *spec,
                     struct store_limit **out, struct weir_error *error)
{
    struct store_limit *limit = calloc(1, sizeof *limit);
    int e = check_mode(spec, error);
    if (limit != NULL) {
        limit->shared = s;
        limit->references = 1;
        limit->numbers = calloc(1, sizeof *limit->numbers);
        limit->all = limit->numbers;
        limit->fallback = needs_fallback(spec) ? fallback_create() : NULL;
    }
    if (e == 0 && (limit == NULL || limit->numbers == NULL ||
                   (needs_fallback(spec) && limit->fallback == NULL))) {
        (void)fail(error, WEIR_ENOMEM, "out of memory for limit '%.*s'", TEXT_ARGS(spec->name));
        e = WEIR_ENOMEM;
    }
    e = e == 0 ? fill(limit, spec, error) : e;
    if (e != 0) {
        if (limit != NULL) {
            end(limit);
        }
        return e;
    }
    *out = limit;
    return 0;
}

static struct store_numbers *find_numbers(const struct store_limit *limit,
                                          const struct weir_options *options)
{
    struct store_numbers *n = limit->all;
    while (n != NULL &&
           (n->options.count != options->count || n->options.period_ns != options->period_ns ||
            n->options.burst != options->burst || n->options.queue != options->queue ||
            n->options.undelayed != options->undelayed ||
            n->options.max_debt != options->max_debt)) {
        n = n->older;
    }
    return n;
}

static int make_numbers(struct store_limit *limit, const struct weir_options *options,
                        struct store_numbers **out, struct weir_error *error)
{
    const struct store_params *old = &limit->numbers->params;
    struct store_numbers *numbers = calloc(1, sizeof *numbers);
    if (numbers == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for a limit");
    }
    int e = store_params(options, &numbers->params, error);
    if (e == 0 && old->leased) {
        store_params_lease(&numbers->params);
    }
    if (e == 0 && strcmp(numbers->params.kind, old->kind) != 0) {
        e = fail(error, WEIR_ENOTSUP,
                 "the keys in the store would get another meaning; make a new limit");
    }
    if (e != 0) {
        free(numbers);
        return e;
    }
    numbers->options = *options;
    numbers->older = limit->all;
    limit->all = numbers;
    *out = numbers;
    return 0;
}

int store_limit_change(struct store_limit *limit, const struct weir_options *options,
                       struct weir_error *error)
{
    struct store_numbers *numbers = find_numbers(limit, options);
    int e = numbers == NULL ? make_numbers(limit, options, &numbers, error) : 0;
    if (e != 0 || numbers == NULL) {
        return e;
    }
    if (numbers->params.leased) {
        int mode = mode_of(limit->shared, REMOTE_LEASED, &numbers->params);
        __atomic_store_n(&limit->mode, mode, __ATOMIC_RELAXED); /* store_limit_mode() */
    }
    __atomic_store_n(&limit->numbers, numbers, __ATOMIC_RELEASE); /* store_limit_numbers() */
    return 0;
}

void store_limit_hold(struct store_limit *limit)
{
    (void)fetch_add(&limit->references, 1);
}

void store_limit_release(struct store_limit *limit)
{
    if (limit != NULL && fetch_sub(&limit->references, 1) == 1) {
        end(limit);
    }
}

/* ---- what a limit answers without the store ---- */

#define CLOSED_RETRY_NS WEIR_SECOND

/* Allows, as for a key that was never asked for: if nothing remained, a client would stop, and this
 * limit would seem to be the one of several that binds. */
static void answer_open(const struct store_params *params, const struct remote_part *part,
                        struct weir_answer *answer)
{
    uint64_t cost = part->cost < params->quota ? part->cost : params->quota;
    *answer = (struct weir_answer){.verdict = WEIR_ALLOW,
                                   .quota = params->quota,
                                   .remaining = params->quota - cost,
                                   .granted = part->cost};
}

static void answer_closed(const struct store_params *params, struct weir_answer *answer)
{
    *answer = (struct weir_answer){.verdict = WEIR_DENY,
                                   .flags = REMOTE_CLOSED,
                                   .quota = params->quota,
                                   .retry_after_ns = CLOSED_RETRY_NS,
                                   .reset_after_ns = CLOSED_RETRY_NS};
}

static void answer_never(const struct store_params *params, struct weir_answer *answer)
{
    *answer = (struct weir_answer){
        .verdict = WEIR_NEVER, .quota = params->quota, .retry_after_ns = WEIR_FOREVER};
}

bool store_limit_remembers(const struct store_limit *limit, const struct store_params *params,
                           struct hash hash, uint64_t cost, uint64_t now_ns,
                           struct weir_answer *answer)
{
    return limit->deny_cache_ns != 0 &&
           node_keys_deny(limit->shared->keys, hash, params, cost, now_ns, answer);
}

/* Answers by a policy of `on_store_failure`. A cost that never fits is NEVER by each of them. */
static void answer_alone(const struct remote_part *part, int policy, int verb, uint64_t now_ns,
                         struct weir_answer *answer)
{
    const struct store_limit *limit = part->limit;
    struct store_params own;
    const struct store_params *params = store_part_params(part, &own);
    if (part->cost > params->quota && verb != REMOTE_UP_TO) {
        answer_never(params, answer);
    } else if (policy == REMOTE_FAIL_LOCAL) {
        fallback_ask(limit->fallback, part, verb, now_ns, answer);
    } else if (policy == REMOTE_FAIL_OPEN) {
        answer_open(params, part, answer);
    } else {
        answer_closed(params, answer);
    }
}

void store_limit_failed(const struct remote_part *part, int verb, uint64_t now_ns,
                        struct weir_answer *answer)
{
    struct store_limit *limit = part->limit;
    answer_alone(part, limit->on_failure, verb, now_ns, answer);
    answer->flags |= REMOTE_DEGRADED;
    count_shared(&limit->counts.degraded[limit->on_failure], verb != REMOTE_PEEK);
    count_shared(&limit->shared->degraded, verb != REMOTE_PEEK);
}

void store_limit_full(const struct remote_part *part, int verb, uint64_t now_ns,
                      struct weir_answer *answer)
{
    struct store_limit *limit = part->limit;
    int on_full = store_limit_numbers(limit)->options.on_full;
    int policy = on_full == WEIR_ALLOW_NEW                          ? REMOTE_FAIL_OPEN
                 : on_full == WEIR_EVICT && limit->fallback != NULL ? REMOTE_FAIL_LOCAL
                                                                    : REMOTE_FAIL_CLOSED;
    answer_alone(part, policy, verb, now_ns, answer);
    if (answer->verdict == WEIR_NEVER) {
        return;
    }
    answer->flags &= ~REMOTE_CLOSED; /* on_full, not `on_store_failure: closed` */
    answer->flags |= REMOTE_DEGRADED | WEIR_FLAG_FULL;
    bool allowed = answer->verdict == WEIR_ALLOW;
    count_shared(allowed ? &limit->counts.full_allowed : &limit->counts.full_denied, 1);
    count_shared(&limit->shared->degraded, 1);
}
