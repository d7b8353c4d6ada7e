#include "algo/token_bucket.h"

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    return bucket_compile(spec, spec->burst, "burst", layout, p, error);
}

static struct algo_step decide(const struct algo_params *p, uint64_t word, const uint64_t *record,
                               const struct algo_ask *ask)
{
    (void)record;
    return token_bucket_decide(p, word, ask);
}

static void describe(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     const struct algo_ask *ask, struct weir_answer *answer)
{
    bool pulled;
    uint64_t base = bucket_base(p, word, bucket_now(p, ask->now), &pulled);
    (void)record;
    token_bucket_describe_decided(p, base, ask, answer);
}

static uint64_t stamp(const struct algo_params *p, uint64_t word, const uint64_t *record,
                      uint64_t now)
{
    (void)p;
    (void)word;
    (void)record;
    return now; /* a TAT has no window to belong to */
}

const struct algo_ops algo_token_bucket = {
    .id = WEIR_TOKEN_BUCKET,
    .name = "token_bucket",
    .waits = true,
    .compile = compile,
    .decide = decide,
    .describe = describe,
    .charge = bucket_charge,
    .refund = bucket_refund,
    .owes = bucket_owes,
    .stamp = stamp,
};
