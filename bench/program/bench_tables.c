/* Opens and fills the limiters, and measures their memory and lost keys. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/maths.h"
#include "bench_core.h"
#include "bench_floor.h"
#include "bench_loop.h"
#include "bench_rivals.h"

#define BATCH 32
#define FILL_STEP_NS 1
#define HOT_KEYS 1000

void *bench_map(uint64_t bytes, bool huge)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    if (p == MAP_FAILED) {
        return NULL;
    }
    if (huge) {
        (void)madvise(p, bytes, MADV_HUGEPAGE);
    }
    memset(p, 0, bytes);
    return p;
}

/* ---- limiters ---- */

static unsigned flags_of(const struct bench *b)
{
    return WEIR_EXPLICIT_TIME | (b->options.huge ? WEIR_HUGE_PAGES : 0);
}

static int open_subject(struct bench *b, int id, struct weir_options *o, uint64_t step_ns)
{
    struct weir_error error;
    struct subject *s = &b->subject[id];
    s->now_ns = WEIR_HOUR;
    s->step_ns = step_ns;
    if (weir_open(&s->w, o, &error) != 0) {
        (void)fprintf(stderr, "weir-bench: %s\n", error.text);
        return -1;
    }
    return 0;
}

/*
 * One unit comes back every 86 ms, and a key may take 10^9. With a nanosecond between questions,
 * every key that was asked once stays in debt for the whole run, and none runs out of units.
 */
static struct weir_options live_options(const struct bench *b, uint64_t max_keys, int on_full)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = UINT64_C(1000000000);
    o.period_ns = 1000 * WEIR_DAY;
    o.max_keys = max_keys;
    o.on_full = on_full;
    o.flags = flags_of(b);
    return o;
}

static int open_live(struct bench *b, int id, uint64_t max_keys, int on_full)
{
    struct weir_options o = live_options(b, max_keys, on_full);
    return open_subject(b, id, &o, FILL_STEP_NS);
}

static void close_subject(struct bench *b, int id)
{
    weir_close(b->subject[id].w);
    b->subject[id].w = NULL;
}

/*
 * 1,000 per ms, half of which are taken. Questions come at a rate that keeps it so; all are
 * allowed.
 */
static int open_hot(struct bench *b, int algorithm)
{
    bool bucket = algorithm == WEIR_TOKEN_BUCKET || algorithm == WEIR_LEAKY_BUCKET;
    int id = SUBJECT_HOT + algorithm - 1;
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct bench_key key = key_of(0);
    struct weir_answer a;
    o.algorithm = algorithm;
    o.count = 1000;
    o.period_ns = WEIR_MILLISECOND;
    o.queue = algorithm == WEIR_LEAKY_BUCKET ? 999 : 0;
    o.max_keys = HOT_KEYS;
    o.flags = flags_of(b);
    if (open_subject(b, id, &o, (bucket ? 1 : 2) * WEIR_MICROSECOND) != 0) {
        return -1;
    }
    struct subject *s = &b->subject[id];
    return weir_check_at(s->w, &key, b->key_len, bucket ? 500 : 1, s->now_ns, &a);
}

/* 10 per day, all taken. */
static int open_deny(struct bench *b)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct bench_key key = key_of(0);
    struct weir_answer a;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = 10;
    o.period_ns = WEIR_DAY;
    o.max_keys = HOT_KEYS;
    o.flags = flags_of(b);
    if (open_subject(b, SUBJECT_DENY, &o, 1) != 0) {
        return -1;
    }
    struct subject *s = &b->subject[SUBJECT_DENY];
    return weir_check_at(s->w, &key, b->key_len, 10, s->now_ns, &a);
}

/* A rate in real time that is higher than questions can be asked. */
static int open_clock(struct bench *b)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = UINT64_C(1000000000);
    o.period_ns = WEIR_SECOND;
    o.max_keys = HOT_KEYS;
    return open_subject(b, SUBJECT_CLOCK, &o, 0);
}

/* ---- keys ---- */

