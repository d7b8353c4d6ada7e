#include "shared/synced/sync_view.h"

#include "shared/synced/sync_rows.h"

#define SET_BACK_US 1000000u /* lua/common.lua SLACK */

/* By algorithm. */
static const struct sync_row *const rows[] = {
    [WEIR_TOKEN_BUCKET] = &sync_token_bucket,
    [WEIR_FIXED_WINDOW] = &sync_fixed_window,
    [WEIR_SLIDING_WINDOW] = &sync_sliding_window,
};

void sync_view_init(struct sync_view *v, uint64_t offset_us, uint64_t now_ns)
{
    *v = (struct sync_view){
        .heard_ns = now_ns,
        .offset_us = offset_us,
        .window = SYNC_NO_WINDOW,
        .next.window = SYNC_NO_WINDOW,
    };
}

/* ---- asking ---- */

/* Returns for how long the key is blocked. */
static uint64_t blocked_ns(const struct sync_view *v, uint64_t now_ns)
{
    if (v->block_us == 0 || v->block_us >= STORE_MOST) {
        return v->block_us == 0 ? 0 : WEIR_FOREVER;
    }
    return sync_ns_of_us(sub_floor0(v->block_us, sync_earliest_us(v, now_ns)));
}

/* Makes the answer that of a blocked key, as decide.lua does: DENY unless it is NEVER; retry and
 * reset are not before the end of the block. */
static void block(const struct sync_view *v, uint64_t left_ns, struct weir_answer *answer)
{
    answer->flags |= WEIR_FLAG_BLOCKED | (v->block_us % 2 != 0 ? WEIR_FLAG_BANNED : 0);
    answer->remaining = 0;
    answer->reset_after_ns = max_u64(answer->reset_after_ns, left_ns);
    if (answer->verdict != WEIR_NEVER) {
        answer->verdict = WEIR_DENY;
        answer->retry_after_ns = max_u64(answer->retry_after_ns, left_ns);
    }
}

void sync_view_never(const struct store_params *p, struct weir_answer *answer)
{
    *answer = (struct weir_answer){
        .verdict = WEIR_NEVER,
        .quota = p->quota,
        .remaining = p->quota,
        .retry_after_ns = WEIR_FOREVER,
    };
}

void sync_view_ask(struct sync_view *v, const struct store_params *p, uint64_t cost,
                   uint64_t now_ns, struct weir_answer *answer)
{
    const struct sync_row *row = rows[p->algorithm];
    uint64_t left_ns = blocked_ns(v, now_ns);
    row->age(v, p, now_ns);
    sync_view_never(p, answer);
    if (cost <= p->quota) {
        answer->verdict = row->fits(v, p, cost, now_ns) ? WEIR_ALLOW : WEIR_DENY;
        answer->retry_after_ns = 0;
    }
    if (answer->verdict == WEIR_ALLOW && left_ns == 0) {
        row->take(v, p, cost, now_ns);
        answer->granted = cost;
        v->next.since_ns = v->next.units > 0 ? v->next.since_ns : now_ns;
        v->next.units += (int64_t)cost;
    }
    row->describe(v, p, cost, now_ns, answer);
    if (left_ns != 0) {
        block(v, left_ns, answer);
    }
}

struct weir_answer sync_view_state(struct sync_view *v, const struct store_params *p,
                                   uint64_t now_ns)
{
    const struct sync_row *row = rows[p->algorithm];
    uint64_t left_ns = blocked_ns(v, now_ns);
    struct weir_answer a = {.verdict = WEIR_ALLOW};
    row->age(v, p, now_ns);
    row->describe(v, p, 1, now_ns, &a);
    if (left_ns != 0) {
        block(v, left_ns, &a);
    }
    return a;
}

void sync_view_refund(struct sync_view *v, const struct store_params *p, uint64_t units,
                      uint64_t now_ns)
{
    const struct sync_row *row = rows[p->algorithm];
    row->age(v, p, now_ns);
    v->next.units -= (int64_t)row->refund(v, p, units);
}

/* ---- exchanges ---- */

bool sync_delta_is_empty(const struct sync_delta *delta)
{
    return delta->units == 0 && delta->older == 0;
}

void sync_view_take(struct sync_view *v, const struct store_params *p, uint64_t now_ns,
                    struct sync_delta *delta)
{
    rows[p->algorithm]->age(v, p, now_ns);
    *delta = v->next;
    v->next = (struct sync_delta){.window = v->window};
}

void sync_view_tell(const struct store_params *p, const struct sync_delta *delta, uint64_t now_ns,
                    struct sync_told *told)
{
    rows[p->algorithm]->tell(delta, now_ns, told);
}

void sync_view_hear(struct sync_view *v, const struct store_params *p,
                    const struct sync_heard *heard, uint64_t made_ns, uint64_t now_ns)
{
    const struct sync_row *row = rows[p->algorithm];
    uint64_t earliest_us = v->known ? sync_earliest_us(v, made_ns) : 0;
    v->set_back = row->owes != NULL && heard->store_us + SET_BACK_US < earliest_us;
    v->owed = v->set_back ? row->owes(v, p, now_ns) : 0;
    v->known = true;
    v->store_us = heard->store_us;
    v->made_ns = made_ns;
    v->heard_ns = now_ns;
    v->block_us = heard->block_us;
    v->dropped += heard->dropped;
    row->hear(v, p, heard, now_ns);
}
