/*
 * A bucket whose numbers come with the question. The word is the same TAT on the same line whatever
 * the numbers are: so a key keeps its state when they change, and all that this file does is to
 * decide with other parameters than the limiter's own.
 */
#include <inttypes.h>

#include "algo/bucket.h"
#include "base/error.h"
#include "limit/limiter.h"
#include "limit/shortcut.h"

/* The limiter's own span bounds that of the question, so that no time overflows. */
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
    return 0; /* reach stays the limiter's: another question may have led further */
}

int weir_throttle_at(struct weir *w, uint64_t interval_ns, uint64_t burst,
                     const struct weir_question *ask, uint64_t now_ns, struct weir_answer *answer)
{
    struct params_place place;
    struct algo_params p;
    struct asked q = {.params = &p, .answer = answer};
    if (w == NULL || ask == NULL || answer == NULL) {
        return WEIR_EINVAL;
    }
    if (!w->token_bucket) {
        return WEIR_ENOTSUP;
    }
    int e = throttle_params(params_now(w, &place), interval_ns, burst, &p);
    e = e != 0 ? e : ask_check(w, &p, ask, now_ns);
    if (e == 0) {
        asked_from(w, ask, now_ns, &q);
        shortcut_or_decide(w, &q, table_find(&w->table, q.key));
    }
    return e;
}

int weir_throttle(struct weir *w, uint64_t interval_ns, uint64_t burst,
                  const struct weir_question *ask, struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = w == NULL ? WEIR_EINVAL : limiter_now(w, &now_ns);
    return e != 0 ? e : weir_throttle_at(w, interval_ns, burst, ask, now_ns, answer);
}
