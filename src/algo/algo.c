#include "algo/algo.h"

#include <string.h>

static const struct algo_ops *const algorithms[] = {
    &algo_token_bucket,   &algo_leaky_bucket, &algo_fixed_window,
    &algo_sliding_window, &algo_sliding_log,
};

#define COUNT (sizeof algorithms / sizeof algorithms[0])

const struct algo_ops *algo_by_id(int id)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (algorithms[i]->id == id) {
            return algorithms[i];
        }
    }
    return NULL;
}

const struct algo_ops *algo_by_name(const char *name)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(algorithms[i]->name, name) == 0) {
            return algorithms[i];
        }
    }
    return NULL;
}

void algo_describe(const struct algo_ops *ops, const struct algo_params *p, uint64_t word,
                   const uint64_t *record, const struct algo_ask *ask, struct weir_answer *answer)
{
    bool pulled;
    uint64_t base = ops->as_of(p, word, record, ask->now, &pulled);
    ops->describe(p, base, record, ask, answer);
}

struct algo_step algo_penalize(const struct algo_ops *ops, const struct algo_params *p,
                               uint64_t word, const uint64_t *record, const struct algo_ask *ask,
                               uint64_t *charged)
{
    bool pulled;
    uint64_t base = ops->as_of(p, word, record, ask->now, &pulled);
    *charged = min_u64(ask->cost, ops->room(p, base, record, ask->now));
    return (struct algo_step){base + *charged * p->step, base, WEIR_ALLOW, pulled};
}

void algo_owes(const struct algo_ops *ops, const struct algo_params *p, uint64_t word,
               const uint64_t *record, uint64_t now, struct debt *debt)
{
    bool pulled;
    uint64_t base = ops->as_of(p, word, record, now, &pulled);
    debt->word = pulled ? base : word;
    ops->owes(p, debt->word, record, sub_floor0(now, ALGO_SLACK_NS), debt);
}
