#include "support/fleet/fleet_open.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

#define PATIENCE_NS (20 * WEIR_SECOND)

static void die(const char *what, const struct weir_error *error)
{
    (void)fprintf(stderr, "%s: %s\n", what, error->text);
    abort();
}

struct weir_fleet *fleet_open_with(const char *url, struct weir_fleet_options o)
{
    struct weir_fleet *fleet;
    struct weir_error error;
    o.size = sizeof o;
    o.url = url;
    o.deadline_ns = o.deadline_ns != 0 ? o.deadline_ns : FLEET_PATIENT_NS;
    if (weir_fleet_open(&fleet, &o, &error) != 0) {
        die(url, &error);
    }
    return fleet;
}

struct weir_fleet *fleet_open_at(const char *url, unsigned flags, uint64_t deadline_ns)
{
    return fleet_open_with(url,
                           (struct weir_fleet_options){.flags = flags, .deadline_ns = deadline_ns});
}

struct weir_fleet_limit_options fleet_hourly(const char *name, uint64_t count)
{
    struct weir_fleet_limit_options o = WEIR_FLEET_LIMIT_OPTIONS_INIT;
    o.name = name;
    o.limit.algorithm = WEIR_TOKEN_BUCKET;
    o.limit.count = count;
    o.limit.period_ns = WEIR_HOUR;
    o.deny_cache_ns = 1;
    return o;
}

struct weir_fleet_limit *fleet_limit_of(struct weir_fleet *fleet,
                                        const struct weir_fleet_limit_options *options)
{
    struct weir_fleet_limit *limit;
    struct weir_error error;
    if (weir_fleet_limit_open(&limit, fleet, options, &error) != 0) {
        die(options->name, &error);
    }
    return limit;
}

bool fleet_await_store(struct weir_fleet_limit *limit)
{
    uint64_t end = clock_monotonic_ns() + PATIENCE_NS;
    while (clock_monotonic_ns() < end) {
        struct weir_answer a;
        if (weir_fleet_check(limit, "is it there?", 12, 1, &a) == 0 &&
            (a.flags & WEIR_FLAG_DEGRADED) == 0) {
            return true;
        }
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return false;
}

bool fleet_run_until(struct weir_fleet *fleet, const unsigned *count, unsigned until)
{
    uint64_t end = clock_monotonic_ns() + PATIENCE_NS;
    while (*count < until && clock_monotonic_ns() < end) {
        struct pollfd p = {weir_fleet_fd(fleet), POLLIN, 0};
        (void)poll(&p, 1, weir_fleet_timeout_ms(fleet));
        (void)weir_fleet_run(fleet);
    }
    return *count == until;
}

struct weir_fleet_stats fleet_stats_of(struct weir_fleet *fleet)
{
    struct weir_fleet_stats s = {.size = sizeof s};
    if (weir_fleet_stats_read(fleet, &s) != 0) {
        abort();
    }
    return s;
}
