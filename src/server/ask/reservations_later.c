#include "server/ask/reservations_later.h"

#include <stdlib.h>

#include <weir_fleet.h>

#include "server/net/deferred.h"

struct held {
    struct weir_rules_found found;
    bool kept; /* found.limit is held, and must be let go */
    uint64_t cost;
    uint64_t stamp;
    size_t key_len;
    size_t shard_len;
    char bytes[]; /* the shard, then the key */
};

size_t held_size(size_t parts_len)
{
    return sizeof(struct held) + 2 * parts_len;
}

bool held_is_charged(const struct weir_answer *a)
{
    return a->verdict == WEIR_ALLOW && (a->flags & WEIR_FLAG_DEGRADED) == 0;
}

void held_destroy(struct held *h)
{
    if (h != NULL && h->kept) {
        weir_rules_limit_let_go(h->found.limit);
    }
    free(h);
}

static struct held *create(const void *key, size_t key_len, const struct weir_rules_found *found,
                           uint64_t cost)
{
    struct held *h = calloc(1, sizeof *h + found->shard.len + key_len);
    if (h == NULL) {
        return NULL;
    }
    h->cost = cost;
    h->key_len = key_len;
    h->shard_len = found->shard.len;
    if (h->shard_len > 0) {
        memcpy(h->bytes, found->shard.at, h->shard_len);
    }
    memcpy(h->bytes + h->shard_len, key, key_len);
    h->found = *found;
    h->found.tier = (struct weir_rules_value){NULL, 0};
    h->found.shard.at = found->shard.at != NULL ? h->bytes : NULL;
    return h;
}

/* Notes the stamp of a charge and holds the limit. Must be called while the
 * limit certainly exists. */
static void note(struct held *h, uint64_t stamp)
{
    h->stamp = stamp;
    h->kept = true;
    weir_rules_limit_keep(h->found.limit);
}

/* ---- pending questions ---- */

struct waiting {
    struct held_asked asked;
    struct held *held;
};

static void drop(struct deferred *d)
{
    free(d->data);
}

static int keep(const struct later *later, struct waiting *w, int e)
{
    if (e != ANSWER_LATER) {
        free(w);
        return e;
    }
    later->kept->data = w;
    later->kept->drop = drop;
    return e;
}

static struct weir_rules_value name_of(const struct later_question *q)
{
    return (struct weir_rules_value){q->limit, strlen(q->limit)};
}

/* ---- taking ---- */

static void on_taken(struct deferred *d, int error, const struct remote_answer *answer)
{
    const struct later_question *q = &d->later;
    struct waiting *w = d->data;
    bool charged = false;
    d->error = error;
    if (error == 0) {
        struct text key = later_key(q);
        answer_from_limit(&answer->answer, name_of(q), &q->found, &d->answer);
        answer_note(&d->answer, &answer->answer, key.at, key.len, &q->found);
        charged = held_is_charged(&answer->answer);
        note(w->held, answer->stamp);
    }
    reservation_made(&w->asked, charged, error == 0 && d->answer.verdict == WEIR_ALLOW,
                     d->answer.reservation);
    deferred_answered(d);
}

int held_take(struct held **held, const struct held_asked *asked, struct weir_rules_value limit,
              const void *key, size_t key_len, const struct weir_rules_found *found, uint64_t cost,
              struct later *later, struct weir_answer *a)
{
    struct remote_answer answer;
    struct later_call call = {.verb = REMOTE_CHECK, .cost = cost, .now_ns = asked->now_ns};
    struct waiting *w = calloc(1, sizeof *w);
    *held = create(key, key_len, found, cost);
    if (w == NULL || *held == NULL) {
        free(w);
        return WEIR_ENOMEM;
    }
    *w = (struct waiting){*asked, *held};
    int e = keep(later, w, later_ask(later, limit, key, key_len, found, &call, on_taken, &answer));
    if (e == 0) {
        note(*held, answer.stamp);
        *a = answer.answer;
    }
    return e;
}

/* ---- settling ---- */

static void on_settled(struct deferred *d, int error, const struct remote_answer *answer)
{
    const struct later_question *q = &d->later;
    const struct waiting *w = d->data;
    d->error = error;
    if (error == 0) {
        answer_from_limit(&answer->answer, name_of(q), &q->found, &d->answer);
    }
    reservation_settled(&w->asked, error == 0);
    deferred_answered(d);
}

/* Returns the call that corrects the charge to `actual`: a refund, a penalty, or a peek if there is
 * nothing to correct. */
static struct later_call difference(const struct held *h, bool charged, uint64_t actual)
{
    if (charged && actual < h->cost) {
        return (struct later_call){
            .verb = REMOTE_REFUND, .cost = h->cost - actual, .time_ns = h->stamp};
    }
    if (charged && actual > h->cost) {
        return (struct later_call){.verb = REMOTE_PENALIZE, .cost = actual - h->cost};
    }
    return (struct later_call){.verb = REMOTE_PEEK, .cost = 1};
}

int held_settle(const struct held *h, const struct held_asked *asked, struct weir_rules_value limit,
                bool charged, uint64_t actual, struct later *later, struct answer *told)
{
    struct remote_answer answer;
    struct later_call call = difference(h, charged, actual);
    struct waiting *w = calloc(1, sizeof *w);
    call.now_ns = asked->now_ns;
    if (w == NULL) {
        return WEIR_ENOMEM;
    }
    *w = (struct waiting){*asked, NULL};
    int e = keep(later, w,
                 later_ask(later, limit, h->bytes + h->shard_len, h->key_len, &h->found, &call,
                           on_settled, &answer));
    if (e == 0) {
        answer_from_limit(&answer.answer, limit, &h->found, told);
    }
    return e;
}
