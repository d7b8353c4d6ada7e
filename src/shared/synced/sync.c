#include "shared/synced/sync.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "shared/script.h"
#include "shared/synced/sync_table.h"

#define LOOKS 16u /* keys of a full stripe that are examined to find an idle one */

struct syncs {
    struct sync_table table;
    struct hash_secret secret;
    uint64_t stopping;
    uint64_t cursor;    /* the stripe at which sync_next() begins, so that none waits for ever */
    uint64_t silent_ns; /* since when exchanges were made and none was answered; 0: one was */
    uint64_t made_ns;   /* when the last exchange was made */
    struct sync_counts counts;
};

int syncs_create(struct syncs **y, uint64_t keys)
{
    struct syncs *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return WEIR_ENOMEM;
    }
    int e = hash_secret_init(&made->secret);
    if (e == 0) {
        e = sync_table_init(&made->table, keys);
    }
    if (e != 0) {
        free(made);
        return e;
    }
    *y = made;
    return 0;
}

void syncs_destroy(struct syncs *y)
{
    if (y != NULL) {
        sync_table_finish(&y->table);
        free(y);
    }
}

void syncs_seed(struct syncs *y, uint64_t seed)
{
    y->secret.sip[0] = seed;
    y->secret.sip[1] = ~seed;
}

/* ---- keys ---- */

/* Hashes a key with a secret that depends on the limit and the shard, so that equal keys of
 * different limits or shards have different hashes. */
static struct hash hash_of(const struct syncs *y, const struct store_limit *limit,
                           struct text shard, struct text key)
{
    uint64_t secret[2] = {y->secret.sip[0] ^ limit->id, y->secret.sip[1]};
    if (shard.at != NULL) {
        struct hash h = siphash128(secret, shard.at, shard.len, 1, 3);
        secret[0] = h.low;
        secret[1] = h.high;
    }
    return siphash128(secret, key.at, key.len, 1, 3);
}

static const struct store_params *params_of(const struct store_limit *limit)
{
    return &store_limit_numbers(limit)->params;
}

/* Returns whether an exchange is needed: there are units to tell, or questions since the last. */
static bool is_wanted(const struct sync_key *k)
{
    return k->used || k->again || !sync_delta_is_empty(&k->view.next);
}

static uint64_t degraded_after(const struct sync_key *k, uint64_t now_ns)
{
    return add_sat(now_ns, SYNC_DEGRADED_AFTER * k->limit->sync_ns);
}

/* Returns the earliest time of the next exchange: S after the last call if that must be sent again,
 * otherwise S after the last call that was not a repetition. So the units that were admitted during
 * repetitions, and have waited since then, do not wait for another S. */
static uint64_t next_ns(const struct syncs *y, const struct sync_key *k, uint64_t now_ns)
{
    bool first = k->made_ns == 0 || (load_relaxed(&y->stopping) != 0 && !k->again);
    uint64_t from_ns = k->again ? k->made_ns : k->told_ns;
    return first ? now_ns : max_u64(now_ns, add_sat(from_ns, k->limit->sync_ns));
}

/* Returns when an idle key may be forgotten: 10 S after its last use, but not before it is as good
 * as new, because a client that asks seldom would otherwise find a new key each time (Y6). */
static uint64_t idle_ns(struct sync_key *k, uint64_t now_ns)
{
    uint64_t new_ns = add_sat(now_ns, sync_view_reset(&k->view, params_of(k->limit), now_ns));
    return max_u64(new_ns, add_sat(k->used_ns, SYNC_IDLE_AFTER * k->limit->sync_ns));
}

static void count_dropped(struct syncs *y, struct sync_key *k)
{
    if (k->view.dropped != 0) {
        count_shared(&y->counts.dropped, k->view.dropped);
        k->view.dropped = 0;
    }
}

/* Removes and frees a key. Returns its limit, which the caller releases after it has unlocked the
 * stripe, because the last release destroys the limit. */
