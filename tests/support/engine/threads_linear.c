#include "support/engine/threads_linear.h"

#include <stdio.h>
#include <string.h>

#include "base/maths.h"

/* ---- the search ---- */

/* A position of the search: how far each thread has come, and the state there. */
struct place {
    unsigned next[LINEAR_THREADS];
    struct linear_state state;
};

/* Positions from which the search has failed. Entries of earlier searches have another
 * generation. */
#define MEMO_SIZE 4096
static struct {
    uint64_t generation;
    struct place place;
} memo[MEMO_SIZE];
static uint64_t generation;

static uint64_t place_hash(const struct place *p)
{
    uint64_t h = p->next[0] | p->next[1] << 8 | p->next[2] << 16;
    h = (h ^ p->state.present ^ p->state.word) * UINT64_C(0x9e3779b97f4a7c15);
    for (unsigned i = 0; i < 8; i++) {
        h = (h ^ p->state.record[i]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return h >> 52;
}

/* Returns true if the search has been here. Otherwise it records the position, as long as there is
 * room for it. */
static bool been_here(const struct place *p)
{
    uint64_t at = place_hash(p);
    for (unsigned i = 0; i < 16; i++, at = (at + 1) % MEMO_SIZE) {
        if (memo[at].generation != generation) {
            memo[at].generation = generation;
            memo[at].place = *p;
            return false;
        }
        if (memcmp(&memo[at].place, p, sizeof *p) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns the first return among the calls that are not yet ordered: a call that was invoked later
 * cannot be next. */
static uint64_t first_return(const struct linear_history *h, const struct place *p)
{
    uint64_t first = UINT64_MAX;
    for (unsigned t = 0; t < LINEAR_THREADS; t++) {
        if (p->next[t] < h->count[t]) {
            first = min_u64(first, h->op[t][p->next[t]].returned);
        }
    }
    return first;
}

static bool agrees(const struct linear_model *m, const struct linear_op *op,
                   const struct weir_answer *told)
{
    const struct weir_answer *seen = &op->told;
    if (seen->granted != told->granted || seen->verdict != told->verdict ||
        seen->remaining != told->remaining) {
        return false;
    }
    return !m->times ||
           (seen->retry_after_ns == told->retry_after_ns &&
            seen->reset_after_ns == told->reset_after_ns && seen->delay_ns == told->delay_ns);
}

static bool search(const struct linear_model *m, const struct linear_history *h,
                   const struct place *p)
{
    uint64_t first = first_return(h, p);
    if (first == UINT64_MAX) {
        return true;
    }
    if (been_here(p)) {
        return false;
    }
    for (unsigned t = 0; t < LINEAR_THREADS; t++) {
        const struct linear_op *op = &h->op[t][p->next[t]];
        if (p->next[t] == h->count[t] || op->invoked > first) {
            continue;
        }
        struct place then = *p;
        struct weir_answer told;
        memset(&told, 0, sizeof told);
        m->apply(m, &then.state, op, &told);
        then.next[t]++;
        if (agrees(m, op, &told) && search(m, h, &then)) {
            return true;
        }
    }
    return false;
}

bool linear_explains(const struct linear_model *m, const struct linear_history *h)
{
    struct place start;
    memset(&start, 0, sizeof start);
    generation++;
    return search(m, h, &start);
}

void linear_print(const struct linear_history *h)
{
    static const char *const name[LINEAR_KINDS] = {"check",  "peek",     "up_to",
                                                   "refund", "penalize", "reset"};
    for (unsigned t = 0; t < LINEAR_THREADS; t++) {
        for (unsigned i = 0; i < h->count[t]; i++) {
            const struct linear_op *op = &h->op[t][i];
            (void)printf("thread %u [%llu, %llu] at %llu: %s %llu -> verdict %d granted %llu "
                         "remaining %llu\n",
                         t, (unsigned long long)op->invoked, (unsigned long long)op->returned,
                         (unsigned long long)op->now, name[op->kind], (unsigned long long)op->cost,
                         op->told.verdict, (unsigned long long)op->told.granted,
                         (unsigned long long)op->told.remaining);
        }
    }
}

/* ---- a counter ---- */

static void count_take(const struct linear_model *m, struct linear_state *s, uint64_t cost,
                       bool write, struct weir_answer *told)
{
    bool fits = s->word + cost <= m->quota;
    told->verdict = cost > m->quota ? WEIR_NEVER : fits ? WEIR_ALLOW : WEIR_DENY;
    if (fits && write) {
        s->word += cost;
        s->present = 1;
        told->granted = cost;
    }
    told->remaining = sub_floor0(m->quota, s->word);
}

static void count_charge(const struct linear_model *m, struct linear_state *s, uint64_t cost,
                         struct weir_answer *told)
{
    uint64_t room = m->quota + m->max_debt - s->word;
    told->granted = min_u64(cost, room);
    s->word += told->granted;
    s->present = 1;
}

static void forget(struct linear_state *s, struct weir_answer *told)
{
    told->granted = s->present;
    memset(s, 0, sizeof *s);
}

void linear_by_counter(const struct linear_model *m, struct linear_state *s,
                       const struct linear_op *op, struct weir_answer *told)
{
    uint64_t left = sub_floor0(m->quota, s->word);
    switch (op->kind) {
    case LINEAR_CHECK:
    case LINEAR_PEEK:
        count_take(m, s, op->cost, op->kind == LINEAR_CHECK, told);
        break;
    case LINEAR_UP_TO:
        count_take(m, s, max_u64(1, min_u64(op->cost, left)), true, told);
        break;
    case LINEAR_REFUND:
        s->word = sub_floor0(s->word, op->cost);
        break;
    case LINEAR_PENALIZE:
        count_charge(m, s, op->cost, told);
        break;
    case LINEAR_RESET:
    default:
        forget(s, told);
        break;
    }
}

/* ---- the algorithm itself ---- */

static void algorithm_take(const struct linear_model *m, struct linear_state *s,
                           const struct algo_ask *ask, bool write, struct weir_answer *told)
{
    struct algo_step step =
        algo_decide(m->ops, m->params, (struct algo_state){s->word, s->record}, ask);
    told->verdict = step.verdict;
    told->retry_after_ns = step.verdict == WEIR_NEVER ? WEIR_FOREVER : 0;
    if (step.verdict == WEIR_ALLOW && write) {
        if (m->ops->note != NULL) {
            m->ops->note(m->params, (struct algo_state){step.word - ask->cost, s->record}, ask->now,
                         ask->cost);
        }
        s->word = step.word;
        s->present = 1;
        told->granted = ask->cost;
    }
    algo_describe(m->ops, m->params, (struct algo_state){s->word, s->record}, ask, told);
}

static uint64_t algorithm_left(const struct linear_model *m, struct linear_state *s,
                               const struct algo_ask *ask)
{
    struct weir_answer a;
    memset(&a, 0, sizeof a);
    algo_describe(m->ops, m->params, (struct algo_state){s->word, s->record}, ask, &a);
    return a.remaining;
}

static void algorithm_charge(const struct linear_model *m, struct linear_state *s,
                             const struct algo_ask *ask, struct weir_answer *told)
{
    struct algo_step step = algo_penalize(
        m->ops, m->params, (struct algo_state){s->word, s->record}, ask, &told->granted);
    if (m->ops->note != NULL) {
        m->ops->note(m->params, (struct algo_state){step.word - told->granted, s->record}, ask->now,
                     told->granted);
    }
    s->word = step.word;
    s->present = 1;
}

void linear_by_algorithm(const struct linear_model *m, struct linear_state *s,
                         const struct linear_op *op, struct weir_answer *told)
{
    struct algo_ask ask = {.now = op->now, .cost = op->cost};
    switch (op->kind) {
    case LINEAR_CHECK:
    case LINEAR_PEEK:
        algorithm_take(m, s, &ask, op->kind == LINEAR_CHECK, told);
        break;
    case LINEAR_UP_TO:
        ask.cost = max_u64(1, min_u64(ask.cost, algorithm_left(m, s, &ask)));
        algorithm_take(m, s, &ask, true, told);
        break;
    case LINEAR_REFUND:
        if (s->present) {
            struct algo_charge charge = {op->now, m->params->step, 0};
            s->word =
                m->ops->refund(m->params, (struct algo_state){s->word, s->record}, &ask, &charge);
        }
        break;
    case LINEAR_PENALIZE:
        algorithm_charge(m, s, &ask, told);
        break;
    case LINEAR_RESET:
    default:
        forget(s, told);
        break;
    }
}
