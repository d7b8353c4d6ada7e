/* Tests what a node remembers of the keys that a fleet shares: notes, what gives way in a full
 * table (K1, K2), and when parts are due. */
#include <stdio.h>
#include <stdlib.h>

#include "shared/leased/lease.h"
#include "shared/core/script.h"
#include "support/store/sync_fakes.h"

#define NOW (1000 * WEIR_SECOND)
#define LIFE_US UINT64_C(2000000)
#define STORE_US UINT64_C(1700000000000000)

static struct node_keys *keys;
static struct store_limit exact = {.id = 1000000};

static int open_keys(void **state)
{
    return node_keys_create(
        &keys, (uint64_t[KEY_KINDS]){[KEY_NOTED] = 1000, [KEY_LEASED] = 1000, [KEY_SYNCED] = 1000});
}

static int close_keys(void **state)
{
    node_keys_destroy(keys);
    return 0;
}

/* 10 units, one every 100 ms. */
static const struct store_params bucket = {
    .algorithm = WEIR_TOKEN_BUCKET, .quota = 10, .a = 100000};
static const struct store_params sliding = {
    .algorithm = WEIR_SLIDING_WINDOW, .quota = 10, .a = 1000000};

/* ---- notes ---- */

static struct hash key(const char *name)
{
    return node_key_hash(keys, PART(&exact, text_of(name), 1));
}

static void deny(const char *name, uint64_t cost, uint64_t retry_ns, uint64_t keep_ns)
{
    struct weir_answer a = {.verdict = WEIR_DENY,
                            .quota = 10,
                            .remaining = 2,
                            .retry_after_ns = retry_ns,
                            .reset_after_ns = WEIR_SECOND};
    node_keys_note(keys, key(name), cost, &a, keep_ns, NOW);
}

static void allow(const char *name, uint64_t cost, uint64_t remaining, uint64_t now_ns)
{
    struct weir_answer a = {.verdict = WEIR_ALLOW, .quota = 10, .remaining = remaining};
    node_keys_note(keys, key(name), cost, &a, 0, now_ns);
}

static bool denied(const char *name, const struct store_params *p, uint64_t cost, uint64_t now_ns,
                   struct weir_answer *a)
{
    return node_keys_deny(keys, key(name), p, cost, now_ns, a);
}

static void a_denial_is_answered_again_for_as_long_as_it_is_kept(void **state)
{
    struct weir_answer a;
    deny("a", 3, 100 * MS, 100 * MS);
    /* Both are noted before time passes: keys of one stripe share the latest time it has seen. */
    deny("c", 3, 10 * WEIR_SECOND, WEIR_SECOND);
    assert_true(denied("a", &bucket, 3, NOW + 40 * MS, &a));
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.retry_after_ns, 60 * MS);
    assert_int_equal(a.reset_after_ns, 960 * MS);
    assert_int_equal(a.remaining, 2);
    assert_true(denied("a", &bucket, 3, NOW + 100 * MS - 1, &a));
    assert_false(denied("a", &bucket, 3, NOW + 100 * MS, &a));
    assert_false(denied("b", &bucket, 3, NOW, &a));
    assert_true(denied("c", &bucket, 3, NOW + WEIR_SECOND - 1, &a));
    assert_int_equal(a.retry_after_ns, 9 * WEIR_SECOND + 1);
    assert_false(denied("c", &bucket, 3, NOW + WEIR_SECOND, &a));
}

static void lower_costs_are_asked_and_higher_ones_wait_for_the_units_more(void **state)
{
    struct weir_answer a;
    deny("a", 3, 100 * MS, 100 * MS);
    assert_false(denied("a", &bucket, 2, NOW, &a));
    assert_true(denied("a", &bucket, 5, NOW, &a));
    assert_int_equal(a.retry_after_ns, 300 * MS);
    assert_false(denied("a", &bucket, 11, NOW, &a)); /* the verdict would be NEVER */
    deny("w", 3, 100 * MS, 100 * MS);
    assert_true(denied("w", &sliding, 3, NOW, &a));
    assert_false(denied("w", &sliding, 4, NOW, &a)); /* only the store knows when it would fit */
}

