/* Tests Y6 and Y7 of shared/synced/sync.h: which keys are exchanged, when, and which are
 * forgotten. */
#include "unit/shared/sync_story.h"

/* ---- Y6, Y7 ---- */

static void a_key_is_exchanged_while_it_is_used_and_then_forgotten(void **state)
{
    struct store_limit *l = bucket();
    struct sync_counts n;
    assert_int_equal(fake_admit(node, l, "k", 10, T0), 10);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 1000000, 0, 0, T0), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + MS).verdict, WEIR_DENY);
    c = next(T0 + S_NS); /* nothing to report, but the key is in use */
    assert_int_equal(c.delta, 0);
    assert_int_equal(say(&c, T0 + S_NS, 800000, 0, 0, T0 + S_NS), 0);
    assert_int_equal(node_keys_due(node), T0 + MS + 10 * S_NS);
    none(T0 + MS + 10 * S_NS - 1);
    sync_counts(node, &n);
    assert_int_equal(n.keys, 1);
    none(T0 + MS + 10 * S_NS);
    sync_counts(node, &n);
    assert_int_equal(n.keys, 0);
    assert_int_equal(l->references, 0);
    assert_int_equal(node_keys_due(node), UINT64_MAX);
}

/* Otherwise a caller that asks every 11 S would always find a fresh key. */
static void an_idle_key_is_kept_until_it_is_as_good_as_new(void **state)
{
    struct store_limit *l = bucket();
    struct sync_counts n;
    assert_int_equal(fake_ask(node, l, "k", 1, T0).verdict, WEIR_ALLOW);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 30 * 1000000, 0, 0, T0), 0); /* others have taken more */
    none(T0 + 11 * S_NS);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 11 * S_NS).verdict, WEIR_DENY);
    c = next(T0 + 11 * S_NS);
    assert_int_equal(say(&c, T0 + 11 * S_NS, 29 * 1000000, 0, 0, T0 + 11 * S_NS), 0);
    none(T0 + 29 * WEIR_SECOND);
    sync_counts(node, &n);
    assert_int_equal(n.keys, 1);
    none(T0 + 32 * WEIR_SECOND);
    sync_counts(node, &n);
    assert_int_equal(n.keys, 0);
}

static void a_full_table_forgets_who_is_idle_and_else_says_so(void **state)
{
    struct store_limit *l = bucket();
    struct weir_answer a;
    struct sync_counts n;
    char key[8];
    node_keys_destroy(node);
    assert_int_equal(node_keys_of(&node, KEY_SYNCED, 8), 0);
    for (unsigned i = 0; i < 8; i++) {
        (void)snprintf(key, sizeof key, "%u", i);
        assert_int_equal(fake_ask(node, l, key, 1, T0).verdict, WEIR_ALLOW);
    }
    assert_int_equal(sync_ask(node, PART(l, TEXT("new"), 1), T0, &a), SYNC_DEGRADED);
    struct sync_call c = next(T0);
    assert_int_equal(sync_ask(node, PART(l, TEXT("new"), 1), T0, &a), SYNC_DEGRADED);
    assert_int_equal(say(&c, T0, 100000, 0, 0, T0), 0);
    assert_int_equal(fake_ask(node, l, "new", 1, T0).verdict, WEIR_ALLOW);
    sync_counts(node, &n);
    assert_int_equal(n.full, 2);
    assert_int_equal(n.keys, 8);
    unsigned due = 0;
    while (sync_next(node, T0, &c)) { /* no key's units were forgotten */
        assert_int_equal(c.delta, 1);
        sync_lost(node, &c, T0);
        due++;
    }
    assert_int_equal(due, 8);
}

static void a_key_that_was_changed_by_hand_is_exchanged_at_once(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 10, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 1000000, 0, 0, T0), 0);
    none(T0 + MS);
    sync_hurry(node, PART(l, TEXT("k"), 1));
    sync_hurry(node, PART(l, TEXT("nobody"), 1));
    c = next(T0 + MS);
    sync_hurry(node, PART(l, TEXT("k"), 1)); /* again, while that call is in flight */
    assert_int_equal(say(&c, T0, 1000000, 0, 0, T0 + RTT), 0);
    c = next(T0 + RTT);
    assert_int_equal(say(&c, T0, 0, 0, 0, T0 + 2 * RTT), 0);
    none(T0 + 2 * RTT);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 2 * RTT).remaining, 9);
}

static void after_stop_every_delta_is_due_at_once(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 100000, 0, 0, T0), 0);
    (void)fake_ask(node, l, "k", 1, T0 + MS);
    none(T0 + MS);
    node_keys_stop(node);
    c = next(T0 + MS);
    assert_int_equal(c.delta, 1);
    assert_int_equal(say(&c, T0, 100000, 0, 0, T0 + MS), 0);
    none(T0 + MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_key_is_exchanged_while_it_is_used_and_then_forgotten),
        TEST(an_idle_key_is_kept_until_it_is_as_good_as_new),
        TEST(a_full_table_forgets_who_is_idle_and_else_says_so),
        TEST(a_key_that_was_changed_by_hand_is_exchanged_at_once),
        TEST(after_stop_every_delta_is_due_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
