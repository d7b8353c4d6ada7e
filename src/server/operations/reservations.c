/* Makes, settles and cancels reservations. */
#include "server/operations/reservations.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/maths.h"
#include "limit/limiter.h"
#include "rules/file/config.h"
#include "server/operations/reservations_table.h"

/* Refuses keys longer than any limit takes. */
static int check_key(const struct weir_rules_key *key, struct weir_error *error)
{
    bool good = key->parts_count <= CONFIG_KEY_PARTS_MAX && key->limit.len < WEIR_RULES_NAME &&
                key->tier.len <= WEIR_RULES_VALUE_MAX;
    for (size_t i = 0; good && i < key->parts_count; i++) {
        good = key->parts[i].len <= WEIR_RULES_VALUE_MAX;
    }
    return good ? 0
                : fail(error, WEIR_EKEY, "expected at most %d parts of at most %d bytes",
                       CONFIG_KEY_PARTS_MAX, WEIR_RULES_VALUE_MAX);
}

/* ---- making one ---- */

/* What a question about a reservation needs when its answer comes. */
struct reserving {
    struct reservations *all;
    struct entry *entry;
    uint64_t units; /* making: the cost, 0: the limit's own; settling: the units that were used */
    uint64_t ttl_ns;
    uint64_t now_ns;
    struct weir_error
        *error; /* for begin_reserve() only, because it does not outlive the request */
};

static struct held *held_create(const struct key_ask *k, uint64_t cost)
{
    struct weir_text shard = k->found.shard;
    struct held *h = calloc(1, sizeof *h + shard.len + k->key.len);
    if (h == NULL) {
        return NULL;
    }
    h->cost = cost;
    h->key_len = k->key.len;
    h->shard_len = shard.len;
    if (shard.len > 0) {
        memcpy(h->bytes, shard.at, shard.len);
    }
    memcpy(h->bytes + shard.len, k->key.at, k->key.len);
    h->found = k->found;
    h->found.told.cost_attribute = (struct weir_text){NULL, 0}; /* of these rules */
    h->found.shard.at = shard.at != NULL ? h->bytes : NULL;
    return h;
}

/* Ends reservation_make(), or its later part: enters the reservation if it was made,
 * otherwise frees the entry. */
static void conclude(const struct reserving *m, int error, struct answer *answer)
{
    if (error != 0 || answer->verdict != WEIR_ALLOW) {
        entry_forget(m->all, m->entry);
        return;
    }
    /* Before entry_put(): from then on another thread may end the entry. */
    id_print(m->entry->id, answer->reservation);
    entry_put(m->all, m->entry, m->now_ns);
    (void)fetch_add(&m->all->counts.made, 1);
}

static int on_reserved(struct key_ask *k, int error, const struct remote_answer *said)
{
    const struct reserving *m = k->data;
    struct held *held = m->entry->held;
    if (error == 0) {
        key_answer(k, &said->answer);
        key_note(k, &said->answer);
        m->entry->uncharged =
            said->answer.verdict != WEIR_ALLOW || (said->answer.flags & REMOTE_DEGRADED) != 0;
    }
    if (error == 0 && held != NULL) {
        held->stamp = said->stamp;
        held->kept = true;
        weir_rules_limit_keep(held->found.told.limit);
    }
    if (k->waited) {
        conclude(m, error, k->answer);
    }
    return error;
}

static int begin_reserve(struct key_ask *k)
{
    const struct reserving *m = k->data;
    uint64_t cost;
    int e = key_cost(k, m->units, &cost, m->error);
    if (e != 0) {
        return e;
    }
    if (k->pending != NULL) {
        m->entry->held = held_create(k, cost);
        return m->entry->held == NULL ? WEIR_ENOMEM
                                      : key_ask(k, REMOTE_CHECK, cost, 0, on_reserved);
    }
    struct remote_answer said;
    struct weir_question ask = {.key = k->key.at,
                                .key_len = k->key.len,
                                .cost = rate_cost(k->found.kind, cost),
                                .flags = key_flags(k)};
    e = limiter_reserve(k->limiter, &ask, m->ttl_ns, m->now_ns, &m->entry->handle, &said.answer);
    return on_reserved(k, e, &said);
}

uint64_t reservation_ttl_longest_ms(const struct server *server)
{
    uint64_t longest = server->options.reservation_ttl_ms;
    return longest != 0 ? longest : RESERVATION_TTL_LONGEST_MS;
}

/* Sets the time to live of a reservation that is to be made; returns WEIR_EINVAL if it is too
 * long. */
static int choose_ttl(const struct server *server, uint64_t ttl_ms, uint64_t *ttl_ns,
                      struct weir_error *error)
{
    uint64_t longest = reservation_ttl_longest_ms(server);
    *ttl_ns = (ttl_ms != 0 ? ttl_ms : min_u64(RESERVATION_TTL_MS, longest)) * WEIR_MILLISECOND;
    return ttl_ms <= longest ? 0
                             : fail(error, WEIR_EINVAL,
                                    "ttl_ms: found %" PRIu64 ", expected at most %" PRIu64
                                    " (server.reservation_ttl in the rule file)",
                                    ttl_ms, longest);
}

