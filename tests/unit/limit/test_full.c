/*
 * P7: memory is fixed when a limiter is made. A key is dropped freely only if
 * it is fresh; else on_full decides, and each kind is counted.
 */
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>

#define START (120 * WEIR_SECOND)

static void name(char key[48], const char *kind, uint64_t i)
{
    (void)snprintf(key, 48, "%.20s %llu", kind, (unsigned long long)i);
}

/* Takes the whole quota of so many keys. Returns how many were not admitted. */
static uint64_t exhaust(struct weir *w, const char *kind, uint64_t keys, uint64_t quota,
                        uint64_t now)
{
    uint64_t refused = 0;
    for (uint64_t i = 0; i < keys; i++) {
        char key[48];
        name(key, kind, i);
        refused += unit_check(w, key, quota, now).verdict != WEIR_ALLOW;
    }
    return refused;
}

/* How many of those keys are still denied. */
static uint64_t throttled(struct weir *w, const char *kind, uint64_t keys, uint64_t now)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < keys; i++) {
        char key[48];
        name(key, kind, i);
        n += unit_peek(w, key, 1, now).verdict == WEIR_DENY;
    }
    return n;
}

static struct weir *table_of(int algorithm, uint64_t max_keys, int on_full, uint64_t quota)
{
    struct weir_options o = unit_options(algorithm, quota, WEIR_HOUR);
    o.max_keys = max_keys;
    o.on_full = on_full;
    return unit_open(&o);
}

static void max_keys_live_keys_fit_without_loss(void **state)
{
    const uint64_t sizes[] = {1, 10, 64, 1000, unit_scale(100000)};
    for (int algorithm = 0; algorithm < UNIT_ALGORITHMS; algorithm++) {
        for (int i = 0; i < 5; i++) {
            uint64_t n = algorithm > 0 ? sizes[i] / 4 + 1 : sizes[i];
            for (int on_full = WEIR_EVICT; on_full <= WEIR_ALLOW_NEW; on_full++) {
                struct weir *w = table_of(unit_algorithms[algorithm], n, on_full, 2);
                assert_int_equal(exhaust(w, "live", n, 2, START), 0);
                assert_int_equal(throttled(w, "live", n, START), n);
                struct weir_stats s = unit_stats(w);
                assert_int_equal(s.keys, n);
                assert_int_equal(s.evicted + s.full_denied + s.full_allowed + s.reclaimed, 0);
                assert_true(s.capacity >= n);
                weir_close(w);
                if (n > 2000) {
                    break; /* one policy is enough of the large ones */
                }
            }
        }
    }
}

static void max_keys_fit_without_loss_whatever_the_random_secret(void **state)
{
    for (uint64_t i = 0; i < unit_scale(300); i++) {
        uint64_t n = 1 + i * 7 % 200;
        struct weir *w = table_of(WEIR_TOKEN_BUCKET, n, WEIR_DENY_NEW, 1);
        assert_int_equal(exhaust(w, "live", n, 1, START), 0);
        assert_int_equal(throttled(w, "live", n, START), n);
        weir_close(w);
    }
}

static void deny_never_forgets_a_throttled_key(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = table_of(unit_algorithms[i], 100, WEIR_DENY_NEW, 2);
        assert_int_equal(exhaust(w, "victim", 100, 2, START), 0);
        uint64_t flood = unit_scale(20000);
        uint64_t refused = exhaust(w, "flood", flood, 2, START);
        assert_int_equal(throttled(w, "victim", 100, START), 100);
        struct weir_stats s = unit_stats(w);
        assert_int_equal(s.full_denied, refused);
        assert_int_equal(s.denied, refused);
        assert_int_equal(s.evicted + s.full_allowed + s.reclaimed, 0);
        assert_int_equal(s.keys, 100 + flood - refused);
        assert_true(refused > 0 && s.keys <= s.capacity);
        weir_close(w);
    }
}

static void deny_says_full_and_when_to_try_again(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = table_of(unit_algorithms[i], 10, WEIR_DENY_NEW, 2);
        (void)exhaust(w, "fill", 5000, 2, START);
        struct weir_answer a = unit_check(w, "new", 1, START);
        assert_int_equal(a.verdict, WEIR_DENY);
        assert_int_equal(a.flags, WEIR_FLAG_FULL);
        assert_int_equal(a.remaining, 0);
        assert_int_equal(unit_check(w, "new", 1, START + a.retry_after_ns - 1).verdict, WEIR_DENY);
        a = unit_check(w, "new", 1, START + a.retry_after_ns);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        assert_int_equal(a.flags, 0);
        assert_int_equal(unit_stats(w).reclaimed, 1);
        assert_int_equal(unit_check(w, "newer", 3, START).verdict, WEIR_NEVER);
        weir_close(w);
    }
}

