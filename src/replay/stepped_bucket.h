/*
 * stepped_bucket: the textbook's refill in whole steps, over explicit integer
 * times. Its contract is equality with this very arithmetic; it exists to
 * replay recorded streams, and lives in no table.
 */
#ifndef WEIR_REPLAY_STEPPED_BUCKET_H
#define WEIR_REPLAY_STEPPED_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

struct stepped_bucket {
    int64_t tokens;
    int64_t last;
};

/* A client starts full at the time of its first request. */
struct stepped_bucket stepped_bucket_start(int64_t capacity, int64_t time);

/* Refills as of `time`, then takes one token if there is one. capacity, window >= 0. */
bool stepped_bucket_take(struct stepped_bucket *b, int64_t capacity, int64_t window, int64_t time);

#endif
