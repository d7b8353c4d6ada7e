/*
 * A Redis of the test's own, in its memory and at its time: strings with an end, and scripts in a real
 * Lua 5.1, for what weir's scripts use and little more. Requests are RESP arguments, replies are RESP.
 *
 * Faithful where it matters to a script: Lua numbers reach commands by %.17g, and replies cut to whole
 * ones; all commands of a script see one millisecond, a key is gone when its end is in the past;
 * undefined globals are errors. test_fake_redis.c asks a real redis-server the same; the vectors and
 * the differential test of tests/store run through this one too.
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

/* What TIME says from now on. It may be set back. */
void fake_redis_set_time(struct fake_redis *r, uint64_t now_us);

/* A script that touches a key which is not among its KEYS fails, as it might in a Cluster. */
void fake_redis_only_declared(struct fake_redis *r, bool only);

/* All keys are gone; and the scripts, as after a restart. */
void fake_redis_flush(struct fake_redis *r);
void fake_redis_restart(struct fake_redis *r);

/* One request; its reply is put behind what is in `reply`. */
void fake_redis_request(struct fake_redis *r, const struct text *argv, size_t argc,
                        struct buffer *reply);

/* The value of a key; at NULL if there is none. */
struct text fake_redis_value(struct fake_redis *r, struct text key);

#endif