static void a_peek_does_not_foresee_whether_there_is_room(void **state)
{
    for (int on_full = WEIR_DENY_NEW; on_full <= WEIR_ALLOW_NEW; on_full++) {
        struct weir *w = table_of(WEIR_TOKEN_BUCKET, 10, on_full, 2);
        (void)exhaust(w, "fill", 5000, 2, START);
        struct weir_stats before = unit_stats(w);
        struct weir_answer a = unit_peek(w, "new", 1, START);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        assert_int_equal(a.flags, 0);
        assert_int_equal(unit_check(w, "new", 1, START).flags, WEIR_FLAG_FULL);
        assert_int_equal(unit_stats(w).keys, before.keys);
        weir_close(w);
    }
}

static void allow_lets_new_keys_through_uncharged_and_forgets_nobody(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = table_of(unit_algorithms[i], 10, WEIR_ALLOW_NEW, 2);
        assert_int_equal(exhaust(w, "victim", 10, 2, START), 0);
        assert_int_equal(exhaust(w, "flood", 3000, 2, START), 0);
        assert_int_equal(throttled(w, "victim", 10, START), 10);
        struct weir_stats s = unit_stats(w);
        assert_int_equal(s.full_allowed, 3010 - s.keys);
        assert_int_equal(s.allowed, 3010);
        assert_int_equal(s.evicted + s.full_denied + s.denied, 0);
        struct weir_answer a = unit_check(w, "new", 1, START);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        assert_int_equal(a.flags, WEIR_FLAG_FULL);
        assert_int_equal(a.granted, 0);
        assert_int_equal(a.remaining, 2);
        weir_close(w);
    }
}

static void allow_tells_a_new_key_how_much_of_up_to_it_may_use(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = table_of(unit_algorithms[i], 10, WEIR_ALLOW_NEW, 3);
        (void)exhaust(w, "fill", 3000, 3, START);
        for (uint64_t cost = 1; cost <= 5; cost++) {
            struct weir_question ask = unit_question("new", cost, WEIR_UP_TO);
            struct weir_answer a = unit_ask(w, &ask, START);
            assert_int_equal(a.verdict, WEIR_ALLOW);
            assert_int_equal(a.flags, WEIR_FLAG_FULL);
            assert_int_equal(a.granted, cost < 3 ? cost : 3);
            assert_int_equal(a.remaining, 3); /* nothing was charged */
        }
        weir_close(w);
    }
}

static void deny_grants_a_new_key_nothing_of_up_to(void **state)
{
    struct weir *w = table_of(WEIR_TOKEN_BUCKET, 10, WEIR_DENY_NEW, 3);
    (void)exhaust(w, "fill", 3000, 3, START);
    struct weir_question ask = unit_question("new", 2, WEIR_UP_TO);
    struct weir_answer a = unit_ask(w, &ask, START);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.flags, WEIR_FLAG_FULL);
    assert_int_equal(a.granted, 0);
    weir_close(w);
}

static void evict_forgets_one_for_each_and_counts_it(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = table_of(unit_algorithms[i], 10, WEIR_EVICT, 2);
        assert_int_equal(exhaust(w, "flood", 5000, 2, START), 0);
        struct weir_stats s = unit_stats(w);
        assert_int_equal(s.allowed, 5000);
        assert_int_equal(s.evicted, 5000 - s.keys);
        assert_int_equal(throttled(w, "flood", 5000, START), s.keys);
        assert_int_equal(s.full_denied + s.full_allowed + s.reclaimed + s.denied, 0);
        weir_close(w);
    }
}

/* The least indebted goes: heavy customers survive a flood of light ones that come later. */
static void evict_forgets_the_least_indebted(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = table_of(unit_algorithms[i], 1000, WEIR_EVICT, 50);
        assert_int_equal(exhaust(w, "heavy", 40, 50, START), 0);
        assert_int_equal(exhaust(w, "light", unit_scale(20000), 1, START + WEIR_SECOND), 0);
        assert_true(unit_stats(w).evicted > 0);
        assert_int_equal(throttled(w, "heavy", 40, START + WEIR_SECOND), 40);
        weir_close(w);
    }
}

/* Slots of keys that are fresh are used again, and only those. */
static void what_is_as_good_as_new_is_replaced_silently(void **state)
{
    for (int on_full = WEIR_EVICT; on_full <= WEIR_ALLOW_NEW; on_full++) {
        for (int i = 0; i < UNIT_ALGORITHMS; i++) {
            struct weir *w = table_of(unit_algorithms[i], 10, on_full, 2);
            uint64_t now = START;
            for (int round = 0; round < 20; round++) {
                char kind[48];
                name(kind, "round", (uint64_t)round);
                assert_int_equal(exhaust(w, kind, 10, 2, now), 0);
                assert_int_equal(throttled(w, kind, 10, now), 10);
                now += 2 * WEIR_HOUR + WEIR_SECOND;
            }
            struct weir_stats s = unit_stats(w);
            assert_int_equal(s.evicted + s.full_denied + s.full_allowed, 0);
            weir_close(w);
        }
    }
}

