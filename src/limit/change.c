/* Versions of the limit, the parameters that are computed from them, and live changes. */
#include "base/error.h"
#include "limit/limiter.h"

#define WORDS (sizeof(struct limit_spec) / sizeof(uint64_t))

_Static_assert(sizeof(struct limit_spec) <= REGION_SPEC_MAX, "a spec fits its place");
_Static_assert(sizeof(struct limit_spec) % sizeof(uint64_t) == 0, "a spec is whole words");

/*
 * Writes word by word, because a reader may be copying the version that is overwritten. It notices
 * that by the version number, and copies again.
 */
void spec_publish(struct region_header *head, const struct limit_spec *spec)
{
    uint64_t next = load_relaxed(&head->version) + 1;
    uint64_t *place = (uint64_t *)(void *)head->spec[next % REGION_VERSIONS].bytes;
    uint64_t words[WORDS];
    memcpy(words, spec, sizeof words);
    for (size_t i = 0; i < WORDS; i++) {
        store_release(&place[i], words[i]); /* a reader that sees it sees the present version too */
    }
    store_release(&head->version, next); /* pairs with params_now() and spec_read() */
}

/* Copies the version in force and returns its number. */
static uint64_t spec_read(const struct region_header *head, struct limit_spec *spec)
{
    uint64_t words[WORDS];
    uint64_t version;
    do {
        version = load_acquire(&head->version);
        const uint64_t *place =
            (const uint64_t *)(const void *)head->spec[version % REGION_VERSIONS].bytes;
        for (size_t i = 0; i < WORDS; i++) {
            words[i] = load_acquire(&place[i]); /* before the second load of the version */
        }
    } while (load_acquire(&head->version) - version >= REGION_VERSIONS - 1);
    memcpy(spec, words, sizeof words);
    return version;
}

uint64_t params_read(const struct weir *w, struct algo_params *params, int *e)
{
    struct algo_layout layout = layout_of(w);
    struct limit_spec spec;
    uint64_t version = spec_read(w->head, &spec);
    memset(params, 0, sizeof *params);
    params->spec = spec;
    *e = spec.count == 0 || spec.period_ns != w->head->fixed.period_ns
             ? WEIR_ERATE
             : w->ops->compile(&spec, &layout, params, NULL);
    /* A time on the line must also be a Unix time of 63 bits. */
    params->max_time = min_u64(params->max_time, (uint64_t)INT64_MAX - (uint64_t)w->epoch_ns);
    return version;
}

const struct algo_params *params_renew(const struct weir *w, struct algo_params *copy)
{
    unsigned slot = thread_slot();
    int e; /* always 0: weir_open() has seen the spec compile, and so has each change since */
    if (slot >= THREAD_OWN) {
        (void)params_read(w, copy, &e);
        return copy;
    }
    struct per_thread *own = &w->threads[slot];
    own->version = params_read(w, &own->params, &e);
    return &own->params;
}

static int compile_change(const struct weir *w, uint64_t count, uint64_t burst_or_queue,
                          struct algo_params *next, struct weir_error *error)
{
    struct algo_layout layout = layout_of(w);
    struct limit_spec spec;
    (void)spec_read(w->head, &spec);
    spec.count = count;
    if (algorithm_has(spec.algorithm, HAS_BURST)) {
        spec.burst = burst_or_queue != 0 ? burst_or_queue : count;
    } else {
        spec.queue = burst_or_queue;
    }
    return params_compile(w->ops, &spec, &layout, next, error);
}

int weir_change_check(struct weir *w, uint64_t count, uint64_t burst_or_queue,
                      struct weir_error *error)
{
    struct algo_params next;
    if (w == NULL) {
        return fail(error, WEIR_EINVAL, "the limiter is NULL");
    }
    if (count == 0) {
        return fail(error, WEIR_ERATE, "count is 0, expected at least 1");
    }
    if (burst_or_queue != 0 && !algorithm_has(w->ops->id, HAS_BURST | HAS_QUEUE)) {
        return fail(error, WEIR_EINVAL, "%s has neither burst nor queue, expected 0",
                    weir_algorithm_name(w->ops->id));
    }
    return compile_change(w, count, burst_or_queue, &next, error);
}

int weir_change(struct weir *w, uint64_t count, uint64_t burst_or_queue, struct weir_error *error)
{
    struct algo_params next;
    int e = weir_change_check(w, count, burst_or_queue, error);
    if (e != 0) {
        return e;
    }
    lock_take(&w->head->change, w->region->owner);
    e = compile_change(w, count, burst_or_queue, &next, error); /* others may have changed it */
    if (e == 0) {
        spec_publish(w->head, &next.spec);
    }
    lock_release(&w->head->change);
    return e;
}
