/*
 * CL.THROTTLE answers as an exact model of redis-cell, for random rates, costs and times, whether
 * this process or a Redis decides. The model is GCRA in whole nanoseconds; a Redis has a clock of
 * whole microseconds. docs/man/weir.1.in lists where redis-cell itself differs from it.
 */
// test-timeout: 600
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"
#include "support/server/server_client.h"
#include "support/server/server_store.h"

#define KEYS 500
#define STORE_KEYS 100
#define CALLS 200 /* of each key */

typedef __int128 i128;

struct cell {
    int64_t burst;
    int64_t count;
    int64_t period;
    i128 full_ns; /* when the key has its whole burst again */
};

static struct server_store store;
static struct server_world world;
static struct server_client client;
static uint64_t seed = 14;

static int64_t below(int64_t n)
{
    return (int64_t)(threads_random(&seed) % (uint64_t)n);
}

/* A third of the rates divide a second evenly; bursts of a month fit easily. */
static struct cell any_cell(void)
{
    static const int64_t counts[] = {1, 2, 3, 5, 7, 10, 30, 60, 100, 999, 1000, 12345, 1000000};
    static const int64_t periods[] = {1, 2, 3, 7, 10, 60, 61, 3600, 86400};
    return (struct cell){.burst = below(3) == 0 ? below(3) : below(200),
                         .count = counts[below(sizeof counts / sizeof counts[0])],
                         .period = periods[below(sizeof periods / sizeof periods[0])]};
}

/* Rounds up as redis-cell does, which first drops what is below a millisecond. */
static int64_t seconds(i128 ns)
{
    return (int64_t)(ns / 1000000000 + (ns / 1000000 % 1000 > 0));
}

/* Decides, and writes the reply that is expected. Returns whether it is a denial. */
static bool expect(struct cell *c, int64_t quantity, i128 now, char *reply, size_t size)
{
    i128 unit = (i128)c->period * 1000000000 / c->count;
    i128 all = unit * (c->burst + 1);
    i128 full = c->full_ns > now ? c->full_ns : now;
    i128 late = full + unit * quantity - all - now; /* above 0: too early by this much */
    bool limited = quantity > 0 && late > 0;
    int64_t retry = -1;
    if (limited && quantity <= c->burst + 1) {
        retry = seconds(late) > 0 ? seconds(late) : 1;
    }
    c->full_ns = limited ? full : full + unit * quantity;
    i128 rest = c->full_ns - now;
    (void)snprintf(reply, size, "[%d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "]", limited,
                   c->burst + 1, (int64_t)((all - rest) / unit), retry, seconds(rest));
    return limited;
}

/* Lets time pass: nothing, some of the shortest steps that the clock has, about a unit, or long. */
static void wait_some(const struct cell *c)
{
    int64_t tick = world.store != NULL ? 1000 : 1;
    int64_t unit = (int64_t)((i128)c->period * 1000000000 / c->count) / tick;
    int64_t step = below(4) == 0   ? 0
                   : below(4) == 0 ? below(10)
                   : below(6) == 0 ? below(60) * 1000000000 / tick
                                   : unit - 2 + below(5);
    server_world_set_time(&world,
                          threads_get(&world.now_ns) + (uint64_t)(step > 0 ? step * tick : 0));
}

/* Returns how many of the calls were denied. */
static unsigned try_key(unsigned key)
{
    struct cell c = any_cell();
    char words[160];
    char wanted[128];
    unsigned denied = 0;
    for (unsigned i = 0; i < CALLS; i++) {
        int64_t quantity = below(3) == 0 ? below(c.burst + 3) : 1;
        wait_some(&c);
        (void)snprintf(words, sizeof words,
                       "CL.THROTTLE k%u %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, key, c.burst,
                       c.count, c.period, quantity);
        denied += expect(&c, quantity, (i128)threads_get(&world.now_ns), wanted, sizeof wanted);
        const char *reply = server_ask(&client, words);
        if (strcmp(reply, wanted) != 0) {
            fail_msg("call %u, %s at %" PRIu64 ": found %s, expected %s", i, words,
                     threads_get(&world.now_ns), reply, wanted);
        }
    }
    return denied;
}

static void every_answer_is_that_of_an_exact_model(void **state)
{
    unsigned keys = world.store != NULL ? STORE_KEYS : KEYS;
    unsigned denied = 0;
    for (unsigned key = 0; key < keys; key++) {
        denied += try_key(key);
    }
    assert_in_range(denied, keys * CALLS / 10, keys * CALLS * 9 / 10); /* both kinds were tried */
}

static int start(struct server_store *with)
{
    struct server_options o = server_world_options();
    o.adhoc_shared = with != NULL;
    server_world_start_shared(&world, "limits: []\n", &o, with);
    server_connect(&client, world.address);
    return 0;
}

static int start_local(void **state)
{
    return start(NULL);
}

static int start_shared(void **state)
{
    server_store_start(&store);
    return start(&store);
}

static int stop(void **state)
{
    server_disconnect(&client);
    server_world_stop(&world);
    if (world.store != NULL) {
        server_store_stop(&store, STORE_KEYS * CALLS);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_answer_is_that_of_an_exact_model, start_local, stop),
        cmocka_unit_test_setup_teardown(every_answer_is_that_of_an_exact_model, start_shared, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
