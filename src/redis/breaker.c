/*
 * Circuit breakers, one for each endpoint. The state of a breaker is one word: 0 is closed; k > 0
 * is open, and k - 1 probes have failed since it opened. The counters that lead to opening are only
 * approximate: a race between two threads may open the breaker one failure sooner or later, but
 * never leaves it in between.
 *
 * B1  While the breaker is closed, the time of the next probe is UINT64_MAX. Only the thread that
 *     opens it, by a swap of the state, sets that time; after that only the beginning and the end
 *     of a probe change it, and breaker_answers(), which brings it forward. A thread that decides
 *     too late to open the breaker must not set it, or a second probe could begin beside one that
 *     is under way.
 * B2  A thread takes the probe by swapping that time for one 10 s later. Only one thread wins the
 *     swap, and if it never reports a result, the next probe is due at that later time.
 */
#include "redis/breaker.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>

#include "base/atomic.h"
#include "base/maths.h"

enum { IN_A_ROW = 5, AT_LEAST = 20, PARTS = BREAKER_PARTS, DOUBLINGS = 6 };

#define PART_NS (WEIR_SECOND / PARTS)
#define PROBE_FIRST (100 * WEIR_MILLISECOND)
#define PROBE_MOST (5 * WEIR_SECOND)
#define TEXT_NS (10 * WEIR_MILLISECOND)
#define PROBE_REFUSED WEIR_SECOND
#define PROBE_LEASE (10 * WEIR_SECOND)

/*
 * The last second is counted in eight parts, so the counts cover the last 0.875 to 1 s. A part is
 * one word: its number (24 bits), and how many calls went well and how many failed in it (20 bits
 * each; they saturate).
 */
#define COUNT_BITS 20
#define COUNT_MOST ((UINT64_C(1) << COUNT_BITS) - 1)
#define STAMP_MASK ((UINT64_C(1) << 24) - 1)

struct breakers {
    uint64_t random;
    pthread_mutex_t lock; /* guards the rows, their users, names and doubts; held briefly */
    unsigned count;
    struct breaker *rows[BREAKERS_MAX];
};

struct breakers *breakers_create(uint64_t seed)
{
    struct breakers *b = calloc(1, sizeof *b);
    if (b != NULL) {
        b->random = seed;
        (void)pthread_mutex_init(&b->lock, NULL);
    }
    return b;
}

void breakers_destroy(struct breakers *b)
{
    if (b == NULL) {
        return;
    }
    for (size_t i = 0; i < b->count; i++) {
        free(b->rows[i]);
    }
    (void)pthread_mutex_destroy(&b->lock);
    free(b);
}

/* ---- finding ---- */

static struct breaker *find(const struct breakers *b, const char *endpoint)
{
    for (unsigned i = 0; i < b->count; i++) {
        if (strcmp(b->rows[i]->name, endpoint) == 0) {
            return b->rows[i];
        }
    }
    return NULL;
}

/* Returns a new row or, if there are BREAKERS_MAX, one that is not in use. NULL: all are in use, or
 * no memory. */
static struct breaker *find_room(struct breakers *b)
{
    if (b->count < BREAKERS_MAX) {
        struct breaker *row = malloc(sizeof *row);
        if (row != NULL) {
            b->rows[b->count++] = row;
        }
        return row;
    }
    for (unsigned i = 0; i < b->count; i++) {
        if (b->rows[i]->users == 0) {
            return b->rows[i];
        }
    }
    return NULL;
}

static struct breaker *make(struct breakers *b, const char *endpoint, size_t len)
{
    struct breaker *row = find_room(b);
    if (row != NULL) {
        *row = (struct breaker){.all = b, .probe_ns = UINT64_MAX};
        memcpy(row->name, endpoint, len + 1);
    }
    return row;
}

struct breaker *breaker_find(struct breakers *b, const char *endpoint)
{
    size_t len = strlen(endpoint);
    if (len >= BREAKER_NAME_MAX) {
        return NULL;
    }
    (void)pthread_mutex_lock(&b->lock);
    struct breaker *row = find(b, endpoint);
    row = row != NULL ? row : make(b, endpoint, len);
    if (row != NULL) {
        row->users++;
    }
    (void)pthread_mutex_unlock(&b->lock);
    return row;
}

