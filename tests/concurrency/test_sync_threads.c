/*
 * Threads that ask for the same synced keys while others make the exchanges, and one remembers
 * denials of many keys: what is told is exactly what was admitted, and of each key one exchange is
 * in flight.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/store/sync_fakes.h"

#define ASKERS 3
#define DRIVERS 2
#define KEYS_MAX 64

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QUESTIONS 20000
#else
#define QUESTIONS 200000
#endif

static struct node_keys *node;
static uint64_t node_stripes;
static struct fake_limit fake;
static uint64_t clock_ns = WEIR_SECOND;
static uint64_t admitted;
static uint64_t told;
static unsigned asking;
static int keys; /* that are asked for */

/* What the store has counted of each key, and whether a call is out. */
static uint64_t counted[KEYS_MAX];
static int in_flight[KEYS_MAX];

static uint64_t now(uint64_t step_ns)
{
    return __atomic_add_fetch(&clock_ns, step_ns, __ATOMIC_RELAXED);
}

static void *ask(void *arg)
{
    uint64_t mine = 0;
    unsigned seed = *(unsigned *)arg;
    for (unsigned i = 0; i < QUESTIONS; i++) {
        char key[12];
        struct weir_answer a;
        (void)snprintf(key, sizeof key, "%d", rand_r(&seed) % keys);
        int e = sync_ask(node, PART(&fake.limit, text_of(key), 1), now(WEIR_MICROSECOND), &a);
        mine += (e & SYNC_ANSWERED) != 0 && a.verdict == WEIR_ALLOW;
    }
    (void)__atomic_add_fetch(&admitted, mine, __ATOMIC_RELAXED);
    (void)__atomic_sub_fetch(&asking, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* The store of the test: adds, and now and then does not get the call, or says nothing. */
static void run_call(const struct sync_call *c, unsigned *seed)
{
    const char *digits = (const char *)memchr(c->key.at, '{', c->key.len) + 2;
    unsigned key = (unsigned)strtoul(digits, NULL, 10);
    assert_int_equal(__atomic_exchange_n(&in_flight[key], 1, __ATOMIC_ACQ_REL), 0);
    bool lost = rand_r(seed) % 8 == 0;
    uint64_t total = counted[key];
    if (!lost) {
        total = counted[key] += (uint64_t)c->delta;
        (void)__atomic_add_fetch(&told, (uint64_t)c->delta, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&in_flight[key], 0, __ATOMIC_RELEASE);
    if (lost) {
        sync_lost(node, c, now(1));
        return;
    }
    struct store_reply r = {.type = ':', .n = 6, .integers = {1700000000000000, 0, (int64_t)total}};
    assert_int_equal(sync_reply(node, c, &r, now(1)), 0);
}

static void *drive(void *arg)
{
    unsigned seed = *(unsigned *)arg;
    for (;;) {
        bool last = __atomic_load_n(&asking, __ATOMIC_ACQUIRE) == 0;
        struct sync_call c;
        bool any = false;
        while (sync_next(node, now(1), &c)) {
            run_call(&c, &seed);
            any = true;
        }
        if (last && !any) {
            return NULL;
        }
    }
}

static void *deny_many(void *arg)
{
    (void)node_keys_deny_many(node, QUESTIONS, WEIR_SECOND);
    return NULL;
}

/* A stripe whose bit was lost would not be visited, and its keys would not be told. */
static void assert_that_stripes_with_parts_are_known(void)
{
    for (uint64_t i = 0; i < node->stripes; i++) {
        assert_int_equal(node->scheduled[KEY_SYNCED] >> i & 1,
                         node->stripe[i].heap[KEY_SYNCED].count > 0);
    }
}

static void run(int asked_for, uint64_t room)
{
    pthread_t threads[ASKERS + DRIVERS];
    pthread_t denies;
    unsigned seeds[ASKERS + DRIVERS];
    (void)fake_limit(&fake, WEIR_FIXED_WINDOW, 1000000000, 1000 * WEIR_DAY, 0);
    fake.limit.sync_ns = MS;
    asking = ASKERS;
    keys = asked_for;
    admitted = told = 0;
    memset(counted, 0, sizeof counted);
    assert_int_equal(node_keys_of(&node, KEY_SYNCED, room), 0);
    (void)pthread_create(&denies, NULL, deny_many, NULL);
    for (unsigned i = 0; i < ASKERS + DRIVERS; i++) {
        seeds[i] = i + 1;
        (void)pthread_create(&threads[i], NULL, i < ASKERS ? ask : drive, &seeds[i]);
    }
    for (unsigned i = 0; i < ASKERS + DRIVERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)pthread_join(denies, NULL);
    assert_that_stripes_with_parts_are_known();
    unsigned seed = 9;
    struct sync_call c;
    node_keys_stop(node);
    while (sync_next(node, now(MS), &c)) {
        run_call(&c, &seed);
    }
    struct sync_counts n;
    sync_counts(node, &n);
    assert_true(admitted > 0 && n.exchanges > 0 && n.lost > 0);
    assert_int_equal(told, admitted);
    node_stripes = node->stripes;
    node_keys_destroy(node);
    assert_int_equal(fake.limit.references, 0);
}

static void whatever_threads_do_what_is_told_is_what_was_admitted(void **state)
{
    run(40, 24); /* keys give way to others */
}

/* There are about as many keys as stripes, so that stripes often become empty or not. */
static void what_is_due_in_many_stripes_is_found(void **state)
{
    run(KEYS_MAX, 4096);
    assert_int_equal(node_stripes, KEY_STRIPES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_threads_do_what_is_told_is_what_was_admitted),
        cmocka_unit_test(what_is_due_in_many_stripes_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
