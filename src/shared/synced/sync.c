#include "shared/synced/sync.h"

#include <assert.h>

#include "base/atomic.h"
#include "shared/core/node_keys.h"
#include "shared/core/script.h"
#include "shared/synced/sync_view.h"

/* The count of one key: a part of its entry (shared/core/node_keys.h). While a call is out, the
 * part is in no heap. */
struct synced {
    struct key_part part;
    struct sync_view view;
    struct sync_delta flight; /* told by the last call */
    bool in_flight;           /* the call is out */
    bool again;               /* the call was lost, and `flight` must be sent again */
    bool lost;                /* the last call was lost */
    bool used;                /* asked for since the last call was made */
    bool hurry;               /* another call must follow the one in flight at once */
    bool noted;               /* note_left() was called, and no exchange was answered since */
    uint64_t made_ns;         /* when the last call was made; 0: never */
    uint64_t told_ns;         /* the same for the last that was no repetition: it told all units */
    uint64_t degraded_ns;     /* from this time on the key is degraded (Y5) */
};

/* ---- keys ---- */

static const struct store_params *params_of(const struct store_limit *limit)
{
    return &store_limit_numbers(limit)->params;
}

/* Returns whether there is something to tell. */
static bool has_delta(const struct synced *k)
{
    return k->again || !sync_delta_is_empty(&k->view.next);
}

/* Returns whether an exchange is needed: there are units to tell, or questions since the last; but
 * a node that stops need not hear any more. */
static bool is_wanted(const struct node_keys *keys, const struct synced *k)
{
    return has_delta(k) || (k->used && !node_keys_is_stopping(keys));
}

static uint64_t degraded_after(const struct synced *k, uint64_t now_ns)
{
    return add_sat(now_ns, SYNC_DEGRADED_AFTER * k->part.limit->sync_ns);
}

/* Returns the earliest time of the next exchange: S after the last call if that must be sent again,
 * otherwise S after the last call that was not a repetition. So the units that were admitted during
 * repetitions, and have waited since then, do not wait for another S. */
static uint64_t next_ns(const struct node_keys *keys, const struct synced *k, uint64_t now_ns)
{
    bool first = k->made_ns == 0 || (node_keys_is_stopping(keys) && !k->again);
    uint64_t from_ns = k->again ? k->made_ns : k->told_ns;
    return first ? now_ns : max_u64(now_ns, add_sat(from_ns, k->part.limit->sync_ns));
}

/* Returns the time until nothing that the key has used counts any more. */
static uint64_t reset_ns(struct synced *k, uint64_t now_ns)
{
    return sync_view_state(&k->view, params_of(k->part.limit), now_ns).reset_after_ns;
}

/* Returns when an idle key may be forgotten: 10 S after its last use, but not before it is as good
 * as new, because a client that asks seldom would otherwise find a new key each time (Y6). */
static uint64_t idle_ns(struct synced *k, uint64_t now_ns)
{
    uint64_t new_ns = add_sat(now_ns, reset_ns(k, now_ns));
    return max_u64(new_ns, add_sat(k->part.key->used_ns, SYNC_IDLE_AFTER * k->part.limit->sync_ns));
}

static void count_dropped(struct node_keys *keys, struct synced *k)
{
    if (k->view.dropped != 0) {
        count_shared(&keys->syncs.counts.dropped, k->view.dropped);
        k->view.dropped = 0;
    }
}

static void forget(struct node_keys *keys, struct key_stripe *s, struct synced *k)
{
    count_dropped(keys, k);
    node_key_end(s, &k->part);
}

/* key_matters_fn: how long it takes until an idle key is as good as new. */
static uint64_t matters(struct key_part *part, uint64_t now_ns)
{
    struct synced *k = (struct synced *)part;
    bool idle = !k->in_flight && !k->used && !has_delta(k);
    return idle ? reset_ns(k, now_ns) : UINT64_MAX;
}

/* Gives the key a count, if necessary instead of an idle one (Y7). Returns NULL if there is no room
 * or no memory. */
static struct synced *add(struct node_keys *keys, struct key_stripe *s, struct hash hash,
                          const struct remote_part *of, uint64_t now_ns)
{
    struct store_key name;
    struct key_part *least = node_key_least(s, KEY_SYNCED, matters, now_ns);
    if (least != NULL) {
        count_shared(&keys->syncs.counts.forgotten, matters(least, now_ns) != 0);
        forget(keys, s, (struct synced *)least);
    }
    struct synced *k = node_key_begin(s, hash, of, KEY_SYNCED, sizeof *k);
    if (k == NULL) {
        count_shared(&keys->syncs.counts.full, 1);
        return NULL;
    }
    node_key_name(&k->part, &name);
    sync_view_init(&k->view, script_offset(params_of(of->limit), store_key_text(&name)), now_ns);
    return k;
}