static void a_denial_ends_when_the_store_has_allowed_its_cost_or_the_key_was_changed(void **state)
{
    struct weir_answer a;
    deny("a", 3, WEIR_SECOND, WEIR_SECOND);
    allow("a", 2, 2, NOW);
    assert_true(denied("a", &bucket, 3, NOW, &a));
    allow("a", 3, 0, NOW);
    assert_false(denied("a", &bucket, 3, NOW, &a));
    deny("a", 3, WEIR_SECOND, WEIR_SECOND);
    allow("a", 0, 3, NOW); /* a PEEK */
    assert_false(denied("a", &bucket, 3, NOW, &a));
    deny("a", 3, WEIR_SECOND, WEIR_SECOND);
    node_keys_forget(keys, key("a"));
    assert_false(denied("a", &bucket, 3, NOW, &a));
}

static void limits_and_shards_do_not_share_keys(void **state)
{
    struct store_limit other = {.id = 2};
    struct remote_part b_of_a = {.limit = &exact, .shard = TEXT("b"), .key = TEXT("a")};
    struct remote_part a_of_b = {.limit = &exact, .shard = TEXT("a"), .key = TEXT("b")};
    struct hash plain = node_key_hash(keys, PART(&exact, TEXT("a"), 1));
    struct hash hashes[] = {
        node_key_hash(keys, PART(&other, TEXT("a"), 1)),
        node_key_hash(keys, &b_of_a),
        node_key_hash(keys, &a_of_b),
    };
    for (size_t i = 0; i < sizeof hashes / sizeof hashes[0]; i++) {
        assert_true(hashes[i].low != plain.low);
    }
    assert_true(hashes[1].low != hashes[2].low);
}

static unsigned calls;
static uint64_t heard;

static void hear(void *arg, const struct node_key *k)
{
    calls++;
    heard = k != NULL ? k->remaining : UINT64_MAX;
}

static void an_outage_begins_once_for_each_key_with_what_there_was(void **state)
{
    calls = 0;
    node_keys_once(keys, key("a"), 1, NOW, hear, NULL);
    assert_int_equal(calls, 1);
    assert_true(heard == UINT64_MAX);
    node_keys_once(keys, key("a"), 1, NOW, hear, NULL);
    assert_int_equal(calls, 1);
    allow("a", 1, 4, NOW); /* the store was available in between */
    node_keys_once(keys, key("a"), 1, NOW, hear, NULL);
    assert_int_equal(calls, 2);
    assert_int_equal(heard, 4);
    node_keys_once(keys, key("a"), 2, NOW, hear, NULL);
    assert_int_equal(calls, 3);
}

static void the_key_that_was_used_last_stays_when_there_are_too_many(void **state)
{
    struct weir_answer a;
    char name[16];
    deny("kept", 1, 100 * WEIR_SECOND, 100 * WEIR_SECOND);
    for (unsigned i = 0; i < 20000; i++) {
        (void)snprintf(name, sizeof name, "%u", i);
        allow(name, 1, i, NOW + i);
        assert_true(denied("kept", &bucket, 1, NOW + i + 1, &a));
    }
    assert_true(node_keys_count(keys, KEY_NOTED) <= 1000 + KEY_STRIPES_MAX);
}

/* ---- parts ---- */

static struct fake_limit leased_limit;
static struct fake_limit synced_limit;

static void open_limits(void)
{
    (void)fake_limit(&leased_limit, WEIR_TOKEN_BUCKET, 1000000, WEIR_SECOND, 1000000);
    store_params_lease(&leased_limit.numbers.params);
    leased_limit.limit.deny_cache_ns = WEIR_SECOND;
    (void)fake_limit(&synced_limit, WEIR_FIXED_WINDOW, 1000, WEIR_DAY, 0);
}

