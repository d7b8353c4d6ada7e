/* What the tests of calls share: one client of one store, on connections in memory
 * (support/store/client_world.h). */
#ifndef WEIR_TESTS_UNIT_STORE_CLIENT_STORY_H
#define WEIR_TESTS_UNIT_STORE_CLIENT_STORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/store/client_world.h"

#define ANSWER ":7\r\n"

static struct client_world world;
static struct client_world *w = &world;
static struct breakers *breakers;

static inline int begin(void **state)
{
    breakers = breakers_create(1);
    world_start(w, "redis://one:1", breakers);
    return 0;
}

static inline int finish(void **state)
{
    world_stop(w);
    breakers_destroy(breakers);
    return 0;
}

static inline void assert_ended(const struct world_call *call, enum client_end end)
{
    assert_int_equal(call->done, 1);
    assert_int_equal(call->end, end);
}

static inline void assert_waits(const struct world_call *call)
{
    assert_int_equal(call->done, 0);
}

/* Makes a call and sends it; the greeting is over. */
static inline void send_call(struct world_call *call, const char *key)
{
    assert_int_equal(world_call(w, call, key, 0), 0);
    world_flush(w, 0);
}

static inline void assert_heard(const char *beginning)
{
    const char *line = world_heard(w, 0);
    if (strncmp(line, beginning, strlen(beginning)) != 0) {
        fail_msg("heard '%s', expected '%s...'", line, beginning);
    }
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, finish)

#endif
