/* The groups of a question: how each is asked, and what the store replies. */
#include "shared/store/store_question.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/maths.h"
#include "shared/core/script.h"

#define UNAWAITED_NS (100 * WEIR_MILLISECOND) /* least time for calls that no question waits for */

/* ---- calls ---- */

uint64_t send_unawaited(const struct store *s, uint64_t now_ns)
{
    return now_ns + max_u64(s->options.deadline_ns, UNAWAITED_NS);
}

int send_call(struct store *s, struct client_call *call, uint64_t now_ns, client_done_fn done,
              void *arg)
{
    call->arguments = buffer_text(&s->arguments);
    if (s->closing || s->arguments.full) {
        return WEIR_EIO;
    }
    return client_call(s->client, call, now_ns, done, arg);
}

struct buffer *send_fresh(struct store *s)
{
    buffer_take(&s->arguments, buffer_len(&s->arguments));
    s->arguments.full = false;
    return &s->arguments;
}

/* ---- the end of a group ---- */

/* Notes that the group has its answer or its error. Units of an answer that the store has not given
 * are from this node's own part of the limit, and are not given back; where a full table charged
 * nothing, a refund would return units that other questions were charged. */
static void settle(struct group *g)
{
    bool ours = (g->answer.flags & (REMOTE_DEGRADED | WEIR_FLAG_FULL)) != 0;
    g->answered = true;
    g->charged = g->of->asked->verb == REMOTE_CHECK && g->error == 0 &&
                 g->answer.verdict == WEIR_ALLOW && (g->some ? g->stored : !ours);
    if (g->of->asked->shown != NULL && g->error == 0 && g->mode != REMOTE_LOCAL) {
        piece_show(g->of, g->answer.limit, &g->answer);
    }
}

/* Joins the answer of piece i to those that the group has. */
static void join_piece(struct group *g, unsigned i, struct weir_answer *answer)
{
    answer->limit = i;
    piece_show(g->of, i, answer);
    (void)answer_join(&g->answer, answer, !g->some);
    g->some = true;
}

static void fail_pieces(struct group *g, uint64_t now_ns)
{
    struct store_question *a = g->of;
    FOR_PIECES(i, g)
    {
        struct weir_answer answer;
        if (!a->pieces[i].here) {
            store_limit_failed(a->pieces[i].part, a->asked->verb, now_ns, &answer);
            join_piece(g, i, &answer);
        }
    }
}

/* Answers the group by on_failure, or with WEIR_EIO. */
static void fail_group(struct group *g, uint64_t now_ns)
{
    if (g->of->asked->verb <= REMOTE_UP_TO) {
        fail_pieces(g, now_ns);
    } else {
        g->error = WEIR_EIO;
    }
    settle(g);
}

void group_answered(struct group *g, uint64_t now_ns)
{
    settle(g);
    group_finish(g, now_ns);
}

void group_failed(struct group *g, uint64_t now_ns)
{
    fail_group(g, now_ns);
    group_finish(g, now_ns);
}

/* ---- answers without a call ---- */

/* Returns true, with a DENY in *answer, if a remembered denial answers this question. */
static bool denies(struct store_limit *limit, const struct store_params *params, struct hash hash,
                   uint64_t cost, uint64_t now_ns, struct weir_answer *answer)
{
    bool denied = store_limit_remembers(limit, params, hash, cost, now_ns, answer);
    if (denied) {
        count_shared(&limit->counts.remembered, 1);
    }
    return denied;
}

