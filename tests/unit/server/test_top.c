/* Who is denied most: what the sketches of threads say against what was true, in one time. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <weir_rules.h>

#include "base/atomic.h"
#include "server/record/top_panes.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS 100000
#else
#define ROUNDS 300000
#endif

#define KEYS 10000
#define SKETCHES 3

#define SECOND UINT64_C(1000000000)
#define REASON 1

static struct hash_secret secret;
static struct top_panes *panes;
static uint64_t truth[KEYS];
static struct top *tops[SKETCHES];

static int make(void **state)
{
    memset(truth, 0, sizeof truth);
    for (unsigned i = 0; i < sizeof secret.xxh3; i++) {
        secret.xxh3[i] = (unsigned char)(i * i * 37 + 11 * i + 5);
    }
    panes = top_panes_create(SECOND);
    assert_non_null(panes);
    for (unsigned i = 0; i < SKETCHES; i++) {
        tops[i] = top_create(&secret, top_panes_turn(panes));
        assert_non_null(tops[i]);
    }
    return 0;
}

static int unmake(void **state)
{
    for (unsigned i = 0; i < SKETCHES; i++) {
        top_destroy(tops[i]);
    }
    top_panes_destroy(panes);
    return 0;
}

static uint64_t next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

/* Zipf with exponent 1, from a number in (0, 1]: key i about as often as 1 / (i+1). */
static unsigned zipf(uint64_t *random)
{
    double u = (double)(next(random) >> 11) / 9007199254740992.0;
    unsigned key = (unsigned)exp(u * log(KEYS)) - 1;
    return key < KEYS ? key : KEYS - 1;
}

static size_t list(size_t count, struct top_list *out)
{
    top_panes_list(panes, tops, count, 60 * SECOND, 2 * SECOND, out);
    return out->count;
}

static void deny(unsigned sketch, unsigned key)
{
    char name[32];
    int n = snprintf(name, sizeof name, "key-%u", key);
    top_add(tops[sketch], "api", name, (size_t)n, REASON);
    truth[key]++;
}

static unsigned key_of(const struct top_row *item)
{
    return (unsigned)strtoul(item->key + 4, NULL, 10);
}

/* Every row holds what it promises, and the keys below `sure` are all there. */
static void assert_guarantees(size_t count, unsigned sure)
{
    static unsigned char told[KEYS];
    struct top_list l;
    memset(told, 0, sizeof told);
    assert_true(list(count, &l) <= TOP_KEYS);
    for (size_t i = 0; i < l.count; i++) {
        const struct top_row *row = l.rows[i];
        unsigned key = key_of(row);
        assert_true(truth[key] <= row->high);
        assert_true(row->low <= truth[key]);
        assert_true(row->high - row->low <= l.lost);
        assert_true(i == 0 || row->high <= l.rows[i - 1]->high);
        assert_string_equal(row->limit, "api");
        assert_int_equal(row->reason, REASON);
        told[key]++;
    }
    for (unsigned key = 0; key < KEYS; key++) {
        assert_true(told[key] <= 1);
        assert_true(told[key] == 1 || key >= sure);
        assert_true(told[key] == 1 || truth[key] <= l.lost);
    }
}

static void one_sketch_holds_its_promise_on_a_zipf_stream(void **state)
{
    uint64_t random = 42;
    for (unsigned i = 0; i < ROUNDS; i++) {
        deny(0, zipf(&random));
        if ((i & (i - 1)) == 0) {
            assert_guarantees(1, i > 10000 ? 20 : 0);
        }
    }
    assert_guarantees(1, 20);
}

static void several_sketches_hold_it_together(void **state)
{
    uint64_t random = 7;
    for (unsigned i = 0; i < ROUNDS; i++) {
        deny((unsigned)next(&random) % SKETCHES, zipf(&random));
    }
    assert_guarantees(SKETCHES, 20);
}

static void a_flood_of_keys_that_come_once_does_not_hide_who_comes_often(void **state)
{
    for (unsigned i = 0; i < KEYS; i++) {
        deny(0, i);
        deny(0, 17);
    }
    struct top_list l;
    assert_int_equal(list(1, &l), TOP_KEYS);
    assert_int_equal(key_of(l.rows[0]), 17);
    assert_true(l.rows[0]->low > KEYS / 2);
    assert_guarantees(1, 0);
}

static void a_few_keys_are_counted_exactly(void **state)
{
    for (unsigned key = 0; key < TOP_WAYS; key++) {
        for (unsigned i = 0; i <= key; i++) {
            deny(i % SKETCHES, key);
        }
    }
    struct top_list l;
    assert_int_equal(list(SKETCHES, &l), TOP_WAYS);
    for (unsigned i = 0; i < TOP_WAYS; i++) {
        assert_true(l.rows[i]->low == l.rows[i]->high);
        assert_int_equal(l.rows[i]->high, truth[key_of(l.rows[i])]);
    }
}