/* A new key judges freshness by the slowest clock allowed: a second late. */
static void a_key_is_replaced_only_after_the_slowest_clock_sees_it_fresh(void **state)
{
    struct weir *w = table_of(WEIR_TOKEN_BUCKET, 1, WEIR_DENY_NEW, 1);
    (void)exhaust(w, "fill", 5000, 1, START);
    uint64_t fresh = START + WEIR_HOUR;
    assert_int_equal(unit_check(w, "new", 1, fresh + WEIR_SECOND - 1).flags, WEIR_FLAG_FULL);
    assert_int_equal(unit_check(w, "new", 1, fresh + WEIR_SECOND).flags, 0);
    weir_close(w);
}

static void blocks_are_never_evicted_while_they_last(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = table_of(unit_algorithms[i], 20, WEIR_EVICT, 2);
        for (uint64_t j = 0; j < 10; j++) {
            char key[48];
            name(key, "blocked", j);
            assert_int_equal(weir_block_at(w, key, strlen(key), START + WEIR_MINUTE, START), 0);
        }
        (void)exhaust(w, "flood", 5000, 2, START);
        assert_int_equal(throttled(w, "blocked", 10, START + WEIR_MINUTE - 1), 10);
        assert_int_equal(unit_stats(w).blocks, 10);
        (void)exhaust(w, "later", 5000, 2, START + WEIR_MINUTE + WEIR_SECOND);
        assert_int_equal(throttled(w, "blocked", 10, START + WEIR_MINUTE + WEIR_SECOND), 0);
        weir_close(w);
    }
}

static void block(struct weir *w, uint64_t i, int expected)
{
    char key[48];
    name(key, "blocked", i);
    assert_int_equal(weir_block_at(w, key, strlen(key), START + WEIR_MINUTE, START), expected);
}

/* The issue of old: among 80,000 blocks, 1,624 of 20,000 new keys found no place,
 * nor did some blocks. */
static void blocks_take_no_place_of_any_key(void **state)
{
    struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 10, WEIR_HOUR);
    o.max_keys = 100000;
    o.max_blocks = 80000;
    o.on_full = WEIR_DENY_NEW;
    struct weir *w = unit_open(&o);
    for (uint64_t i = 0; i < 80000; i++) {
        block(w, i, 0);
    }
    assert_int_equal(exhaust(w, "new", 100000, 1, START), 0);
    assert_int_equal(unit_stats(w).full_denied, 0);
    assert_int_equal(throttled(w, "blocked", 80000, START), 80000);
    block(w, 80000, WEIR_EFULL); /* one too many ... */
    block(w, 79999, 0);          /* ... but not one that is there */
    assert_int_equal(unit_stats(w).blocks, 80000);
    weir_close(w);
}

static void a_block_takes_the_place_of_one_that_is_over(void **state)
{
    struct weir *w = table_of(WEIR_TOKEN_BUCKET, 10, WEIR_EVICT, 2);
    for (uint64_t i = 0; i < 64; i++) {
        block(w, i, 0);
    }
    block(w, 64, WEIR_EFULL);
    assert_int_equal(weir_block_at(w, "x", 1, WEIR_FOREVER, START + WEIR_MINUTE - 1), WEIR_EFULL);
    assert_int_equal(weir_block_at(w, "x", 1, WEIR_FOREVER, START + WEIR_MINUTE), 0);
    assert_int_equal(unit_stats(w).blocks, 1);
    assert_int_equal(unit_check(w, "x", 1, START + WEIR_HOUR).flags, WEIR_FLAG_BLOCKED);
    weir_close(w);
}

static void a_block_forgets_nobody_under_deny_and_allow(void **state)
{
    for (int on_full = WEIR_DENY_NEW; on_full <= WEIR_ALLOW_NEW; on_full++) {
        struct weir *w = table_of(WEIR_TOKEN_BUCKET, 50, on_full, 2);
        assert_int_equal(exhaust(w, "victim", 50, 2, START), 0);
        for (uint64_t i = 0; i < 2000; i++) {
            char key[48];
            name(key, "blocked", i);
            int e = weir_block_at(w, key, strlen(key), WEIR_FOREVER, START);
            assert_true(e == 0 || e == WEIR_EFULL);
        }
        assert_int_equal(unit_stats(w).evicted, 0);
        assert_int_equal(throttled(w, "victim", 50, START), 50);
        weir_close(w);
    }
}