/*
 * Asks for the keys first to first + n - 1 in batches. Returns how many of them are as good as
 * fresh, -1 on error.
 */
static int64_t ask_range(struct bench *b, struct subject *s, uint64_t first, uint64_t n, int mode)
{
    struct weir_answer answers[BATCH];
    struct weir_question asks[BATCH];
    struct bench_key keys[BATCH];
    int64_t fresh = 0;
    for (uint64_t done = 0; done < n; done += BATCH) {
        size_t group = min_u64(BATCH, n - done);
        for (size_t i = 0; i < group; i++) {
            keys[i] = key_of(first + done + i);
            asks[i] = (struct weir_question){.key = &keys[i], .key_len = b->key_len, .cost = 1};
            asks[i].mode = mode;
        }
        if (weir_ask_batch_at(s->w, asks, group, s->now_ns, answers, NULL) != 0) {
            return -1;
        }
        for (size_t i = 0; i < group; i++) {
            fresh += answers[i].remaining == answers[i].quota;
        }
        s->now_ns += FILL_STEP_NS;
    }
    return fresh;
}

/*
 * Opens and fills the same table with another algorithm. The count is 500 million, because a
 * sliding_window of 1,000 days counts only to 2^29.
 */
static int open_live_by(struct bench *b, int algorithm)
{
    struct weir_options o = live_options(b, b->options.keys, WEIR_EVICT);
    int id = SUBJECT_LIVE + algorithm - 1;
    o.algorithm = algorithm;
    o.count = UINT64_C(500000000);
    o.queue = algorithm == WEIR_LEAKY_BUCKET ? o.count - 1 : 0;
    if (open_subject(b, id, &o, FILL_STEP_NS) != 0) {
        return -1;
    }
    return ask_range(b, &b->subject[id], 0, b->options.keys, WEIR_CHECK) < 0 ? -1 : 0;
}

/*
 * Opens and fills a full table. max_keys keys leave slots free, which a flood would find first;
 * three times as many keys leave hardly any.
 */
static int open_full(struct bench *b, int id, int on_full)
{
    uint64_t keys = 3 * b->options.keys;
    b->new_key = max_u64(b->new_key, keys);
    if (open_live(b, id, b->options.keys, on_full) != 0) {
        return -1;
    }
    return ask_range(b, &b->subject[id], 0, keys, WEIR_CHECK) < 0 ? -1 : 0;
}

