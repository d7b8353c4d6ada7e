/* Fleets and limits for tests: what cannot be opened ends the test. */
#ifndef WEIR_TESTS_SUPPORT_FLEET_OPEN_H
#define WEIR_TESTS_SUPPORT_FLEET_OPEN_H

#include <stdbool.h>

#include <weir_fleet.h>

#define FLEET_PATIENT_NS (2 * WEIR_SECOND) /* a deadline that a busy machine keeps */

/* deadline_ns 0: FLEET_PATIENT_NS. */
struct weir_fleet *fleet_open_at(const char *url, unsigned flags, uint64_t deadline_ns);
struct weir_fleet *fleet_open_with(const char *url, struct weir_fleet_options others);

/* A token bucket of `count` per hour, all at once; `exact`, no memory of denials. */
struct weir_fleet_limit_options fleet_hourly(const char *name, uint64_t count);
struct weir_fleet_limit *fleet_limit_of(struct weir_fleet *fleet,
                                        const struct weir_fleet_limit_options *options);

/* Asks until the store gives the answer, with a key of its own; false: not within 20 s. */
bool fleet_await_store(struct weir_fleet_limit *limit);

/* WEIR_FLEET_CALLERS_LOOP: runs it until *count is `until`; false: not within 20 s. */
bool fleet_run_until(struct weir_fleet *fleet, const unsigned *count, unsigned until);

struct weir_fleet_stats fleet_stats_of(struct weir_fleet *fleet);

#endif
