/*
 * Who decides in a replay: stepped buckets, or any algorithm of the library,
 * with the library's own arithmetic and at the stream's own times.
 */
#ifndef WEIR_CLI_REPLAY_REPLAY_ENGINE_H
#define WEIR_CLI_REPLAY_REPLAY_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "base/hash.h"
#include "cli/replay/replay_reader.h"

struct replay_limit {
    int algorithm;      /* enum weir_algorithm; 0: stepped_bucket */
    int64_t capacity;   /* stepped_bucket */
    int64_t window;     /* stepped_bucket, in units of the timestamps */
    uint64_t count;     /* the others, as in struct weir_options */
    uint64_t period_ns; /* " */
    uint64_t burst;     /* " */
    uint64_t queue;     /* " */
    uint64_t unit_ns;   /* of the timestamps */
};

/* There is no such time. */
#define REPLAY_NEVER UINT64_MAX

struct replay_answer {
    bool allow;
    uint64_t remaining;
    /* In 1/replay_engine_scale() of the timestamps' unit. */
    uint64_t retry;
    uint64_t reset;
    uint64_t delay;
};

struct replay_engine;

/* 0, or WEIR_E... as weir_open() with a text. */
int replay_engine_create(struct replay_engine **out, const struct replay_limit *limit,
                         struct weir_error *error);
void replay_engine_destroy(struct replay_engine *e);

/* A request on its way to the decision; needs nothing of the line that it was read from. */
struct replay_ask {
    struct hash client;
    int64_t time;
    uint64_t cost;
};

/*
 * Made some requests before it is decided on, so that the client's state is fetched from memory
 * meanwhile: it is most of a large replay's time.
 */
struct replay_ask replay_engine_prepare(const struct replay_engine *e,
                                        const struct replay_request *request);

/*
 * 0; WEIR_EINVAL or WEIR_ETIME for a request that cannot be decided, with "found ...,
 * expected ..."; nothing has changed then. WEIR_ENOMEM.
 */
int replay_engine_decide(struct replay_engine *e, const struct replay_ask *ask,
                         struct replay_answer *answer, struct weir_error *error);

uint64_t replay_engine_scale(const struct replay_engine *e);
uint64_t replay_engine_clients(const struct replay_engine *e);

#endif