unsigned part_ask(const struct remote_part *part, int mode, uint64_t now_ns,
                  struct weir_answer *answer, struct lease_call *call)
{
    struct store_limit *limit = part->limit;
    struct node_keys *keys = limit->shared->keys;
    if (mode == REMOTE_LEASED) {
        return lease_ask(keys, part, call == NULL ? LEASE_HERE : LEASE_ASK, now_ns, answer, call);
    }
    if (mode == REMOTE_SYNCED) {
        int said = sync_ask(keys, part, now_ns, answer);
        if ((said & SYNC_ANSWERED) == 0) {
            store_limit_failed(part, REMOTE_CHECK, now_ns, answer);
        }
        return LEASE_ANSWERED | ((said & SYNC_DUE) != 0 ? LEASE_DUE : 0);
    }
    struct hash hash = node_key_hash(keys, part);
    return denies(limit, &store_limit_numbers(limit)->params, hash, part->cost, now_ns, answer)
               ? LEASE_ANSWERED
               : 0;
}

static bool remembered(struct group *g, uint64_t now_ns)
{
    const struct store_question *a = g->of;
    if (a->looked || !store_question_is_plain(a->asked)) {
        return false;
    }
    FOR_PIECES(i, g)
    {
        const struct piece *p = &a->pieces[i];
        if (denies(p->limit, p->params, p->hash, p->part->cost, now_ns, &g->answer)) {
            g->answer.limit = i;
            settle(g);
            group_show_remembered(g, now_ns);
            return true;
        }
    }
    return false;
}

/* Returns the max_wait of a piece: that of the question, or its own. */
static uint64_t wait_of(const struct remote_question *q, const struct piece *p)
{
    return p->waits ? q->time_ns : p->part->wait_ns;
}

static void ask_local(struct group *g)
{
    const struct store_question *a = g->of;
    const struct remote_question *q = a->asked;
    struct weir_part parts[WEIR_SEVERAL_MAX];
    unsigned index[WEIR_SEVERAL_MAX] = {0};
    size_t n = 0;
    FOR_PIECES(i, g)
    {
        const struct remote_part *p = a->pieces[i].part;
        index[n] = i;
        parts[n++] = (struct weir_part){.limiter = p->local,
                                        .ask = {.key = p->key.at,
                                                .key_len = p->key.len,
                                                .cost = p->cost,
                                                .max_wait_ns = wait_of(q, &a->pieces[i]),
                                                .mode = q->verb}};
    }
    g->error = n == 1 ? weir_ask_at(parts[0].limiter, &parts[0].ask, q->now_ns, &g->answer)
                      : weir_check_several_at(parts, n, q->now_ns, &g->answer);
    g->answer.limit = index[n == 1 || g->error != 0 ? 0 : g->answer.limit];
    settle(g);
}

/* ---- one call of a script for all parts of a group ---- */

static uint64_t time_of(const struct remote_question *q, const struct piece *p)
{
    if (q->verb == REMOTE_REFUND && q->time_ns == 0) {
        return WEIR_FOREVER;
    }
    return q->verb > REMOTE_UP_TO ? q->time_ns : wait_of(q, p);
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
        if (&a->groups[p->group] != g || p->here) {
            continue;
        }
        if (keys != NULL) {
            store_key(&p->limit->head, p->part->shard, p->part->key, &keys[n]);
        }
        parts[n] =
            (struct store_part){.params = p->params,
                                .key = keys != NULL ? store_key_text(&keys[n]) : p->part->key,
                                .cost = p->part->cost,
                                .time_ns = time_of(a->asked, p)};
        index[n++] = i;
    }
    return n;
}

/* Forgets what is known of the key, because a verb such as BLOCK or REFUND has changed it. */
static void forget(const struct piece *p)
{
    struct store_shared *shared = p->limit->shared;
    node_keys_forget(shared->keys, p->hash);
    if (p->params->leased) {
        lease_forget(shared->keys, p->part);
    } else if (store_limit_mode(p->limit) == REMOTE_SYNCED) {
        sync_hurry(shared->keys, p->part);
    }
}

