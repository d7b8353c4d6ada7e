/*
 * Decides the requests of a replay: with stepped buckets, or with any algorithm of the library,
 * by the library's own arithmetic and at the stream's own times.
 */
#ifndef WEIR_CLI_REPLAY_REPLAY_ENGINE_H
#define WEIR_CLI_REPLAY_REPLAY_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "base/hash.h"
#include "cli/replay/replay_reader.h"
#include "rules/value/quantity.h"

struct replay_limit {
    int algorithm;      /* enum weir_algorithm; 0: stepped_bucket */
    int64_t capacity;   /* stepped_bucket */
    int64_t window;     /* stepped_bucket, in units of the timestamps */
    struct rate rate;   /* other algorithms, as in struct weir_options */
    uint64_t burst;     /* " */
    uint64_t queue;     /* " */
    uint64_t undelayed; /* " */
    uint64_t unit_ns;   /* unit of the timestamps */
};

/* Stands for a time that never comes. */
#define REPLAY_NEVER UINT64_MAX

struct replay_answer {
    bool allow;
    uint64_t remaining;
    /* In units of 1/replay_engine_scale() of the timestamps' unit: */
    uint64_t retry;
    uint64_t reset;
    uint64_t delay;
};

struct replay_engine;

/* Creates an engine. Returns 0, or WEIR_E... as weir_open() does, with a text. */
int replay_engine_create(struct replay_engine **out, const struct replay_limit *limit,
                         struct weir_error *error);
void replay_engine_destroy(struct replay_engine *e);

/* A request that is ready to be decided. It does not point into the line that it was read from. */
struct replay_ask {
    struct hash client;
    int64_t time;
    uint64_t cost;
};

/*
 * Hashes the client and starts to fetch its state from memory. Call it some requests before
 * replay_engine_decide(): fetching takes most of the time of a large replay.
 */
struct replay_ask replay_engine_prepare(const struct replay_engine *e,
                                        const struct replay_request *request);

/*
 * Decides a request. Returns 0; WEIR_EINVAL or WEIR_ETIME, with "found ..., expected ...", for a
 * request that cannot be decided, and then nothing has changed; or WEIR_ENOMEM.
 */
int replay_engine_decide(struct replay_engine *e, const struct replay_ask *ask,
                         struct replay_answer *answer, struct weir_error *error);

uint64_t replay_engine_scale(const struct replay_engine *e);
uint64_t replay_engine_clients(const struct replay_engine *e);

#endif
