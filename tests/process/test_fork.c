// test-labels: notsan
/*
 * What fork() does to each kind of limiter: private memory is copied and limits
 * separately from then on, whatever other threads were doing at that moment;
 * shared memory and files stay one limit.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine/process_scene.h"

#define QUOTA 6

static struct weir *make(int algorithm, int memory, const char *path)
{
    struct weir_options o = process_limit(algorithm, QUOTA);
    o.memory = memory;
    o.path = path;
    return process_open(&o);
}

static unsigned take_all(struct weir *w, unsigned key)
{
    unsigned n = 0;
    while (process_take(w, key, PROCESS_NOW) == WEIR_ALLOW) {
        n++;
    }
    return n;
}

/* ---- the three kinds ---- */

struct heir {
    struct weir *w;
    struct weir_options *o; /* to open again; NULL: what was inherited */
    unsigned expected;      /* units of key 1 to be had */
};

static void take_inheritance(void *arg)
{
    struct heir *h = arg;
    struct weir *w = h->o != NULL ? process_open(h->o) : h->w;
    REQUIRE(take_all(w, 1) == h->expected);
    REQUIRE(take_all(w, 2) == QUOTA);
    weir_close(w);
}

static void a_child_has_its_own_copy_of_a_private_limiter(void **state)
{
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        struct heir h = {make(algorithm, WEIR_PRIVATE, NULL), NULL, QUOTA - 2};
        (void)process_take(h.w, 1, PROCESS_NOW);
        (void)process_take(h.w, 1, PROCESS_NOW);
        assert_true(process_run(take_inheritance, &h));
        assert_true(process_run(take_inheritance, &h)); /* each child anew */
        assert_int_equal(take_all(h.w, 1), QUOTA - 2);
        assert_int_equal(take_all(h.w, 2), QUOTA);
        weir_close(h.w);
    }
}

static void a_child_shares_the_limit_in_shared_memory(void **state)
{
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        struct heir h = {make(algorithm, WEIR_SHARED, NULL), NULL, QUOTA - 2};
        (void)process_take(h.w, 1, PROCESS_NOW);
        (void)process_take(h.w, 1, PROCESS_NOW);
        assert_true(process_run(take_inheritance, &h));
        assert_int_equal(take_all(h.w, 1), 0);
        assert_int_equal(take_all(h.w, 2), 0);
        weir_close(h.w);
    }
}

static void a_child_shares_the_limit_in_a_file(void **state)
{
    for (int algorithm = 1; algorithm <= PROCESS_ALGORITHMS; algorithm++) {
        for (int again = 0; again < 2; again++) {
            struct weir_options o = process_limit(algorithm, QUOTA);
            o.memory = WEIR_FILE;
            o.path = process_path(*state, "limits");
            struct heir h = {process_open(&o), again != 0 ? &o : NULL, QUOTA - 1};
            (void)process_take(h.w, 1, PROCESS_NOW);
            assert_true(process_run(take_inheritance, &h));
            assert_int_equal(take_all(h.w, 1), 0);
            assert_int_equal(take_all(h.w, 2), 0);
            weir_close(h.w);
            assert_int_equal(unlink(o.path), 0);
        }
    }
}

/* ---- a private limiter in the middle of everything ---- */

#define THREADS 4
#define RESIDENTS 4600u
#define GUESTS 800u /* of each thread, come and go */

struct crowd {
    struct weir *w;
    int stop;
};

struct guest {
    struct crowd *crowd;
    unsigned number;
};

