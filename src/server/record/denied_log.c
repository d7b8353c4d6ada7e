#include "server/record/denied_log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/hash.h"
#include "common/log.h"
#include "server/record/limit_reasons.h"
#include "server/record/top_denied.h"

#define PARTS 16
#define WAYS 8
#define SETS (DENIED_LOG_KEYS / PARTS / WAYS)
#define LISTS 256
#define KEY_TEXT 256

/* One key and reason. */
struct denied_key {
    uint64_t id;    /* 0: free */
    uint64_t times; /* how often it was denied */
    uint64_t last;  /* the part's `now` when it was denied last */
};

struct log_part {
    pthread_mutex_t lock;
    uint64_t now; /* counts the denials */
    struct denied_key sets[SETS][WAYS];
};

/* The lines of one limit. Entries are never removed, so they need no lock to be found; there are as
 * many as names of limits with `log` that the rules have had. */
struct lines {
    struct lines *next;
    pthread_mutex_t lock;
    uint64_t began_ns; /* of the present period */
    uint64_t written;  /* in it */
    uint64_t told;     /* of left_out, in lines */
    uint64_t left_out;
    char limit[WEIR_RULES_NAME];
};

struct denied_log {
    struct hash_secret secret;
    pthread_mutex_t lock; /* for adding to `lists` */
    struct lines *lists[LISTS];
    struct log_part parts[PARTS];
};

struct denied_log *denied_log_create(void)
{
    struct denied_log *log = calloc(1, sizeof *log);
    if (log == NULL || hash_secret_init(&log->secret) != 0) {
        free(log);
        return NULL;
    }
    (void)pthread_mutex_init(&log->lock, NULL);
    for (unsigned i = 0; i < PARTS; i++) {
        (void)pthread_mutex_init(&log->parts[i].lock, NULL);
    }
    return log;
}

void denied_log_destroy(struct denied_log *log)
{
    for (unsigned i = 0; log != NULL && i < LISTS; i++) {
        while (log->lists[i] != NULL) {
            struct lines *next = log->lists[i]->next;
            free(log->lists[i]);
            log->lists[i] = next;
        }
    }
    free(log);
}

/* ---- the lines of a limit ---- */

static size_t list_of(const struct denied_log *log, const char *limit)
{
    return hash_sip(&log->secret, limit, strlen(limit)).low % LISTS;
}

static struct lines *find(const struct denied_log *log, size_t list, const char *limit)
{
    struct lines *l = __atomic_load_n(&log->lists[list], __ATOMIC_ACQUIRE); /* with add() */
    while (l != NULL && strcmp(l->limit, limit) != 0) {
        l = l->next;
    }
    return l;
}

/* Adds a limit, unless another thread has just done so. Returns NULL if out of memory. */
static struct lines *add(struct denied_log *log, size_t list, const char *limit)
{
    (void)pthread_mutex_lock(&log->lock);
    struct lines *l = find(log, list, limit);
    if (l == NULL && (l = calloc(1, sizeof *l)) != NULL) {
        (void)pthread_mutex_init(&l->lock, NULL);
        (void)snprintf(l->limit, sizeof l->limit, "%s", limit);
        l->next = log->lists[list];
        __atomic_store_n(&log->lists[list], l, __ATOMIC_RELEASE); /* with find() */
    }
    (void)pthread_mutex_unlock(&log->lock);
    return l;
}

/* Takes one of the lines of the period, if one is left. Times of threads differ by a little, so
 * only a whole period, in either direction, begins a new one. */
static bool take_line(struct lines *l, const struct weir_rules_denial *d, uint64_t *left_out)
{
    (void)pthread_mutex_lock(&l->lock);
    uint64_t apart = d->now_ns > l->began_ns ? d->now_ns - l->began_ns : l->began_ns - d->now_ns;
    if (apart >= d->log_period_ns) {
        l->began_ns = d->now_ns;
        l->written = 0;
    }
    bool taken = l->written < d->log_count;
    if (taken) {
        uint64_t all = load_relaxed(&l->left_out);
        l->written++;
        *left_out = all - l->told;
        l->told = all;
    }
    (void)pthread_mutex_unlock(&l->lock);
    return taken;
}