static int fill_rivals(struct bench *b)
{
    struct weir_answer a;
    b->mutex_map = mutex_map_create(b->options.keys, b->options.huge);
    b->striped_map = striped_map_create(b->options.keys, b->options.huge);
    if (b->mutex_map == NULL || b->striped_map == NULL) {
        return -1;
    }
    for (uint64_t i = 0; i < b->options.keys; i++) {
        struct bench_key key = key_of(i);
        if (mutex_map_check(b->mutex_map, &key, b->key_len, i, &a) != 0 ||
            striped_map_check(b->striped_map, &key, b->key_len, i, &a) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- the whole run ---- */

int bench_setup(struct bench *b)
{
    uint64_t bytes;
    struct weir_options live = live_options(b, b->options.keys, WEIR_EVICT);
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        if (open_hot(b, algorithm) != 0) {
            return -1;
        }
    }
    if (weir_size(&live, &bytes, NULL) != 0 || open_deny(b) != 0 || open_clock(b) != 0 ||
        open_live(b, SUBJECT_LIVE, b->options.keys, WEIR_EVICT) != 0) {
        return -1;
    }
    for (int algorithm = WEIR_LEAKY_BUCKET; algorithm <= WEIR_SLIDING_WINDOW; algorithm++) {
        if (open_live_by(b, algorithm) != 0) {
            return -1;
        }
    }
    if (ask_range(b, &b->subject[SUBJECT_LIVE], 0, b->options.keys, WEIR_CHECK) < 0 ||
        open_full(b, SUBJECT_FULL_EVICT, WEIR_EVICT) != 0 ||
        open_full(b, SUBJECT_FULL_DENY, WEIR_DENY_NEW) != 0) {
        return -1;
    }
    b->floors = floors_create(bytes, b->options.huge);
    if (b->floors == NULL || fill_rivals(b) != 0 || bench_make_zipf(b) != 0) {
        (void)fprintf(stderr, "weir-bench: not enough memory for %" PRIu64 " keys\n",
                      b->options.keys);
        return -1;
    }
    return 0;
}

void bench_finish(struct bench *b)
{
    for (int i = 0; i < SUBJECTS; i++) {
        close_subject(b, i);
    }
    floors_destroy(b->floors);
    rival_destroy(b->mutex_map);
    rival_destroy(b->striped_map);
    free(b->zipf);
}

/* ---- figures that are not loops over an existing table ---- */

double sample_new_key(struct bench *b, const struct figure *f)
{
    struct figure fill = *f;
    struct weir_options o = live_options(b, b->options.keys, WEIR_EVICT);
    o.flags |= WEIR_PREFAULT;
    close_subject(b, SUBJECT_FRESH);
    uint64_t before = bench_resident_bytes();
    if (open_subject(b, SUBJECT_FRESH, &o, FILL_STEP_NS) != 0) {
        return -1;
    }
    fill.ops = b->options.keys * b->options.ease;
    double ns = bench_sample(b, &fill);
    b->bytes_per_key = (double)(bench_resident_bytes() - before) / (double)b->options.keys;
    return ns;
}

double sample_bytes_per_key(struct bench *b, const struct figure *f)
{
    (void)f;
    return b->bytes_per_key;
}

/* Returns the number of new keys for which the table had no free slot. */
static uint64_t turned_away(struct weir *w)
{
    struct weir_stats stats = {.size = sizeof stats};
    return weir_stats_read(w, &stats) == 0 ? stats.evicted + stats.full_denied : 0;
}

/*
 * Measures a flood, and checks that the table was full: at least 99 of 100 keys must have found
 * it so.
 */
double sample_flood(struct bench *b, const struct figure *f)
{
    struct weir *w = b->subject[f->subject].w;
    uint64_t before = turned_away(w);
    double ns = bench_sample(b, f);
    uint64_t flood = f->ops / b->options.ease;
    if (turned_away(w) - before < flood - flood / 100) {
        (void)fprintf(stderr, "weir-bench: %s: the table was not full\n", f->name);
        return -1;
    }
    return ns;
}

/* Returns the keys lost by a new table that is given exactly max_keys keys; -1 on error. */
static int64_t lose(struct bench *b, uint64_t max_keys)
{
    int64_t fresh = -1;
    if (open_live(b, SUBJECT_FRESH, max_keys, WEIR_EVICT) == 0) {
        struct subject *s = &b->subject[SUBJECT_FRESH];
        if (ask_range(b, s, 0, max_keys, WEIR_CHECK) >= 0) {
            fresh = ask_range(b, s, 0, max_keys, WEIR_PEEK);
        }
    }
    close_subject(b, SUBJECT_FRESH);
    return fresh;
}

/*
 * Returns the keys lost by tables of several sizes. The largest is the table that new_key_ns has
 * just filled. Small ones are tried up to 50 times.
 */
double sample_lost_keys(struct bench *b, const struct figure *f)
{
    static const uint64_t sizes[] = {1, 10, 64, 1000, 100000};
    uint64_t keys = b->options.keys;
    int64_t lost = ask_range(b, &b->subject[SUBJECT_FRESH], 0, keys, WEIR_PEEK);
    (void)f;
    close_subject(b, SUBJECT_FRESH);
    uint64_t tables = (49 + b->options.ease) / b->options.ease;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && sizes[i] < keys; i++) {
        for (uint64_t n = 0; n < tables && n * sizes[i] < 100000 && lost >= 0; n++) {
            int64_t more = lose(b, sizes[i]);
            lost = more < 0 ? -1 : lost + more;
        }
    }
    return (double)lost;
}