static struct store_limit *forget(struct syncs *y, struct sync_stripe *s, struct sync_key *k)
{
    struct store_limit *limit = k->limit;
    count_dropped(y, k);
    sync_stripe_remove(&y->table, s, k);
    free(k);
    return limit;
}

/* Makes room in a full stripe: of LOOKS keys, forgets the idle one that will be as good as new
 * soonest. Returns its limit, as forget(), or NULL if none of them is idle. */
static struct store_limit *forget_idle(struct syncs *y, struct sync_stripe *s, uint64_t now_ns)
{
    struct sync_key *best = NULL;
    uint64_t soonest_ns = UINT64_MAX;
    for (unsigned i = 0; i < LOOKS && s->in_heap > 0; i++) {
        struct sync_key *k = s->heap[s->hand++ % s->in_heap];
        uint64_t reset_ns = sync_view_reset(&k->view, params_of(k->limit), now_ns);
        if (!is_wanted(k) && (best == NULL || reset_ns < soonest_ns)) {
            best = k;
            soonest_ns = reset_ns;
        }
    }
    if (best != NULL && soonest_ns != 0) {
        count_shared(&y->counts.forgotten, 1);
    }
    return best != NULL ? forget(y, s, best) : NULL;
}

static struct sync_key *add(struct syncs *y, struct sync_stripe *s, struct hash hash,
                            struct store_limit *limit, struct text shard, struct text key,
                            uint64_t now_ns)
{
    struct store_key full;
    store_key(&limit->head, shard, key, &full);
    struct text tail = text_after(store_key_text(&full), limit->head.len);
    struct sync_key *k = sync_stripe_add(&y->table, s, hash, tail);
    if (k != NULL) {
        store_limit_keep_key(limit);
        k->limit = limit;
        sync_view_init(&k->view, script_offset(params_of(limit), store_key_text(&full)), now_ns);
    }
    return k;
}

/* ---- questions ---- */

/* Notes a question, so that the key is exchanged. Returns SYNC_DUE if it was idle, otherwise 0. */
static int touch(struct syncs *y, struct sync_stripe *s, struct sync_key *k, uint64_t now_ns)
{
    bool idle = !k->in_flight && !is_wanted(k);
    if (idle) {
        if (!k->lost) { /* no exchange was wanted while it was idle; after a loss Y5 goes on */
            k->degraded_ns = max_u64(k->degraded_ns, degraded_after(k, now_ns));
        }
        sync_stripe_schedule(s, k, next_ns(y, k, now_ns));
    }
    k->used = true;
    k->used_ns = now_ns;
    return idle ? SYNC_DUE : 0;
}

/* Sets answer->remaining for the fallback that decides a degraded key. Returns SYNC_LAST, or 0 if
 * this was said already or nothing was heard of the key. */
static int tell_last(struct sync_key *k, const struct store_params *p, uint64_t now_ns,
                     struct weir_answer *answer)
{
    if (k->left || !sync_view_left(&k->view, p, now_ns, &answer->remaining)) {
        return 0;
    }
    k->left = true;
    return SYNC_LAST;
}

/* Returns whether the whole node is degraded (Y5). An exchange that has nothing to tell is not sent
 * again, so its loss counts only until 5 S after the last exchange was made. */
static bool is_silent(const struct syncs *y, const struct sync_key *k, uint64_t now_ns)
{
    uint64_t since_ns = load_relaxed(&y->silent_ns);
    return since_ns != 0 && now_ns >= degraded_after(k, since_ns) &&
           now_ns <= degraded_after(k, load_relaxed(&y->made_ns));
}

