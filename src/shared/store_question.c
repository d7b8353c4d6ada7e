#include "shared/store_question.h"

#include "base/atomic.h"
#include "base/maths.h"

/* ---- making ---- */

#define BYTES(n)                                                                                   \
    (sizeof(struct store_question) + (n) * (sizeof(struct piece) + sizeof(struct group)))

_Static_assert(BYTES(1) <= STORE_QUESTION_BYTES, "the memory of a question with one part");

size_t store_question_bytes(size_t n)
{
    return BYTES(n);
}

static enum group_kind kind_of(const struct piece *p, const struct remote_question *q)
{
    if (p->limit == NULL) {
        return GROUP_LOCAL;
    }
    int mode = store_question_is_plain(q) ? store_limit_mode(p->limit) : REMOTE_EXACT;
    return mode == REMOTE_LEASED   ? GROUP_LEASED
           : mode == REMOTE_SYNCED ? GROUP_SYNCED
                                   : GROUP_EXACT;
}

/* Returns the slot of the piece's key; 0 without a Cluster, where all keys are together. */
static unsigned slot_of(const struct store_question *a, const struct piece *p)
{
    struct store_key key;
    if (p->limit == NULL || !a->store->cluster) {
        return 0;
    }
    store_key(&p->limit->head, p->part->shard, p->part->key, &key);
    return cluster_slot(store_key_text(&key));
}

/* Puts the piece into a group that it may join, or into a new one. */
static void put_in_group(struct store_question *a, struct piece *p)
{
    enum group_kind kind = kind_of(p, a->asked);
    unsigned slot = slot_of(a, p);
    bool alone = kind == GROUP_SYNCED || kind == GROUP_LEASED;
    for (p->group = 0; !alone && p->group < a->groups_count; p->group++) {
        if (a->groups[p->group].kind == kind && a->groups[p->group].slot == slot) {
            return;
        }
    }
    p->group = a->groups_count++;
    a->groups[p->group] =
        (struct group){.of = a, .kind = kind, .slot = slot, .piece = (unsigned)(p - a->pieces)};
}

static void put_piece(struct store_question *a, const struct remote_part *part)
{
    struct piece *p = &a->pieces[a->pieces_count++];
    *p = (struct piece){.part = part, .limit = part->limit, .queue = part->queue};
    if (p->limit != NULL) {
        p->numbers = store_limit_numbers(p->limit);
        p->queue = p->numbers->params.algorithm == WEIR_LEAKY_BUCKET;
        p->hash = node_key_hash(a->store->shared->keys, part);
    }
    put_in_group(a, p);
}

struct store_question *store_question_init(struct store *s, const struct remote_question *q)
{
    struct store_question *a = q->memory;
    *a = (struct store_question){.store = s, .asked = q};
    a->pieces = (struct piece *)(void *)(a + 1);
    a->groups = (struct group *)(void *)(a->pieces + q->n);
    for (size_t i = 0; i < q->n; i++) {
        put_piece(a, &q->parts[i]);
    }
    return a;
}

/* ---- which answer binds ---- */

/* Returns whether answer `a` binds rather than `before`, as in weir_check_several(): NEVER before
 * DENY before ALLOW; then the latest retry, or the least remaining. */
static bool binds(const struct weir_answer *a, const struct weir_answer *before)
{
    if (a->verdict != before->verdict) {
        return a->verdict > before->verdict;
    }
    return a->verdict == WEIR_ALLOW ? a->remaining < before->remaining
                                    : a->retry_after_ns > before->retry_after_ns;
}

/* Joins `a` to the answers so far (`first`: there is none). As in weir_check_several(), an ALLOW
 * has the longest delay of all parts, and WEIR_FLAG_FULL if a full table let a part through
 * uncharged. */
static void join(struct weir_answer *sum, const struct weir_answer *a, bool first)
{
    uint64_t delay_ns = first ? a->delay_ns : max_u64(sum->delay_ns, a->delay_ns);
    unsigned flags = (first ? 0 : sum->flags) | a->flags;
    if (first || binds(a, sum)) {
        *sum = *a;
    }
    bool allowed = sum->verdict == WEIR_ALLOW;
    sum->flags |= flags & (REMOTE_DEGRADED | (allowed ? WEIR_FLAG_FULL : 0));
    sum->delay_ns = allowed ? delay_ns : 0;
}

/* ---- groups ---- */

