/*
 * Reservations, in short lists of 64 shards. Each shard has a lock of its own; bits of an entry's
 * id choose its shard and its list. Ids are random, so clients cannot choose a shard or a list.
 *
 * The thread that takes an entry off its list owns it. Settling therefore happens outside the lock,
 * and a second thread that looks for the entry finds nothing. The number of entries is one atomic
 * count that is raised before an entry is made, so the bound is exact whatever the shards hold.
 *
 * There is no timer for expired entries: each new entry removes the expired ones of its own list,
 * and when the table is full, a shard that may hold expired entries is cleaned.
 */
#include "server/ask/reservations.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/maths.h"
#include "rules/file/config.h"
#include "server/ask/reservations_id.h"
#include "server/ask/key_ask.h"

#define SHARDS 64
#define LISTS 256

struct entry {
    struct entry *next;
    struct id id;
    struct weir_reservation handle;
    uint64_t expires_ns;
    size_t size;       /* bytes of the entry, with its key and `held` */
    bool uncharged;    /* nothing to settle: a shadow limit would have denied, or the answer was
                        * given without the store; a charge made without it stays */
    struct held *held; /* for a limit that a fleet decides; NULL: `handle` is used */
    struct weir_rules_key key;
    struct weir_rules_value parts[]; /* of `key`; then the bytes of its texts */
};

/* What is needed to settle in a fleet's store: the limit, which is kept, the key and the charge. */
struct held {
    struct rules_found found;
    bool kept; /* the limit is held, and must be let go */
    uint64_t cost;
    uint64_t stamp;
    size_t key_len;
    size_t shard_len;
    char bytes[]; /* the shard, then the key */
};

struct shard {
    pthread_mutex_t lock;
    uint64_t oldest_ns; /* no entry of the shard expires before this time */
    struct entry *lists[LISTS];
} __attribute__((aligned(64)));

struct reservations {
    uint64_t most;
    uint64_t open;
    uint64_t bytes;
    struct reservations_counts counts;
    struct shard shards[SHARDS];
};

static void held_destroy(struct held *h)
{
    if (h != NULL && h->kept) {
        weir_rules_limit_let_go(h->found.told.limit);
    }
    free(h);
}

int reservations_create(struct reservations **out, uint64_t most, struct weir_error *error)
{
    struct reservations *r = aligned_alloc(64, sizeof *r);
    if (r == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for reservations");
    }
    memset(r, 0, sizeof *r);
    r->most = most;
    for (unsigned i = 0; i < SHARDS; i++) {
        (void)pthread_mutex_init(&r->shards[i].lock, NULL);
        r->shards[i].oldest_ns = UINT64_MAX;
    }
    *out = r;
    return 0;
}

void reservations_count(struct reservations *r, struct reservations_counts *counts)
{
    *counts = (struct reservations_counts){.open = load_relaxed(&r->open),
                                           .made = load_relaxed(&r->counts.made),
                                           .settled = load_relaxed(&r->counts.settled),
                                           .expired = load_relaxed(&r->counts.expired),
                                           .lost = load_relaxed(&r->counts.lost),
                                           .refused = load_relaxed(&r->counts.refused)};
}

static struct shard *shard_of(struct reservations *r, struct id id)
{
    return &r->shards[id.word[0] % SHARDS];
}

static struct entry **list_of(struct shard *shard, struct id id)
{
    return &shard->lists[id.word[1] % LISTS];
}

/* ---- room ---- */

static void give_room(struct reservations *r, size_t size)
{
    (void)fetch_sub(&r->bytes, size);
    (void)fetch_sub(&r->open, 1);
}

static void forget(struct reservations *r, struct entry *e)
{
    give_room(r, e->size);
    held_destroy(e->held);
    free(e);
}

/* Removes expired entries from a list; the caller holds the shard's lock. Returns the earliest
 * expiry of the entries that stay. */
static uint64_t clean_list(struct reservations *r, struct entry **at, uint64_t now_ns)
{
    uint64_t oldest = UINT64_MAX;
    while (*at != NULL) {
        struct entry *e = *at;
        if (e->expires_ns <= now_ns) {
            *at = e->next;
            (void)fetch_add(&r->counts.expired, 1);
            forget(r, e);
        } else {
            oldest = min_u64(oldest, e->expires_ns);
            at = &e->next;
        }
    }
    return oldest;
}

