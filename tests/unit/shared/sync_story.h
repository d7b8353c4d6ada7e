/* What the tests of exchanges share: one node, at times that the test chooses, and a store whose
 * replies the test makes up. */
#ifndef WEIR_TESTS_UNIT_STORE_SYNC_STORY_H
#define WEIR_TESTS_UNIT_STORE_SYNC_STORY_H

#include <stdio.h>
#include <string.h>

#include "support/oracle/oracle_trace.h"
#include "support/store/sync_fakes.h"

#define T0 (1000 * WEIR_SECOND)
#define STORE_US UINT64_C(1700000000000000) /* a whole second; the store's time at T0 */
#define RTT (2 * MS)

static struct node_keys *node;
static struct fake_limit fake;

static inline int fresh(void **state)
{
    assert_int_equal(node_keys_of(&node, KEY_SYNCED, 64), 0);
    node_keys_seed(node, 1);
    return 0;
}

static inline int done(void **state)
{
    node_keys_destroy(node);
    assert_int_equal(fake.limit.references, 0);
    return 0;
}

static inline bool text_has(struct weir_text text, const char *what)
{
    return memmem(text.at, text.len, what, strlen(what)) != NULL;
}

static inline struct sync_call next(uint64_t now_ns)
{
    struct sync_call c;
    assert_true(sync_next(node, now_ns, &c));
    assert_int_equal(c.made_ns, now_ns);
    return c;
}

static inline void none(uint64_t now_ns)
{
    struct sync_call c;
    assert_false(sync_next(node, now_ns, &c));
}

/* Delivers this reply, which the store made at the local time at_ns. */
static inline int say(const struct sync_call *c, uint64_t at_ns, int64_t x, int64_t y, int64_t z,
                      uint64_t now_ns)
{
    int64_t now_us = (int64_t)(STORE_US + (at_ns - T0) / WEIR_MICROSECOND);
    struct store_reply r = {.type = ':', .n = 6, .integers = {now_us, x, y, z, 0, 0}};
    return sync_reply(node, c, &r, now_ns);
}

static inline struct store_limit *bucket(void)
{
    return fake_limit(&fake, WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 10);
}

static inline struct store_limit *window(int algorithm)
{
    return fake_limit(&fake, algorithm, 10, WEIR_SECOND, 0);
}

#define WINDOW ((int64_t)(STORE_US / 1000000)) /* the window of T0 */

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)

#endif