/* Remembers what the store has said of a key. The DENY of a plain question may be used again. */
static void note(const struct piece *p, bool plain, const struct weir_answer *answer,
                 uint64_t now_ns)
{
    const struct store_limit *limit = p->limit;
    bool blocked = (answer->flags & WEIR_FLAG_BLOCKED) != 0; /* may be unblocked at any time */
    bool denied = plain && answer->verdict == WEIR_DENY && !blocked;
    uint64_t keep_ns = denied ? min_u64(answer->retry_after_ns, limit->deny_cache_ns) : 0;
    if (keep_ns != 0 || limit->on_failure == REMOTE_FAIL_LOCAL) {
        node_keys_note(limit->shared->keys, p->hash, plain ? p->part->cost : 0, answer, keep_ns,
                       now_ns);
    }
}

/* Reads the numbers of the limit that clients may be told, if the store has sent them. */
static void read_told(const struct group *g, const struct store_reply *reply,
                      const struct store_part *parts, const unsigned *index, uint64_t now_ns)
{
    const struct store_question *a = g->of;
    struct weir_answer told;
    if (a->asked->shown != NULL && script_told(reply, parts, &told)) {
        unsigned piece = index[told.limit];
        piece_show(a, piece, &told);
        note(&a->pieces[piece], store_question_is_plain(a->asked), &told, now_ns);
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
    struct weir_answer answer;
    int e = script_answer(reply, parts, n, &answer, &g->stamp_us);
    if (e == 0) {
        unsigned i = index[answer.limit];
        note(&a->pieces[i], store_question_is_plain(a->asked), &answer, now_ns);
        g->stored = true;
        answer.limit = i;
        piece_show(a, i, &answer);
        (void)answer_join(&g->answer, &answer, !g->some);
        read_told(g, reply, parts, index, now_ns);
    }
    return e;
}

/* A call about one key that has ended without a reply. The question is answered, but a reply that
 * comes later says what remains. */
struct late_call {
    struct client_late late;   /* first */
    struct store_limit *limit; /* held */
    struct store_params params;
    struct hash hash;
    struct remote_part part; /* only its cost is used */
    bool plain;
};

static void on_late(struct client_late *late, const struct store_reply *reply, uint64_t now_ns)
{
    struct late_call *l = (struct late_call *)late;
    struct store_part part = {.params = &l->params, .cost = l->part.cost};
    struct piece piece = {.part = &l->part, .limit = l->limit, .hash = l->hash};
    struct weir_answer answer;
    uint64_t stamp_us;
    if (reply != NULL && script_answer(reply, &part, 1, &answer, &stamp_us) == 0) {
        note(&piece, l->plain, &answer, now_ns);
    }
    store_limit_release(l->limit);
    free(l);
}

/* Awaits the late reply to the group's call, if it can say what remains of one key, for a
 * fallback. */
static void await_late(const struct group *g)
{
    const struct store_question *a = g->of;
    const struct piece *p = &a->pieces[g->piece];
    bool one = group_next_piece(g, g->piece + 1) == a->pieces_count;
    struct late_call *l =
        one && a->asked->verb <= REMOTE_UP_TO && p->limit->on_failure == REMOTE_FAIL_LOCAL
            ? malloc(sizeof *l)
            : NULL;
    if (l == NULL) {
        return;
    }
    *l = (struct late_call){.late = {on_late},
                            .limit = p->limit,
                            .params = *p->params,
                            .hash = p->hash,
                            .part = {.cost = p->part->cost},
                            .plain = store_question_is_plain(a->asked)};
    if (client_await_late(a->store->client, &l->late)) {
        store_limit_hold(l->limit);
    } else {
        free(l);
    }
}

static void on_group(void *arg, enum client_end end, const struct store_reply *reply,
                     uint64_t now_ns)
{
    struct group *g = arg;
    uint64_t absent;
    if (end == CLIENT_UNKNOWN) {
        await_late(g);
    }
    if (end == CLIENT_REPLIED && script_says_full(reply, WEIR_SEVERAL_MAX, &absent)) {
        group_full(g, absent, now_ns);
        return;
    }
    if (end == CLIENT_REPLIED && read_reply(g, reply, now_ns) == 0) {
        group_answered(g, now_ns);
    } else {
        group_failed(g, now_ns);
    }
}

unsigned send_numbers(struct buffer *b, const struct piece *pieces, const unsigned *index, size_t n,
                      bool told)
{
    int64_t beyond[WEIR_SEVERAL_MAX];
    int64_t exposed[WEIR_SEVERAL_MAX];
    size_t exposed_count = 0;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        const struct piece *p = &pieces[index[i]];
        bool synced = store_limit_mode(p->limit) == REMOTE_SYNCED;
        beyond[i] = synced ? (int64_t)sync_beyond(p->limit, p->params) : 0;
        any = any || beyond[i] != 0;
        exposed[i] = !p->part->hidden;
        exposed_count += !p->part->hidden;
    }
    told = told && exposed_count > 0 && exposed_count < n;
    unsigned count = any || told ? script_put_numbers(b, beyond, n) : 0;
    return count + (told ? script_put_numbers(b, exposed, n) : 0);
}

