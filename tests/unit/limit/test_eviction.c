/*
 * P7 under on_full evict: of the eight keys whose places a new key could have,
 * the one that owes the smallest share of its quota is forgotten, and the new
 * key always enters. What a key owes is computed here from the history of its
 * charges, independently of the algorithms.
 */
#include "limit/limiter.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>

#define START (1000 * WEIR_HOUR)
#define QUOTA 20
#define PERIOD (20 * WEIR_SECOND)
#define STEP (PERIOD / QUOTA)

/* Every algorithm, windows that begin with the key, and numbers that come with the question. */
struct kind {
    const char *name;
    int algorithm;
    int align;
    bool throttle;
};

static const struct kind kinds[] = {
    {"token_bucket", WEIR_TOKEN_BUCKET, 0, false},
    {"leaky_bucket", WEIR_LEAKY_BUCKET, 0, false},
    {"fixed_window", WEIR_FIXED_WINDOW, 0, false},
    {"fixed_window, align key", WEIR_FIXED_WINDOW, WEIR_ALIGN_KEY, false},
    {"sliding_window", WEIR_SLIDING_WINDOW, 0, false},
    {"sliding_log", WEIR_SLIDING_LOG, 0, false},
    {"throttle", WEIR_TOKEN_BUCKET, 0, true},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static struct weir *open_kind(const struct kind *kind, uint64_t quota, uint64_t period,
                              uint64_t max_keys)
{
    struct weir_options o = unit_options(kind->algorithm, quota, period);
    print_message("             %s\n", kind->name);
    o.align = kind->align;
    o.max_keys = max_keys;
    return unit_open(&o);
}

/* ---- the flood of the issue ---- */

#define VICTIMS 20

/* Takes `cost` from so many keys, each of which must get it. */
static void take_each(struct weir *w, const char *name, uint64_t keys, uint64_t cost, uint64_t now)
{
    for (uint64_t i = 0; i < keys; i++) {
        char key[48];
        (void)snprintf(key, sizeof key, "%s %llu", name, (unsigned long long)i);
        struct weir_answer a = unit_check(w, key, cost, now);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        assert_int_equal(a.flags, 0);
    }
}

static uint64_t keys_with_the_full_quota(struct weir *w, uint64_t quota, uint64_t now)
{
    uint64_t full = 0;
    for (uint64_t i = 0; i < VICTIMS; i++) {
        char key[48];
        (void)snprintf(key, sizeof key, "exhausted %llu", (unsigned long long)i);
        full += unit_peek(w, key, 1, now).remaining == quota;
    }
    return full;
}

static void a_flood_of_light_keys_gives_no_exhausted_key_its_quota_back(void **state)
{
    for (size_t i = 0; i < KINDS - 1; i++) {
        struct weir *w = open_kind(&kinds[i], 1000, WEIR_HOUR, 1000);
        uint64_t later = START + WEIR_MINUTE;
        take_each(w, "exhausted", VICTIMS, 1000, START);
        /* The windows of a few keys may end within the minute. */
        uint64_t ended = keys_with_the_full_quota(w, 1000, later);
        assert_true(ended == 0 || kinds[i].align == WEIR_ALIGN_KEY);
        take_each(w, "light", unit_scale(20000), 1, later);
        assert_true(unit_stats(w).evicted > 0);
        assert_int_equal(keys_with_the_full_quota(w, 1000, later), ended);
        weir_close(w);
    }
}

/* ---- random debts, and an oracle of what they are ---- */

#define CHARGES_MAX 64

/* All that a key was ever charged. Times are on the key's own line. */
struct history {
    uint64_t tag;
    unsigned charges;
    uint64_t time[CHARGES_MAX];
    uint64_t units[CHARGES_MAX];
    uint64_t step[CHARGES_MAX]; /* the time of one unit */
};

/* The time until a bucket is full, in ns. */
static u128 bucket_owes(const struct history *h, uint64_t now)
{
    uint64_t full_at = 0;
    for (unsigned i = 0; i < h->charges; i++) {
        full_at = max_u64(full_at, h->time[i]) + h->units[i] * h->step[i];
    }
    return sub_floor0(full_at, now);
}

/* Units of the window that a clock at `now` is in, and of the one before, if they still count. */
static u128 windows_owe(const struct history *h, uint64_t now, bool sliding)
{
    uint64_t window = 0;
    uint64_t current = 0;
    uint64_t previous = 0;
    for (unsigned i = 0; i <= h->charges; i++) {
        uint64_t next = max_u64(window, (i < h->charges ? h->time[i] : now) / PERIOD);
        previous = next == window ? previous : next == window + 1 ? current : 0;
        current = next == window ? current : 0;
        current += i < h->charges ? h->units[i] : 0;
        window = next;
    }
    uint64_t elapsed = sub_floor0(now, window * PERIOD);
    return mul_wide(current, PERIOD) + (sliding ? mul_wide(previous, PERIOD - elapsed) : 0);
}

/* Units admitted less than a period ago. A lagging call counts as of the newest one. */
static u128 log_owes(const struct history *h, uint64_t now)
{
    uint64_t live = 0;
    uint64_t newest = 0;
    for (unsigned i = 0; i < h->charges; i++) {
        newest = max_u64(newest, h->time[i]);
        live += newest + PERIOD > now ? h->units[i] : 0;
    }
    return live;
}

static u128 owes(const struct kind *kind, const struct history *h, uint64_t now)
{
    switch (kind->algorithm) {
    case WEIR_FIXED_WINDOW:
        return windows_owe(h, now, false);
    case WEIR_SLIDING_WINDOW:
        return windows_owe(h, now, true);
    case WEIR_SLIDING_LOG:
        return log_owes(h, now);
    default:
        return bucket_owes(h, now);
    }
}

/* ---- the table under test ---- */

#define KEYS_MAX 20000

struct crowd {
    const struct kind *kind;
    struct weir *w;
    struct history *keys; /* by number; number n is the key of the bytes of n */
    uint64_t count;
    uint64_t seed;
};

static struct table_key place_of(const struct crowd *c, uint64_t key)
{
    return table_key(&c->w->table, limiter_hash(c->w, &key, sizeof key));
}

static void note(struct crowd *c, uint64_t key, uint64_t units, uint64_t step, uint64_t now)
{
    struct history *h = &c->keys[key];
    h->tag = place_of(c, key).tag;
    if (units != 0) {
        assert_true(h->charges < CHARGES_MAX);
        h->time[h->charges] = key_time(c->w, h->tag, now);
        h->units[h->charges] = units;
        h->step[h->charges++] = step;
    }
}

static void take(struct crowd *c, uint64_t key, uint64_t now)
{
    struct weir_question q = {
        .key = &key, .key_len = sizeof key, .cost = 1 + unit_random(&c->seed) % QUOTA};
    uint64_t step = STEP;
    struct weir_answer a;
    if (c->kind->throttle) {
        q.cost = 1 + q.cost % 4;
        step = STEP << unit_random(&c->seed) % 3;
        assert_int_equal(weir_throttle_at(c->w, step, 4, &q, now, &a), 0);
    } else {
        assert_int_equal(weir_ask_at(c->w, &q, now, &a), 0);
    }
    assert_int_equal(a.flags, 0);
    note(c, key, a.granted, step, now);
}

static void penalize(struct crowd *c, uint64_t key, uint64_t now)
{
    struct weir_answer a;
    uint64_t units = 1 + unit_random(&c->seed) % (2 * QUOTA);
    assert_int_equal(weir_penalize_at(c->w, &key, sizeof key, units, now, &a), 0);
    note(c, key, a.granted, STEP, now);
}

/* One of the keys that are there is charged once more, or goes into debt. */
static void charge_known(struct crowd *c, uint64_t now)
{
    uint64_t key = unit_random(&c->seed) % c->count;
    if (table_find(&c->w->table, place_of(c, key)) == NULL || c->keys[key].charges == CHARGES_MAX) {
        return;
    }
    if (unit_random(&c->seed) % 8 == 0) {
        penalize(c, key, now);
    } else {
        take(c, key, now);
    }
}

struct candidate {
    struct pair *slot;
    uint64_t tag;
    u128 owed;
};

static u128 owed_by_tag(const struct crowd *c, uint64_t tag, uint64_t now)
{
    for (uint64_t i = c->count; i-- > 0;) {
        if (c->keys[i].tag == tag) {
            return owes(c->kind, &c->keys[i], key_time(c->w, tag, now) - ALGO_SLACK_NS);
        }
    }
    fail_msg("a slot holds a key that was never put in");
    return 0;
}

/* The eight places of a key; what their owners owe is judged by the slowest clock allowed. */
static void look_at_candidates(const struct crowd *c, uint64_t key, uint64_t now,
                               struct candidate eight[2 * LINE_SLOTS])
{
    const struct table *t = &c->w->table;
    struct table_key place = place_of(c, key);
    uint64_t line[2] = {place.line, table_other_line(t, place.line, place.tag)};
    for (unsigned i = 0; i < 2 * LINE_SLOTS; i++) {
        struct pair *slot = &t->lines[line[i / LINE_SLOTS]].slot[i % LINE_SLOTS];
        eight[i] = (struct candidate){slot, slot->tag, 0};
        if (slot->tag != 0) {
            eight[i].owed = owed_by_tag(c, slot->tag, now);
        }
    }
}

/* Exactly one of the eight is gone, and each of the others owed as much or more. */
static void assert_the_least_went(const struct candidate eight[2 * LINE_SLOTS])
{
    const struct candidate *gone = NULL;
    for (unsigned i = 0; i < 2 * LINE_SLOTS; i++) {
        if (eight[i].slot->tag != eight[i].tag) {
            assert_null(gone);
            gone = &eight[i];
        }
    }
    assert_non_null(gone);
    for (unsigned i = 0; i < 2 * LINE_SLOTS; i++) {
        assert_true(eight[i].owed >= gone->owed);
    }
}

static void add_new(struct crowd *c, uint64_t now)
{
    struct candidate eight[2 * LINE_SLOTS];
    struct weir_stats before = unit_stats(c->w);
    uint64_t key = c->count;
    look_at_candidates(c, key, now, eight);
    take(c, key, now);
    c->count++;
    assert_true(c->kind->throttle || c->keys[key].charges == 1);
    assert_non_null(table_find(&c->w->table, place_of(c, key)));
    if (unit_stats(c->w).evicted != before.evicted) {
        assert_the_least_went(eight);
    }
}

/* Traffic of which much is new, by callers whose clocks differ by up to a second. */
static void run_crowd(const struct kind *kind)
{
    struct crowd c = {.kind = kind, .seed = 5};
    uint64_t now = START;
    c.w = open_kind(kind, QUOTA, PERIOD, 10);
    c.keys = calloc(KEYS_MAX, sizeof c.keys[0]);
    assert_non_null(c.keys);
    while (c.count < unit_scale(KEYS_MAX)) {
        uint64_t lag = unit_random(&c.seed) % (WEIR_SECOND + 1);
        now += unit_random(&c.seed) % (40 * WEIR_MILLISECOND);
        if (c.count == 0 || unit_random(&c.seed) % 2 == 0) {
            add_new(&c, now - lag);
        } else {
            charge_known(&c, now - lag);
        }
    }
    assert_true(unit_stats(c.w).evicted > unit_scale(KEYS_MAX) / 10);
    free(c.keys);
    weir_close(c.w);
}

static void the_forgotten_key_owes_no_more_than_any_other_candidate(void **state)
{
    for (size_t i = 0; i < KINDS; i++) {
        run_crowd(&kinds[i]);
    }
}

/* Of keys that owe the same share, the one that is fresh first is forgotten. */
static void of_equal_debts_the_one_that_ends_first_is_forgotten(void **state)
{
    const struct kind log = {"sliding_log", WEIR_SLIDING_LOG, 0, false};
    struct weir *w = open_kind(&log, QUOTA, WEIR_HOUR, 1000);
    uint64_t later = START + WEIR_SECOND / 2;
    take_each(w, "late", 20, 1, later);
    take_each(w, "soon", unit_scale(20000), 1, START);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < 20; i++) {
        char key[48];
        (void)snprintf(key, sizeof key, "late %llu", (unsigned long long)i);
        kept += unit_peek(w, key, 1, later).remaining == QUOTA - 1;
    }
    assert_int_equal(kept, 20);
    weir_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flood_of_light_keys_gives_no_exhausted_key_its_quota_back),
        cmocka_unit_test(the_forgotten_key_owes_no_more_than_any_other_candidate),
        cmocka_unit_test(of_equal_debts_the_one_that_ends_first_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
