/* Sends the calls of questions, exchanges and heartbeats; those of leases are in send_lease.c. */
#include <stdlib.h>

#include "base/atomic.h"
#include "shared/store_question.h"
#include "shared/script.h"

#define UNAWAITED_NS (100 * WEIR_MILLISECOND) /* least time for calls that no question waits for */

uint64_t send_unawaited(const struct store *s, uint64_t now_ns)
{
    uint64_t own_ns = s->shared->options.deadline_ns;
    return now_ns + (own_ns > UNAWAITED_NS ? own_ns : UNAWAITED_NS);
}

int send_call(struct store *s, unsigned slot, const struct script *script, unsigned count,
              uint64_t deadline_ns, uint64_t now_ns, client_done_fn done, void *arg)
{
    struct client_call call = {.slot = slot,
                               .script = script,
                               .arguments = buffer_text(&s->arguments),
                               .count = count,
                               .deadline_ns = deadline_ns};
    if (s->closing || s->arguments.full) {
        return WEIR_EIO;
    }
    return client_call(s->client, &call, now_ns, done, arg);
}

struct buffer *send_fresh(struct store *s)
{
    buffer_take(&s->arguments, buffer_len(&s->arguments));
    s->arguments.full = false;
    return &s->arguments;
}

/* ---- a group: one call of a script for all of its parts ---- */

static uint64_t time_of(const struct remote_question *q)
{
    return q->verb == REMOTE_REFUND && q->time_ns == 0 ? WEIR_FOREVER : q->time_ns;
}

/* Sets parts[] to the group's parts and index[] to the pieces that they are. Returns how many there
 * are. If `keys` is NULL, the parts have the limit's keys instead of the store's. */
static size_t parts_of(const struct group *g, struct store_part *parts, struct store_key *keys,
                       unsigned *index)
{
    const struct store_question *a = g->of;
    size_t n = 0;
    for (unsigned i = 0; i < a->pieces_count; i++) {
        const struct piece *p = &a->pieces[i];
        if (&a->groups[p->group] != g) {
            continue;
        }
        if (keys != NULL) {
            store_key(&p->limit->head, p->part->shard, p->part->key, &keys[n]);
        }
        parts[n] =
            (struct store_part){.params = &p->numbers->params,
                                .key = keys != NULL ? store_key_text(&keys[n]) : p->part->key,
                                .cost = p->part->cost,
                                .time_ns = time_of(a->asked)};
        index[n++] = i;
    }
    return n;
}

/* Forgets what is known of the key, because a verb such as BLOCK or REFUND has changed it. */
static void forget(const struct piece *p)
{
    struct store_shared *shared = p->limit->shared;
    node_keys_forget(shared->keys, p->hash);
    if (p->numbers->params.leased) {
        lease_forget(shared->keys, p->part);
    } else if (store_limit_mode(p->limit) == REMOTE_SYNCED) {
        sync_hurry(shared->keys, p->part);
    }
}

/* Reads the reply to the group's call. Returns 0, or WEIR_EIO if it is no answer to such a call. */
static int read_reply(struct group *g, const struct store_reply *reply, uint64_t now_ns)
{
    struct store_question *a = g->of;
    struct store_part parts[WEIR_SEVERAL_MAX];
    unsigned index[WEIR_SEVERAL_MAX];
    size_t n = parts_of(g, parts, NULL, index);
    struct piece *first = &a->pieces[index[0]];
    int verb = a->asked->verb;
    if (verb > REMOTE_UP_TO) {
        forget(first);
    }
    if (verb >= REMOTE_BLOCK) {
        int said = script_done(reply, (unsigned)verb);
        g->found = said > 0;
        g->error = said == WEIR_ETIME ? said : 0;
        return said < 0 && said != WEIR_ETIME ? said : 0;
    }
    int e = script_answer(reply, parts, n, &g->answer, &g->stamp_us);
    if (e == 0) {
        g->answer.limit = index[g->answer.limit];
        const struct piece *p = &a->pieces[g->answer.limit];
        store_limit_note(p->limit, p->hash, p->part->cost, store_question_is_plain(a->asked),
                         &g->answer, now_ns);
    }
    return e;
}

static void on_group(void *arg, enum client_end end, const struct store_reply *reply,
                     uint64_t now_ns)
{
    struct group *g = arg;
    if (end == CLIENT_REPLIED && read_reply(g, reply, now_ns) == 0) {
        group_answered(g, now_ns);
    } else {
        group_failed(g, now_ns);
    }
}

