#include <assert.h>

#include "base/maths.h"
#include "shared/leased/lease_part.h"
#include "shared/core/script.h"

static void fill(struct lease_call *call, struct store_limit *limit, struct hash hash,
                 uint64_t cost, uint64_t now_ns)
{
    *call = (struct lease_call){.limit = limit, .hash = hash, .made_ns = now_ns, .cost = cost};
    store_limit_hold(limit);
}

void lease_call_make(struct key_stripe *s, struct lease *e, uint64_t cost, uint64_t want, bool keep,
                     uint64_t now_ns, struct lease_call *call)
{
    assert(e->flight == 0);                     /* L4: one call at a time for each key */
    assert(e->mark == 0 || e->left <= e->held); /* what is settled covers what is given back */
    fill(call, e->part.limit, e->part.key->hash, cost, now_ns);
    node_key_name(&e->part, &call->key);
    call->id = ++s->calls;
    call->want = want;
    if (e->mark != 0) {
        call->lease = e->mark;
        call->held = e->held;
        call->keep = keep && now_ns < e->expires_ns ? e->left : 0;
        call->back = e->left - call->keep;
        e->left = call->keep;
        e->mark = 0;
        e->held = 0;
    }
    call->drop = e->drop;
    e->flight = call->id;
    e->brings = want != 0;
    e->drop = false;
    node_key_unschedule(s, &e->part);
}

void lease_alone(const struct remote_part *of, uint64_t now_ns, struct lease_call *call)
{
    fill(call, of->limit, call->hash, of->cost, now_ns);
    store_key(&call->limit->head, of->shard, of->key, &call->key);
}

const struct script *lease_script(const struct scripts *s, const struct lease_call *call)
{
    bool bucket = algorithm_has(store_limit_numbers(call->limit)->params.algorithm, IS_BUCKET);
    return &s->row[bucket ? SCRIPT_LEASED_BUCKET : SCRIPT_LEASED_WINDOW];
}

void lease_put_arguments(const struct lease_call *call, struct buffer *b, unsigned *count)
{
    const int64_t numbers[SCRIPT_LEASE_NUMBERS] = {
        (int64_t)call->want, (int64_t)call->lease, (int64_t)call->held,
        (int64_t)call->back, (int64_t)call->keep,
    };
    struct store_part part = {
        .params = &store_limit_numbers(call->limit)->params,
        .key = store_key_text(&call->key),
        .cost = call->cost,
    };
    *count = script_put_arguments(b, SCRIPT_LEASE, &part, 1);
    *count += script_put_numbers(b, numbers, SCRIPT_LEASE_NUMBERS);
}

bool lease_wants_renewal(const struct lease *e, uint64_t now_ns)
{
    return (e->left < e->renew_below || now_ns >= e->renew_ns) && e->flight == 0;
}

bool lease_renew(struct node_keys *keys, struct key_stripe *s, struct lease *e, uint64_t now_ns,
                 struct lease_call *call)
{
    uint64_t want = lease_want(e, lease_params(e), 0, now_ns);
    bool enough = want <= e->left && now_ns < e->renew_ns;
    if (enough || node_keys_is_stopping(keys)) {
        e->renew_below = e->left / 2;
        return false;
    }
    lease_call_make(s, e, 0, max_u64(want, e->left), true, now_ns, call);
    return true;
}