static void the_same_key_of_two_limits_is_two(void **state)
{
    struct top_list l;
    top_add(tops[0], "api", "ann", 3, REASON);
    top_add(tops[0], "login", "ann", 3, REASON);
    top_add(tops[1], "login", "ann", 3, REASON);
    assert_int_equal(list(SKETCHES, &l), 2);
    assert_string_equal(l.rows[0]->limit, "login");
    assert_true(l.rows[0]->high == 2 && l.rows[1]->high == 1);
}

static void the_same_key_for_two_reasons_is_two(void **state)
{
    struct top_list l;
    top_add(tops[0], "api", "ann", 3, WEIR_REASON_STORE);
    top_add(tops[1], "api", "ann", 3, WEIR_REASON_STORE);
    top_add(tops[1], "api", "ann", 3, WEIR_REASON_LIMIT);
    assert_int_equal(list(SKETCHES, &l), 2);
    assert_int_equal(l.rows[0]->reason, WEIR_REASON_STORE);
    assert_int_equal(l.rows[1]->reason, WEIR_REASON_LIMIT);
    assert_true(l.rows[0]->low == 2 && l.rows[0]->high == 2 && l.rows[1]->high == 1);
}

static void long_keys_are_cut_and_stay_two(void **state)
{
    char one[300];
    char two[300];
    struct top_list l;
    memset(one, 'x', sizeof one);
    memset(two, 'x', sizeof two);
    two[299] = 'y';
    top_add(tops[0], "api", one, sizeof one, REASON);
    top_add(tops[0], "api", two, sizeof two, REASON);
    assert_int_equal(list(1, &l), 2);
    assert_true(l.rows[0]->key_len == 300 && memcmp(l.rows[0]->key, one, TOP_KEY_BYTES) == 0);
}

static void keys_may_hold_any_byte_and_limits_any_name(void **state)
{
    struct top_list l;
    char name[100];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    top_add(tops[0], name, "\0\xff\0", 3, REASON);
    top_add(tops[0], "", "", 0, REASON);
    assert_int_equal(list(1, &l), 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(strlen(l.rows[i]->limit) < TOP_NAME_BYTES);
    }
}

static void nothing_denied_is_nothing_told(void **state)
{
    struct top_list l;
    assert_int_equal(list(SKETCHES, &l), 0);
    assert_int_equal(list(0, &l), 0);
}

/* ---- while it is written ---- */

static uint64_t done;

/* Keys of eight words that are all the same, and nearly always new. */
static void *write_on(void *arg)
{
    uint64_t random = 99;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t key[TOP_KEY_BYTES / 8];
        uint64_t word = next(&random);
        for (unsigned j = 0; j < TOP_KEY_BYTES / 8; j++) {
            key[j] = word;
        }
        top_add(tops[0], word % 2 == 0 ? "even" : "odd", key, 1 + word % TOP_KEY_BYTES, REASON);
    }
    store_release(&done, 1);
    return NULL;
}

static void assert_whole(const struct top_row *item)
{
    uint64_t word;
    char key[TOP_KEY_BYTES];
    memcpy(&word, item->key, sizeof word);
    if (item->key_len < sizeof word) { /* not all of the word is there */
        return;
    }
    assert_true(item->key_len == 1 + word % TOP_KEY_BYTES);
    assert_string_equal(item->limit, word % 2 == 0 ? "even" : "odd");
    for (unsigned j = 0; j < sizeof key; j += sizeof word) {
        memcpy(key + j, &word, sizeof word);
    }
    assert_memory_equal(item->key, key, item->key_len);
}

/* A label belongs together: limit, key and length are of one denial. */
static void who_reads_meanwhile_sees_whole_keys(void **state)
{
    pthread_t writer;
    uint64_t reads = 0;
    store_release(&done, 0);
    assert_int_equal(pthread_create(&writer, NULL, write_on, NULL), 0);
    while (load_acquire(&done) == 0 || reads == 0) {
        struct top_list l;
        size_t n = list(1, &l);
        for (size_t i = 0; i < n; i++) {
            assert_whole(l.rows[i]);
        }
        reads++;
    }
    assert_int_equal(pthread_join(writer, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_sketch_holds_its_promise_on_a_zipf_stream),
        TEST(several_sketches_hold_it_together),
        TEST(a_flood_of_keys_that_come_once_does_not_hide_who_comes_often),
        TEST(a_few_keys_are_counted_exactly),
        TEST(the_same_key_of_two_limits_is_two),
        TEST(the_same_key_for_two_reasons_is_two),
        TEST(long_keys_are_cut_and_stay_two),
        TEST(keys_may_hold_any_byte_and_limits_any_name),
        TEST(nothing_denied_is_nothing_told),
        TEST(who_reads_meanwhile_sees_whole_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