/* Returns the first piece from `i` on that is in the group, or pieces_count if there is none. */
static unsigned next_piece(const struct group *g, unsigned i)
{
    const struct store_question *a = g->of;
    unsigned number = (unsigned)(g - a->groups);
    while (i < a->pieces_count && a->pieces[i].group != number) {
        i++;
    }
    return i;
}

#define FOR_PIECES(i, g)                                                                           \
    for (unsigned i = next_piece(g, 0); i < (g)->of->pieces_count; i = next_piece(g, i + 1))

static void settle(struct group *g, bool charged)
{
    g->answered = true;
    g->charged = charged && g->error == 0 && g->answer.verdict == WEIR_ALLOW;
}

static void fail_pieces(struct group *g, uint64_t now_ns)
{
    struct store_question *a = g->of;
    bool first = true;
    FOR_PIECES(i, g)
    {
        const struct piece *p = &a->pieces[i];
        struct weir_answer answer;
        store_limit_failed(p->part, a->asked->verb, now_ns, &answer);
        answer.limit = i;
        join(&g->answer, &answer, first);
        first = false;
    }
}

/* Answers the group by on_failure, or with WEIR_EIO. Units that are charged here are not given
 * back: they are from this node's own part of the limit. */
static void fail_group(struct group *g, uint64_t now_ns)
{
    if (g->of->asked->verb <= REMOTE_UP_TO) {
        fail_pieces(g, now_ns);
    } else {
        g->error = WEIR_EIO;
    }
    settle(g, false);
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
        parts[n++] = (struct weir_part){
            .limiter = p->local,
            .ask = {.key = p->key.at, .key_len = p->key.len, .cost = p->cost, .mode = q->verb}};
    }
    parts[0].ask.max_wait_ns = q->time_ns;
    g->error = n == 1 ? weir_ask_at(parts[0].limiter, &parts[0].ask, q->now_ns, &g->answer)
                      : weir_check_several_at(parts, n, q->now_ns, &g->answer);
    g->answer.limit = index[n == 1 || g->error != 0 ? 0 : g->answer.limit];
    /* If a full table charged nothing, nothing is given back: a refund would return units that
     * other questions were charged. */
    settle(g, q->verb == REMOTE_CHECK && (g->answer.flags & WEIR_FLAG_FULL) == 0);
}

static void ask_synced(struct group *g, uint64_t now_ns)
{
    const struct piece *p = &g->of->pieces[g->piece];
    int said = sync_ask(p->limit->shared->keys, p->part, now_ns, &g->answer);
    if ((said & SYNC_ANSWERED) == 0) {
        fail_group(g, now_ns);
        return;
    }
    g->answer.limit = g->piece;
    settle(g, true);
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
        if (store_limit_denies(p->limit, p->numbers, p->hash, p->part->cost, now_ns, &g->answer)) {
            g->answer.limit = i;
            settle(g, false);
            return true;
        }
    }
    return false;
}

/* Does what lease_ask() has said: takes the answer, sends the call, or waits. */
static void take_said(struct group *g, unsigned said, struct lease_call *call, uint64_t now_ns)
{
    if ((said & LEASE_ANSWERED) != 0) {
        g->answer.limit = g->piece;
        settle(g, true);
    }
    if (said == (LEASE_ANSWERED | LEASE_SEND)) {
        send_lease(g->of->store, call, now_ns);
    } else if (!g->answered && send_leased(g, said, call, now_ns) != 0) {
        fail_group(g, now_ns);
    }
}

static void ask_leased(struct group *g, uint64_t now_ns)
{
    struct lease_call call;
    const struct piece *p = &g->of->pieces[g->piece];
    unsigned said =
        lease_ask(p->limit->shared->keys, p->part, LEASE_ASK, now_ns, &g->answer, &call);
    take_said(g, said, &call, now_ns);
}

static void ask_exact(struct group *g, uint64_t now_ns)
{
    if (!remembered(g, now_ns) && send_group(g, now_ns) != 0) {
        fail_group(g, now_ns);
    }
}

static void ask_group(struct group *g, uint64_t now_ns)
{
    switch (g->kind) {
    case GROUP_LOCAL:
        ask_local(g);
        break;
    case GROUP_SYNCED:
        ask_synced(g, now_ns);
        break;
    case GROUP_LEASED:
        ask_leased(g, now_ns);
        break;
    default:
        ask_exact(g, now_ns);
        break;
    }
    g->of->pending += !g->answered;
}

/* Returns whether the group's result decides the question: other groups need not be asked then. */
static bool is_decided(const struct group *g, int verb)
{
    return g->answered &&
           (g->error != 0 || (verb == REMOTE_CHECK && g->answer.verdict != WEIR_ALLOW));
}

