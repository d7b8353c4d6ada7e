/* The script and the arguments of exchanges: lua/sync.lua. */
#include "base/maths.h"
#include "shared/core/script.h"
#include "shared/synced/sync.h"
#include "wire/resp.h"

const struct script *sync_script(const struct scripts *s, const struct sync_call *call)
{
    return &s->row[store_limit_numbers(call->limit)->params.algorithm];
}

/* Returns the units that the key may owe beyond quota and max_debt. If the store's clock was set
 * back, these are only the units that the node knew of before: any further lead comes from the
 * clock. */
static uint64_t beyond(const struct sync_call *call, const struct store_params *p)
{
    uint64_t most = sync_beyond(call->limit, p);
    return call->set_back ? min_u64(call->owed, most) : most;
}

static unsigned put_one(const struct sync_call *call, struct buffer *b)
{
    const struct store_params *p = &store_limit_numbers(call->limit)->params;
    const int64_t numbers[] = {
        p->algorithm,
        (int64_t)p->quota,
        (int64_t)(p->max_debt + beyond(call, p)),
        (int64_t)p->a,
        (int64_t)script_offset(p, store_key_text(&call->key)),
        call->delta,
        call->window,
    };
    return script_put_numbers(b, numbers, sizeof numbers / sizeof numbers[0]);
}

void sync_put_arguments(const struct sync_call *calls, unsigned n, struct buffer *b,
                        unsigned *count)
{
    *count = 1 + n + script_put_numbers(b, &(int64_t){n}, 1); /* with the keys and the verb */
    for (unsigned i = 0; i < n; i++) {
        resp_put_bulk(b, store_key_text(&calls[i].key));
    }
    resp_put_bulk(b, TEXT("sync"));
    for (unsigned i = 0; i < n; i++) {
        *count += put_one(&calls[i], b);
    }
    for (unsigned i = 0; i < n; i++) {
        *count += script_put_numbers(b, &(int64_t){calls[i].set_back ? -1 : calls[i].extra}, 1);
    }
}
