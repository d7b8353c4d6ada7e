/*
 * What this node remembers of the keys that the fleet shares. Each key has at most one entry, which
 * one hash finds, in a table of stripes with one lock each.
 *
 * An entry has notes: what the store last said remained, and what it has denied. It can also have a
 * part that belongs to the mode of its limit: a lease (leased/lease_part.h) or a count
 * (synced/sync.c). Both modes keep their parts in a heap by the time at which they must be looked
 * at. Which stripes have parts, and the earliest time of each, can be read without a lock.
 *
 * K1  Entries of each kind (notes alone, a lease, a count) are bounded separately, so that a flood
 *     of keys of one kind takes no room from the others. No memory is allocated for notes.
 * K2  If there is no more room for a kind, the least useful of LOOKS entries of this kind gives
 *     way: the one whose part matters for the shortest time, and of these the one that was not used
 *     for longest. Parts that must stay never give way: a lease with units, a delta that the store
 *     has not acknowledged, a call that is out. If there are only such parts, there is no room.
 * K3  Notes may be forgotten at any time: the key is then asked for in the store again, and begins
 *     as an unknown one in a fallback. A part that ends leaves its notes here.
 *
 * A denial answers questions that the store would deny as well: those of the same cost for as long
 * as its caller says; those of higher costs only where their retry is known, too: in a bucket it is
 * later by the time of the additional units, in a fixed window it is the window's end. A denial
 * never answers costs beyond the quota: their answer is NEVER.
 */
#ifndef WEIR_SHARED_CORE_NODE_KEYS_H
#define WEIR_SHARED_CORE_NODE_KEYS_H

#include <pthread.h>

#include "base/hash.h"
#include "base/maths.h"
#include "shared/core/store_limit.h"

enum key_kind { KEY_FREE, KEY_NOTED, KEY_LEASED, KEY_SYNCED, KEY_KINDS };

enum { KEY_STRIPES_MAX = 64 }; /* a bit for each in node_keys.scheduled */
#define KEY_NOWHERE SIZE_MAX

/* An entry. Fields are guarded by the lock of its stripe. */
struct node_key {
    struct hash hash;
    uint32_t next; /* in its chain, or of the free entries: an index, plus 1; 0: none */
    uint16_t kind; /* enum key_kind */
    uint16_t denied_flags;
    uint64_t used_ns;         /* when the last question came */
    uint64_t remaining;       /* what the store last said; 0 if it has said nothing */
    uint64_t reset_at_ns;     /* likewise */
    uint64_t noted_ns;        /* when it said so; 0: it has said nothing */
    uint64_t denied_cost;     /* 0: nothing is denied */
    uint64_t denied_until_ns; /* until when the denial answers questions */
    uint64_t retry_at_ns;
    uint64_t round;        /* of node_keys_once(); 0: none since the store has said something */
    struct key_part *part; /* of a KEY_LEASED or KEY_SYNCED; otherwise NULL */
};

/* The head of a part. */
struct key_part {
    struct node_key *key;
    struct store_limit *limit; /* held */
    uint64_t due_ns;           /* when it must be looked at, if it is in the heap */
    size_t place;              /* index in the heap; KEY_NOWHERE: it is in none */
    struct key_part *gone;     /* next of those that node_keys_unlock() frees */
    struct weir_text tail;     /* of the store's key: the bytes after the limit's head */
};

struct key_heap {
    uint64_t due_ns; /* of the first part, or UINT64_MAX; read without the lock */
    size_t count;
    struct key_part **at;
};

struct key_stripe {
    pthread_mutex_t lock;
    struct node_key *keys;
    uint32_t *chains; /* as node_key.next */
    uint32_t chain_mask;
    uint32_t free;         /* first of the free entries, as node_key.next */
    struct key_part *gone; /* parts that have ended, to be freed without the lock */
    uint64_t now_ns;       /* the latest time seen: a thread's time may be a little older */
    uint64_t begun;        /* number of entries that were ever used; the others are all zero */
    uint64_t hand;         /* chooses the entries that K2 examines */
    uint64_t calls;        /* number of ids given to calls of leases */
    struct node_keys *table;
    uint64_t count[KEY_KINDS]; /* numbers of entries; read without the lock */
    struct key_heap heap[KEY_KINDS];
} __attribute__((aligned(64)));