void reservations_destroy(struct reservations *r)
{
    for (unsigned i = 0; r != NULL && i < SHARDS; i++) {
        for (unsigned k = 0; k < LISTS; k++) {
            (void)clean_list(r, &r->shards[i].lists[k], UINT64_MAX);
        }
        (void)pthread_mutex_destroy(&r->shards[i].lock);
    }
    free(r);
}

/* Cleans one shard that may hold expired entries; returns false if there is none. */
static bool clean_some(struct reservations *r, uint64_t now_ns)
{
    for (unsigned i = 0; i < SHARDS; i++) {
        struct shard *shard = &r->shards[i];
        if (load_relaxed(&shard->oldest_ns) <= now_ns) {
            uint64_t oldest = UINT64_MAX;
            (void)pthread_mutex_lock(&shard->lock);
            for (unsigned k = 0; k < LISTS; k++) {
                oldest = min_u64(oldest, clean_list(r, &shard->lists[k], now_ns));
            }
            store_relaxed(&shard->oldest_ns, oldest);
            (void)pthread_mutex_unlock(&shard->lock);
            return true;
        }
    }
    return false;
}

/* Adds `by` to a count that must not exceed `most`; returns false if it would. */
static bool raise_to(uint64_t *count, uint64_t by, uint64_t most)
{
    uint64_t seen;
    do {
        seen = load_relaxed(count);
        if (by > most - seen) {
            return false;
        }
    } while (!cas_u64(count, seen, seen + by));
    return true;
}

/* Takes room for an entry of this size; returns false, and takes none, if there is not enough. */
static bool take_room(struct reservations *r, size_t size)
{
    if (!raise_to(&r->open, 1, r->most)) {
        return false;
    }
    if (!raise_to(&r->bytes, size, RESERVATIONS_BYTES)) {
        (void)fetch_sub(&r->open, 1);
        return false;
    }
    return true;
}

/* Allocates an entry with room for the key, in no list yet. Returns NULL after an error. */
static struct entry *create(struct reservations *r, const struct weir_rules_key *key, bool shared,
                            uint64_t now_ns, int *e, struct weir_error *error)
{
    size_t parts = 0;
    for (size_t i = 0; i < key->parts_count; i++) {
        parts += key->parts[i].len;
    }
    size_t size = sizeof(struct entry) + key->parts_count * sizeof key->parts[0] + key->limit.len +
                  key->tier.len + parts;
    size += shared ? sizeof(struct held) + 2 * parts : 0; /* an estimate of `held` */
    bool room = take_room(r, size);
    while (!room && clean_some(r, now_ns)) {
        room = take_room(r, size);
    }
    if (!room) {
        (void)fetch_add(&r->counts.refused, 1);
        *e = fail(error, RESERVATION_FULL, "there are %llu reservations open and no room for more",
                  (unsigned long long)load_relaxed(&r->open));
        return NULL;
    }
    struct entry *entry = calloc(1, size);
    if (entry == NULL) {
        give_room(r, size);
        *e = fail(error, WEIR_ENOMEM, "out of memory for a reservation");
        return NULL;
    }
    entry->size = size;
    return entry;
}

/* ---- remembering a key ---- */

/* Copies the bytes of a value to *to, and moves *to to their end. */
static struct weir_rules_value copy(char **to, struct weir_rules_value value)
{
    struct weir_rules_value copied = {*to, value.len};
    if (value.len > 0) {
        memcpy(*to, value.at, value.len);
    }
    *to += value.len;
    return copied;
}

static void remember(struct entry *e, const struct weir_rules_key *key)
{
    char *to = (char *)&e->parts[key->parts_count];
    for (size_t i = 0; i < key->parts_count; i++) {
        e->parts[i] = copy(&to, key->parts[i]);
    }
    e->key = (struct weir_rules_key){.limit = copy(&to, key->limit),
                                     .parts = e->parts,
                                     .parts_count = key->parts_count,
                                     .tier = copy(&to, key->tier)};
}

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
};

static struct held *held_create(const struct key_ask *k, uint64_t cost)
{
    struct text shard = k->found.shard;
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
    h->found.shard.at = shard.at != NULL ? h->bytes : NULL;
    return h;
}

