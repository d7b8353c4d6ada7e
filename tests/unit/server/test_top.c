/* Who is denied most: what the sketch says against what was true. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "server/admin/top_denied.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS 100000
#else
#define ROUNDS 300000
#endif

#define KEYS 10000
#define SKETCHES 3

static struct hash_secret secret;
static uint64_t truth[KEYS];
static struct top *tops[SKETCHES];

static int make(void **state)
{
    memset(truth, 0, sizeof truth);
    for (unsigned i = 0; i < sizeof secret.xxh3; i++) {
        secret.xxh3[i] = (unsigned char)(i * i * 37 + 11 * i + 5);
    }
    for (unsigned i = 0; i < SKETCHES; i++) {
        tops[i] = top_create(&secret);
        assert_non_null(tops[i]);
    }
    return 0;
}

static int unmake(void **state)
{
    for (unsigned i = 0; i < SKETCHES; i++) {
        top_destroy(tops[i]);
    }
    return 0;
}

static uint64_t next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

/* Zipf with exponent 1, as near as a number in (0, 1] makes it: key i about as often as 1 / (i+1). */
static unsigned zipf(uint64_t *random)
{
    double u = (double)(next(random) >> 11) / 9007199254740992.0;
    unsigned key = (unsigned)exp(u * log(KEYS)) - 1;
    return key < KEYS ? key : KEYS - 1;
}

static void deny(unsigned sketch, unsigned key)
{
    char name[32];
    int n = snprintf(name, sizeof name, "key-%u", key);
    top_add(tops[sketch], "api", name, (size_t)n);
    truth[key]++;
}

static unsigned key_of(const struct top_item *item)
{
    return (unsigned)strtoul(item->key + 4, NULL, 10);
}

/* Every item holds what it promises, and the keys below `sure` are all there. */
static void assert_guarantees(struct top *const *of, size_t count, unsigned sure)
{
    static unsigned char told[KEYS];
    struct top_item *items = NULL;
    int64_t n = top_read(of, count, &items);
    memset(told, 0, sizeof told);
    assert_true(n >= 0 && (size_t)n <= count * TOP_KEYS);
    for (int64_t i = 0; i < n; i++) {
        unsigned key = key_of(&items[i]);
        assert_true(truth[key] <= items[i].count);
        assert_true(items[i].count - items[i].error <= truth[key]);
        assert_true(i == 0 || items[i].count <= items[i - 1].count);
        assert_string_equal(items[i].limit, "api");
        told[key]++;
    }
    for (unsigned key = 0; key < KEYS; key++) {
        assert_true(told[key] <= 1);
        assert_true(told[key] == 1 || key >= sure);
    }
    free(items);
}

static void one_sketch_holds_its_promise_on_a_zipf_stream(void **state)
{
    uint64_t random = 42;
    for (unsigned i = 0; i < ROUNDS; i++) {
        deny(0, zipf(&random));
        if ((i & (i - 1)) == 0) {
            assert_guarantees(tops, 1, i > 10000 ? 20 : 0);
        }
    }
    assert_guarantees(tops, 1, 20);
}

static void several_sketches_hold_it_together(void **state)
{
    uint64_t random = 7;
    for (unsigned i = 0; i < ROUNDS; i++) {
        deny((unsigned)next(&random) % SKETCHES, zipf(&random));
    }
    assert_guarantees(tops, SKETCHES, 20);
}

static void a_flood_of_keys_that_come_once_does_not_hide_who_comes_often(void **state)
{
    for (unsigned i = 0; i < KEYS; i++) {
        deny(0, i);
        deny(0, 17);
    }
    struct top_item *items = NULL;
    assert_true(top_read(tops, 1, &items) == TOP_KEYS);
    assert_int_equal(key_of(&items[0]), 17);
    assert_true(items[0].count - items[0].error > KEYS / 2);
    free(items);
    assert_guarantees(tops, 1, 0);
}

static void a_few_keys_are_counted_exactly(void **state)
{
    for (unsigned key = 0; key < TOP_WAYS; key++) {
        for (unsigned i = 0; i <= key; i++) {
            deny(i % SKETCHES, key);
        }
    }
    struct top_item *items = NULL;
    assert_true(top_read(tops, SKETCHES, &items) == TOP_WAYS);
    for (unsigned i = 0; i < TOP_WAYS; i++) {
        assert_true(items[i].error == 0 && items[i].count == truth[key_of(&items[i])]);
    }
    free(items);
}

static void the_same_key_of_two_limits_is_two(void **state)
{
    struct top_item *items = NULL;
    top_add(tops[0], "api", "ann", 3);
    top_add(tops[0], "login", "ann", 3);
    top_add(tops[1], "login", "ann", 3);
    assert_true(top_read(tops, SKETCHES, &items) == 2);
    assert_string_equal(items[0].limit, "login");
    assert_true(items[0].count == 2 && items[1].count == 1);
    free(items);
}

static void long_keys_are_cut_and_stay_two(void **state)
{
    char one[300];
    char two[300];
    struct top_item *items = NULL;
    memset(one, 'x', sizeof one);
    memset(two, 'x', sizeof two);
    two[299] = 'y';
    top_add(tops[0], "api", one, sizeof one);
    top_add(tops[0], "api", two, sizeof two);
    assert_true(top_read(tops, 1, &items) == 2);
    assert_true(items[0].key_len == 300 && memcmp(items[0].key, one, TOP_KEY_BYTES) == 0);
    free(items);
}

static void keys_may_hold_any_byte_and_limits_any_name(void **state)
{
    struct top_item *items = NULL;
    char name[100];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    top_add(tops[0], name, "\0\xff\0", 3);
    top_add(tops[0], "", "", 0);
    assert_true(top_read(tops, 1, &items) == 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(strlen(items[i].limit) < TOP_NAME_BYTES);
    }
    free(items);
}

static void nothing_denied_is_nothing_told(void **state)
{
    struct top_item *items = NULL;
    assert_true(top_read(tops, SKETCHES, &items) == 0);
    free(items);
    assert_true(top_read(tops, 0, &items) == 0);
    free(items);
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
        top_add(tops[0], word % 2 == 0 ? "even" : "odd", key, 1 + word % TOP_KEY_BYTES);
    }
    store_release(&done, 1);
    return NULL;
}

static void assert_whole(const struct top_item *item)
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
        struct top_item *items = NULL;
        int64_t n = top_read(tops, 1, &items);
        for (int64_t i = 0; i < n; i++) {
            assert_whole(&items[i]);
        }
        free(items);
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
        TEST(long_keys_are_cut_and_stay_two),
        TEST(keys_may_hold_any_byte_and_limits_any_name),
        TEST(nothing_denied_is_nothing_told),
        TEST(who_reads_meanwhile_sees_whole_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