/* What `synced` counts. */
struct sync_counts {
    uint64_t keys;      /* number of keys now */
    uint64_t exchanges; /* calls made */
    uint64_t lost;      /* calls without a reply */
    uint64_t dropped;   /* units of windows that were over, and of refunds without a reply */
    uint64_t full;      /* questions whose key found no room */
    uint64_t forgotten; /* keys that were forgotten for others before they were as good as new */
    uint64_t degraded;  /* questions that were not decided because no exchange was answered */
};

/* What is kept for all keys together; atomics. */
struct syncs {
    uint64_t silent_ns; /* since when exchanges were made and none was answered; 0: one was */
    uint64_t made_ns;   /* when the last exchange was made */
    struct sync_counts counts;
};

struct node_keys {
    uint64_t stripes; /* a power of two */
    struct hash_secret secret;
    uint64_t most[KEY_KINDS]; /* entries of a stripe */
    uint64_t turn[KEY_KINDS]; /* the stripe at which node_keys_next() begins */
    /* Bit i: the heap of stripe i has parts. Changed under the stripe's lock, read without it. */
    uint64_t scheduled[KEY_KINDS];
    uint64_t stopping;       /* node_keys_stop() was called */
    struct syncs syncs;      /* numbers that synced/sync.c keeps for all keys */
    struct node_key *keys;   /* memory of all stripes */
    struct key_part **heaps; /* likewise */
    uint32_t *chains;        /* likewise */
    struct key_stripe stripe[KEY_STRIPES_MAX];
};

/* Creates a table for at least `most` entries of each kind. Returns 0, WEIR_ENOMEM or WEIR_EIO (no
 * random numbers). No call may be out when node_keys_destroy() is called. */
int node_keys_create(struct node_keys **keys, const uint64_t most[KEY_KINDS]);
void node_keys_destroy(struct node_keys *keys);

/* Returns the hash of a limit's key. The hash has a secret, so that an attacker cannot choose keys
 * that share a place. */
struct hash node_key_hash(const struct node_keys *keys, const struct remote_part *of);

/* Returns the number of entries of the kind. */
uint64_t node_keys_count(const struct node_keys *keys, enum key_kind kind);

/* From now on all leases are returned and all counts are told: every part is due at once. The
 * caller then calls store_tick() until nothing is due and store_is_idle(), for a short time at
 * most, and destroys the stores. */
void node_keys_stop(struct node_keys *keys);

static inline bool node_keys_is_stopping(const struct node_keys *keys)
{
    return __atomic_load_n(&keys->stopping, __ATOMIC_RELAXED) != 0;
}

/* ---- entries; the caller has locked the stripe ---- */

/* node_keys_lock() locks the hash's stripe, and sets *now_ns to the latest time that the stripe has
 * seen, *now_ns included. node_keys_unlock() also frees the parts that have ended meanwhile. */
static inline struct key_stripe *node_keys_lock(struct node_keys *keys, struct hash hash,
                                                uint64_t *now_ns)
{
    struct key_stripe *s = &keys->stripe[(hash.low >> 32) & (keys->stripes - 1)];
    (void)pthread_mutex_lock(&s->lock);
    s->now_ns = max_u64(s->now_ns, *now_ns);
    *now_ns = s->now_ns;
    return s;
}

void node_keys_unlock(struct key_stripe *s);

static inline struct node_key *node_key_find(const struct key_stripe *s, struct hash hash)
{
    uint32_t at = s->chains[hash.low & s->chain_mask];
    while (at != 0 &&
           (s->keys[at - 1].hash.low != hash.low || s->keys[at - 1].hash.high != hash.high)) {
        at = s->keys[at - 1].next;
    }
    return at != 0 ? &s->keys[at - 1] : NULL;
}

/* Returns the key's entry, which is made if there is none. Returns NULL if there is no room. */
struct node_key *node_key_make(struct key_stripe *s, struct hash hash, uint64_t now_ns);

