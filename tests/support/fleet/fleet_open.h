/* Opens fleets and limits for tests. A failure ends the test. */
#ifndef WEIR_TESTS_SUPPORT_FLEET_OPEN_H
#define WEIR_TESTS_SUPPORT_FLEET_OPEN_H

#include <stdbool.h>

#include <weir_fleet.h>

#define FLEET_PATIENT_NS (2 * WEIR_SECOND) /* a deadline that holds on a busy machine */

/* deadline_ns 0 means FLEET_PATIENT_NS. */
struct weir_fleet *fleet_open_at(const char *url, unsigned flags, uint64_t deadline_ns);
struct weir_fleet *fleet_open_with(const char *url, struct weir_fleet_options others);

/* Returns a token bucket of `count` per hour with a burst of `count`; mode `exact`, denials are not
 * cached. */
struct weir_fleet_limit_options fleet_hourly(const char *name, uint64_t count);
struct weir_fleet_limit *fleet_limit_of(struct weir_fleet *fleet,
                                        const struct weir_fleet_limit_options *options);

/* Asks with a key of its own until the store gives the answer. Returns false after 20 s. */
bool fleet_await_store(struct weir_fleet_limit *limit);

/* Runs the loop of a WEIR_FLEET_CALLERS_LOOP fleet until *count is `until`. Returns false after 20
 * s. */
bool fleet_run_until(struct weir_fleet *fleet, const unsigned *count, unsigned until);

struct weir_fleet_stats fleet_stats_of(struct weir_fleet *fleet);

#endif
