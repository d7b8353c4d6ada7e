#include "support/server/await_start.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir.h>

#include "base/clock.h"

#define PATIENCE_S 60

bool await_start(const char *what, start_fn look, void (*show)(void *arg), void *arg)
{
    uint64_t end_ns = clock_monotonic_ns() + PATIENCE_S * WEIR_SECOND;
    enum start seen;
    while ((seen = look(arg)) == START_PENDING && clock_monotonic_ns() < end_ns) {
        (void)usleep(5000);
    }
    if (seen == START_PENDING) {
        (void)fprintf(stderr, "not ready after %d s: %s\n", PATIENCE_S, what);
        if (show != NULL) {
            show(arg);
        }
        exit(NOT_STARTED);
    }
    return seen == START_READY;
}
