/* A question: it is checked, answered here if that is possible, or divided into groups, each of
 * which is asked by itself; their answers are joined. */
#include "shared/store/store_question.h"

#include "base/atomic.h"
#include "base/maths.h"
#include "limit/binding.h"
#include "limit/limiter.h"

/* ---- making ---- */

#define BYTES(n)                                                                                   \
    (sizeof(struct store_question) + (n) * (sizeof(struct piece) + sizeof(struct group)))

_Static_assert(BYTES(1) <= STORE_QUESTION_BYTES, "the memory of a question with one part");

size_t store_question_bytes(size_t n)
{
    return BYTES(n);
}

/* Returns the mode in which the piece is asked: only plain questions are asked otherwise than
 * EXACT (S6). */
static int mode_of(const struct piece *p, const struct remote_question *q)
{
    return p->limit == NULL             ? REMOTE_LOCAL
           : store_question_is_plain(q) ? store_limit_mode(p->limit)
                                        : REMOTE_EXACT;
}

/* Returns the slot of the piece's key. */
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
    int mode = mode_of(p, a->asked);
    unsigned slot = slot_of(a, p);
    bool joins = mode == REMOTE_LOCAL || mode == REMOTE_EXACT;
    for (p->group = 0; joins && p->group < a->groups_count; p->group++) {
        if (a->groups[p->group].mode == mode && a->groups[p->group].slot == slot) {
            return;
        }
    }
    p->group = a->groups_count++;
    a->groups[p->group] =
        (struct group){.of = a, .mode = mode, .slot = slot, .piece = (unsigned)(p - a->pieces)};
}

/* Returns whether the limit can make a call wait. */
static bool can_wait(const struct remote_part *p)
{
    int algorithm =
        p->limit != NULL ? store_limit_numbers(p->limit)->params.algorithm : p->local->ops->id;
    return algorithm_has(algorithm, IS_BUCKET);
}

static void put_piece(struct store_question *a, const struct remote_part *part)
{
    struct piece *p = &a->pieces[a->pieces_count++];
    *p = (struct piece){.part = part, .limit = part->limit, .queue = part->queue};
    p->waits = a->asked->time_ns != 0 && can_wait(part);
    if (p->limit != NULL) {
        p->params = store_part_params(part, &a->own);
        p->queue = algorithm_has(p->params->algorithm, HAS_QUEUE);
        p->hash = node_key_hash(a->store->shared->keys, part);
    }
    put_in_group(a, p);
}

static struct store_question *make(struct store *s, const struct remote_question *q)
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

/* ---- one answer of several ---- */

bool answer_join(struct weir_answer *sum, const struct weir_answer *a, bool first)
{
    uint64_t delay_ns = first ? a->delay_ns : max_u64(sum->delay_ns, a->delay_ns);
    unsigned flags = (first ? 0 : sum->flags) | a->flags;
    bool bound = first || answer_binds(a, sum);
    if (bound) {
        *sum = *a;
    }
    bool allowed = sum->verdict == WEIR_ALLOW;
    sum->flags |= flags & (REMOTE_DEGRADED | (allowed ? WEIR_FLAG_FULL : 0));
    sum->delay_ns = allowed ? delay_ns : 0;
    return bound;
}

/* ---- the end ---- */

static void count_one(struct store_limit *limit, int verdict, bool shadow)
{
    struct remote_counts *c = &limit->counts;
    uint64_t *const counters[] = {
        [WEIR_ALLOW] = &c->allowed, [WEIR_DENY] = &c->denied, [WEIR_NEVER] = &c->never};
    count_shared(shadow && verdict != WEIR_ALLOW ? &c->shadow_denied : counters[verdict], 1);
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
            count_one(limit, answer->verdict, a->asked->shadow);
        }
    }
}

static int finish(struct store_question *a, uint64_t now_ns, struct remote_answer *out)
{
    int error = 0;
    bool first = true;
    *out = (struct remote_answer){.found = 0};
    for (unsigned i = 0; i < a->groups_count; i++) {
        struct group *g = &a->groups[i];
        if (g->answered && g->error == 0) {
            if (answer_join(&out->answer, &g->answer, first)) {
                out->stamp = group_charge_ns(g, g->answer.limit, g->stamp_us * WEIR_MICROSECOND);
                out->found = g->found;
            }
            first = false;
        }
        error = g->error != 0 ? g->error : error;
    }
    bool denied = error != 0 || out->answer.verdict != WEIR_ALLOW;
    for (unsigned i = 0; denied && a->groups_count > 1 && i < a->groups_count; i++) {
        if (a->groups[i].charged) {
            group_give_back(&a->groups[i], now_ns);
        }
    }
    if (error == 0) {
        count(a, &out->answer);
    }
    return error;
}

void group_finish(struct group *g, uint64_t now_ns)
{
    struct store_question *a = g->of;
    if (--a->pending > 0) {
        return;
    }
    struct remote_answer answer;
    const struct remote_question *q = a->asked;
    int error = finish(a, now_ns, &answer);
    q->done(q->arg, error, &answer); /* the question, and `a` in it, may end by this */
}

/* ---- asking ---- */

/* Checks the rate of a question that brings one: it has one part, of a limit that takes rates. */
static int check_rate(const struct remote_question *q)
{
    const struct remote_part *p = &q->parts[0];
    const struct store_limit *limit = p->limit;
    struct store_params own;
    if (p->rate.burst == 0) {
        return 0;
    }
    return q->n != 1 || limit == NULL || !limit->any_rate || q->verb > REMOTE_UP_TO
               ? WEIR_EINVAL
               : store_params_rate(&store_limit_numbers(limit)->params, &p->rate, &own);
}

