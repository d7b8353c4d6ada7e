/* What an exchange says to the store: lua/sync.lua. */
#include "base/maths.h"
#include "store/sync.h"
#include "wire/resp.h"

#define NODES_LEAST 8u /* see Y2 */

const struct script *sync_script(const struct scripts *s, const struct sync_call *call)
{
    return &s->row[store_limit_numbers(call->limit)->params.algorithm];
}

static void put_number(struct buffer *b, int64_t number)
{
    char digits[24];
    struct buffer text = {.at = digits, .size = sizeof digits, .most = sizeof digits};
    buffer_put_i64(&text, number);
    resp_put_bulk(b, buffer_text(&text));
}

/* As far as a bucket may go into debt before its state is taken for one of another time: Y2. */
static uint64_t debt_of(const struct store_limit *limit, const struct store_params *p)
{
    if (p->algorithm != WEIR_TOKEN_BUCKET) {
        return p->max_debt;
    }
    uint64_t nodes = max_u64(store_fleet_size(limit->shared), NODES_LEAST);
    uint64_t most = STORE_MOST / 2 / max_u64(p->b, 1);
    uint64_t longest = STORE_MOST / 2 / max_u64(p->a, 1); /* the time of all this in us, too */
    u128 debt = mul_wide(p->quota, 2 * nodes) + p->max_debt;
    most = min_u64(most, max_u64(longest, p->quota + p->max_debt)) - p->quota;
    return debt < most ? (uint64_t)debt : most;
}

void sync_put_arguments(const struct sync_call *call, struct buffer *b, unsigned *count)
{
    const struct store_params *p = &store_limit_numbers(call->limit)->params;
    const int64_t numbers[] = {
        p->algorithm,
        (int64_t)p->quota,
        (int64_t)debt_of(call->limit, p),
        (int64_t)p->a,
        (int64_t)script_offset(p, store_key_text(&call->key)),
        call->delta,
        call->window,
        call->extra,
    };
    put_number(b, 1);
    resp_put_bulk(b, store_key_text(&call->key));
    resp_put_bulk(b, TEXT("sync"));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        put_number(b, numbers[i]);
    }
    *count = 3 + sizeof numbers / sizeof numbers[0];
}