void breaker_leave(struct breaker *b)
{
    (void)pthread_mutex_lock(&b->all->lock);
    assert(b->users > 0);
    b->users--;
    (void)pthread_mutex_unlock(&b->all->lock);
}

void breaker_for_calls(struct breaker *b)
{
    store_relaxed(&b->calls, 1);
}

size_t breakers_see(struct breakers *b, struct breaker_seen *seen, size_t most)
{
    size_t n = 0;
    (void)pthread_mutex_lock(&b->lock);
    for (unsigned i = 0; i < b->count; i++) {
        const struct breaker *row = b->rows[i];
        if (row->users == 0) {
            continue;
        }
        if (n < most) {
            memcpy(seen[n].endpoint, row->name, sizeof row->name);
            seen[n].open = breaker_is_open(row);
            seen[n].calls = load_relaxed(&row->calls) != 0;
            load_each(&seen[n].memory, &row->memory, sizeof row->memory / sizeof(uint64_t));
        }
        n++;
    }
    (void)pthread_mutex_unlock(&b->lock);
    return n;
}

uint64_t breakers_count_open(struct breakers *b)
{
    uint64_t n = 0;
    (void)pthread_mutex_lock(&b->lock);
    for (unsigned i = 0; i < b->count; i++) {
        n += b->rows[i]->users != 0 && breaker_is_open(b->rows[i]);
    }
    (void)pthread_mutex_unlock(&b->lock);
    return n;
}

/* ---- opening ---- */

/* Does what splitmix_next() does, for any number of threads. */
uint64_t breakers_random(struct breakers *b)
{
    return splitmix_finish(fetch_add(&b->random, SPLITMIX_STEP));
}

/* Returns a random delay for the next probe after `failed` probes have failed: at most 100 ms,
 * doubled for each of them up to 5 s; or up to 1 s for an endpoint that answers and only refuses
 * calls, because it bears the probes, and may be another server soon (single.c). */
static uint64_t random_part(struct breaker *b, uint64_t failed)
{
    uint64_t longest = load_relaxed(&b->doubted) != 0 ? PROBE_REFUSED : PROBE_MOST;
    uint64_t most = min_u64(PROBE_FIRST << min_u64(failed, DOUBLINGS), longest);
    return mul_high(breakers_random(b->all), most + 1);
}

static void open_it(struct breaker *b, uint64_t now_ns)
{
    if (cas_u64(&b->state, 0, 1)) { /* B1 */
        store_release(&b->probe_ns, now_ns + random_part(b, 0));
    }
}

/* Returns the part with the counts added; a part of an earlier second starts from zero. */
static uint64_t added(uint64_t part, uint64_t stamp, uint64_t good, uint64_t bad)
{
    bool fresh = part >> 2 * COUNT_BITS == stamp;
    uint64_t old_good = fresh ? part >> COUNT_BITS & COUNT_MOST : 0;
    uint64_t old_bad = fresh ? part & COUNT_MOST : 0;
    return stamp << 2 * COUNT_BITS | min_u64(add_sat(old_good, good), COUNT_MOST) << COUNT_BITS |
           min_u64(add_sat(old_bad, bad), COUNT_MOST);
}

static void count(struct breaker *b, uint64_t good, uint64_t bad, uint64_t now_ns)
{
    uint64_t stamp = now_ns / PART_NS & STAMP_MASK;
    uint64_t *part = &b->parts[stamp % PARTS];
    uint64_t seen;
    do {
        seen = load_relaxed(part);
    } while (!cas_u64(part, seen, added(seen, stamp, good, bad)));
}

static bool half_failed(const struct breaker *b, uint64_t now_ns)
{
    uint64_t stamp = now_ns / PART_NS & STAMP_MASK;
    uint64_t good = 0;
    uint64_t bad = 0;
    for (size_t i = 0; i < PARTS; i++) {
        uint64_t part = load_relaxed(&b->parts[i]);
        if (((stamp - (part >> 2 * COUNT_BITS)) & STAMP_MASK) < PARTS) {
            good += part >> COUNT_BITS & COUNT_MOST;
            bad += part & COUNT_MOST;
        }
    }
    return good + bad >= AT_LEAST && bad >= good;
}