static int check_parts(const struct remote_question *q)
{
    bool many = q->verb == REMOTE_CHECK || q->verb == REMOTE_PEEK;
    bool units = q->verb <= REMOTE_PENALIZE && q->verb != REMOTE_PEEK;
    if (q->n == 0 || q->n > WEIR_SEVERAL_MAX || (q->n > 1 && !many)) {
        return WEIR_EINVAL;
    }
    for (size_t i = 0; i < q->n; i++) {
        const struct remote_part *p = &q->parts[i];
        if (p->key.len == 0 || p->key.len > WEIR_KEY_MAX) {
            return WEIR_EKEY;
        }
        if (units && p->cost == 0) {
            return WEIR_ECOST;
        }
        if (p->limit == NULL && (p->local == NULL || q->verb > REMOTE_UP_TO)) {
            return WEIR_EINVAL;
        }
    }
    return 0;
}

/* Checks the question: its parts, and max_wait, which needs at least one bucket. */
static int check(const struct remote_question *q)
{
    int e = check_parts(q);
    e = e == 0 ? check_rate(q) : e;
    if (e != 0 || q->time_ns == 0 || q->verb > REMOTE_UP_TO) {
        return e;
    }
    bool waits = false;
    for (size_t i = 0; i < q->n; i++) {
        waits = waits || can_wait(&q->parts[i]);
    }
    return q->verb == REMOTE_UP_TO ? WEIR_EINVAL : waits ? 0 : WEIR_ENOTSUP;
}

/* Returns whether this is a plain question about one shared limit. */
static bool is_one(const struct remote_question *q)
{
    return q->n == 1 && q->parts[0].limit != NULL && store_question_is_plain(q);
}

static int answered(const struct remote_question *q, struct remote_answer *answer)
{
    answer->answer.limit = 0;
    answer->stamp = 0;
    answer->found = 0;
    if (q->verb != REMOTE_PEEK) {
        count_one(q->parts[0].limit, answer->answer.verdict, q->shadow);
    }
    return REMOTE_ANSWERED;
}

int store_ask_here(const struct remote_question *q, uint64_t now_ns, struct remote_answer *answer)
{
    int e = check(q);
    if (e != 0) {
        return e;
    }
    if (!is_one(q)) {
        return REMOTE_PENDING;
    }
    const struct store_limit *limit = q->parts[0].limit;
    const struct store_shared_options *o = &limit->shared->options;
    unsigned said = part_ask(&q->parts[0], store_limit_mode(limit), now_ns, &answer->answer, NULL);
    if ((said & LEASE_DUE) != 0 && o->wake != NULL) {
        o->wake(o->wake_arg);
    }
    return (said & LEASE_ANSWERED) != 0 ? answered(q, answer) : REMOTE_PENDING;
}

int store_ask_failed(const struct remote_question *q, uint64_t now_ns, struct remote_answer *answer)
{
    const struct remote_part *p = &q->parts[0];
    if (q->n != 1 || p->limit == NULL || q->verb > REMOTE_UP_TO) {
        return WEIR_EFULL;
    }
    store_limit_failed(p, q->verb, now_ns, &answer->answer);
    return answered(q, answer);
}

/* Returns whether the group's result decides the question: other groups need not be asked then. */
static bool is_decided(const struct group *g, int verb)
{
    return g->answered &&
           (g->error != 0 || (verb == REMOTE_CHECK && g->answer.verdict != WEIR_ALLOW));
}

/* Asks groups, those that need no call first, until one has an error or denies a CHECK. */
static void ask_groups(struct store_question *a, uint64_t now_ns)
{
    static const int order[] = {REMOTE_LOCAL, REMOTE_SYNCED, REMOTE_LEASED, REMOTE_EXACT};
    bool decided = false;
    for (unsigned k = 0; k < sizeof order / sizeof order[0]; k++) {
        for (unsigned i = 0; i < a->groups_count && !decided; i++) {
            if (a->groups[i].mode == order[k]) {
                group_ask(&a->groups[i], now_ns);
                decided = is_decided(&a->groups[i], a->asked->verb);
            }
        }
    }
}

int store_ask(struct store *s, const struct remote_question *q, uint64_t now_ns,
              struct remote_answer *answer)
{
    struct lease_call call;
    unsigned said = 0;
    bool one = is_one(q);
    int e = check(q);
    if (e != 0) {
        return e;
    }
    if (one) { /* most of these need no struct store_question */
        int mode = store_limit_mode(q->parts[0].limit);
        said = part_ask(&q->parts[0], mode, now_ns, &answer->answer, &call);
    }
    if ((said & LEASE_ANSWERED) != 0) {
        if ((said & LEASE_SEND) != 0) {
            send_lease(s, &call, now_ns);
        }
        return answered(q, answer);
    }
    struct store_question *a = make(s, q);
    a->looked = one;
    if (said != 0) {
        group_take(&a->groups[0], said, &call, now_ns);
    } else {
        ask_groups(a, now_ns);
    }
    if (a->pending > 0) {
        return REMOTE_PENDING;
    }
    e = finish(a, now_ns, answer);
    return e != 0 ? e : REMOTE_ANSWERED;
}
