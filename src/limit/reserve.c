/* Reserve, settle, cancel. The handle carries everything; the table holds only the charge. */
#include "limit/limiter.h"

/* The contents of struct weir_reservation. A generation of 0 is a handle that is used up. */
struct handle {
    uint64_t generation;
    struct hash hash;
    uint64_t amount;
    uint64_t stamp;   /* algo_charge.at */
    uint64_t expires; /* on the limiter's line */
    uint64_t step;    /* algo_charge.step; 0 in handles of earlier versions */
    uint64_t unused;
};
_Static_assert(sizeof(struct handle) == sizeof(struct weir_reservation),
               "a handle is a reservation");

int limiter_reserve(struct weir *w, const struct weir_question *ask, uint64_t ttl_ns,
                    uint64_t now_ns, struct weir_reservation *reservation,
                    struct weir_answer *answer)
{
    struct algo_params copy;
    struct algo_charge charge = {0};
    struct handle h = {0};
    if (w == NULL || reservation == NULL || answer == NULL || ttl_ns == 0) {
        return WEIR_EINVAL;
    }
    struct asked q = {.params = params_now(w, &copy), .answer = answer, .charge = &charge};
    int e = asked_make(w, ask, now_ns, &q);
    if (e != 0) {
        return e;
    }
    limiter_decide(w, &q);
    limiter_count(w, answer, q.shadow);
    if (answer->verdict == WEIR_ALLOW) {
        assert(answer->granted <= ask->cost);
        h.generation = w->generation;
        h.hash = q.hash;
        h.amount = answer->granted; /* 0 if a full table let the key through without a charge */
        h.stamp = charge.at;
        h.expires = add_sat(q.now, ttl_ns);
        h.step = charge.step;
    }
    memcpy(reservation, &h, sizeof h);
    return 0;
}

int weir_reserve_at(struct weir *w, const void *key, size_t key_len, uint64_t estimate,
                    uint64_t ttl_ns, uint64_t now_ns, struct weir_reservation *reservation,
                    struct weir_answer *answer)
{
    struct weir_question ask = {.key = key, .key_len = key_len, .cost = estimate};
    return limiter_reserve(w, &ask, ttl_ns, now_ns, reservation, answer);
}

/* Gives back or charges the difference to `actual`. *extra is how much was charged. */
static int correct(struct weir *w, struct asked *q, const struct handle *h, uint64_t actual,
                   uint64_t *extra)
{
    *extra = 0;
    if (actual > h->amount) {
        q->ask.cost = actual - h->amount;
        return limiter_charge(w, q, extra);
    }
    if (actual < h->amount) {
        struct algo_charge charge = {h->stamp, h->step != 0 ? h->step : q->params->step, 0};
        q->ask.cost = h->amount - actual;
        limiter_refund(w, q, &charge);
    }
    return 0;
}

int weir_settle_at(struct weir *w, struct weir_reservation *reservation, uint64_t actual,
                   uint64_t now_ns, struct weir_answer *answer)
{
    struct algo_params copy;
    struct handle h;
    uint64_t extra;
    if (w == NULL || reservation == NULL) {
        return WEIR_EINVAL;
    }
    memcpy(&h, reservation, sizeof h);
    struct weir_key key = {{h.hash.low, h.hash.high, h.generation}};
    struct weir_question ask = {.hashed = &key, .cost = 1};
    struct asked q = {.params = params_now(w, &copy)};
    int e = asked_make(w, &ask, now_ns, &q);
    if (e == 0) {
        e = q.now >= h.expires ? WEIR_EEXPIRED : correct(w, &q, &h, actual, &extra);
    }
    if (e == 0) {
        limiter_report(w, &q, extra, answer);
        memset(reservation, 0, sizeof *reservation);
    }
    return e;
}

int weir_settle(struct weir *w, struct weir_reservation *reservation, uint64_t actual,
                struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = limiter_now(w, &now_ns);
    return e != 0 ? e : weir_settle_at(w, reservation, actual, now_ns, answer);
}

int weir_reserve(struct weir *w, const void *key, size_t key_len, uint64_t estimate,
                 uint64_t ttl_ns, struct weir_reservation *reservation, struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = limiter_now(w, &now_ns);
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
