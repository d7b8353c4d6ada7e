#include "server/operations/reservations_table.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/maths.h"
#include "common/log.h"
#include "server/access/access.h"

#define SHARDS RESERVATIONS_SHARDS
#define LISTS RESERVATIONS_LISTS

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
    int e = room_init(&r->room, most, error);
    if (e != 0) {
        free(r);
        return e;
    }
    for (unsigned i = 0; i < SHARDS; i++) {
        (void)pthread_mutex_init(&r->shards[i].lock, NULL);
        r->shards[i].oldest_ns = UINT64_MAX;
    }
    *out = r;
    return 0;
}

_Static_assert(sizeof(struct reservations_counts) % sizeof(uint64_t) == 0, "counts only");

void reservations_count(struct reservations *r, struct reservations_counts *counts)
{
    load_each(counts, &r->counts, sizeof *counts / sizeof(uint64_t));
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

static void give_room(struct reservations *r, const struct room_share *share)
{
    room_give(&r->room, share);
    (void)fetch_sub(&r->counts.open, 1);
}

void entry_forget(struct reservations *r, struct entry *e)
{
    give_room(r, &e->share);
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
            entry_forget(r, e);
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
    if (r != NULL) {
        room_finish(&r->room);
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

/* Counts and logs that there was no room. Any client can cause that, so the log lets a line a
 * second pass. */
static int refuse(struct reservations *r, struct weir_text limit, const struct actor *by,
                  enum room_result why, const struct weir_error *error)
{
    static struct log_limit limits[ROOM_RESULTS];
    char peer[ADDRESS_MAX];
    (void)fetch_add(&r->counts.refused[why], 1);
    LOG_LIMITED(&limits[why], LEVEL_WARNING, "reservation refused", LOG_STRING("why", error->text),
                LOG_TEXT("limit", limit),
                LOG_STRING("address", by->peer != NULL ? peer_print(by->peer, peer) : ""));
    return RESERVATION_FULL;
}

/* Takes room for an entry of `size` bytes; if there is none, first removes expired entries. */
static int take_room(struct asker *asker, struct weir_text limit, size_t size,
                     struct room_share *share, struct weir_error *error)
{
    struct reservations *r = asker->server->reservations;
    const struct address *client = asker->by.peer;
    enum room_result got = room_take(&r->room, limit, client, size, share, error);
    while (got != ROOM_TAKEN && clean_some(r, asker->now_ns)) {
        got = room_take(&r->room, limit, client, size, share, error);
    }
    if (got != ROOM_TAKEN) {
        return refuse(r, limit, &asker->by, got, error);
    }
    (void)fetch_add(&r->counts.open, 1);
    return 0;
}

/* ---- entries ---- */

/* Copies the bytes of a value to *to, and moves *to to their end. */
static struct weir_text copy(char **to, struct weir_text value)
{
    struct weir_text copied = {*to, value.len};
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

static size_t size_of_parts(const struct weir_rules_key *key)
{
    size_t bytes = 0;
    for (size_t i = 0; i < key->parts_count; i++) {
        bytes += key->parts[i].len;
    }
    return bytes;
}

struct entry *entry_create(struct asker *asker, const struct weir_rules_key *key, int *e,
                           struct weir_error *error)
{
    struct reservations *r = asker->server->reservations;
    struct room_share share;
    size_t parts = size_of_parts(key);
    size_t size = sizeof(struct entry) + key->parts_count * sizeof key->parts[0] + key->limit.len +
                  key->tier.len + parts;
    size_t held = asker->worker != NULL ? sizeof(struct held) + 2 * parts : 0; /* an estimate */
    *e = take_room(asker, key->limit, size + held, &share, error);
    if (*e != 0) {
        return NULL;
    }
    struct entry *entry = calloc(1, size);
    if (entry == NULL) {
        give_room(r, &share);
        *e = fail(error, WEIR_ENOMEM, "out of memory for a reservation");
        return NULL;
    }
    entry->share = share;
    remember(entry, key);
    if (!id_random(&entry->id)) {
        entry_forget(r, entry);
        *e = fail(error, WEIR_EIO, "no random numbers");
        return NULL;
    }
    return entry;
}

void entry_put(struct reservations *r, struct entry *e, uint64_t now_ns)
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

struct entry *entry_take(struct reservations *r, struct id id)
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
