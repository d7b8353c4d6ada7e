#include "algo/leaky_bucket.h"

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    return bucket_compile(spec, add_sat(spec->queue, 1), "queue + 1:", layout, p, error);
}

static uint64_t stamp(const struct algo_params *p, uint64_t word, const uint64_t *record,
                      uint64_t now)
{
    (void)record, (void)now;
    return shift_up(word, p->shift);
}

/* Only the last place of the queue is given back: later calls have been told their turns. */
static uint64_t refund(const struct algo_params *p, uint64_t word, uint64_t *record,
                       const struct algo_ask *ask, const struct algo_charge *charge)
{
    bool last = shift_up(word, p->shift) == charge->at;
    return last ? bucket_refund(p, word, record, ask, charge) : word;
}

const struct algo_ops algo_leaky_bucket = {
    .id = WEIR_LEAKY_BUCKET,
    .name = "leaky_bucket",
    .waits = true,
    .compile = compile,
    .as_of = bucket_as_of,
    .fits = leaky_bucket_fits,
    .describe = leaky_bucket_describe,
    .room = bucket_room,
    .refund = refund,
    .owes = bucket_owes,
    .stamp = stamp,
};
