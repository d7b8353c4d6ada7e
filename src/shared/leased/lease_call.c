#include "shared/leased/lease_call.h"

#include "base/atomic.h"
#include "base/maths.h"
#include "shared/leased/lease_size.h"
#include "shared/script.h"

static void fill(struct lease_call *call, struct store_limit *limit, const uint64_t hash[2],
                 uint64_t cost, uint64_t now_ns)
{
    *call = (struct lease_call){
        .limit = limit, .hash = {hash[0], hash[1]}, .made_ns = now_ns, .cost = cost};
    store_limit_hold(limit);
}

void lease_call_make(struct lease_stripe *s, struct lease_entry *e, uint64_t cost, uint64_t want,
                     bool keep, uint64_t now_ns, struct lease_call *call)
{
    fill(call, e->limit, e->hash, cost, now_ns);
    memcpy(call->key.at, e->key, e->key_len);
    call->key.len = e->key_len;
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
    list_take(&e->ready);
}

void lease_call_plain(struct store_limit *limit, struct text shard, struct text key,
                      const uint64_t hash[2], uint64_t cost, uint64_t now_ns,
                      struct lease_call *call)
{
    fill(call, limit, hash, cost, now_ns);
    store_key(&limit->head, shard, key, &call->key);
}

const struct script *lease_script(const struct scripts *s, const struct lease_call *call)
{
    return script_lease(s, &store_limit_numbers(call->limit)->params);
}

void lease_put_arguments(const struct lease_call *call, struct buffer *b, unsigned *count)
{
    const uint64_t numbers[SCRIPT_LEASE_NUMBERS] = {call->want, call->lease, call->held, call->back,
                                                    call->keep};
    struct store_part part = {
        .params = &store_limit_numbers(call->limit)->params,
        .key = store_key_text(&call->key),
        .cost = call->cost,
    };
    *count = script_put_lease(b, &part, numbers);
}

bool lease_wants_renewal(const struct lease_entry *e, uint64_t now_ns)
{
    return (e->left < e->renew_below || now_ns >= e->renew_ns) && e->flight == 0;
}

bool lease_renew(struct leases *l, struct lease_stripe *s, struct lease_entry *e, uint64_t now_ns,
                 struct lease_call *call)
{
    uint64_t want = lease_want(e, lease_params(e), 0, now_ns);
    bool enough = want <= e->left && now_ns < e->renew_ns;
    if (enough || load_relaxed(&l->stopping) != 0) {
        e->renew_below = e->left / 2;
        return false;
    }
    lease_call_make(s, e, 0, max_u64(want, e->left), true, now_ns, call);
    return true;
}
