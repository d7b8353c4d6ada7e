/* Gives back what a group was charged, because another group of its question was denied (S5). */
#include "base/atomic.h"
#include "shared/core/script.h"
#include "shared/store/store_question.h"

uint64_t group_charge_ns(const struct group *g, unsigned i, uint64_t time_ns)
{
    bool place = g->of->pieces[i].queue && g->answer.limit == i;
    return place ? time_ns + g->answer.reset_after_ns : time_ns;
}

/*
 * Returns the time by which an UNDO knows the charge of piece i. For a token bucket
 * that is when the bucket would have been full after the charge. The reply says it
 * only of the piece that binds; for others it is the earliest that this can be.
 */
static uint64_t undo_ns(const struct group *g, unsigned i)
{
    const struct piece *p = &g->of->pieces[i];
    uint64_t time_ns = g->stamp_us * WEIR_MICROSECOND;
    if (p->params == NULL || p->params->algorithm != WEIR_TOKEN_BUCKET) {
        return group_charge_ns(g, i, time_ns);
    }
    return time_ns + (g->answer.limit == i ? g->answer.reset_after_ns
                                           : p->part->cost * p->params->a * WEIR_MICROSECOND);
}

static void on_undo(void *arg, enum client_end end, const struct store_reply *reply,
                    uint64_t now_ns)
{
    struct store_shared *shared = arg;
    (void)now_ns;
    count_shared(&shared->refunds_lost, end != CLIENT_REPLIED || reply->type == '-');
}

static void send_undo(struct store *s, const struct piece *p, uint64_t time_ns, uint64_t now_ns)
{
    struct store_key key;
    store_key(&p->limit->head, p->part->shard, p->part->key, &key);
    struct store_part part = {.params = p->params,
                              .key = store_key_text(&key),
                              .cost = p->part->cost,
                              .time_ns = time_ns};
    struct client_call call = {.slot = send_slot(s, part.key),
                               .script = script_for(&store_scripts, &part, 1),
                               .deadline_ns = send_unawaited(s, now_ns)};
    call.count = script_put_arguments(send_fresh(s), SCRIPT_UNDO, &part, 1);
    call.count += send_numbers(&s->arguments, p, &(unsigned){0}, 1, false);
    if (send_call(s, &call, now_ns, on_undo, s->shared) != 0) {
        count_shared(&s->shared->refunds_lost, 1);
    }
}

void group_give_back(struct group *g, uint64_t now_ns)
{
    const struct store_question *a = g->of;
    FOR_PIECES(i, g)
    {
        const struct piece *p = &a->pieces[i];
        const struct remote_part *of = p->part;
        uint64_t asked_ns = a->asked->now_ns;
        if (p->here) {
            continue;
        }
        switch (g->mode) {
        case REMOTE_LOCAL:
            (void)weir_refund_at(of->local, of->key.at, of->key.len, of->cost,
                                 group_charge_ns(g, i, asked_ns), asked_ns, NULL);
            break;
        case REMOTE_SYNCED:
            sync_refund(p->limit->shared->keys, of, now_ns);
            break;
        case REMOTE_LEASED:
            if (!lease_refund(p->limit->shared->keys, of, now_ns)) {
                send_undo(a->store, p, undo_ns(g, i), now_ns);
            }
            break;
        default:
            send_undo(a->store, p, undo_ns(g, i), now_ns);
            break;
        }
    }
}
