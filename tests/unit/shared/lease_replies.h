/* The node's side of `leased` with replies that the test makes up. */
#ifndef WEIR_TESTS_UNIT_LEASE_REPLIES_H
#define WEIR_TESTS_UNIT_LEASE_REPLIES_H

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

#define MS WEIR_MILLISECOND
#define LIFE_US UINT64_C(2000000)
#define MARK 777
#define NO_SHARD ((struct weir_text){NULL, 0})
#define ALICE TEXT("alice")

static struct node_keys *keys;
static struct store_limit limit;
static struct store_numbers numbers;
static uint64_t now;
static struct weir_answer answer;
static struct lease_call call;

__attribute__((unused)) static void limit_of(int algorithm, uint64_t count)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = algorithm;
    o.count = count;
    o.period_ns = WEIR_SECOND;
    o.burst = algorithm == WEIR_TOKEN_BUCKET ? count : 0;
    assert_int_equal(store_params(&o, &numbers.params, NULL), 0);
    store_params_lease(&numbers.params);
    limit = (struct store_limit){
        .references = 1, .id = 1, .deny_cache_ns = WEIR_SECOND, .numbers = &numbers};
    assert_int_equal(store_key_head(TEXT("t"), TEXT("x"), &numbers.params, &limit.head, NULL), 0);
}

static int setup(void **state)
{
    limit_of(WEIR_TOKEN_BUCKET, 1000);
    now = 10 * WEIR_SECOND;
    return node_keys_of(&keys, KEY_LEASED, 1024);
}

static int teardown(void **state)
{
    node_keys_destroy(keys);
    return limit.references == 1 ? 0 : -1; /* all other references are released */
}

/* ---- asking and answering ---- */

__attribute__((unused)) static unsigned ask(uint64_t cost)
{
    return lease_ask(keys, PART(&limit, ALICE, cost), LEASE_ASK, now, &answer, &call);
}

__attribute__((unused)) static struct store_reply reply_of(int verdict, uint64_t remaining,
                                                           uint64_t retry_us, uint64_t granted,
                                                           uint64_t mark, uint64_t life_us,
                                                           bool kept)
{
    return (struct store_reply){.type = ':',
                                .n = SCRIPT_LEASE_COUNT,
                                .integers = {verdict, 0, (int64_t)remaining, 0, (int64_t)retry_us,
                                             1000, 0, 123, 0, (int64_t)granted, (int64_t)mark,
                                             (int64_t)life_us, kept}};
}

__attribute__((unused)) static void reply(const struct lease_call *to, const struct store_reply *r)
{
    assert_int_equal(lease_reply(keys, to, r, now, &answer), 0);
}

__attribute__((unused)) static void grant(const struct lease_call *to, uint64_t units)
{
    bool holds = units + to->keep != 0;
    struct store_reply r =
        reply_of(WEIR_ALLOW, 500, 0, units, holds ? MARK : 0, holds ? LIFE_US : 0, to->lease != 0);
    reply(to, &r);
}

__attribute__((unused)) static void deny(const struct lease_call *to, uint64_t retry_us)
{
    struct store_reply r = reply_of(WEIR_DENY, 0, retry_us, 0, 0, 0, to->lease != 0);
    reply(to, &r);
}

/* Asks until the node requests a lease, and grants it. */
__attribute__((unused)) static void have_lease(uint64_t units)
{
    while (ask(1) == LEASE_SEND && call.want == 0) {
        struct store_reply r = reply_of(WEIR_ALLOW, 500, 0, 0, 0, 0, false);
        reply(&call, &r);
        now += MS;
    }
    assert_true(call.want >= units && call.id != 0);
    grant(&call, units);
}

/* Returns how many units can be spent without the store; renewals are lost. */
__attribute__((unused)) static uint64_t spendable(void)
{
    uint64_t units = 0;
    for (;;) {
        unsigned said = ask(1);
        if ((said & LEASE_SEND) != 0) {
            lease_lost(keys, &call, now);
        }
        if ((said & LEASE_ANSWERED) == 0 || answer.verdict != WEIR_ALLOW) {
            return units;
        }
        units++;
    }
}

#endif
