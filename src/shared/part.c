/* One limit and one key: what is remembered of them, and the answer if the store gives none. */
#include "base/atomic.h"
#include "base/maths.h"
#include "shared/asking.h"

#define CLOSED_RETRY_NS WEIR_SECOND

/* Allows, as for a key that was never asked for: if nothing remained, a client would stop, and this
 * limit would seem to be the one of several that binds. */
static void answer_open(const struct store_params *params, const struct remote_part *part,
                        struct weir_answer *answer)
{
    uint64_t cost = part->cost < params->quota ? part->cost : params->quota;
    *answer = (struct weir_answer){.verdict = WEIR_ALLOW,
                                   .quota = params->quota,
                                   .remaining = params->quota - cost,
                                   .granted = part->cost};
}

static void answer_closed(const struct store_params *params, struct weir_answer *answer)
{
    *answer = (struct weir_answer){.verdict = WEIR_DENY,
                                   .flags = REMOTE_CLOSED,
                                   .quota = params->quota,
                                   .retry_after_ns = CLOSED_RETRY_NS,
                                   .reset_after_ns = CLOSED_RETRY_NS};
}

static void answer_never(const struct store_params *params, struct weir_answer *answer)
{
    *answer = (struct weir_answer){
        .verdict = WEIR_NEVER, .quota = params->quota, .retry_after_ns = WEIR_FOREVER};
}

void part_failed(const struct remote_part *part, int verb, uint64_t now_ns,
                 struct weir_answer *answer)
{
    struct store_limit *limit = part->limit;
    const struct store_params *params = &store_limit_numbers(limit)->params;
    if (part->cost > params->quota && verb != REMOTE_UP_TO) {
        answer_never(params, answer); /* the same by every policy */
    } else if (limit->on_failure == REMOTE_FAIL_LOCAL) {
        fallback_ask(limit->fallback, part, verb, now_ns, answer);
    } else if (limit->on_failure == REMOTE_FAIL_OPEN) {
        answer_open(params, part, answer);
    } else {
        answer_closed(params, answer);
    }
    answer->flags |= REMOTE_DEGRADED;
    count_shared(&limit->counts.degraded[limit->on_failure], verb != REMOTE_PEEK);
    count_shared(&limit->shared->degraded, verb != REMOTE_PEEK);
}

bool part_denied(struct store_limit *limit, const struct store_numbers *numbers, struct hash hash,
                 uint64_t cost, uint64_t now_ns, struct weir_answer *answer)
{
    if (limit->deny_cache_ns == 0 ||
        !node_keys_deny(limit->shared->keys, hash, &numbers->params, cost, now_ns, answer)) {
        return false;
    }
    count_shared(&limit->counts.remembered, 1);
    return true;
}

void part_note(struct store_limit *limit, struct hash hash, uint64_t cost, bool plain,
               const struct weir_answer *answer, uint64_t now_ns)
{
    bool blocked = (answer->flags & WEIR_FLAG_BLOCKED) != 0; /* may be unblocked at any time */
    bool denied = plain && answer->verdict == WEIR_DENY && !blocked;
    uint64_t keep_ns = denied ? min_u64(answer->retry_after_ns, limit->deny_cache_ns) : 0;
    if (keep_ns != 0 || limit->on_failure == REMOTE_FAIL_LOCAL) {
        node_keys_note(limit->shared->keys, hash, plain ? cost : 0, answer, keep_ns, now_ns);
    }
}

void part_count(struct store_limit *limit, int verdict)
{
    struct remote_counts *c = &limit->counts;
    uint64_t *const counters[] = {
        [WEIR_ALLOW] = &c->allowed, [WEIR_DENY] = &c->denied, [WEIR_NEVER] = &c->never};
    count_shared(counters[verdict], 1);
}
