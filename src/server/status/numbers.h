/* Reads what the server has counted, added up over its threads, for operators. */
#ifndef WEIR_SERVER_STATUS_NUMBERS_H
#define WEIR_SERVER_STATUS_NUMBERS_H

#include "common/arena.h"
#include "server/operations/reservations.h"
#include "server/loop/server_fleet.h"
#include "server/loop/worker.h"

/* The numbers of one limit, its tiers and overrides added up. The built-in limit is one too. */
struct limit_numbers {
    char name[WEIR_RULES_NAME];
    struct weir_stats stats;
    uint64_t missing;
    uint64_t uncovered; /* as in struct weir_rules_limit */
    uint64_t bans;
    uint64_t bans_failed;
    uint64_t denials_evicted;
    uint64_t left_out; /* denials that were not logged, although the limit has `log` */
    uint64_t switched; /* 1: to shadow mode, by the kill switch */
    bool shadow;       /* in shadow mode by the rules */
    bool remote;       /* a fleet decides it; the rest is for such limits only */
    int on_store_failure;
    uint64_t degraded;
    uint64_t remembered;
};

/* The resources that the process uses. */
struct process_numbers {
    uint64_t cpu_ns;
    uint64_t resident_bytes;
    uint64_t open_files;
    uint64_t most_files;
};

struct numbers {
    const struct server *server;
    struct worker_counts counts;
    struct weir_rules_stats rules;
    struct process_numbers process;
    struct reservations_counts reservations;
    struct fleet_numbers fleet;   /* zero without a fleet */
    struct arena arena;           /* holds the limits */
    struct limit_numbers *limits; /* in the order of the rules, adhoc last */
    size_t limits_count;
    uint64_t reloads;
    uint64_t reloads_failed;
    uint64_t renewals;
    uint64_t renewals_failed;
    uint64_t certificate_ns; /* Unix time at which the certificate ends; 0: none */
    uint64_t loaded_ns;
    uint64_t started_ns;
    bool shadow; /* the kill switch is on, for all limits */
};

/* Returns 0 or WEIR_E...; numbers_finish() must be called in either case. */
int numbers_read(const struct server *server, struct numbers *n);

/* The same for a caller that reads often: without process.open_files, whose count takes a time in
 * proportion to it, and of `rules` only the generation. Returns false if out of memory, and
 * while the rules are being changed: it does not wait for that. */
bool numbers_read_briefly(const struct server *server, struct numbers *n);
void numbers_finish(struct numbers *n);

/* Like weir_rules_limits(), with the built-in limit as the last one. Its `rate` is NULL, because
 * that comes with each call. */
int numbers_limits(const struct server *server, weir_rules_limit_fn fn, void *arg);

#endif