/* Returns the part if the entry is of this kind, otherwise NULL. The entry may be NULL. */
static inline void *node_key_part(const struct node_key *k, enum key_kind kind)
{
    return k != NULL && k->kind == kind ? k->part : NULL;
}

/* Returns for how long the part matters. UINT64_MAX: it must stay. */
typedef uint64_t (*key_matters_fn)(struct key_part *part, uint64_t now_ns);

/* Returns a part that gives way (K2), if the kind has no more room. The caller ends it. Returns
 * NULL if there is room, or if every part that was examined must stay. */
struct key_part *node_key_least(struct key_stripe *s, enum key_kind kind, key_matters_fn matters,
                                uint64_t now_ns);

/* Gives the key a part of `size` zeroed bytes, which begins with its head and is in no heap. Holds
 * the limit, and counts the key for it. Returns NULL if there is no room or no memory. */
void *node_key_begin(struct key_stripe *s, struct hash hash, const struct remote_part *of,
                     enum key_kind kind, size_t size);

/* Ends a part. It may be used until the stripe is unlocked. */
void node_key_end(struct key_stripe *s, struct key_part *part);

/* Sets *name to the key's name in the store. */
void node_key_name(const struct key_part *part, struct store_key *name);

/* ---- parts that are due (node_keys_due.c) ---- */

/* node_key_schedule() puts a part into the heap, or moves it there by its new due time.
 * node_key_unschedule() takes it out. The caller has locked the stripe. */
void node_key_schedule(struct key_stripe *s, struct key_part *part, uint64_t due_ns);
void node_key_unschedule(struct key_stripe *s, struct key_part *part);

/* Looks at a part that is due. Returns true if it has made the *call. It must schedule the part for
 * later, unschedule it or end it. */
typedef bool (*key_look_fn)(struct node_keys *keys, struct key_stripe *s, struct key_part *part,
                            uint64_t now_ns, void *call);

/* Looks at parts of the kind that are due, until a call is made. Returns false if none is. */
bool node_keys_next(struct node_keys *keys, enum key_kind kind, uint64_t now_ns, key_look_fn look,
                    void *call);

/* Returns when the next part is due; UINT64_MAX: none is. */
uint64_t node_keys_due(const struct node_keys *keys);

/* ---- notes of an entry; the caller has locked the stripe ---- */

/* Returns the time from now until `at_ns`, which may be WEIR_FOREVER. */
static inline uint64_t node_key_until(uint64_t at_ns, uint64_t now_ns)
{
    return at_ns == WEIR_FOREVER ? WEIR_FOREVER : sub_floor0(at_ns, now_ns);
}

/* Notes an answer of the store, which was asked for `cost` (0: only what remains is of interest).
 * If keep_ns is not 0, the store has denied the cost, and this is remembered for keep_ns. */
void node_key_note(struct node_key *k, uint64_t cost, const struct weir_answer *answer,
                   uint64_t keep_ns, uint64_t now_ns);

/* Returns true, with a DENY in *answer, if a denial answers the question. A denial is used for
 * linger_ns longer than it was to be kept. */
bool node_key_denies(struct node_key *k, const struct store_params *params, uint64_t cost,
                     uint64_t linger_ns, uint64_t now_ns, struct weir_answer *answer);

/* ---- notes of any key; these take the lock ---- */

bool node_keys_deny(struct node_keys *keys, struct hash hash, const struct store_params *params,
                    uint64_t cost, uint64_t now_ns, struct weir_answer *answer);
void node_keys_note(struct node_keys *keys, struct hash hash, uint64_t cost,
                    const struct weir_answer *answer, uint64_t keep_ns, uint64_t now_ns);

/* Forgets the notes, because the key was changed otherwise than by decisions. */
void node_keys_forget(struct node_keys *keys, struct hash hash);

/*
 * Calls fn(arg, key) once for each key and `round`, before any other thread that calls with the
 * same ones returns; and again after the store has said something new. `key` has what the store
 * last said; NULL: nothing is known. A key that has been forgotten meanwhile counts as new.
 */
void node_keys_once(struct node_keys *keys, struct hash hash, uint64_t round, uint64_t now_ns,
                    void (*fn)(void *arg, const struct node_key *key), void *arg);

#endif