bool store_question_start(struct store_question *a, uint64_t now_ns)
{
    bool decided = false;
    for (unsigned kind = 0; kind < GROUP_KINDS; kind++) {
        for (unsigned i = 0; i < a->groups_count && !decided; i++) {
            if (a->groups[i].kind == (enum group_kind)kind) {
                ask_group(&a->groups[i], now_ns);
                decided = is_decided(&a->groups[i], a->asked->verb);
            }
        }
    }
    return a->pending == 0;
}

bool store_question_wait(struct store_question *a, unsigned said, struct lease_call *call,
                         uint64_t now_ns)
{
    take_said(&a->groups[0], said, call, now_ns);
    a->pending += !a->groups[0].answered;
    return a->pending == 0;
}

/* ---- the end ---- */

/*
 * Returns the time by which a refund knows the charge of piece i, made at
 * `time_ns`. For a leaky_bucket that is the end of its place. The reply says it
 * only of the piece that binds; places of other pieces are not given back.
 */
static uint64_t charge_ns(const struct group *g, unsigned i, uint64_t time_ns)
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
    if (p->numbers == NULL || p->numbers->params.algorithm != WEIR_TOKEN_BUCKET) {
        return charge_ns(g, i, time_ns);
    }
    return time_ns + (g->answer.limit == i
                          ? g->answer.reset_after_ns
                          : p->part->cost * p->numbers->params.a * WEIR_MICROSECOND);
}

static void give_back(struct group *g, uint64_t now_ns)
{
    const struct store_question *a = g->of;
    FOR_PIECES(i, g)
    {
        const struct piece *p = &a->pieces[i];
        const struct remote_part *of = p->part;
        uint64_t asked_ns = a->asked->now_ns;
        switch (g->kind) {
        case GROUP_LOCAL:
            (void)weir_refund_at(of->local, of->key.at, of->key.len, of->cost,
                                 charge_ns(g, i, asked_ns), asked_ns, NULL);
            break;
        case GROUP_SYNCED:
            sync_refund(p->limit->shared->keys, of, now_ns);
            break;
        case GROUP_LEASED:
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

/* Counts the verdict: for all limits of an allowed question, but only for the limit that denied a
 * denied one. */
static void count(const struct store_question *a, const struct weir_answer *answer)
{
    if (a->asked->verb != REMOTE_CHECK && a->asked->verb != REMOTE_UP_TO) {
        return;
    }
    for (unsigned i = 0; i < a->pieces_count; i++) {
        struct store_limit *limit = a->pieces[i].limit;
        if (limit != NULL && (answer->verdict == WEIR_ALLOW || answer->limit == i)) {
            store_limit_count(limit, answer->verdict);
        }
    }
}

int store_question_finish(struct store_question *a, uint64_t now_ns, struct remote_answer *out)
{
    int error = 0;
    bool first = true;
    *out = (struct remote_answer){.found = 0};
    for (unsigned i = 0; i < a->groups_count; i++) {
        struct group *g = &a->groups[i];
        if (g->answered && g->error == 0) {
            join(&out->answer, &g->answer, first);
            out->stamp = charge_ns(g, g->answer.limit, g->stamp_us * WEIR_MICROSECOND);
            out->found = g->found;
            first = false;
        }
        error = g->error != 0 ? g->error : error;
    }
    bool denied = error != 0 || out->answer.verdict != WEIR_ALLOW;
    for (unsigned i = 0; denied && a->groups_count > 1 && i < a->groups_count; i++) {
        if (a->groups[i].charged) {
            give_back(&a->groups[i], now_ns);
        }
    }
    if (error == 0) {
        count(a, &out->answer);
    }
    return error;
}

static void finish_group(struct group *g, uint64_t now_ns)
{
    struct store_question *a = g->of;
    if (--a->pending > 0) {
        return;
    }
    struct remote_answer answer;
    const struct remote_question *q = a->asked;
    int error = store_question_finish(a, now_ns, &answer);
    q->done(q->arg, error, &answer); /* the question, and `a` in it, may end by this */
}

void group_answered(struct group *g, uint64_t now_ns)
{
    settle(g, g->of->asked->verb == REMOTE_CHECK);
    finish_group(g, now_ns);
}

void group_failed(struct group *g, uint64_t now_ns)
{
    fail_group(g, now_ns);
    finish_group(g, now_ns);
}
