/* What the store last said of a key: denials, and how much remained. */
#include "base/maths.h"
#include "shared/node_keys.h"

#define RETRY_LEAST WEIR_MICROSECOND

/* Sets *ns to how much later a cost that is higher by `more` would be allowed. Returns false if
 * that is not known. */
static bool later(const struct store_params *p, uint64_t more, uint64_t *ns)
{
    *ns = 0;
    if (more == 0 || p->algorithm == WEIR_FIXED_WINDOW) {
        return true;
    }
    if (p->algorithm != WEIR_TOKEN_BUCKET && p->algorithm != WEIR_LEAKY_BUCKET) {
        return false;
    }
    u128 parts = ((u128)p->a * STORE_PARTS + p->b) * more;
    u128 us = parts / STORE_PARTS + (parts % STORE_PARTS != 0);
    *ns = us > STORE_MOST / WEIR_MICROSECOND ? STORE_MOST : (uint64_t)us * WEIR_MICROSECOND;
    return true;
}

bool node_key_denies(struct node_key *k, const struct store_params *params, uint64_t cost,
                     uint64_t linger_ns, uint64_t now_ns, struct weir_answer *answer)
{
    uint64_t more_ns;
    if (k->denied_cost == 0 || now_ns >= add_sat(k->denied_until_ns, linger_ns) ||
        cost < k->denied_cost || cost > params->quota ||
        !later(params, cost - k->denied_cost, &more_ns)) {
        return false;
    }
    *answer = (struct weir_answer){
        .verdict = WEIR_DENY,
        .flags = k->denied_flags,
        .quota = params->quota,
        .remaining = k->remaining,
        .retry_after_ns =
            add_sat(max_u64(node_key_until(k->retry_at_ns, now_ns), RETRY_LEAST), more_ns),
        .reset_after_ns = node_key_until(k->reset_at_ns, now_ns),
    };
    return true;
}

void node_key_note(struct node_key *k, uint64_t cost, const struct weir_answer *answer,
                   uint64_t keep_ns, uint64_t now_ns)
{
    k->remaining = answer->remaining;
    k->reset_at_ns = add_sat(now_ns, answer->reset_after_ns);
    k->round = 0; /* the store's number replaces that of a fallback used in between */
    if (keep_ns != 0) {
        k->denied_cost = cost;
        k->denied_flags = (uint16_t)answer->flags;
        k->denied_until_ns = add_sat(now_ns, keep_ns);
        k->retry_at_ns = add_sat(now_ns, max_u64(answer->retry_after_ns, keep_ns));
    } else if (max_u64(cost, answer->remaining) >= k->denied_cost) {
        k->denied_cost = 0;
    }
}

bool node_keys_deny(struct node_keys *t, struct hash hash, const struct store_params *params,
                    uint64_t cost, uint64_t now_ns, struct weir_answer *answer)
{
    struct key_stripe *s = node_keys_lock(t, hash, &now_ns);
    struct node_key *k = node_key_find(s, hash);
    bool denied = k != NULL && node_key_denies(k, params, cost, 0, now_ns, answer);
    if (denied) {
        k->used_ns = now_ns;
    }
    node_keys_unlock(s);
    return denied;
}

void node_keys_note(struct node_keys *t, struct hash hash, uint64_t cost,
                    const struct weir_answer *answer, uint64_t keep_ns, uint64_t now_ns)
{
    struct key_stripe *s = node_keys_lock(t, hash, &now_ns);
    struct node_key *k = node_key_make(s, hash, now_ns);
    if (k != NULL) {
        node_key_note(k, cost, answer, keep_ns, now_ns);
    }
    node_keys_unlock(s);
}

void node_keys_forget(struct node_keys *t, struct hash hash)
{
    uint64_t now_ns = 0;
    struct key_stripe *s = node_keys_lock(t, hash, &now_ns);
    struct node_key *k = node_key_find(s, hash);
    if (k != NULL) {
        k->denied_cost = 0;
        k->remaining = 0;
        k->round = 0;
    }
    node_keys_unlock(s);
}

void node_keys_once(struct node_keys *t, struct hash hash, uint64_t round, uint64_t now_ns,
                    void (*fn)(void *arg, uint64_t remaining), void *arg)
{
    struct key_stripe *s = node_keys_lock(t, hash, &now_ns);
    struct node_key *k = node_key_make(s, hash, now_ns);
    if (k == NULL || k->round != round) {
        fn(arg, k != NULL ? k->remaining : 0);
    }
    if (k != NULL) {
        k->round = round;
    }
    node_keys_unlock(s);
}