static int ask(struct syncs *y, struct sync_stripe *s, struct sync_key *k, uint64_t cost,
               uint64_t now_ns, struct weir_answer *answer)
{
    int due = touch(y, s, k, now_ns);
    const struct store_params *p = params_of(k->limit);
    if ((now_ns >= k->degraded_ns || is_silent(y, k, now_ns)) && cost <= p->quota) {
        count_shared(&y->counts.degraded, 1);
        return SYNC_DEGRADED | tell_last(k, p, now_ns, answer) | due;
    }
    sync_view_ask(&k->view, p, cost, now_ns, answer);
    return SYNC_ANSWERED | due;
}

int sync_ask(struct syncs *y, struct store_limit *limit, struct text shard, struct text key,
             uint64_t cost, uint64_t now_ns, struct weir_answer *answer)
{
    const struct store_params *p = params_of(limit);
    struct hash hash = hash_of(y, limit, shard, key);
    struct sync_stripe *s = sync_stripe_of(&y->table, hash);
    struct store_limit *gone = NULL;
    lock_take(&s->lock, &lock_private);
    struct sync_key *k = sync_stripe_find(&y->table, s, hash);
    if (k == NULL && cost > p->quota) {
        lock_release(&s->lock);
        sync_view_never(p, answer); /* no key is added for such a question */
        return SYNC_ANSWERED;
    }
    if (k == NULL && s->keys == y->table.most) {
        gone = forget_idle(y, s, now_ns);
    }
    k = k != NULL ? k : add(y, s, hash, limit, shard, key, now_ns);
    int e = k != NULL ? ask(y, s, k, cost, now_ns, answer) : SYNC_DEGRADED;
    lock_release(&s->lock);
    if (k == NULL) {
        count_shared(&y->counts.full, 1);
    }
    if (gone != NULL) {
        store_limit_drop_key(gone);
    }
    return e;
}

void sync_refund(struct syncs *y, struct store_limit *limit, struct text shard, struct text key,
                 uint64_t units, uint64_t now_ns)
{
    struct hash hash = hash_of(y, limit, shard, key);
    struct sync_stripe *s = sync_stripe_of(&y->table, hash);
    lock_take(&s->lock, &lock_private);
    struct sync_key *k = sync_stripe_find(&y->table, s, hash);
    if (k != NULL) {
        (void)touch(y, s, k, now_ns);
        sync_view_refund(&k->view, params_of(limit), units, now_ns);
    }
    lock_release(&s->lock);
}

void sync_hurry(struct syncs *y, const struct store_limit *limit, struct text shard,
                struct text key)
{
    struct hash hash = hash_of(y, limit, shard, key);
    struct sync_stripe *s = sync_stripe_of(&y->table, hash);
    lock_take(&s->lock, &lock_private);
    struct sync_key *k = sync_stripe_find(&y->table, s, hash);
    if (k != NULL) {
        k->used = true;
        k->hurry = k->in_flight;
        if (!k->in_flight) {
            sync_stripe_schedule(s, k, 0);
        }
    }
    lock_release(&s->lock);
}

/* ---- exchanges: making them ---- */

static void make_call(struct sync_stripe *s, struct sync_key *k, uint64_t now_ns,
                      struct sync_call *call)
{
    const struct store_params *p = params_of(k->limit);
    struct sync_told told;
    if (!k->again) {
        sync_view_take(&k->view, p, now_ns, &k->flight);
        k->told_ns = now_ns;
    }
    sync_stripe_unschedule(s, k);
    k->again = false;
    k->used = false;
    k->in_flight = true;
    k->made_ns = now_ns;
    sync_view_tell(p, &k->flight, now_ns, &told);
    call->limit = k->limit;
    call->key.len = k->limit->head.len + k->tail_len;
    memcpy(call->key.at, k->limit->head.at, k->limit->head.len);
    memcpy(call->key.at + k->limit->head.len, k->tail, k->tail_len);
    call->hash[0] = k->hash.low;
    call->hash[1] = k->hash.high;
    call->made_ns = now_ns;
    call->delta = told.units;
    call->window = told.at;
    call->extra = told.extra;
    call->set_back = k->view.set_back;
    call->owed = k->view.owed;
    store_limit_hold(k->limit);
}

