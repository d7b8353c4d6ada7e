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
#include "server/ask/reservations_later.h"

#define SHARDS 64
#define LISTS 256

struct entry {
    struct entry *next;
    struct id id;
    struct weir_reservation handle;
    uint64_t expires_ns;
    size_t size;       /* bytes of the entry, with its key and `held` */
    bool uncharged;    /* nothing was charged in a way that can be settled (held_is_charged()) */
    struct held *held; /* for a limit that a fleet decides; NULL: `handle` is used */
    unsigned short limit_len;
    unsigned short tier_len;
    unsigned short parts_count;
    unsigned short part_len[CONFIG_KEY_PARTS_MAX];
    char bytes[]; /* the limit's name, the tier, the parts */
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

void reservations_destroy(struct reservations *r)
{
    for (unsigned i = 0; r != NULL && i < SHARDS; i++) {
        for (unsigned k = 0; k < LISTS; k++) {
            for (struct entry *e = r->shards[i].lists[k]; e != NULL;) {
                struct entry *next = e->next;
                held_destroy(e->held);
                free(e);
                e = next;
            }
        }
        (void)pthread_mutex_destroy(&r->shards[i].lock);
    }
    free(r);
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

static void forget(struct reservations *r, struct entry *e)
{
    (void)fetch_sub(&r->bytes, e->size);
    (void)fetch_sub(&r->open, 1);
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
static struct entry *create(struct reservations *r, const struct weir_rules_key *key,
                            const struct later *later, uint64_t now_ns, int *e,
                            struct weir_error *error)
{
    size_t size = sizeof(struct entry) + key->limit.len + key->tier.len;
    size_t parts = 0;
    for (size_t i = 0; i < key->parts_count; i++) {
        parts += key->parts[i].len;
    }
    size += parts + (later != NULL ? held_size(parts) : 0);
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
        (void)fetch_sub(&r->bytes, size);
        (void)fetch_sub(&r->open, 1);
        *e = fail(error, WEIR_ENOMEM, "out of memory for a reservation");
        return NULL;
    }
    entry->size = size;
    return entry;
}

/* ---- remembering a key ---- */

static char *append(char *to, struct weir_rules_value value)
{
    if (value.len > 0) {
        memcpy(to, value.at, value.len);
    }
    return to + value.len;
}

static void remember(struct entry *e, const struct weir_rules_key *key)
{
    char *to = append(append(e->bytes, key->limit), key->tier);
    e->limit_len = (unsigned short)key->limit.len;
    e->tier_len = (unsigned short)key->tier.len;
    e->parts_count = (unsigned short)key->parts_count;
    for (size_t i = 0; i < key->parts_count; i++) {
        e->part_len[i] = (unsigned short)key->parts[i].len;
        to = append(to, key->parts[i]);
    }
}

static struct weir_rules_value piece(const char **at, size_t len)
{
    struct weir_rules_value value = {*at, len};
    *at += len;
    return value;
}

/* Returns the key that remember() has stored; `parts` has room for CONFIG_KEY_PARTS_MAX. */
static struct weir_rules_key recall(const struct entry *e, struct weir_rules_value *parts)
{
    const char *at = e->bytes;
    struct weir_rules_key key = {.parts = parts, .parts_count = e->parts_count};
    key.limit = piece(&at, e->limit_len);
    key.tier = piece(&at, e->tier_len);
    for (unsigned i = 0; i < e->parts_count; i++) {
        parts[i] = piece(&at, e->part_len[i]);
    }
    return key;
}

/* Refuses keys longer than any limit takes; their lengths would not fit in an entry either. */
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

struct making {
    const struct weir_rules_key *key;
    uint64_t cost;
    uint64_t ttl_ns;
    uint64_t now_ns;
    struct reservations *all;
    struct later *later;
    struct entry *entry;
    struct answer *answer;
};

static int reserve_here(const struct making *m, struct weir *limiter, const void *key,
                        size_t key_len, uint64_t cost, struct weir_answer *a)
{
    return weir_reserve_at(limiter, key, key_len, cost, m->ttl_ns, m->now_ns, &m->entry->handle, a);
}

static int reserve_there(const struct making *m, const void *key, size_t key_len, uint64_t cost,
                         const struct weir_rules_found *found, struct weir_answer *a)
{
    struct held_asked asked = {m->all, m->entry, m->now_ns};
    return held_take(&m->entry->held, &asked, m->key->limit, key, key_len, found, cost, m->later,
                     a);
}

static int reserve_found(void *arg, struct weir *limiter, const void *key, size_t key_len,
                         const struct weir_rules_found *found)
{
    const struct making *m = arg;
    uint64_t own = found->cost != 0 ? found->cost : 1;
    uint64_t cost = m->cost != 0 ? m->cost : own;
    struct weir_answer a;
    int e = found->remote == NULL ? reserve_here(m, limiter, key, key_len, cost, &a)
                                  : reserve_there(m, key, key_len, cost, found, &a);
    if (e == 0) {
        answer_from_limit(&a, m->key->limit, found, m->answer);
        answer_note(m->answer, &a, key, key_len, found);
        m->entry->uncharged = !held_is_charged(&a);
    }
    return e;
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
static void conclude(struct reservations *r, struct entry *e, bool made, uint64_t now_ns,
                     char id[RESERVATION_ID])
{
    id[0] = 0;
    if (!made) {
        forget(r, e);
        return;
    }
    id_print(e->id, id); /* before put(): from then on another thread may end the entry */
    put(r, e, now_ns);
    (void)fetch_add(&r->counts.made, 1);
}

void reservation_made(const struct held_asked *asked, bool charged, bool made,
                      char id[RESERVATION_ID])
{
    asked->entry->uncharged = !charged;
    conclude(asked->all, asked->entry, made, asked->now_ns, id);
}

int reservation_make(struct reservations *r, struct weir_rules *rules,
                     const struct weir_rules_key *key, uint64_t cost, uint64_t ttl_ms,
                     uint64_t now_ns, struct later *later, struct answer *answer,
                     char id[RESERVATION_ID], struct weir_error *error)
{
    struct making m = {key, cost, ttl_ms * WEIR_MILLISECOND, now_ns, r, later, NULL, answer};
    id[0] = 0;
    error->text[0] = 0;
    int e = check_key(key, error);
    m.entry = e == 0 ? create(r, key, later, now_ns, &e, error) : NULL;
    if (m.entry == NULL) {
        return e;
    }
    if (!id_random(&m.entry->id)) {
        forget(r, m.entry);
        return fail(error, WEIR_EIO, "no random numbers");
    }
    remember(m.entry, key);
    m.entry->expires_ns = add_sat(now_ns, m.ttl_ns);
    e = weir_rules_use(rules, key, reserve_found, &m, error);
    if (e != ANSWER_LATER) {
        conclude(r, m.entry, e == 0 && answer->verdict == WEIR_ALLOW, now_ns, id);
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

struct settling {
    const struct weir_rules_key *key;
    uint64_t actual;
    uint64_t now_ns;
    struct entry *entry;
    struct answer *answer;
};

static int settle_found(void *arg, struct weir *limiter, const void *key, size_t key_len,
                        const struct weir_rules_found *found)
{
    const struct settling *s = arg;
    struct weir_question peek = {.key = key, .key_len = key_len, .cost = 1, .mode = WEIR_PEEK};
    struct weir_answer a;
    if (found->remote != NULL) {
        return WEIR_ENOLIMIT;
    }
    int e = s->entry->uncharged
                ? weir_ask_at(limiter, &peek, s->now_ns, &a)
                : weir_settle_at(limiter, &s->entry->handle, s->actual, s->now_ns, &a);
    if (e == 0) {
        answer_from_limit(&a, s->key->limit, found, s->answer);
    }
    return e;
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

void reservation_settled(const struct held_asked *asked, bool good)
{
    (void)fetch_add(good ? &asked->all->counts.settled : &asked->all->counts.lost, 1);
    forget(asked->all, asked->entry);
}

static int settle(struct reservations *r, struct weir_rules *rules, struct entry *entry,
                  uint64_t actual, uint64_t now_ns, struct later *later, struct answer *answer,
                  struct weir_error *error)
{
    struct weir_rules_value parts[CONFIG_KEY_PARTS_MAX];
    struct weir_rules_key key = recall(entry, parts);
    struct settling s = {&key, actual, now_ns, entry, answer};
    struct held_asked asked = {r, entry, now_ns};
    if (entry->expires_ns <= now_ns) {
        return WEIR_EEXPIRED;
    }
    return entry->held == NULL ? weir_rules_use(rules, &key, settle_found, &s, error)
                               : held_settle(entry->held, &asked, key.limit, !entry->uncharged,
                                             actual, later, answer);
}

int reservation_settle(struct reservations *r, struct weir_rules *rules, struct text text,
                       uint64_t actual, uint64_t now_ns, struct later *later, struct answer *answer,
                       struct weir_error *error)
{
    struct id id;
    error->text[0] = 0;
    struct entry *entry = id_parse(text, &id) ? take(r, id) : NULL;
    if (entry == NULL) {
        return fail(error, RESERVATION_NONE,
                    "no such reservation: unknown, expired, settled or cancelled");
    }
    int e = settle(r, rules, entry, actual, now_ns, later, answer, error);
    if (e == ANSWER_LATER) {
        return e;
    }
    if (e != 0) {
        return fail_settle(r, entry, e, now_ns, error);
    }
    (void)fetch_add(&r->counts.settled, 1);
    forget(r, entry);
    return 0;
}
