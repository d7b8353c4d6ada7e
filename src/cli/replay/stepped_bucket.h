/*
 * stepped_bucket: the textbook algorithm that refills in whole steps, over explicit integer
 * times. Its contract is to give exactly the results of this arithmetic. It exists to replay
 * recorded streams and is not used in tables.
 */
#ifndef WEIR_CLI_REPLAY_STEPPED_BUCKET_H
#define WEIR_CLI_REPLAY_STEPPED_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

/* At a client's first request: full, as of the time of that request. */
struct stepped_bucket {
    int64_t tokens;
    int64_t last;
};

/*
 * Refills as of `time`, then takes one token and returns true if there is one. capacity, window
 * >= 0.
 */
bool stepped_bucket_take(struct stepped_bucket *b, int64_t capacity, int64_t window, int64_t time);

#endif