/* ---- keys ---- */

/* Returns the entry of a key and reason, or the one that was denied longest ago. */
static struct denied_key *key_of(struct denied_key *set, uint64_t id)
{
    struct denied_key *oldest = set;
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].id == id) {
            return &set[i];
        }
        oldest = set[i].last < oldest->last ? &set[i] : oldest;
    }
    *oldest = (struct denied_key){.id = id};
    return oldest;
}

/* Counts a denial of a key for a reason. Returns its number. The address of a limit's lines
 * stands for the limit: no two have the same. */
static uint64_t count_denial(struct denied_log *log, const struct weir_rules_denial *d,
                             const struct lines *lines)
{
    struct hash hash = hash_sip(&log->secret, d->key, d->key_len);
    uint64_t of = (uintptr_t)lines + (uint64_t)d->reason;
    uint64_t id = hash.low ^ of * UINT64_C(0x9e3779b97f4a7c15);
    struct log_part *part = &log->parts[hash.high % PARTS];
    (void)pthread_mutex_lock(&part->lock);
    struct denied_key *key = key_of(part->sets[hash.high / PARTS % SETS], id != 0 ? id : 1);
    key->last = ++part->now;
    uint64_t times = ++key->times;
    (void)pthread_mutex_unlock(&part->lock);
    return times;
}

bool denied_log_due(struct denied_log *log, const struct weir_rules_denial *d,
                    struct denied_line *line)
{
    size_t list = list_of(log, d->limit);
    struct lines *lines = find(log, list, d->limit);
    lines = lines != NULL ? lines : add(log, list, d->limit);
    if (lines == NULL) {
        return false;
    }
    line->times = count_denial(log, d, lines);
    if ((line->times == 1 || line->times % DENIED_LOG_EACH == 0) &&
        take_line(lines, d, &line->left_out)) {
        return true;
    }
    (void)fetch_add(&lines->left_out, 1);
    return false;
}

uint64_t denied_log_left_out(const struct denied_log *log, const char *limit)
{
    const struct lines *l = log != NULL ? find(log, list_of(log, limit), limit) : NULL;
    return l != NULL ? load_relaxed(&l->left_out) : 0;
}

/* ---- noting ---- */

static __thread struct denied_log *own;

void denied_log_use(struct denied_log *log)
{
    own = log;
}

static void tell(const struct weir_rules_denial *d, const struct denied_line *line)
{
    char key[KEY_TEXT];
    size_t n = weir_rules_key_text(d->key, d->key_len, key, sizeof key);
    bool ends = d->verdict == WEIR_DENY && d->retry_after_ns != WEIR_FOREVER;
    LOG(LEVEL_INFO, "request denied", LOG_STRING("limit", d->limit),
        LOG_KEY("key", ((struct weir_text){key, n})),
        LOG_STRING("reason", weir_rules_reason_name(d->reason)), LOG_COUNT("times", line->times),
        LOG_COUNT("retry_after_ms",
                  ends ? (int64_t)(d->retry_after_ns / WEIR_MILLISECOND) : INT64_C(-1)),
        LOG_COUNT("left_out", line->left_out));
}

void denied_note(void *arg, const struct weir_rules_denial *d)
{
    struct denied_line line = {0};
    (void)arg;
    top_denied(d->limit, d->key, d->key_len, d->reason);
    if (d->reason != WEIR_REASON_LIMIT) {
        limit_reasons_note(d->limit, d->reason);
    }
    if (d->log_count > 0 && own != NULL && denied_log_due(own, d, &line)) {
        tell(d, &line);
    }
}