static void note_made(struct syncs *y, const struct sync_call *call, uint64_t now_ns)
{
    uint64_t long_ns = SYNC_DEGRADED_AFTER * call->limit->sync_ns;
    uint64_t before_ns = load_relaxed(&y->made_ns);
    if (load_relaxed(&y->silent_ns) == 0 || now_ns > add_sat(before_ns, long_ns)) {
        store_relaxed(&y->silent_ns, max_u64(now_ns, 1));
    }
    store_relaxed(&y->made_ns, now_ns);
    count_shared(&y->counts.exchanges, 1);
}

/* Makes the call of the first key of a stripe that is due and needs an exchange. Returns false if
 * there is none, or if an idle key was forgotten on the way: *gone is then its limit, to be
 * released without the lock before the search goes on. */
static bool next_of(struct syncs *y, struct sync_stripe *s, uint64_t now_ns, struct sync_call *call,
                    struct store_limit **gone)
{
    while (s->in_heap > 0 && s->heap[0]->due_ns <= now_ns && *gone == NULL) {
        struct sync_key *k = s->heap[0];
        if (is_wanted(k)) {
            make_call(s, k, now_ns, call);
            return true;
        }
        uint64_t due_ns = idle_ns(k, now_ns);
        if (due_ns <= now_ns) {
            *gone = forget(y, s, k);
        } else {
            sync_stripe_schedule(s, k, due_ns);
        }
    }
    return false;
}

static bool search(struct syncs *y, struct sync_stripe *s, uint64_t now_ns, struct sync_call *call)
{
    bool found = false;
    while (!found && load_relaxed(&s->due_ns) <= now_ns) {
        struct store_limit *gone = NULL;
        lock_take(&s->lock, &lock_private);
        found = next_of(y, s, now_ns, call, &gone);
        lock_release(&s->lock);
        if (gone != NULL) {
            store_limit_drop_key(gone);
        }
    }
    return found;
}

bool sync_next(struct syncs *y, uint64_t now_ns, struct sync_call *call)
{
    size_t n = sync_table_stripes(&y->table);
    uint64_t from = load_relaxed(&y->cursor);
    for (size_t i = 0; i < n; i++) {
        size_t at = (from + i) & (n - 1);
        if (search(y, &y->table.stripes[at], now_ns, call)) {
            store_relaxed(&y->cursor, at + 1);
            note_made(y, call, now_ns);
            return true;
        }
    }
    return false;
}

uint64_t sync_due(const struct syncs *y)
{
    uint64_t due_ns = UINT64_MAX;
    for (size_t i = 0; i < sync_table_stripes(&y->table); i++) {
        due_ns = min_u64(due_ns, load_relaxed(&y->table.stripes[i].due_ns));
    }
    return due_ns;
}

/* ---- exchanges: replies and losses ---- */

enum { AT_NOW, AT_X, AT_Y, AT_Z, AT_BLOCK, AT_DROPPED, REPLY_COUNT };

static bool read_reply(const struct store_reply *reply, struct sync_heard *heard)
{
    const int64_t *x = reply->integers;
    if (reply->type != ':' || reply->n != REPLY_COUNT) {
        return false;
    }
    for (size_t i = 0; i < REPLY_COUNT; i++) {
        bool negative = i == AT_X || i == AT_DROPPED;
        if (x[i] > (int64_t)STORE_MOST || x[i] < (negative ? -(int64_t)STORE_MOST : 0)) {
            return false;
        }
    }
    *heard = (struct sync_heard){
        .store_us = (uint64_t)x[AT_NOW],
        .x = x[AT_X],
        .y = x[AT_Y],
        .z = x[AT_Z],
        .block_us = (uint64_t)x[AT_BLOCK],
        .dropped = x[AT_DROPPED] > 0 ? (uint64_t)x[AT_DROPPED] : 0,
    };
    return true;
}

