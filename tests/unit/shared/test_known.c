/* Tests what a process remembers of keys that a store decides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "shared/known.h"

#define MS WEIR_MILLISECOND
#define NOW (1000 * WEIR_SECOND)

static struct known *known;

static int open_known(void **state)
{
    return known_create(&known, 1000);
}

static int close_known(void **state)
{
    known_destroy(known);
    return 0;
}

/* 10 units, one every 100 ms. */
static const struct store_params bucket = {
    .algorithm = WEIR_TOKEN_BUCKET, .quota = 10, .a = 100000};
static const struct store_params sliding = {
    .algorithm = WEIR_SLIDING_WINDOW, .quota = 10, .a = 1000000};

static struct hash key(const char *name)
{
    return known_hash(known, 7, text_of(name));
}

static void deny(const char *name, uint64_t cost, uint64_t retry_ns, uint64_t cache_ns)
{
    struct weir_answer a = {.verdict = WEIR_DENY,
                            .quota = 10,
                            .remaining = 2,
                            .retry_after_ns = retry_ns,
                            .reset_after_ns = WEIR_SECOND};
    known_denied(known, key(name), cost, &a, cache_ns, NOW);
}

static bool denied(const char *name, const struct store_params *p, uint64_t cost, uint64_t now_ns,
                   struct weir_answer *a)
{
    return known_denial(known, key(name), p, cost, now_ns, a);
}

static void a_denial_is_answered_again_until_its_retry(void **state)
{
    struct weir_answer a;
    deny("a", 3, 100 * MS, WEIR_SECOND);
    assert_true(denied("a", &bucket, 3, NOW + 40 * MS, &a));
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.retry_after_ns, 60 * MS);
    assert_int_equal(a.reset_after_ns, 960 * MS);
    assert_int_equal(a.remaining, 2);
    assert_true(denied("a", &bucket, 3, NOW + 100 * MS - 1, &a));
    assert_false(denied("a", &bucket, 3, NOW + 100 * MS, &a));
    assert_false(denied("b", &bucket, 3, NOW, &a));
}

static void it_is_kept_no_longer_than_deny_cache(void **state)
{
    struct weir_answer a;
    deny("a", 3, 10 * WEIR_SECOND, WEIR_SECOND);
    assert_true(denied("a", &bucket, 3, NOW + WEIR_SECOND - 1, &a));
    assert_int_equal(a.retry_after_ns, 9 * WEIR_SECOND + 1);
    assert_false(denied("a", &bucket, 3, NOW + WEIR_SECOND, &a));
    deny("c", 3, 10 * WEIR_SECOND, 0);
    assert_false(denied("c", &bucket, 3, NOW, &a));
}

static void lower_costs_are_asked_and_higher_ones_wait_for_the_units_more(void **state)
{
    struct weir_answer a;
    deny("a", 3, 100 * MS, WEIR_SECOND);
    assert_false(denied("a", &bucket, 2, NOW, &a));
    assert_true(denied("a", &bucket, 5, NOW, &a));
    assert_int_equal(a.retry_after_ns, 300 * MS);
    assert_false(denied("a", &bucket, 11, NOW, &a)); /* the verdict would be NEVER */
    deny("w", 3, 100 * MS, WEIR_SECOND);
    assert_true(denied("w", &sliding, 3, NOW, &a));
    assert_false(denied("w", &sliding, 4, NOW, &a)); /* only the store knows when it would fit */
}

static void blocks_are_not_remembered_and_what_is_forgotten_is_asked(void **state)
{
    struct weir_answer a = {
        .verdict = WEIR_DENY, .flags = WEIR_FLAG_BLOCKED, .retry_after_ns = WEIR_SECOND};
    known_denied(known, key("a"), 1, &a, WEIR_SECOND, NOW);
    assert_false(denied("a", &bucket, 1, NOW, &a));
    deny("b", 1, WEIR_SECOND, WEIR_SECOND);
    known_forget(known, key("b"));
    assert_false(denied("b", &bucket, 1, NOW, &a));
}

static void limits_do_not_share_keys(void **state)
{
    struct hash one = known_hash(known, 1, TEXT("a"));
    struct hash two = known_hash(known, 2, TEXT("a"));
    assert_true(one.low != two.low);
}

static unsigned calls;
static uint64_t heard;

static void hear(void *arg, uint64_t remaining)
{
    calls++;
    heard = remaining;
}

static void an_outage_begins_once_for_each_key_with_what_there_was(void **state)
{
    calls = 0;
    known_once(known, key("a"), 1, NOW, hear, NULL);
    assert_int_equal(calls, 1);
    assert_true(heard == KNOWN_NOT);
    known_once(known, key("a"), 1, NOW, hear, NULL);
    assert_int_equal(calls, 1);
    known_remaining(known, key("a"), 4, NOW); /* the store was available in between */
    known_once(known, key("a"), 1, NOW, hear, NULL);
    assert_int_equal(calls, 2);
    assert_int_equal(heard, 4);
    known_once(known, key("a"), 2, NOW, hear, NULL);
    assert_int_equal(calls, 3);
}

static void what_was_used_last_stays_when_there_are_too_many(void **state)
{
    struct weir_answer a;
    char name[16];
    deny("kept", 1, 100 * WEIR_SECOND, 100 * WEIR_SECOND);
    for (unsigned i = 0; i < 20000; i++) {
        (void)snprintf(name, sizeof name, "%u", i);
        known_remaining(known, key(name), i, NOW + i);
        assert_true(denied("kept", &bucket, 1, NOW + i + 1, &a));
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_known, close_known)
    const struct CMUnitTest tests[] = {
        TEST(a_denial_is_answered_again_until_its_retry),
        TEST(it_is_kept_no_longer_than_deny_cache),
        TEST(lower_costs_are_asked_and_higher_ones_wait_for_the_units_more),
        TEST(blocks_are_not_remembered_and_what_is_forgotten_is_asked),
        TEST(limits_do_not_share_keys),
        TEST(an_outage_begins_once_for_each_key_with_what_there_was),
        TEST(what_was_used_last_stays_when_there_are_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
