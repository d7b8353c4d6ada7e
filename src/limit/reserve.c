/* Reserve, settle, cancel: the handle carries everything, the table holds only the charge. */
#include <string.h>

#include "limit/limiter.h"

/* struct weir_reservation, from the inside. A generation of 0 is a used-up handle. */
struct handle {
    uint64_t generation;
    struct hash hash;
    uint64_t amount;
    uint64_t stamp;   /* algo_charge.at */
    uint64_t expires; /* on the limiter's line */
    uint64_t step;    /* algo_charge.step; 0 in handles of earlier versions */
    uint64_t unused;
};
_Static_assert(sizeof(struct handle) == sizeof(struct weir_reservation), "the handle is the whole");

int weir_reserve_at(struct weir *w, const void *key, size_t key_len, uint64_t estimate,
                    uint64_t ttl_ns, uint64_t now_ns, struct weir_reservation *reservation,
                    struct weir_answer *answer)
{
    struct params_place place;
    struct algo_charge charge = {0};
    struct asked q = {
        .mode = WEIR_CHECK, .ask.cost = estimate, .answer = answer, .charge = &charge};
    struct handle h = {0};
    if (w == NULL || reservation == NULL || answer == NULL || ttl_ns == 0) {
        return WEIR_EINVAL;
    }
    if (estimate == 0) {
        return WEIR_ECOST;
    }
    q.params = params_now(w, &place);
    int e = asked_key(w, key, key_len, now_ns, &q);
    if (e != 0) {
        return e;
    }
    limiter_decide(w, &q);
    limiter_count(w, answer);
    if (answer->verdict == WEIR_ALLOW) {
        h.generation = w->generation;
        h.hash = q.hash;
        h.amount = answer->granted; /* 0 where a full table let it through uncharged */
        h.stamp = charge.at;
        h.expires = add_sat(q.now, ttl_ns);
        h.step = charge.step;
    }
    memcpy(reservation, &h, sizeof h);
    return 0;
}

static int settle(struct weir *w, const struct handle *h, uint64_t actual, uint64_t now_ns,
                  struct weir_answer *answer)
{
    struct params_place place;
    struct asked q = {.mode = WEIR_CHECK};
    uint64_t extra = 0;
    int e = 0;
    q.params = params_now(w, &place);
    if (!limiter_knows(w, q.params, now_ns)) {
        return WEIR_ETIME;
    }
    asked_time(w, now_ns, &q);
    if (q.now >= h->expires) {
        return WEIR_EEXPIRED;
    }
    asked_hash(w, h->hash, &q);
    if (actual < h->amount) {
        q.ask.cost = h->amount - actual;
        struct algo_charge charge = {h->stamp, h->step != 0 ? h->step : q.params->step, 0};
        limiter_refund(w, &q, &charge);
    } else if (actual > h->amount) {
        q.ask.cost = actual - h->amount;
        e = limiter_charge(w, &q, &extra);
    }
    if (e == 0) {
        limiter_report(w, &q, extra, answer);
    }
    return e;
}

int weir_settle_at(struct weir *w, struct weir_reservation *reservation, uint64_t actual,
                   uint64_t now_ns, struct weir_answer *answer)
{
    struct handle h;
    if (w == NULL || reservation == NULL) {
        return WEIR_EINVAL;
    }
    memcpy(&h, reservation, sizeof h);
    if (h.generation != w->generation) {
        return WEIR_ESTALE;
    }
    int e = settle(w, &h, actual, now_ns, answer);
    if (e == 0) {
        memset(reservation, 0, sizeof *reservation);
    }
    return e;
}

int weir_settle(struct weir *w, struct weir_reservation *reservation, uint64_t actual,
                struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = w == NULL ? WEIR_EINVAL : limiter_now(w, &now_ns);
    return e != 0 ? e : weir_settle_at(w, reservation, actual, now_ns, answer);
}

int weir_reserve(struct weir *w, const void *key, size_t key_len, uint64_t estimate,
                 uint64_t ttl_ns, struct weir_reservation *reservation, struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = w == NULL ? WEIR_EINVAL : limiter_now(w, &now_ns);
    return e != 0 ? e
                  : weir_reserve_at(w, key, key_len, estimate, ttl_ns, now_ns, reservation, answer);
}

int weir_cancel_at(struct weir *w, struct weir_reservation *reservation, uint64_t now_ns,
                   struct weir_answer *answer)
{
    return weir_settle_at(w, reservation, 0, now_ns, answer);
}

int weir_cancel(struct weir *w, struct weir_reservation *reservation, struct weir_answer *answer)
{
    return weir_settle(w, reservation, 0, answer);
}