static int send_group(struct group *g, uint64_t now_ns)
{
    struct store *s = g->of->store;
    struct store_part parts[WEIR_SEVERAL_MAX];
    struct store_key keys[WEIR_SEVERAL_MAX];
    unsigned index[WEIR_SEVERAL_MAX];
    size_t n = parts_of(g, parts, keys, index);
    int verb = g->of->asked->verb;
    struct client_call call = {.slot = g->slot,
                               .script = script_for(&store_scripts, parts, n),
                               .creates = verb == REMOTE_CHECK || verb == REMOTE_UP_TO};
    call.count = script_put_arguments(send_fresh(s), (unsigned)verb, parts, n);
    call.count += send_numbers(&s->arguments, g->of->pieces, index, n, g->of->asked->shown != NULL);
    return send_call(s, &call, now_ns, on_group, g);
}

void group_full(struct group *g, uint64_t absent, uint64_t now_ns)
{
    struct store_question *a = g->of;
    bool more = false;
    FOR_PIECES(i, g)
    {
        struct piece *p = &a->pieces[i];
        struct weir_answer answer;
        if (p->here) {
            continue; /* not in the call that was answered */
        }
        p->here = (absent & 1) != 0;
        absent >>= 1;
        more = more || !p->here;
        if (p->here) {
            store_limit_full(p->part, a->asked->verb, now_ns, &answer);
            join_piece(g, i, &answer);
        }
    }
    if (!more || g->answer.verdict != WEIR_ALLOW) {
        group_answered(g, now_ns);
    } else if (send_group(g, now_ns) != 0) {
        group_failed(g, now_ns);
    }
}

/* ---- asking ---- */

void group_take(struct group *g, unsigned said, struct lease_call *call, uint64_t now_ns)
{
    if ((said & LEASE_ANSWERED) != 0) {
        g->answer.limit = g->piece;
        settle(g);
    }
    if (said == (LEASE_ANSWERED | LEASE_SEND)) {
        send_lease(g->of->store, call, now_ns);
    } else if (!g->answered && send_leased(g, said, call, now_ns) != 0) {
        fail_group(g, now_ns);
    }
    g->of->pending += !g->answered;
}

void group_ask(struct group *g, uint64_t now_ns)
{
    struct lease_call call;
    const struct remote_part *part = g->of->pieces[g->piece].part;
    if (g->mode == REMOTE_LOCAL) {
        ask_local(g);
    } else if (g->mode != REMOTE_EXACT) {
        group_take(g, part_ask(part, g->mode, now_ns, &g->answer, &call), &call, now_ns);
    } else if (!remembered(g, now_ns)) {
        if (send_group(g, now_ns) != 0) {
            fail_group(g, now_ns);
        }
        g->of->pending += !g->answered;
    }
}
