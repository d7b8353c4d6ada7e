// test-labels: notsan
/*
 * WEIR_RECOVER and WEIR_MORE_KEYS: a file of this very boot whose locks and counts cannot be
 * believed is put in order by whoever is alone with it, and a table that is larger than asked for
 * is not given up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/engine/process_image.h"

#define QUOTA 5
#define KEYS 40

static struct weir_options file_limit(const char *dir, int algorithm, unsigned flags)
{
    struct weir_options o = process_limit(algorithm, QUOTA);
    o.memory = WEIR_FILE;
    o.path = process_path(dir, "limits");
    o.flags = flags;
    o.max_keys = 1000;
    return o;
}

/* Key i has taken i mod (QUOTA + 1) units. Returns the time at which. */
static uint64_t populate(struct weir *w)
{
    uint64_t now;
    REQUIRE(weir_now(w, &now) == 0);
    for (unsigned i = 0; i < KEYS * (QUOTA + 1); i++) {
        if (i / KEYS < i % KEYS % (QUOTA + 1)) {
            REQUIRE(process_take(w, i % KEYS, now) == WEIR_ALLOW);
        }
    }
    return now;
}

static void require_populated(struct weir *w, uint64_t now)
{
    for (unsigned i = 0; i < KEYS; i++) {
        REQUIRE(process_left(w, i, now) == QUOTA - i % (QUOTA + 1));
    }
}

static uint64_t keys_of(struct weir *w)
{
    struct weir_stats stats = {.size = sizeof stats};
    REQUIRE(weir_stats_read(w, &stats) == 0);
    return stats.keys;
}

static uint64_t make(const struct weir_options *o)
{
    struct weir *w = process_open(o);
    uint64_t then = populate(w);
    weir_close(w);
    return then;
}

struct use {
    struct weir_options o;
    uint64_t then;
    uint64_t keys;
};

/* In a child: a lock that nobody gives back must not hold up the test. */
static void use_it(void *arg)
{
    struct use *u = arg;
    struct weir *w = process_open(&u->o);
    require_populated(w, u->then);
    REQUIRE(keys_of(w) == u->keys);
    REQUIRE(process_take(w, 12345, u->then) == WEIR_ALLOW);
    REQUIRE(weir_change(w, QUOTA - 1, u->o.queue, NULL) == 0);
    weir_close(w);
}

static void locks_and_counts_that_lie_are_put_right_by_whoever_is_alone(void **state)
{
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        struct image image;
        struct use u = {.o = file_limit(*state, algorithm, WEIR_RECOVER)};
        u.then = make(&u.o);
        image_take(&image, u.o.path);
        u.keys = image_head(&image)->counts.keys;
        image_hold_locks(&image);
        image_head(&image)->counts.keys = 7777;
        process_write(u.o.path, image.bytes, image.size);
        assert_true(process_run(use_it, &u));
        image_free(&image);
        assert_int_equal(remove(u.o.path), 0);
    }
}

static void a_file_that_somebody_has_open_is_left_as_it_is(void **state)
{
    struct weir_options o = file_limit(*state, WEIR_TOKEN_BUCKET, WEIR_RECOVER);
    struct weir *first = process_open(&o);
    uint64_t then = populate(first);
    first->head->counts.keys += 7; /* recovery would count again */
    struct weir *second = process_open(&o);
    require_populated(second, then);
    assert_int_equal(keys_of(second), keys_of(first));
    first->head->counts.keys -= 7;
    assert_int_equal(keys_of(second), KEYS - (KEYS + QUOTA) / (QUOTA + 1));
    weir_close(second);
    weir_close(first);
}

static void a_larger_table_will_do_where_that_was_said(void **state)
{
    struct weir_options o = file_limit(*state, WEIR_TOKEN_BUCKET, 0);
    struct weir_error error;
    struct weir *w;
    uint64_t then = make(&o);
    o.max_keys = 125;
    assert_int_equal(weir_open(&w, &o, &error), WEIR_EMISMATCH);
    assert_non_null(strstr(error.text, "max_keys 1000, expected 125"));
    o.flags = WEIR_MORE_KEYS;
    w = process_open(&o);
    require_populated(w, then);
    weir_close(w);
    for (unsigned i = 0; i < 2; i++) {
        o.max_keys = i == 0 ? 124 : 1001; /* far too large, and too small */
        assert_int_equal(weir_open(&w, &o, &error), WEIR_EMISMATCH);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(locks_and_counts_that_lie_are_put_right_by_whoever_is_alone,
                                        process_dir_make, process_dir_remove),
        cmocka_unit_test_setup_teardown(a_file_that_somebody_has_open_is_left_as_it_is,
                                        process_dir_make, process_dir_remove),
        cmocka_unit_test_setup_teardown(a_larger_table_will_do_where_that_was_said,
                                        process_dir_make, process_dir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
