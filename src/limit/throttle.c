/*
 * A bucket whose numbers come with the question. The word is the same TAT on the same time line
 * whatever the numbers are, so a key keeps its state when they change. All that this file does is
 * to decide with other parameters than the limiter's own.
 */
#include "limit/shortcut.h"

/* Makes the question's parameters. Its span is at most the limiter's, so that no time overflows. */
static int throttle_params(const struct algo_params *own, uint64_t interval_ns, uint64_t burst,
                           struct algo_params *p)
{
    uint64_t most = own->span >> own->shift;
    if (interval_ns == 0 || burst == 0) {
        return WEIR_ERATE;
    }
    if (interval_ns > most || burst > most / interval_ns) {
        return WEIR_EQUOTA;
    }
    *p = *own;
    p->step = interval_ns << p->shift;
    p->inverse = UINT64_MAX / p->step;
    p->quota = burst;
    p->span = burst * p->step;
    return 0; /* `reach` stays that of the limiter, because another question may have led further */
}

int weir_throttle_at(struct weir *w, uint64_t interval_ns, uint64_t burst,
                     const struct weir_question *ask, uint64_t now_ns, struct weir_answer *answer)
{
    struct algo_params copy;
    struct algo_params p;
    struct asked q = {.params = &p, .answer = answer};
    if (w == NULL || ask == NULL || answer == NULL) {
        return WEIR_EINVAL;
    }
    if (!w->token_bucket) {
        return WEIR_ENOTSUP;
    }
    int e = throttle_params(params_now(w, &copy), interval_ns, burst, &p);
    e = e != 0 ? e : asked_make(w, ask, now_ns, &q);
    if (e == 0) {
        shortcut_or_decide(w, &q, table_find(&w->table, q.key));
    }
    return e;
}

int weir_throttle(struct weir *w, uint64_t interval_ns, uint64_t burst,
                  const struct weir_question *ask, struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = limiter_now(w, &now_ns);
    return e != 0 ? e : weir_throttle_at(w, interval_ns, burst, ask, now_ns, answer);
}