static void put(struct reservations *r, struct entry *e, uint64_t now_ns)
{
    struct shard *shard = shard_of(r, e->id);
    struct entry **list = list_of(shard, e->id);
    (void)pthread_mutex_lock(&shard->lock);
    (void)clean_list(r, list, now_ns);
    e->next = *list;
    *list = e;
    store_relaxed(&shard->oldest_ns, min_u64(shard->oldest_ns, e->expires_ns));
    (void)pthread_mutex_unlock(&shard->lock);
}

/* Ends reservation_make(), or its later part: enters the reservation if it was made,
 * otherwise frees the entry. */
static void conclude(const struct reserving *m, int error, struct answer *answer)
{
    if (error != 0 || answer->verdict != WEIR_ALLOW) {
        forget(m->all, m->entry);
        return;
    }
    /* Before put(): from then on another thread may end the entry. */
    id_print(m->entry->id, answer->reservation);
    put(m->all, m->entry, m->now_ns);
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
    uint64_t cost = m->units != 0 ? m->units : key_own_cost(k);
    if (k->pending != NULL) {
        m->entry->held = held_create(k, cost);
        return m->entry->held == NULL ? WEIR_ENOMEM
                                      : key_ask(k, REMOTE_CHECK, cost, 0, on_reserved);
    }
    struct remote_answer said;
    int e = weir_reserve_at(k->limiter, k->key.at, k->key.len, cost, m->ttl_ns, m->now_ns,
                            &m->entry->handle, &said.answer);
    return on_reserved(k, e, &said);
}

int reservation_make(struct asker *asker, const struct weir_rules_key *key, uint64_t cost,
                     uint64_t ttl_ms, struct answer *answer, struct weir_error *error)
{
    struct reservations *r = asker->server->reservations;
    struct reserving m = {r, NULL, cost, ttl_ms * WEIR_MILLISECOND, asker->now_ns};
    error->text[0] = 0;
    int e = check_key(key, error);
    m.entry = e == 0 ? create(r, key, asker->worker != NULL, m.now_ns, &e, error) : NULL;
    if (m.entry == NULL) {
        return e;
    }
    if (!id_random(&m.entry->id)) {
        forget(r, m.entry);
        return fail(error, WEIR_EIO, "no random numbers");
    }
    remember(m.entry, key);
    m.entry->expires_ns = add_sat(m.now_ns, m.ttl_ns);
    e = key_begin(asker, key, begin_reserve, &m, sizeof m, answer, error);
    if (e != ANSWER_LATER) {
        conclude(&m, e, answer);
    }
    return e;
}

/* ---- ending one ---- */

/* Takes an entry off its list; the caller owns it then. Returns NULL if there is none. */
static struct entry *take(struct reservations *r, struct id id)
{
    struct shard *shard = shard_of(r, id);
    (void)pthread_mutex_lock(&shard->lock);
    struct entry **at = list_of(shard, id);
    while (*at != NULL && memcmp(&(*at)->id, &id, sizeof id) != 0) {
        at = &(*at)->next;
    }
    struct entry *e = *at;
    if (e != NULL) {
        *at = e->next;
    }
    (void)pthread_mutex_unlock(&shard->lock);
    return e;
}

static int on_settled(struct key_ask *k, int error, const struct remote_answer *said)
{
    const struct reserving *m = k->data;
    if (error == 0) {
        key_answer(k, &said->answer);
    }
    if (k->waited) {
        (void)fetch_add(error == 0 ? &m->all->counts.settled : &m->all->counts.lost, 1);
        forget(m->all, m->entry);
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
        put(r, entry, now_ns); /* the client can try again */
        return e;
    }
    (void)fetch_add(e == WEIR_EEXPIRED ? &r->counts.expired : &r->counts.lost, 1);
    forget(r, entry);
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

int reservation_settle(struct asker *asker, struct text text, uint64_t actual,
                       struct answer *answer, struct weir_error *error)
{
    struct reservations *r = asker->server->reservations;
    struct reserving m = {.all = r, .units = actual, .now_ns = asker->now_ns};
    struct id id;
    error->text[0] = 0;
    m.entry = id_parse(text, &id) ? take(r, id) : NULL;
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
    forget(r, m.entry);
    return 0;
}