int reservation_make(struct asker *asker, const struct weir_rules_key *key, uint64_t cost,
                     uint64_t ttl_ms, struct answer *answer, struct weir_error *error)
{
    struct reserving m = {
        .all = asker->server->reservations, .units = cost, .now_ns = asker->now_ns, .error = error};
    error->text[0] = 0;
    int e = check_key(key, error);
    e = e != 0 ? e : choose_ttl(asker->server, ttl_ms, &m.ttl_ns, error);
    m.entry = e == 0 ? entry_create(asker, key, &e, error) : NULL;
    if (m.entry == NULL) {
        return e;
    }
    m.entry->expires_ns = add_sat(m.now_ns, m.ttl_ns);
    e = key_begin(asker, key, begin_reserve, &m, sizeof m, answer, error);
    if (e != ANSWER_LATER) {
        conclude(&m, e, answer);
    }
    return e;
}

/* ---- ending one ---- */

static int on_settled(struct key_ask *k, int error, const struct remote_answer *said)
{
    const struct reserving *m = k->data;
    if (error == 0) {
        key_answer(k, &said->answer);
    }
    if (k->waited) {
        (void)fetch_add(error == 0 ? &m->all->counts.settled : &m->all->counts.lost, 1);
        entry_forget(m->all, m->entry);
    }
    return error;
}

static int settle_here(struct key_ask *k)
{
    const struct reserving *m = k->data;
    struct remote_answer said;
    if (k->pending != NULL) {
        return WEIR_ENOLIMIT; /* it was made while the limit was decided here */
    }
    if (m->entry->uncharged) {
        return key_ask(k, REMOTE_PEEK, 1, 0, on_settled);
    }
    int e = weir_settle_at(k->limiter, &m->entry->handle, m->units, m->now_ns, &said.answer);
    return on_settled(k, e, &said);
}

/* Corrects the charge in the store: by a refund, a penalty, or a peek if there is nothing to
 * correct. */
static int settle_there(struct key_ask *k)
{
    const struct reserving *m = k->data;
    const struct held *h = m->entry->held;
    if (!m->entry->uncharged && m->units < h->cost) {
        return key_ask(k, REMOTE_REFUND, h->cost - m->units, h->stamp, on_settled);
    }
    if (!m->entry->uncharged && m->units > h->cost) {
        return key_ask(k, REMOTE_PENALIZE, m->units - h->cost, 0, on_settled);
    }
    return key_ask(k, REMOTE_PEEK, 1, 0, on_settled);
}

/* Ends a failed settle: puts the entry back if the client may try again, otherwise frees it.
 * Returns the result for the client. */
static int fail_settle(struct reservations *r, struct entry *entry, int e, uint64_t now_ns,
                       struct weir_error *error)
{
    if (e == WEIR_EFULL || e == WEIR_ETIME || e == WEIR_EIO || e == WEIR_ENOMEM) {
        entry_put(r, entry, now_ns); /* the client can try again */
        return e;
    }
    (void)fetch_add(e == WEIR_EEXPIRED ? &r->counts.expired : &r->counts.lost, 1);
    entry_forget(r, entry);
    return fail(error, RESERVATION_NONE,
                e == WEIR_EEXPIRED ? "the reservation has expired"
                                   : "the limit of this reservation is gone or has changed");
}

static int settle(struct asker *asker, const struct reserving *m, struct answer *answer,
                  struct weir_error *error)
{
    const struct weir_rules_key *key = &m->entry->key;
    const struct held *h = m->entry->held;
    if (m->entry->expires_ns <= m->now_ns) {
        return WEIR_EEXPIRED;
    }
    if (h == NULL) {
        return key_begin(asker, key, settle_here, m, sizeof *m, answer, error);
    }
    struct key_memory of = {key->limit, h->found, {h->bytes + h->shard_len, h->key_len}};
    return key_begin_again(asker, &of, settle_there, m, sizeof *m, answer);
}

int reservation_settle(struct asker *asker, struct weir_text text, uint64_t actual,
                       struct answer *answer, struct weir_error *error)
{
    struct reservations *r = asker->server->reservations;
    struct reserving m = {.all = r, .units = actual, .now_ns = asker->now_ns};
    struct id id;
    error->text[0] = 0;
    m.entry = id_parse(text, &id) ? entry_take(r, id) : NULL;
    if (m.entry == NULL) {
        return fail(error, RESERVATION_NONE,
                    "no such reservation: unknown, expired, settled or cancelled");
    }
    int e = settle(asker, &m, answer, error);
    if (e == ANSWER_LATER) {
        return e;
    }
    if (e != 0) {
        return fail_settle(r, m.entry, e, m.now_ns, error);
    }
    (void)fetch_add(&r->counts.settled, 1);
    entry_forget(r, m.entry);
    return 0;
}
