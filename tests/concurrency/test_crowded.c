/*
 * A table that is filled to max_keys, where every new key pushes others around,
 * while threads ask, forget, sweep and block: as long as no more than max_keys
 * are in use, nobody is forgotten, nobody is refused and every total is exact.
 */
// test-timeout: 300
// test-serial: yes
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"

#define MAX_KEYS 1000
#define BLOCKABLE 8
#define THREADS_MOST 32
#define QUOTA 40

/* How a key that comes and goes is given up. */
enum farewell { BY_RESET, BY_REFUND };

struct crowd {
    struct weir *w;
    unsigned threads;
    enum farewell farewell;
    uint64_t steady;      /* keys that stay for the whole run */
    uint64_t guests_each; /* keys of each thread that come and go */
    uint64_t steps;       /* of each thread */
    bool blocks;
    uint64_t granted[MAX_KEYS];
    uint64_t phase[BLOCKABLE];
    uint64_t swept;
    struct threads_tally told;
};

struct guest {
    uint64_t number; /* 0: absent */
    uint64_t taken;
};

struct member {
    struct crowd *c;
    unsigned index;
    uint64_t random;
    uint64_t born;
    struct guest guest[MAX_KEYS];
    struct threads_tally told;
};

static struct weir_answer check(struct member *m, const char *key)
{
    struct weir_answer a = threads_check(m->c->w, key, 1, THREADS_T0);
    threads_count(&m->told, &a);
    threads_require((a.flags & WEIR_FLAG_FULL) == 0);
    return a;
}

/* ---- keys that stay ---- */

/*
 * Phases of a key that is blocked now and then, modulo 4: 0 it is not, 2 it is,
 * 1 and 3 somebody is about to change that. What holds before a call and still
 * holds after it held during all of it.
 */
static void ask_steady(struct member *m)
{
    struct crowd *c = m->c;
    uint64_t k = threads_random(&m->random) % c->steady;
    uint64_t *phase = &c->phase[k % BLOCKABLE];
    bool blockable = c->blocks && k < BLOCKABLE;
    uint64_t before = threads_get(phase);
    struct weir_answer a = check(m, threads_key("steady", k).name);
    bool blocked = (a.flags & WEIR_FLAG_BLOCKED) != 0;
    (void)threads_add(&c->granted[k], a.granted);
    if (!blockable) {
        threads_require(!blocked);
    } else if (threads_get(phase) == before && before % 4 == 2) {
        threads_require(blocked && a.verdict == WEIR_DENY && a.granted == 0);
    } else if (threads_get(phase) == before && before % 4 == 0) {
        threads_require(!blocked);
    }
}

/* Only thread 0 does this, so that phases follow each other. */
static void toggle_block(struct member *m)
{
    struct crowd *c = m->c;
    uint64_t k = threads_random(&m->random) % BLOCKABLE;
    struct threads_key key = threads_key("steady", k);
    uint64_t phase = threads_get(&c->phase[k]);
    threads_set(&c->phase[k], phase + 1);
    if (phase % 4 == 0) {
        threads_require(weir_block_at(c->w, key.name, strlen(key.name), WEIR_FOREVER, THREADS_T0) ==
                        0);
    } else {
        threads_require(weir_unblock(c->w, key.name, strlen(key.name)) == 1);
    }
    threads_set(&c->phase[k], phase + 2);
}

/* ---- keys that come and go ---- */

static struct threads_key guest_key(const struct member *m, const struct guest *g)
{
    return threads_key("guest", g->number << 8 | m->index);
}

/* Nobody else knows a guest's key: its whole state is what this thread has taken. */
static void feed(struct member *m, struct guest *g)
{
    struct weir_answer a = check(m, guest_key(m, g).name);
    g->taken++;
    threads_require(a.verdict == WEIR_ALLOW && a.remaining == QUOTA - g->taken);
}

static void dismiss(struct member *m, struct guest *g)
{
    struct threads_key key = guest_key(m, g);
    size_t len = strlen(key.name);
    struct weir *w = m->c->w;
    threads_require(threads_taken(w, key.name, THREADS_T0) == g->taken);
    if (m->c->farewell == BY_RESET) {
        threads_require(weir_reset(w, key.name, len) == 1);
    } else {
        threads_require(weir_refund_at(w, key.name, len, g->taken, THREADS_T0, THREADS_T0, NULL) ==
                        0);
    }
    threads_require(threads_taken(w, key.name, THREADS_T0) == 0);
    *g = (struct guest){0, 0};
}

static void meet_guest(struct member *m)
{
    struct guest *g = &m->guest[threads_random(&m->random) % m->c->guests_each];
    if (g->number == 0) {
        g->number = ++m->born;
        feed(m, g);
    } else if (threads_random(&m->random) % 4 == 0 && g->taken < QUOTA) {
        feed(m, g);
    } else {
        dismiss(m, g);
    }
}

/* ---- together ---- */