static void a_penalty_for_a_new_key_in_a_full_table_is_efull(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = table_of(unit_algorithms[i], 10, WEIR_DENY_NEW, 2);
        (void)exhaust(w, "fill", 3000, 2, START);
        struct weir_stats before = unit_stats(w);
        assert_int_equal(weir_penalize_at(w, "new", 3, 1, START, NULL), WEIR_EFULL);
        struct weir_stats after = unit_stats(w);
        assert_int_equal(after.keys, before.keys);
        assert_int_equal(after.evicted, 0);
        weir_close(w);
        w = table_of(unit_algorithms[i], 10, WEIR_EVICT, 2);
        (void)exhaust(w, "fill", 3000, 2, START);
        assert_int_equal(weir_penalize_at(w, "new", 3, 1, START, NULL), 0);
        assert_int_equal(unit_peek(w, "new", 1, START).remaining, 1);
        weir_close(w);
    }
}

static void a_reservation_let_through_by_a_full_table_owes_nothing(void **state)
{
    struct weir *w = table_of(WEIR_TOKEN_BUCKET, 10, WEIR_ALLOW_NEW, 2);
    (void)exhaust(w, "fill", 3000, 2, START);
    struct weir_reservation r;
    struct weir_answer a;
    assert_int_equal(weir_reserve_at(w, "new", 3, 2, WEIR_SECOND, START, &r, &a), 0);
    assert_int_equal(a.flags, WEIR_FLAG_FULL);
    struct weir_reservation copy = r;
    assert_int_equal(weir_settle_at(w, &copy, 1, START, &a), WEIR_EFULL);
    assert_int_equal(weir_cancel_at(w, &r, START, &a), 0);
    weir_close(w);
}

static void memory_is_what_weir_size_said(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir_options o = unit_options(unit_algorithms[i], 7, WEIR_SECOND);
        for (o.max_keys = 1; o.max_keys < 200000; o.max_keys *= 7) {
            uint64_t bytes = 0;
            assert_int_equal(weir_size(&o, &bytes, NULL), 0);
            struct weir *w = unit_open(&o);
            assert_int_equal(unit_stats(w).bytes, bytes);
            (void)exhaust(w, "flood", 2000, 7, START);
            assert_int_equal(unit_stats(w).bytes, bytes);
            assert_true(unit_stats(w).keys <= unit_stats(w).capacity);
            weir_close(w);
        }
    }
}

static void a_hundred_thousand_keys_take_21_bytes_each(void **state)
{
    struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 7, WEIR_SECOND);
    uint64_t bytes;
    o.max_keys = 10000000;
    assert_int_equal(weir_size(&o, &bytes, NULL), 0);
    assert_true(bytes <= 21 * o.max_keys);
    o.max_keys = 0;
    assert_int_equal(weir_size(&o, &bytes, NULL), 0);
    struct weir *w = unit_open(&o);
    assert_true(unit_stats(w).capacity >= 100000); /* the default */
    weir_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(max_keys_live_keys_fit_without_loss),
        cmocka_unit_test(max_keys_fit_without_loss_whatever_the_random_secret),
        cmocka_unit_test(deny_never_forgets_a_throttled_key),
        cmocka_unit_test(deny_says_full_and_when_to_try_again),
        cmocka_unit_test(a_peek_does_not_foresee_whether_there_is_room),
        cmocka_unit_test(allow_lets_new_keys_through_uncharged_and_forgets_nobody),
        cmocka_unit_test(allow_tells_a_new_key_how_much_of_up_to_it_may_use),
        cmocka_unit_test(deny_grants_a_new_key_nothing_of_up_to),
        cmocka_unit_test(evict_forgets_one_for_each_and_counts_it),
        cmocka_unit_test(evict_forgets_the_least_indebted),
        cmocka_unit_test(what_is_as_good_as_new_is_replaced_silently),
        cmocka_unit_test(a_key_is_replaced_only_after_the_slowest_clock_sees_it_fresh),
        cmocka_unit_test(blocks_are_never_evicted_while_they_last),
        cmocka_unit_test(blocks_take_no_place_of_any_key),
        cmocka_unit_test(a_block_takes_the_place_of_one_that_is_over),
        cmocka_unit_test(a_block_forgets_nobody_under_deny_and_allow),
        cmocka_unit_test(a_penalty_for_a_new_key_in_a_full_table_is_efull),
        cmocka_unit_test(a_reservation_let_through_by_a_full_table_owes_nothing),
        cmocka_unit_test(memory_is_what_weir_size_said),
        cmocka_unit_test(a_hundred_thousand_keys_take_21_bytes_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