static void a_part_that_ends_leaves_its_notes_and_its_room(void **state)
{
    struct weir_answer a;
    uint64_t now_ns = NOW;
    open_limits();
    struct store_limit *l = &leased_limit.limit;
    struct hash hash = node_key_hash(keys, PART(l, TEXT("a"), 1));
    struct weir_answer said = {.verdict = WEIR_DENY, .remaining = 7, .retry_after_ns = WEIR_SECOND};
    node_keys_note(keys, hash, 9, &said, WEIR_SECOND, NOW);
    struct key_stripe *s = node_keys_lock(keys, hash, &now_ns);
    struct key_part *part =
        node_key_begin(s, hash, PART(l, TEXT("a"), 1), KEY_LEASED, sizeof *part);
    assert_ptr_equal(node_key_part(node_key_find(s, hash), KEY_LEASED), part);
    assert_null(node_key_part(node_key_find(s, hash), KEY_SYNCED));
    struct store_key name;
    struct store_key whole;
    node_key_name(part, &name);
    store_key(&l->head, NO_SHARD, TEXT("a"), &whole);
    assert_int_equal(name.len, whole.len);
    assert_memory_equal(name.at, whole.at, whole.len);
    node_keys_unlock(s);
    assert_int_equal(l->counts.keys, 1);
    assert_int_equal(node_keys_count(keys, KEY_LEASED), 1);
    assert_int_equal(node_keys_count(keys, KEY_NOTED), 0);
    s = node_keys_lock(keys, hash, &now_ns);
    node_key_end(s, part);
    node_keys_unlock(s);
    assert_int_equal(l->counts.keys, 0);
    assert_int_equal(l->references, 0);
    assert_int_equal(node_keys_count(keys, KEY_LEASED), 0);
    assert_int_equal(node_keys_count(keys, KEY_NOTED), 1);
    assert_true(node_keys_deny(keys, hash, &bucket, 9, NOW, &a));
    assert_int_equal(a.remaining, 7);
}

#define PARTS 500u

/* key_look_fn */
static bool end_part(struct node_keys *k, struct key_stripe *s, struct key_part *part,
                     uint64_t now_ns, void *call)
{
    *(uint64_t *)call = part->due_ns;
    node_key_end(s, part);
    return true;
}

static void parts_are_due_in_the_order_of_their_times(void **state)
{
    uint64_t due_ns;
    open_limits();
    for (uint64_t i = 0; i < PARTS; i++) {
        struct weir_text name = {(const char *)&i, sizeof i};
        struct hash hash = node_key_hash(keys, PART(&synced_limit.limit, name, 1));
        uint64_t now_ns = NOW;
        struct key_stripe *s = node_keys_lock(keys, hash, &now_ns);
        struct key_part *part =
            node_key_begin(s, hash, PART(&synced_limit.limit, name, 1), KEY_SYNCED, sizeof *part);
        node_key_schedule(s, part, NOW); /* it is moved below */
        node_key_schedule(s, part, NOW + i * 7919 % PARTS);
        node_keys_unlock(s);
    }
    for (uint64_t i = 0; i < PARTS; i++) {
        assert_int_equal(node_keys_due(keys), NOW + i);
        assert_true(node_keys_next(keys, KEY_SYNCED, NOW + i, end_part, &due_ns));
        assert_int_equal(due_ns, NOW + i);
        assert_false(node_keys_next(keys, KEY_LEASED, NOW + i, end_part, &due_ns));
    }
    assert_true(node_keys_due(keys) == UINT64_MAX);
    assert_int_equal(synced_limit.limit.references, 0);
}

static void after_stop_every_part_is_due_at_once(void **state)
{
    uint64_t now_ns = NOW;
    uint64_t due_ns;
    open_limits();
    struct store_limit *l = &leased_limit.limit;
    struct hash hash = node_key_hash(keys, PART(l, TEXT("a"), 1));
    struct key_stripe *s = node_keys_lock(keys, hash, &now_ns);
    struct key_part *part =
        node_key_begin(s, hash, PART(l, TEXT("a"), 1), KEY_LEASED, sizeof *part);
    node_key_schedule(s, part, NOW + WEIR_SECOND);
    node_keys_unlock(s);
    assert_false(node_keys_is_stopping(keys));
    assert_false(node_keys_next(keys, KEY_LEASED, NOW, end_part, &due_ns));
    node_keys_stop(keys);
    assert_true(node_keys_is_stopping(keys));
    assert_true(node_keys_next(keys, KEY_LEASED, NOW, end_part, &due_ns));
}

/* ---- what never gives way ---- */

#define LEASES 50u
#define LEASED_UNITS 9u
#define SYNCS 60u
#define DENIED 1000000u

static unsigned ask_lease(unsigned i, struct lease_call *call)
{
    struct weir_answer a;
    struct weir_text name = {(const char *)&i, sizeof i};
    return lease_ask(keys, PART(&leased_limit.limit, name, 1), LEASE_ASK, NOW, &a, call);
}

