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

uint64_t algo_pull(const struct algo_ops *ops, const struct algo_params *p, uint64_t word,
                   const uint64_t *record, uint64_t now)
{
    struct algo_ask nothing = {now, 0, 0};
    struct algo_step step = ops->decide(p, word, record, &nothing);
    return step.pulled ? step.word : word;
}
