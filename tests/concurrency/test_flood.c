/*
 * A key-rotation flood: ten million keys that nobody has seen before, against a
 * table full of throttled ones. Memory stays where it was; with on_full deny and
 * allow every throttled key stays throttled; with evict only a least indebted
 * candidate is forgotten, and each one is counted (P7).
 */
// test-timeout: 600
// test-serial: yes
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "limit/limiter.h"
#include "support/engine/threads_run.h"

#define QUOTA 10
#define MAX_KEYS UINT64_C(20000)
#define THREADS 4
#define FLOOD THREADS_ROUNDS(10000000, 400000, 100000)
#define SMALLER_FLOOD THREADS_ROUNDS(1000000, 100000, 50000)

/* Keys are numbers: throttled ones from 1 on, those of the flood far above. */
#define FLOOD_FIRST (UINT64_C(1) << 40)

static struct weir_answer ask(struct weir *w, uint64_t key, uint64_t cost)
{
    struct weir_answer a;
    threads_require(weir_check_at(w, &key, sizeof key, cost, THREADS_T0, &a) == 0);
    return a;
}

/* Resident memory of this process; 0 where a sanitizer's own memory would be counted too. */
static uint64_t resident_bytes(void)
{
    unsigned long size = 0;
    unsigned long resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (THREADS_TSAN || THREADS_ASAN || f == NULL) {
        if (f != NULL) {
            (void)fclose(f);
        }
        return 0;
    }
    assert_int_equal(fscanf(f, "%lu %lu", &size, &resident), 2);
    (void)fclose(f);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

struct flood {
    struct weir *w;
    int on_full;
    uint64_t throttled; /* keys 1 to this have used up their quota */
    uint64_t each;      /* new keys of each thread */
    struct threads_tally told;
};

/* A throttled key is refused for its own sake, not because it was taken for a new one. */
static void require_throttled(struct flood *f, uint64_t key, struct threads_tally *told)
{
    struct weir_answer a = ask(f->w, key, 1);
    threads_require(a.verdict == WEIR_DENY && a.flags == 0);
    threads_count(told, &a);
}

static void pour(unsigned index, void *arg)
{
    struct flood *f = arg;
    struct threads_tally told = {0};
    uint64_t random = index;
    for (uint64_t i = 0; i < f->each; i++) {
        struct weir_answer a = ask(f->w, FLOOD_FIRST + index * f->each + i, 1);
        bool full = (a.flags & WEIR_FLAG_FULL) != 0;
        threads_require(full || (a.verdict == WEIR_ALLOW && a.granted == 1));
        threads_require(!full || (f->on_full == WEIR_DENY_NEW && a.verdict == WEIR_DENY) ||
                        (f->on_full == WEIR_ALLOW_NEW && a.verdict == WEIR_ALLOW));
        threads_require(!full || (a.granted == 0 && a.quota == QUOTA));
        threads_count(&told, &a);
        if (i % 16 == 0) {
            require_throttled(f, threads_random(&random) % f->throttled + 1, &told);
        }
    }
    threads_merge(&f->told, &told);
}

static void throttle(struct flood *f)
{
    for (uint64_t key = 1; key <= f->throttled; key++) {
        struct weir_answer a = ask(f->w, key, QUOTA);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        assert_int_equal(a.flags, 0);
        threads_count(&f->told, &a);
    }
    assert_int_equal(threads_stats(f->w).keys, f->throttled);
}

static void assert_memory_is_bounded(struct flood *f, uint64_t before, uint64_t filled)
{
    uint64_t after = resident_bytes();
    uint64_t bound = threads_stats(f->w).bytes;
    uint64_t slack = UINT64_C(4) << 20; /* stacks, counters, what the C library keeps */
    print_message("resident: %llu KiB before, %llu with the table, %llu after the flood\n",
                  (unsigned long long)before >> 10, (unsigned long long)filled >> 10,
                  (unsigned long long)after >> 10);
    assert_true(after <= before + bound + slack);
    assert_true(after <= filled + slack);
}

static void run_flood(int algorithm, int on_full, uint64_t throttled, uint64_t new_keys)
{
    struct weir_options o = threads_options(algorithm, QUOTA, WEIR_HOUR);
    struct flood f = {.on_full = on_full, .throttled = throttled, .each = new_keys / THREADS};
    uint64_t before = resident_bytes();
    o.max_keys = MAX_KEYS;
    o.on_full = on_full;
    f.w = threads_open(&o);
    throttle(&f);
    uint64_t filled = resident_bytes();
    threads_run(THREADS, pour, &f);
    for (uint64_t key = 1; key <= f.throttled; key++) {
        require_throttled(&f, key, &f.told);
    }
    assert_memory_is_bounded(&f, before, filled);
    threads_assert_told(f.w, &f.told);
    threads_assert_sound(f.w);
    /* Time stands still, so nobody becomes fresh: who was put in is there, or was evicted. */
    struct weir_stats s = threads_stats(f.w);
    uint64_t entered = f.throttled + THREADS * f.each - f.told.full;
    assert_int_equal(s.reclaimed, 0);
    assert_int_equal(s.evicted, entered - s.keys);
    assert_true(on_full == WEIR_EVICT ? f.told.full == 0 && s.evicted > 0 : s.evicted == 0);
    assert_int_equal(s.full_denied, on_full == WEIR_DENY_NEW ? f.told.full : 0);
    assert_int_equal(s.full_allowed, on_full == WEIR_ALLOW_NEW ? f.told.full : 0);
    weir_close(f.w);
}

static void under_deny_every_throttled_key_stays_throttled(void **state)
{
    run_flood(WEIR_TOKEN_BUCKET, WEIR_DENY_NEW, MAX_KEYS, FLOOD);
    run_flood(WEIR_SLIDING_LOG, WEIR_DENY_NEW, MAX_KEYS, SMALLER_FLOOD);
}

static void under_allow_every_throttled_key_stays_throttled(void **state)
{
    run_flood(WEIR_TOKEN_BUCKET, WEIR_ALLOW_NEW, MAX_KEYS, FLOOD);
    run_flood(WEIR_FIXED_WINDOW, WEIR_ALLOW_NEW, MAX_KEYS, SMALLER_FLOOD);
}

/*
 * Under evict a throttled key is forgotten only if all eight candidates of a
 * new key are throttled as much. With one slot in 32 throttled the chance is
 * 32^-8, for all of the flood one in 100,000; and the flood's own keys always owe less.
 */
static void under_evict_the_more_indebted_stay_while_there_is_a_lesser_one(void **state)
{
    run_flood(WEIR_TOKEN_BUCKET, WEIR_EVICT, MAX_KEYS / 25, FLOOD);
    run_flood(WEIR_LEAKY_BUCKET, WEIR_EVICT, MAX_KEYS / 25, SMALLER_FLOOD);
    run_flood(WEIR_FIXED_WINDOW, WEIR_EVICT, MAX_KEYS / 25, SMALLER_FLOOD);
    run_flood(WEIR_SLIDING_WINDOW, WEIR_EVICT, MAX_KEYS / 25, SMALLER_FLOOD);
    run_flood(WEIR_SLIDING_LOG, WEIR_EVICT, MAX_KEYS / 25, SMALLER_FLOOD);
}

/* A block that ends soon is nearer to its end than any key of the flood to fresh; it stays. */
static void a_flood_evicts_no_block_that_is_in_force(void **state)
{
    struct weir_options o = threads_options(WEIR_TOKEN_BUCKET, QUOTA, WEIR_HOUR);
    struct threads_tally told = {0};
    uint64_t blocks = 200;
    o.max_keys = 2000;
    o.max_blocks = blocks;
    struct weir *w = threads_open(&o);
    for (uint64_t key = 1; key <= blocks; key++) {
        assert_int_equal(weir_block_at(w, &key, sizeof key, THREADS_T0 + 1, THREADS_T0), 0);
    }
    for (uint64_t i = 0; i < SMALLER_FLOOD; i++) {
        struct weir_answer a = ask(w, FLOOD_FIRST + i, 1);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        threads_count(&told, &a);
    }
    for (uint64_t key = 1; key <= blocks; key++) {
        struct weir_answer a = ask(w, key, 1);
        assert_int_equal(a.flags, WEIR_FLAG_BLOCKED);
        threads_count(&told, &a);
    }
    assert_int_equal(threads_stats(w).blocks, blocks);
    assert_true(threads_stats(w).evicted > 0);
    threads_assert_told(w, &told);
    threads_assert_sound(w);
    weir_close(w);
}

/* ---- who is forgotten, to the slot ---- */

struct candidates {
    struct pair *slot[2 * LINE_SLOTS];
    struct pair seen[2 * LINE_SLOTS];
    u128 owed[2 * LINE_SLOTS];
};

static struct candidates candidates_of(struct weir *w, uint64_t key)
{
    struct weir_key hashed;
    struct candidates c;
    const struct table *t = &w->table;
    assert_int_equal(weir_key_init(w, &key, sizeof key, &hashed), 0);
    struct table_key place = table_key(t, (struct hash){hashed.word[0], hashed.word[1]});
    uint64_t line[2] = {place.line, table_other_line(t, place.line, place.tag)};
    for (unsigned i = 0; i < 2 * LINE_SLOTS; i++) {
        c.slot[i] = &t->lines[line[i / LINE_SLOTS]].slot[i % LINE_SLOTS];
        c.seen[i] = *c.slot[i];
        struct debt debt;
        t->debt_of(t->debt_arg, c.seen[i].tag, c.seen[i].word, table_record(t, c.slot[i]),
                   THREADS_T0, &debt);
        c.owed[i] = debt.owed;
    }
    return c;
}

static u128 least_owed(const struct candidates *c)
{
    u128 least = c->owed[0];
    for (unsigned i = 1; i < 2 * LINE_SLOTS; i++) {
        least = c->owed[i] < least ? c->owed[i] : least;
    }
    return least;
}

/* Exactly one candidate has another owner now, and none owed less than it. */
static void assert_the_least_indebted_went(const struct candidates *before)
{
    unsigned gone = 0;
    for (unsigned i = 0; i < 2 * LINE_SLOTS; i++) {
        if (before->slot[i]->tag != before->seen[i].tag) {
            gone++;
            assert_true(before->owed[i] == least_owed(before));
        } else {
            assert_int_equal(before->slot[i]->word, before->seen[i].word);
        }
    }
    assert_int_equal(gone, 1);
}

static void run_evictions(int algorithm, uint64_t new_keys)
{
    struct weir_options o = threads_options(algorithm, QUOTA, WEIR_HOUR);
    uint64_t random = 1;
    o.max_keys = 2000;
    struct weir *w = threads_open(&o);
    for (uint64_t key = 1; key <= o.max_keys; key++) {
        (void)ask(w, key, threads_random(&random) % QUOTA + 1);
    }
    struct weir_stats before = threads_stats(w);
    assert_int_equal(before.keys, o.max_keys);
    for (uint64_t i = 0; i < new_keys; i++) {
        struct candidates c = candidates_of(w, FLOOD_FIRST + i);
        struct weir_answer a = ask(w, FLOOD_FIRST + i, threads_random(&random) % QUOTA + 1);
        struct weir_stats after = threads_stats(w);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        /* An empty slot was taken or moved here, or somebody had to go. */
        assert_int_equal(after.keys + after.evicted, before.keys + before.evicted + 1);
        if (after.evicted != before.evicted) {
            assert_int_equal(after.moved, before.moved);
            assert_the_least_indebted_went(&c);
        }
        before = after;
    }
    assert_true(before.evicted > new_keys / 2);
    threads_assert_sound(w);
    weir_close(w);
}

static void of_eight_candidates_the_least_indebted_is_forgotten_and_counted(void **state)
{
    run_evictions(WEIR_TOKEN_BUCKET, THREADS_ROUNDS(300000, 50000, 20000));
    run_evictions(WEIR_LEAKY_BUCKET, THREADS_ROUNDS(100000, 20000, 10000));
    run_evictions(WEIR_FIXED_WINDOW, THREADS_ROUNDS(100000, 20000, 10000));
    run_evictions(WEIR_SLIDING_WINDOW, THREADS_ROUNDS(100000, 20000, 10000));
    run_evictions(WEIR_SLIDING_LOG, THREADS_ROUNDS(100000, 20000, 10000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(under_deny_every_throttled_key_stays_throttled),
        cmocka_unit_test(under_allow_every_throttled_key_stays_throttled),
        cmocka_unit_test(under_evict_the_more_indebted_stay_while_there_is_a_lesser_one),
        cmocka_unit_test(a_flood_evicts_no_block_that_is_in_force),
        cmocka_unit_test(of_eight_candidates_the_least_indebted_is_forgotten_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