/* Asks until the node wants a lease, and grants it. */
static void take_lease(unsigned i)
{
    struct lease_call call;
    bool taken = false;
    while (!taken) {
        assert_int_equal(ask_lease(i, &call), LEASE_SEND);
        taken = call.want != 0;
        int64_t units = taken ? LEASED_UNITS : 0;
        struct store_reply r = {.type = ':',
                                .n = SCRIPT_LEASE_COUNT,
                                .integers = {WEIR_ALLOW, 0, 500, 0, 0, 1000, 0, 123, 0, units,
                                             taken ? 777 : 0, taken ? (int64_t)LIFE_US : 0, 0}};
        struct weir_answer a;
        assert_int_equal(lease_reply(keys, &call, &r, NOW, &a), 0);
    }
}

/* Counts i units of key i. Of three keys one has told nothing, the call of one was lost, and that
 * of one is out. */
static void count_units(unsigned i, struct sync_call *out, unsigned *out_count)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%u", i);
    assert_int_equal(fake_admit(keys, &synced_limit.limit, name, i, NOW), i);
    if (i % 3 != 0) {
        assert_true(sync_next(keys, NOW, &out[*out_count]));
        *out_count += i % 3 == 2;
        if (i % 3 == 1) {
            sync_lost(keys, &out[*out_count], NOW);
        }
    }
}

static uint64_t spend_leases(void)
{
    uint64_t units = 0;
    for (unsigned i = 0; i < LEASES; i++) {
        struct lease_call call;
        unsigned said;
        while (((said = ask_lease(i, &call)) & LEASE_ANSWERED) != 0) {
            units++;
            if ((said & LEASE_SEND) != 0) {
                lease_lost(keys, &call, NOW);
            }
        }
        lease_lost(keys, &call, NOW);
    }
    return units;
}

/* Answers the exchanges that are out and all that follow. Returns the units that were told. */
static uint64_t tell_all(const struct sync_call *out, unsigned out_count)
{
    uint64_t told = 0;
    struct sync_call next;
    struct store_reply r = {.type = ':', .n = 6, .integers = {STORE_US, STORE_US / 86400000000, 1}};
    for (unsigned i = 0; i < out_count; i++) {
        told += (uint64_t)out[i].delta;
        assert_int_equal(sync_reply(keys, &out[i], &r, NOW), 0);
    }
    node_keys_stop(keys);
    while (sync_next(keys, NOW, &next)) {
        told += (uint64_t)next.delta;
        assert_int_equal(sync_reply(keys, &next, &r, NOW), 0);
    }
    return told;
}

static void a_million_denied_keys_take_no_lease_and_no_untold_unit(void **state)
{
    struct sync_call *out = calloc(SYNCS, sizeof *out);
    unsigned out_count = 0;
    open_limits();
    for (unsigned i = 0; i < LEASES; i++) {
        take_lease(i);
    }
    for (unsigned i = 1; i < SYNCS; i++) {
        count_units(i, out, &out_count);
    }
    assert_int_equal(node_keys_deny_many(keys, DENIED, NOW), DENIED);
    assert_int_equal(leased_limit.limit.counts.keys, LEASES);
    assert_int_equal(synced_limit.limit.counts.keys, SYNCS - 1);
    assert_int_equal(spend_leases(), (uint64_t)LEASES * LEASED_UNITS);
    assert_int_equal(tell_all(out, out_count), SYNCS * (SYNCS - 1) / 2);
    free(out);
}

int main(void)
{
#define KEYS_TEST(f) cmocka_unit_test_setup_teardown(f, open_keys, close_keys)
    const struct CMUnitTest tests[] = {
        KEYS_TEST(a_denial_is_answered_again_for_as_long_as_it_is_kept),
        KEYS_TEST(lower_costs_are_asked_and_higher_ones_wait_for_the_units_more),
        KEYS_TEST(a_denial_ends_when_the_store_has_allowed_its_cost_or_the_key_was_changed),
        KEYS_TEST(limits_and_shards_do_not_share_keys),
        KEYS_TEST(an_outage_begins_once_for_each_key_with_what_there_was),
        KEYS_TEST(the_key_that_was_used_last_stays_when_there_are_too_many),
        KEYS_TEST(a_part_that_ends_leaves_its_notes_and_its_room),
        KEYS_TEST(parts_are_due_in_the_order_of_their_times),
        KEYS_TEST(after_stop_every_part_is_due_at_once),
        KEYS_TEST(a_million_denied_keys_take_no_lease_and_no_untold_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
