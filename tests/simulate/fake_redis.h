/*
 * A fake Redis in the test's memory and time: strings with an expiry, and scripts in a real Lua
 * 5.1, for what weir's scripts use and little more. Requests are RESP arguments, replies are RESP.
 *
 * It is faithful where it matters to a script: Lua numbers are passed to commands as %.17g, and are
 * cut to whole numbers in replies; all commands of a script see the same millisecond; a key is gone
 * when its expiry is in the past; undefined globals are errors. test_fake_redis.c compares it with
 * a real redis-server; the vectors and the differential test of tests/store also run with it.
 */
#ifndef WEIR_TESTS_SIMULATE_FAKE_REDIS_H
#define WEIR_TESTS_SIMULATE_FAKE_REDIS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/text.h"

struct fake_redis;

struct fake_redis *fake_redis_create(void);
void fake_redis_destroy(struct fake_redis *r);

/* Sets the time of TIME. It may be set back. */
void fake_redis_set_time(struct fake_redis *r, uint64_t now_us);

/* With `only`, a script that accesses a key which is not among its KEYS fails, as it might in a
 * Cluster. */
void fake_redis_only_declared(struct fake_redis *r, bool only);

/* Removes all keys; fake_redis_restart() also removes the scripts, as a restart would. */
void fake_redis_flush(struct fake_redis *r);
void fake_redis_restart(struct fake_redis *r);

/* Runs one request and appends its reply to `reply`. */
void fake_redis_request(struct fake_redis *r, const struct weir_text *argv, size_t argc,
                        struct buffer *reply);

/* Returns the value of a key; `at` is NULL if there is none. */
struct weir_text fake_redis_value(struct fake_redis *r, struct weir_text key);

#endif