void breaker_good(struct breaker *b, uint64_t n, uint64_t now_ns)
{
    if (n == 0 || breaker_is_open(b)) {
        return;
    }
    if (load_relaxed(&b->bad_in_a_row) != 0) {
        store_relaxed(&b->bad_in_a_row, 0);
    }
    if (breaker_doubts(b)) {
        store_relaxed(&b->doubted, 0);
    }
    count(b, n, 0, now_ns);
}

void breaker_bad(struct breaker *b, uint64_t now_ns)
{
    if (breaker_is_open(b)) {
        return;
    }
    count(b, 0, 1, now_ns);
    if (fetch_add(&b->bad_in_a_row, 1) + 1 >= IN_A_ROW || half_failed(b, now_ns)) {
        open_it(b, now_ns);
    }
}

/* ---- texts of scripts ---- */

bool breaker_begin_text(struct breaker *b, unsigned script, const void *link, uint64_t now_ns)
{
    uint64_t sent_ns = load_relaxed(&b->texts_ns[script]);
    bool own = load_relaxed(&b->texts_by[script]) == (uintptr_t)link;
    bool lately = sent_ns != 0 && now_ns < sent_ns + TEXT_NS;
    if ((lately && !own) || !cas_u64(&b->texts_ns[script], sent_ns, now_ns)) {
        return false;
    }
    store_relaxed(&b->texts_by[script], (uintptr_t)link);
    return true;
}

/* ---- doubted keys ---- */

void breaker_doubt(struct breaker *b, struct weir_text key)
{
    if (breaker_doubts(b) || key.len == 0 || key.len > sizeof b->doubt) {
        return; /* one key is enough */
    }
    (void)pthread_mutex_lock(&b->all->lock);
    memcpy(b->doubt, key.at, key.len);
    store_relaxed(&b->doubted, key.len);
    (void)pthread_mutex_unlock(&b->all->lock);
}

size_t breaker_doubted(struct breaker *b, char key[BREAKER_KEY_MAX])
{
    if (!breaker_doubts(b)) {
        return 0;
    }
    (void)pthread_mutex_lock(&b->all->lock);
    size_t len = load_relaxed(&b->doubted);
    memcpy(key, b->doubt, len);
    (void)pthread_mutex_unlock(&b->all->lock);
    return len;
}

void breaker_well(struct breaker *b, uint64_t now_ns)
{
    store_relaxed(&b->well_ns, now_ns);
}

uint64_t breaker_well_ns(const struct breaker *b)
{
    return load_relaxed(&b->well_ns);
}

/* ---- probing ---- */

uint64_t breaker_due(const struct breaker *b)
{
    return breaker_is_open(b) ? load_relaxed(&b->probe_ns) : UINT64_MAX;
}

bool breaker_may_probe(struct breaker *b, uint64_t now_ns)
{
    if (!breaker_is_open(b)) {
        return false;
    }
    uint64_t due = load_acquire(&b->probe_ns);
    return now_ns >= due && cas_u64(&b->probe_ns, due, now_ns + PROBE_LEASE); /* B2 */
}

/* A time that is later than the longest pause is the end of a probe's lease (B2). One that began
 * more than 5 s ago is not recognised: then two probes may be under way. */
void breaker_answers(struct breaker *b, uint64_t now_ns)
{
    uint64_t due = load_acquire(&b->probe_ns);
    if (breaker_is_open(b) && load_relaxed(&b->doubted) == 0 && due > now_ns &&
        due - now_ns <= PROBE_MOST) {
        (void)cas_u64(&b->probe_ns, due, now_ns);
    }
}

static void close_it(struct breaker *b)
{
    for (size_t i = 0; i < PARTS; i++) {
        store_relaxed(&b->parts[i], 0);
    }
    store_relaxed(&b->bad_in_a_row, 0);
    store_relaxed(&b->doubted, 0);
    store_relaxed(&b->probe_ns, UINT64_MAX);
    store_release(&b->state, 0);
}

void breaker_probed(struct breaker *b, bool good, uint64_t now_ns)
{
    uint64_t state = load_acquire(&b->state);
    if (state == 0) {
        return;
    }
    if (good) {
        close_it(b);
        return;
    }
    if (cas_u64(&b->state, state, state + 1)) { /* B1: it may have been closed meanwhile */
        store_release(&b->probe_ns, now_ns + random_part(b, state));
    }
}