static void live_in_a_crowd(unsigned index, void *arg)
{
    struct crowd *c = arg;
    struct member m;
    memset(&m, 0, sizeof m);
    m.c = c;
    m.index = index;
    m.random = index;
    for (uint64_t i = 0; i < c->steps; i++) {
        uint64_t r = threads_random(&m.random) % 16;
        if (r < 4) {
            ask_steady(&m);
        } else if (r == 4 && index == 0 && c->blocks) {
            toggle_block(&m);
        } else if (r == 5) {
            long freed = weir_sweep_at(c->w, 4, THREADS_T0);
            threads_require(freed >= 0);
            (void)threads_add(&c->swept, (uint64_t)freed);
        } else {
            meet_guest(&m);
        }
    }
    for (uint64_t i = 0; i < c->guests_each; i++) {
        if (m.guest[i].number != 0) {
            dismiss(&m, &m.guest[i]);
        }
    }
    threads_merge(&c->told, &m.told);
}

/* Unblocks everybody and takes what is left of the keys that stayed. */
static void drain(struct crowd *c)
{
    for (uint64_t k = 0; k < c->steady; k++) {
        struct threads_key key = threads_key("steady", k);
        struct weir_answer a = {.verdict = WEIR_ALLOW};
        if (c->blocks && k < BLOCKABLE) {
            assert_int_equal(weir_unblock(c->w, key.name, strlen(key.name)), c->phase[k] % 4 == 2);
        }
        while (a.verdict == WEIR_ALLOW) {
            a = threads_check(c->w, key.name, 1, THREADS_T0);
            threads_count(&c->told, &a);
            c->granted[k] += a.granted;
        }
        assert_int_equal(c->granted[k], QUOTA);
    }
}

static uint64_t run_crowd(int algorithm, unsigned threads, int on_full, enum farewell farewell,
                          bool blocks)
{
    struct weir_options o = threads_options(algorithm, QUOTA, WEIR_HOUR);
    struct crowd c = {.threads = threads, .farewell = farewell, .blocks = blocks};
    uint64_t entries = MAX_KEYS - (blocks ? BLOCKABLE : 0);
    c.guests_each = entries / 2 / threads;
    c.steady = entries - c.guests_each * threads;
    c.steps = THREADS_ROUNDS(100000, 20000, 10000) / threads;
    o.max_keys = MAX_KEYS;
    o.on_full = on_full;
    c.w = threads_open(&o);
    threads_run(threads, live_in_a_crowd, &c);
    drain(&c);
    struct weir_stats s = threads_stats(c.w);
    assert_int_equal(s.evicted, 0);
    assert_int_equal(c.told.full, 0);
    if (farewell == BY_RESET) {
        assert_int_equal(s.keys, c.steady);
        assert_int_equal(s.reclaimed, 0);
        assert_int_equal(c.swept, 0);
    }
    assert_int_equal(s.blocks, 0);
    threads_assert_told(c.w, &c.told);
    threads_assert_sound(c.w);
    weir_close(c.w);
    return s.moved;
}

static void run_crowds(int algorithm, enum farewell farewell, bool blocks)
{
    uint64_t moved = 0;
    for (int on_full = WEIR_EVICT; on_full <= WEIR_ALLOW_NEW; on_full++) {
        moved += run_crowd(algorithm, 2, on_full, farewell, blocks);
        moved += run_crowd(algorithm, 8, on_full, farewell, blocks);
    }
    moved += run_crowd(algorithm, THREADS_MOST, WEIR_EVICT, farewell, blocks);
    print_message("%s: %llu moves\n", weir_algorithm_name(algorithm), (unsigned long long)moved);
    assert_true(moved > 0);
}

static void keys_that_are_pushed_around_keep_their_exact_totals(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_SLIDING_LOG; algorithm++) {
        run_crowds(algorithm, BY_RESET, false);
    }
}

static void a_blocked_key_is_never_allowed_in_the_middle_of_a_crowd(void **state)
{
    run_crowds(WEIR_TOKEN_BUCKET, BY_RESET, true);
    run_crowds(WEIR_SLIDING_WINDOW, BY_RESET, true);
    run_crowds(WEIR_SLIDING_LOG, BY_RESET, true);
}

/* A refunded bucket counts as in use for the clocks' slack; the others are fresh at once. */
static void keys_as_good_as_new_make_room_for_others_and_for_nobody_twice(void **state)
{
    run_crowds(WEIR_FIXED_WINDOW, BY_REFUND, false);
    run_crowds(WEIR_SLIDING_WINDOW, BY_REFUND, true);
    run_crowds(WEIR_SLIDING_LOG, BY_REFUND, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_that_are_pushed_around_keep_their_exact_totals),
        cmocka_unit_test(a_blocked_key_is_never_allowed_in_the_middle_of_a_crowd),
        cmocka_unit_test(keys_as_good_as_new_make_room_for_others_and_for_nobody_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
