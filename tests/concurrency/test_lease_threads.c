/*
 * Threads that spend leases of the same keys, while another remembers denials of many: every unit
 * that was granted is spent once, or comes back once. The store is a few counters
 * of the test's own.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/maths.h"
#include "shared/leased/lease.h"
#include "shared/core/script.h"
#include "support/store/lease_limit.h"
#include "support/store/node_keys_of.h"

#define THREADS 4
#define QUESTIONS 60000
#define LIFE_US UINT64_C(2000000)

static struct node_keys *keys;
static struct store_limit limit;
static struct store_numbers numbers;
static uint64_t granted, spent_settled, lost_with, back_total, here_total, clock_ns;

static uint64_t add(uint64_t *p, uint64_t n)
{
    return __atomic_add_fetch(p, n, __ATOMIC_RELAXED);
}

/* The store: grants all that is wanted, and now and then is not heard. */
static void serve(const struct lease_call *call, uint64_t now_ns, uint64_t turn)
{
    if (call->id != 0 && turn % 16 == 3) {
        lease_unsent(keys, call, now_ns);
        return;
    }
    uint64_t units = call->want > call->keep ? min_u64(call->want - call->keep, 200) : 0;
    uint64_t holds = units + call->keep;
    add(&granted, units);
    add(&back_total, call->back);
    add(&spent_settled, call->held - call->back - call->keep);
    struct store_reply r = {.type = ':',
                            .n = SCRIPT_LEASE_COUNT,
                            .integers = {WEIR_ALLOW, 0, 500, 0, 0, 1000, 0, 123, 0, (int64_t)units,
                                         holds != 0 ? 777 : 0, holds != 0 ? (int64_t)LIFE_US : 0,
                                         call->lease != 0}};
    struct weir_answer answer;
    if (lease_reply(keys, call, &r, now_ns, &answer) != 0) {
        add(&lost_with, 1);
    }
}

static void *ask_much(void *arg)
{
    static const char *const names[] = {"alice", "bob", "carol"};
    uint64_t turn = (uint64_t)(uintptr_t)arg;
    for (unsigned i = 0; i < QUESTIONS; i++, turn++) {
        struct lease_call call;
        struct weir_answer answer;
        uint64_t now_ns = add(&clock_ns, 1000);
        uint64_t cost = 1 + turn % 3;
        unsigned said = lease_ask(keys, PART(&limit, text_of(names[turn % 3]), cost), LEASE_ASK,
                                  now_ns, &answer, &call);
        if (said == LEASE_WAIT) { /* for another thread's call: as store.c, which does not */
            lease_alone(PART(&limit, text_of(names[turn % 3]), cost), now_ns, &call);
            said = LEASE_SEND;
        }
        if ((said & LEASE_ANSWERED) != 0 && answer.verdict == WEIR_ALLOW) {
            add(&here_total, cost);
        }
        if ((said & LEASE_SEND) != 0) {
            serve(&call, now_ns, turn);
        }
        if (turn % 64 == 0 && node_keys_due(keys) <= now_ns && lease_next(keys, now_ns, &call)) {
            serve(&call, now_ns, 0);
        }
        if (turn % 4096 == 0) {
            lease_forget(keys, PART(&limit, text_of(names[turn % 3]), 1));
        }
    }
    return NULL;
}

static void *deny_many(void *arg)
{
    (void)node_keys_deny_many(keys, QUESTIONS, WEIR_SECOND);
    return NULL;
}

static void every_unit_is_spent_once_or_comes_back_once(void **state)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = 1000000;
    o.period_ns = WEIR_SECOND;
    assert_int_equal(store_params(&o, &numbers.params, NULL), 0);
    store_params_lease(&numbers.params);
    limit = (struct store_limit){
        .references = 1, .id = 1, .deny_cache_ns = WEIR_SECOND, .numbers = &numbers};
    assert_int_equal(store_key_head(TEXT("t"), TEXT("x"), &numbers.params, &limit.head, NULL), 0);
    assert_int_equal(node_keys_of(&keys, KEY_LEASED, 1024), 0);
    clock_ns = WEIR_SECOND;
    pthread_t threads[THREADS];
    pthread_t denies;
    assert_int_equal(pthread_create(&denies, NULL, deny_many, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, ask_much, (void *)(uintptr_t)(i * 7)),
                         0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(pthread_join(denies, NULL), 0);
    struct lease_call call;
    node_keys_stop(keys);
    while (lease_next(keys, clock_ns, &call)) {
        serve(&call, clock_ns, 0);
    }
    assert_int_equal(lost_with, 0);
    assert_true(here_total > THREADS * QUESTIONS);
    assert_int_equal(here_total, spent_settled);
    assert_int_equal(granted, spent_settled + back_total);
    node_keys_destroy(keys);
    assert_int_equal(limit.references, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_is_spent_once_or_comes_back_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
