#include "algo/algo.h"

#include <string.h>

static const struct algo_ops *const algorithms[] = {
    [WEIR_TOKEN_BUCKET] = &algo_token_bucket, [WEIR_LEAKY_BUCKET] = &algo_leaky_bucket,
    [WEIR_FIXED_WINDOW] = &algo_fixed_window, [WEIR_SLIDING_WINDOW] = &algo_sliding_window,
    [WEIR_SLIDING_LOG] = &algo_sliding_log,
};

#define COUNT (sizeof algorithms / sizeof algorithms[0])

const struct algo_ops *algo_by_id(int id)
{
    return id > 0 && id < (int)COUNT ? algorithms[id] : NULL;
}

const char *weir_algorithm_name(int algorithm)
{
    const struct algo_ops *ops = algo_by_id(algorithm);
    return ops != NULL ? ops->name : NULL;
}

int weir_algorithm_by_name(const char *name)
{
    for (size_t i = 1; i < COUNT && name != NULL; i++) {
        if (strcmp(algorithms[i]->name, name) == 0) {
            return algorithms[i]->id;
        }
    }
    return 0;
}

void algo_describe(const struct algo_ops *ops, const struct algo_params *p, struct algo_state s,
                   const struct algo_ask *ask, struct weir_answer *answer)
{
    bool pulled;
    s.word = ops->as_of(p, s, ask->now, &pulled);
    ops->describe(p, s, ask, answer);
}

struct algo_step algo_penalize(const struct algo_ops *ops, const struct algo_params *p,
                               struct algo_state s, const struct algo_ask *ask, uint64_t *charged)
{
    bool pulled;
    s.word = ops->as_of(p, s, ask->now, &pulled);
    *charged = min_u64(ask->cost, ops->room(p, s, ask->now));
    return (struct algo_step){s.word + *charged * p->step, s.word, WEIR_ALLOW, pulled};
}

void algo_owes(const struct algo_ops *ops, const struct algo_params *p, struct algo_state s,
               uint64_t now, struct debt *debt)
{
    bool pulled;
    uint64_t base = ops->as_of(p, s, now, &pulled);
    s.word = pulled ? base : s.word;
    debt->word = s.word;
    ops->owes(p, s, sub_floor0(now, ALGO_SLACK_NS), debt);
}
