#include "algo/algo.h"

static const struct algo_ops *const algorithms[ALGORITHMS_END] = {
#define ROW(number, name, traits) [number] = &algo_##name,
    EACH_ALGORITHM(ROW)
#undef ROW
};

const struct algo_ops *algo_by_id(int id)
{
    return id > 0 && id < ALGORITHMS_END ? algorithms[id] : NULL;
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