/* Puts the debts that the verbs must know of (script_put_numbers()) after the arguments of the n
 * pieces, or nothing if there can be none. Returns how many arguments were put. */
static unsigned put_beyond(struct buffer *b, const struct piece *pieces, const unsigned *index,
                           size_t n)
{
    int64_t beyond[WEIR_SEVERAL_MAX];
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        const struct piece *p = &pieces[index[i]];
        beyond[i] = (int64_t)sync_beyond(p->limit, &p->numbers->params);
        any = any || beyond[i] != 0;
    }
    return any ? script_put_numbers(b, beyond, n) : 0;
}

int send_group(struct group *g, uint64_t now_ns)
{
    struct store *s = g->of->store;
    struct store_part parts[WEIR_SEVERAL_MAX];
    struct store_key keys[WEIR_SEVERAL_MAX];
    unsigned index[WEIR_SEVERAL_MAX];
    size_t n = parts_of(g, parts, keys, index);
    unsigned count = script_put_arguments(send_fresh(s), (unsigned)g->of->asked->verb, parts, n);
    count += put_beyond(&s->arguments, g->of->pieces, index, n);
    return send_call(s, g->slot, script_for(&s->shared->scripts, parts, n), count, 0, now_ns,
                     on_group, g);
}

/* ---- giving back ---- */

static void on_undo(void *arg, enum client_end end, const struct store_reply *reply,
                    uint64_t now_ns)
{
    struct store_shared *shared = arg;
    (void)now_ns;
    count_shared(&shared->refunds_lost, end != CLIENT_REPLIED || reply->type == '-');
}

void send_undo(struct store *s, const struct piece *p, uint64_t undo_ns, uint64_t now_ns)
{
    struct store_key key;
    store_key(&p->limit->head, p->part->shard, p->part->key, &key);
    struct store_part part = {.params = &p->numbers->params,
                              .key = store_key_text(&key),
                              .cost = p->part->cost,
                              .time_ns = undo_ns};
    unsigned slot = s->cluster ? cluster_slot(part.key) : 0;
    unsigned count = script_put_arguments(send_fresh(s), SCRIPT_UNDO, &part, 1);
    count += put_beyond(&s->arguments, p, &(unsigned){0}, 1);
    if (send_call(s, slot, script_for(&s->shared->scripts, &part, 1), count,
                  send_unawaited(s, now_ns), now_ns, on_undo, s->shared) != 0) {
        count_shared(&s->shared->refunds_lost, 1);
    }
}

/* ---- exchanges ---- */

/* An exchange that has not ended. */
struct sync_exchange {
    struct store *store;
    struct sync_call call;
};

static void on_sync(void *arg, enum client_end end, const struct store_reply *reply,
                    uint64_t now_ns)
{
    struct sync_exchange *x = arg;
    struct node_keys *keys = x->store->shared->keys;
    if (end == CLIENT_REPLIED) {
        (void)sync_reply(keys, &x->call, reply, now_ns);
    } else {
        sync_lost(keys, &x->call, now_ns);
    }
    free(x);
}

int send_sync(struct store *s, const struct sync_call *call, uint64_t now_ns)
{
    unsigned count;
    struct sync_exchange *x = malloc(sizeof *x);
    int e = WEIR_ENOMEM;
    if (x != NULL) {
        *x = (struct sync_exchange){.store = s, .call = *call};
        sync_put_arguments(call, send_fresh(s), &count);
        e = send_call(s, send_slot(s, &call->key), sync_script(&s->shared->scripts, call), count,
                      send_unawaited(s, now_ns), now_ns, on_sync, x);
    }
    if (e != 0) {
        free(x);
        sync_lost(s->shared->keys, call, now_ns);
    }
    return e;
}

/* ---- the heartbeat ---- */

static void on_beat(void *arg, enum client_end end, const struct store_reply *reply,
                    uint64_t now_ns)
{
    struct members *m = arg;
    (void)now_ns;
    if (end == CLIENT_REPLIED) {
        members_heard(m, reply);
    }
}

void send_beat(struct store *s, uint64_t now_ns)
{
    struct members *m = &s->shared->members;
    unsigned slot = s->cluster ? cluster_slot(text_of(m->key)) : 0;
    unsigned count;
    members_put_arguments(m, send_fresh(s), &count);
    (void)send_call(s, slot, script_members(&s->shared->scripts), count, send_unawaited(s, now_ns),
                    now_ns, on_beat, m);
}
