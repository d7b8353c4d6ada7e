/*
 * Several limits, all or nothing, each with the wait that its part allows. First every part is
 * read; if one denies, that is the answer and nothing was written. Then all are charged, the
 * scarcest first, because another call is likeliest to have taken its last units. If that happened,
 * what has been charged is given back.
 */
#include "limit/binding.h"
#include "limit/limiter.h"

struct part {
    struct weir *w;
    struct algo_params copy;
    struct asked q;
    struct weir_answer answer;
    struct algo_charge charge;
    uint32_t index;
};

/* Returns whether both parts charge the same key. A file that is opened twice is one limiter. */
static bool same_state(const struct part *a, const struct part *b)
{
    return a->w->generation == b->w->generation && a->q.key.tag == b->q.key.tag &&
           a->q.key.line == b->q.key.line;
}

static int read_parts(const struct weir_part *parts, size_t n, uint64_t now_ns, struct part *p)
{
    for (size_t i = 0; i < n; i++) {
        const struct weir_question *ask = &parts[i].ask;
        p[i].w = parts[i].limiter;
        p[i].index = (uint32_t)i;
        if (p[i].w == NULL || ask->mode != parts[0].ask.mode || ask->mode == WEIR_UP_TO) {
            return WEIR_EINVAL;
        }
        p[i].q.params = params_now(p[i].w, &p[i].copy);
        p[i].q.answer = &p[i].answer;
        p[i].q.charge = &p[i].charge;
        int e = asked_make(p[i].w, ask, now_ns, &p[i].q);
        for (size_t j = 0; j < i && e == 0; j++) {
            e = same_state(&p[j], &p[i]) ? WEIR_EINVAL : 0; /* their order would decide */
        }
        if (e != 0) {
            return e;
        }
    }
    return 0;
}

/*
 * Gives the answer of the part that binds. To one that allows, adds the longest delay, and whether
 * a full table let any part through without a charge.
 */
static void give_binding(const struct part *p, size_t n, struct weir_answer *answer)
{
    const struct part *worst = &p[0];
    for (size_t i = 1; i < n; i++) {
        if (answer_binds(&p[i].answer, &worst->answer)) {
            worst = &p[i];
        }
    }
    *answer = worst->answer;
    answer->limit = worst->index;
    for (size_t i = 0; i < n && answer->verdict == WEIR_ALLOW; i++) {
        answer->flags |= p[i].answer.flags & WEIR_FLAG_FULL;
        answer->delay_ns = max_u64(answer->delay_ns, p[i].answer.delay_ns);
    }
}

/* Sorts by what remains, the scarcest part first. By insertion, because there are few parts. */
static void order(const struct part *p, size_t n, size_t *sorted)
{
    for (size_t i = 0; i < n; i++) {
        size_t j = i;
        for (; j > 0 && p[sorted[j - 1]].answer.remaining > p[i].answer.remaining; j--) {
            sorted[j] = sorted[j - 1];
        }
        sorted[j] = i;
    }
}

/*
 * Brings the time of a question up to the limiter's clock, if it has one. The thread may have been
 * stopped since the charge while others were served.
 */
static void catch_up(struct part *p)
{
    uint64_t now_ns;
    if (limiter_now(p->w, &now_ns) == 0 && limiter_knows(p->w, p->q.params, now_ns) &&
        limiter_line(p->w, now_ns) > p->q.now) {
        asked_about(p->w, p->q.hash, now_ns, &p->q);
    }
}

static void give_back(struct part *p, const size_t *sorted, size_t n)
{
    while (n > 0) {
        struct part *q = &p[sorted[--n]];
        assert(q->answer.verdict == WEIR_ALLOW); /* only what was charged is given back */
        if (q->answer.granted != 0) {
            catch_up(q);
            limiter_refund(q->w, &q->q, &q->charge);
        }
    }
}

static void charge(struct part *p, size_t n, struct weir_answer *answer)
{
    size_t sorted[WEIR_SEVERAL_MAX];
    order(p, n, sorted);
    for (size_t i = 0; i < n; i++) {
        struct part *q = &p[sorted[i]];
        limiter_decide(q->w, &q->q);
        if (q->answer.verdict != WEIR_ALLOW) {
            give_back(p, sorted, i);
            if ((q->answer.flags & (WEIR_FLAG_FULL | WEIR_FLAG_BLOCKED)) == 0) {
                q->answer.flags |= WEIR_FLAG_SPURIOUS;
            }
            limiter_count(q->w, &q->answer, q->q.shadow);
            *answer = q->answer;
            answer->limit = q->index;
            return;
        }
    }
    for (size_t i = 0; i < n; i++) {
        limiter_count(p[i].w, &p[i].answer, false);
    }
    give_binding(p, n, answer);
    assert(answer->verdict == WEIR_ALLOW); /* every part was charged */
}

int weir_check_several_at(const struct weir_part *parts, size_t n, uint64_t now_ns,
                          struct weir_answer *answer)
{
    struct part p[WEIR_SEVERAL_MAX];
    if (parts == NULL || answer == NULL || n == 0 || n > WEIR_SEVERAL_MAX) {
        return WEIR_EINVAL;
    }
    int e = read_parts(parts, n, now_ns, p);
    if (e != 0) {
        return e;
    }
    for (size_t i = 0; i < n; i++) {
        limiter_peek(p[i].w, &p[i].q, &p[i].answer);
    }
    give_binding(p, n, answer);
    if (parts[0].ask.mode == WEIR_CHECK && answer->verdict == WEIR_ALLOW) {
        charge(p, n, answer);
    } else if (parts[0].ask.mode == WEIR_CHECK) {
        limiter_count(p[answer->limit].w, answer, p[answer->limit].q.shadow);
    }
    return 0;
}

int weir_check_several(const struct weir_part *parts, size_t n, struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = parts == NULL || n == 0 ? WEIR_EINVAL : limiter_now(parts[0].limiter, &now_ns);
    return e != 0 ? e : weir_check_several_at(parts, n, now_ns, answer);
}