/* Notes that the key's call has ended, and schedules when the key is looked at next. */
static void land(struct syncs *y, struct sync_stripe *s, struct sync_key *k, uint64_t now_ns)
{
    k->in_flight = false;
    count_dropped(y, k);
    uint64_t due_ns = k->hurry ? now_ns : is_wanted(k) ? next_ns(y, k, now_ns) : idle_ns(k, now_ns);
    k->hurry = false;
    sync_stripe_schedule(s, k, due_ns);
}

/* Notes that the key's call had no reply (Y3). A delta that gives units back is not told again,
 * because counting it twice would give back too much. */
static void lose(struct syncs *y, struct sync_key *k)
{
    struct sync_delta *d = &k->flight;
    count_shared(&y->counts.lost, 1);
    if (d->units < 0) {
        count_shared(&y->counts.dropped, (uint64_t)-d->units);
        d->units = 0;
    }
    if (d->older < 0) {
        count_shared(&y->counts.dropped, (uint64_t)-d->older);
        d->older = 0;
    }
    k->again = !sync_delta_is_empty(d);
    k->lost = true;
}

/* Ends a call with its reply, or with heard NULL if there was none. Releases the call's limit. */
static void end_call(struct syncs *y, const struct sync_call *call, const struct sync_heard *heard,
                     uint64_t now_ns)
{
    struct hash hash = {call->hash[0], call->hash[1]};
    struct sync_stripe *s = sync_stripe_of(&y->table, hash);
    lock_take(&s->lock, &lock_private);
    struct sync_key *k = sync_stripe_find(&y->table, s, hash);
    if (k != NULL && k->in_flight && k->made_ns == call->made_ns) {
        if (heard != NULL) {
            sync_view_hear(&k->view, params_of(k->limit), heard, call->made_ns, now_ns);
            k->degraded_ns = degraded_after(k, now_ns);
            k->lost = false;
            k->left = false;
        } else {
            lose(y, k);
        }
        land(y, s, k, now_ns);
    }
    lock_release(&s->lock);
    store_limit_release(call->limit);
}

int sync_reply(struct syncs *y, const struct sync_call *call, const struct store_reply *reply,
               uint64_t now_ns)
{
    struct sync_heard heard;
    bool good = read_reply(reply, &heard);
    if (good) {
        store_relaxed(&y->silent_ns, 0);
    }
    end_call(y, call, good ? &heard : NULL, now_ns);
    return good ? 0 : WEIR_EIO;
}

void sync_lost(struct syncs *y, const struct sync_call *call, uint64_t now_ns)
{
    end_call(y, call, NULL, now_ns);
}

/* ---- stopping, counts ---- */

void sync_stop(struct syncs *y)
{
    store_relaxed(&y->stopping, 1);
    for (size_t i = 0; i < sync_table_stripes(&y->table); i++) {
        struct sync_stripe *s = &y->table.stripes[i];
        lock_take(&s->lock, &lock_private);
        for (size_t c = 0; c <= y->table.chain_mask; c++) {
            for (struct sync_key *k = s->chains[c]; k != NULL; k = k->chain) {
                if (!k->in_flight && (k->again || !sync_delta_is_empty(&k->view.next))) {
                    sync_stripe_schedule(s, k, 0);
                }
            }
        }
        lock_release(&s->lock);
    }
}

void sync_counts(const struct syncs *y, struct sync_counts *counts)
{
    *counts = (struct sync_counts){
        .exchanges = load_relaxed(&y->counts.exchanges),
        .lost = load_relaxed(&y->counts.lost),
        .dropped = load_relaxed(&y->counts.dropped),
        .full = load_relaxed(&y->counts.full),
        .forgotten = load_relaxed(&y->counts.forgotten),
        .degraded = load_relaxed(&y->counts.degraded),
    };
    for (size_t i = 0; i < sync_table_stripes(&y->table); i++) {
        counts->keys += load_relaxed(&y->table.stripes[i].keys);
    }
}
