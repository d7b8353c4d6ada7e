#include "algo/token_bucket.h"

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    return bucket_compile(spec, spec->burst, "burst", layout, p, error);
}

static uint64_t stamp(const struct algo_params *p, uint64_t word, const uint64_t *record,
                      uint64_t now)
{
    (void)p, (void)word, (void)record;
    return now; /* a refund of a TAT needs no time */
}

const struct algo_ops algo_token_bucket = {
    .id = WEIR_TOKEN_BUCKET,
    .name = "token_bucket",
    .waits = true,
    .compile = compile,
    .as_of = bucket_as_of,
    .fits = token_bucket_fits,
    .describe = token_bucket_describe,
    .room = bucket_room,
    .refund = bucket_refund,
    .owes = bucket_owes,
    .stamp = stamp,
};