static struct synced *find(const struct key_stripe *s, struct hash hash)
{
    return node_key_part(node_key_find(s, hash), KEY_SYNCED);
}

/* ---- questions ---- */

/* Notes a question, so that the key is exchanged. Returns SYNC_DUE if it was idle, otherwise 0. */
static int touch(struct node_keys *keys, struct key_stripe *s, struct synced *k, uint64_t now_ns)
{
    bool idle = !k->in_flight && !is_wanted(keys, k);
    if (idle) {
        if (!k->lost) { /* no exchange was wanted while it was idle; after a loss Y5 goes on */
            k->degraded_ns = max_u64(k->degraded_ns, degraded_after(k, now_ns));
        }
        node_key_schedule(s, &k->part, next_ns(keys, k, now_ns));
    }
    k->used = true;
    k->part.key->used_ns = now_ns;
    return idle ? SYNC_DUE : 0;
}

/* Notes what a degraded key has left, for a fallback, unless this was done already or nothing was
 * heard of the key. */
static void note_left(struct synced *k, const struct store_params *p, uint64_t now_ns)
{
    if (!k->noted && k->view.known) {
        struct weir_answer state = sync_view_state(&k->view, p, now_ns);
        k->noted = true;
        node_key_note(k->part.key, 0, &state, 0, now_ns);
    }
}

/* Returns whether the whole node is degraded (Y5). An exchange that has nothing to tell is not sent
 * again, so its loss counts only until 5 S after the last exchange was made. */
static bool is_silent(const struct node_keys *keys, const struct synced *k, uint64_t now_ns)
{
    uint64_t since_ns = load_relaxed(&keys->syncs.silent_ns);
    return since_ns != 0 && now_ns >= degraded_after(k, since_ns) &&
           now_ns <= degraded_after(k, load_relaxed(&keys->syncs.made_ns));
}

static int ask(struct node_keys *keys, struct key_stripe *s, struct synced *k, uint64_t cost,
               uint64_t now_ns, struct weir_answer *answer)
{
    int due = touch(keys, s, k, now_ns);
    const struct store_params *p = params_of(k->part.limit);
    if ((now_ns >= k->degraded_ns || is_silent(keys, k, now_ns)) && cost <= p->quota) {
        count_shared(&keys->syncs.counts.degraded, 1);
        note_left(k, p, now_ns);
        return SYNC_DEGRADED | due;
    }
    sync_view_ask(&k->view, p, cost, now_ns, answer);
    return SYNC_ANSWERED | due;
}

int sync_ask(struct node_keys *keys, const struct remote_part *of, uint64_t now_ns,
             struct weir_answer *answer)
{
    const struct store_params *p = params_of(of->limit);
    struct hash hash = node_key_hash(keys, of);
    struct key_stripe *s = node_keys_lock(keys, hash, &now_ns);
    struct synced *k = find(s, hash);
    int said = SYNC_DEGRADED;
    if (k == NULL && of->cost > p->quota) {
        sync_view_never(p, answer); /* no count is begun for such a question */
        said = SYNC_ANSWERED;
    } else if (k != NULL || (k = add(keys, s, hash, of, now_ns)) != NULL) {
        said = ask(keys, s, k, of->cost, now_ns, answer);
    }
    node_keys_unlock(s);
    return said;
}

void sync_refund(struct node_keys *keys, const struct remote_part *of, uint64_t now_ns)
{
    struct hash hash = node_key_hash(keys, of);
    struct key_stripe *s = node_keys_lock(keys, hash, &now_ns);
    struct synced *k = find(s, hash);
    if (k != NULL) {
        (void)touch(keys, s, k, now_ns);
        sync_view_refund(&k->view, params_of(of->limit), of->cost, now_ns);
    }
    node_keys_unlock(s);
}

void sync_hurry(struct node_keys *keys, const struct remote_part *of)
{
    uint64_t now_ns = 0;
    struct hash hash = node_key_hash(keys, of);
    struct key_stripe *s = node_keys_lock(keys, hash, &now_ns);
    struct synced *k = find(s, hash);
    if (k != NULL) {
        k->used = true;
        k->hurry = k->in_flight;
        if (!k->in_flight) {
            node_key_schedule(s, &k->part, 0);
        }
    }
    node_keys_unlock(s);
}

/* ---- exchanges: making them ---- */

static void make_call(struct key_stripe *s, struct synced *k, uint64_t now_ns,
                      struct sync_call *call)
{
    const struct store_params *p = params_of(k->part.limit);
    struct sync_told told;
    assert(!k->in_flight);                                               /* Y2 */
    assert(!k->again || (k->flight.units >= 0 && k->flight.older >= 0)); /* Y3 */
    if (!k->again) {
        sync_view_take(&k->view, p, now_ns, &k->flight);
        k->told_ns = now_ns;
    }
    node_key_unschedule(s, &k->part);
    k->again = false;
    k->used = false;
    k->in_flight = true;
    k->made_ns = now_ns;
    sync_view_tell(p, &k->flight, now_ns, &told);
    *call = (struct sync_call){
        .limit = k->part.limit,
        .hash = k->part.key->hash,
        .made_ns = now_ns,
        .delta = told.units,
        .window = told.at,
        .extra = told.extra,
        .set_back = k->view.set_back,
        .owed = k->view.owed,
    };
    node_key_name(&k->part, &call->key);
    store_limit_hold(k->part.limit);
}