/* Keys come and go in a table that is nearly full, so that residents have to move. */
static void *come_and_go(void *arg)
{
    struct guest *g = arg;
    struct weir *w = g->crowd->w;
    unsigned base = 1000000 * (g->number + 1);
    struct weir_answer a;
    for (unsigned i = 0; __atomic_load_n(&g->crowd->stop, __ATOMIC_RELAXED) == 0; i++) {
        unsigned in = base + i;
        unsigned out = in - GUESTS / THREADS;
        (void)weir_check_at(w, &in, sizeof in, 1, PROCESS_NOW, &a);
        (void)weir_reset(w, &out, sizeof out);
        if (g->number == 0 && i % 256 == 0) {
            (void)weir_change(w, QUOTA, 0, NULL);
            struct weir_options o = process_limit(WEIR_TOKEN_BUCKET, QUOTA);
            weir_close(process_open(&o));
        }
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* After a sweep, which repairs what was left half-way. */
static void require_nobody_twice(struct weir *w)
{
    uint64_t slots = 2 * w->table.half * LINE_SLOTS;
    uint64_t *tags = malloc(slots * sizeof *tags);
    REQUIRE(tags != NULL && weir_sweep_at(w, slots, PROCESS_NOW) >= 0);
    for (uint64_t i = 0; i < slots; i++) {
        tags[i] = w->table.lines[i / LINE_SLOTS].slot[i % LINE_SLOTS].tag;
        REQUIRE((tags[i] & TAG_MARKS) == 0);
    }
    qsort(tags, slots, sizeof *tags, by_value);
    for (uint64_t i = 1; i < slots; i++) {
        REQUIRE(tags[i] == 0 || tags[i] != tags[i - 1]);
    }
    free(tags);
}

/* Every stripe and the lock of changes can be had; new keys in all of them. */
static void require_no_lock_held(struct weir *w)
{
    uint64_t left = w->table.stripe_mask + 1;
    bool *seen = calloc(left, sizeof *seen);
    REQUIRE(seen != NULL);
    for (unsigned key = 500000; left > 0; key++) {
        struct weir_answer a;
        uint64_t i =
            (uint64_t)(table_stripe(&w->table, scene_place(w, key).tag) - w->table.stripes);
        REQUIRE(weir_check_at(w, &key, sizeof key, 1, PROCESS_NOW, &a) == 0);
        left -= !seen[i];
        seen[i] = true;
    }
    free(seen);
    REQUIRE(weir_change(w, QUOTA, 0, NULL) == 0);
}

static void look_around(void *arg)
{
    struct crowd *c = arg;
    for (unsigned key = 0; key < RESIDENTS; key++) {
        REQUIRE(process_left(c->w, key, PROCESS_NOW) == QUOTA - 1 - key % 3);
    }
    require_nobody_twice(c->w);
    require_no_lock_held(c->w);
    weir_close(c->w);
}

static void fork_among_threads(int algorithm)
{
    struct weir_options o = process_limit(algorithm, QUOTA);
    o.max_keys = 5000;
    o.on_full = WEIR_DENY_NEW; /* residents are never forgotten */
    struct crowd c = {process_open(&o), 0};
    struct weir_stats stats = {.size = sizeof stats};
    struct guest guests[THREADS];
    pthread_t threads[THREADS];
    for (unsigned key = 0; key < RESIDENTS; key++) {
        for (unsigned n = 0; n <= key % 3; n++) {
            assert_int_equal(process_take(c.w, key, PROCESS_NOW), WEIR_ALLOW);
        }
    }
    for (unsigned i = 0; i < THREADS; i++) {
        guests[i] = (struct guest){&c, i};
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &guests[i]), 0);
    }
    bool well = true;
    for (unsigned i = 0; i < 60 / PROCESS_SCALE && well; i++) {
        well = process_run(look_around, &c);
    }
    __atomic_store_n(&c.stop, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(weir_stats_read(c.w, &stats), 0);
    assert_true(well);
    assert_true(stats.moved > 100); /* else nothing was proven */
    weir_close(c.w);
}

static void a_child_has_each_key_once_and_no_lock_held_though_threads_were_at_work(void **state)
{
    fork_among_threads(WEIR_TOKEN_BUCKET);
    fork_among_threads(WEIR_SLIDING_LOG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_its_own_copy_of_a_private_limiter),
        cmocka_unit_test(a_child_shares_the_limit_in_shared_memory),
        cmocka_unit_test_setup_teardown(a_child_shares_the_limit_in_a_file, process_dir_make,
                                        process_dir_remove),
        cmocka_unit_test(a_child_has_each_key_once_and_no_lock_held_though_threads_were_at_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