static void note_made(struct node_keys *keys, const struct sync_call *call, uint64_t now_ns)
{
    uint64_t long_ns = SYNC_DEGRADED_AFTER * call->limit->sync_ns;
    uint64_t before_ns = load_relaxed(&keys->syncs.made_ns);
    if (load_relaxed(&keys->syncs.silent_ns) == 0 || now_ns > add_sat(before_ns, long_ns)) {
        store_relaxed(&keys->syncs.silent_ns, max_u64(now_ns, 1));
    }
    store_relaxed(&keys->syncs.made_ns, now_ns);
    count_shared(&keys->syncs.counts.exchanges, 1);
}

/* key_look_fn: makes the call of a key that needs an exchange, and forgets a key that has been idle
 * for long. */
static bool look_after(struct node_keys *keys, struct key_stripe *s, struct key_part *part,
                       uint64_t now_ns, void *call)
{
    struct synced *k = (struct synced *)part;
    if (is_wanted(keys, k)) {
        make_call(s, k, now_ns, call);
        return true;
    }
    uint64_t due_ns = idle_ns(k, now_ns);
    if (due_ns <= now_ns) {
        forget(keys, s, k);
    } else {
        node_key_schedule(s, part, due_ns);
    }
    return false;
}

bool sync_next(struct node_keys *keys, uint64_t now_ns, struct sync_call *call)
{
    bool found = node_keys_next(keys, KEY_SYNCED, now_ns, look_after, call);
    if (found) {
        note_made(keys, call, now_ns);
    }
    return found;
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
static void land(struct node_keys *keys, struct key_stripe *s, struct synced *k, uint64_t now_ns)
{
    assert(k->in_flight && k->part.place == KEY_NOWHERE); /* Y2 */
    k->in_flight = false;
    count_dropped(keys, k);
    uint64_t due_ns = k->hurry             ? now_ns
                      : is_wanted(keys, k) ? next_ns(keys, k, now_ns)
                                           : idle_ns(k, now_ns);
    k->hurry = false;
    node_key_schedule(s, &k->part, due_ns);
}

/* Notes that the key's call had no reply (Y3). A delta that gives units back is not told again,
 * because counting it twice would give back too much. */
static void lose(struct node_keys *keys, struct synced *k)
{
    struct sync_delta *d = &k->flight;
    count_shared(&keys->syncs.counts.lost, 1);
    if (d->units < 0) {
        count_shared(&keys->syncs.counts.dropped, (uint64_t)-d->units);
        d->units = 0;
    }
    if (d->older < 0) {
        count_shared(&keys->syncs.counts.dropped, (uint64_t)-d->older);
        d->older = 0;
    }
    k->again = !sync_delta_is_empty(d);
    k->lost = true;
}

/* Ends a call with its reply, or with heard NULL if there was none. Releases the call's limit. */
static void end_call(struct node_keys *keys, const struct sync_call *call,
                     const struct sync_heard *heard, uint64_t now_ns)
{
    struct key_stripe *s = node_keys_lock(keys, call->hash, &now_ns);
    struct synced *k = find(s, call->hash);
    if (k != NULL && k->in_flight && k->made_ns == call->made_ns) {
        if (heard != NULL) {
            sync_view_hear(&k->view, params_of(k->part.limit), heard, call->made_ns, now_ns);
            k->degraded_ns = degraded_after(k, now_ns);
            k->lost = false;
            k->noted = false;
        } else {
            lose(keys, k);
        }
        land(keys, s, k, now_ns);
    }
    node_keys_unlock(s);
    store_limit_release(call->limit);
}

int sync_reply(struct node_keys *keys, const struct sync_call *call,
               const struct store_reply *reply, uint64_t now_ns)
{
    struct sync_heard heard;
    bool good = read_reply(reply, &heard);
    if (good) {
        store_relaxed(&keys->syncs.silent_ns, 0);
    }
    end_call(keys, call, good ? &heard : NULL, now_ns);
    return good ? 0 : WEIR_EIO;
}

void sync_lost(struct node_keys *keys, const struct sync_call *call, uint64_t now_ns)
{
    end_call(keys, call, NULL, now_ns);
}

void sync_counts(const struct node_keys *keys, struct sync_counts *counts)
{
    load_each(counts, &keys->syncs.counts, sizeof *counts / sizeof(uint64_t));
    counts->keys = node_keys_count(keys, KEY_SYNCED);
}
