/*
 * weir-bench rules: what it costs to find the limits of a request.
 *
 *   bench_rules.c        arguments, rounds, the table and the JSON object
 *   bench_rules_laps.c   the operations that are measured
 *   bench_rules_world.c  rule sets, and the requests that are asked
 */
#ifndef WEIR_BENCH_RULES_H
#define WEIR_BENCH_RULES_H

#include <weir_rules.h>

#include "rules/compiled/ruleset.h"

#define BENCH_RULES_REQUESTS 4096
#define BENCH_RULES_ATTRIBUTES 5 /* path, method, ip, user, tier */
#define BENCH_RULES_MATCHES 3    /* most limits that match one request */

/* The number of kinds of globs. Every tenth limit is a glob, of each kind in turn. */
#define BENCH_RULES_GLOBS 5

/*
 * A request after it has been read. It is small, so that thousands of them leave the caches to
 * the rules: a server works on one request, not on a list.
 */
struct bench_request {
    uint8_t ip[4];
    uint8_t path_len, method_len, user_len, tier_len;
    char texts[56]; /* path, method, user and tier, one after the other */
};

/* The same request as a question. */
struct bench_question {
    struct weir_rules_attribute attributes[BENCH_RULES_ATTRIBUTES];
    char ip[24];
};

/* Rules compiled for matching, the same rules opened for asking, and their requests. */
struct bench_world {
    struct ruleset *set;
    struct weir_rules *rules;
    unsigned user, tier; /* numbers of these attributes */
    uint64_t present;    /* bitmap of the attributes that all requests have */
    struct bench_request *requests;
    struct bench_question *questions;
    uint64_t now_ns; /* time of the last question */
};

/*
 * Makes rules with `limits` limits, the first glob being of kind `glob`. Returns 0, or -1 after
 * a message.
 */
int bench_world_create(unsigned limits, unsigned glob, struct bench_world *world);
void bench_world_destroy(struct bench_world *world);

/*
 * Each does its operation n times on the requests of a world in turn. Returns the sum of the
 * results, or 0 on error.
 */
uint64_t bench_match(struct bench_world *world, uint64_t n);
uint64_t bench_read(struct bench_world *world, uint64_t n);
uint64_t bench_ask(struct bench_world *world, uint64_t n);
uint64_t bench_normalise(struct bench_world *world, uint64_t n);
uint64_t bench_normalise_odd(struct bench_world *world, uint64_t n);

#endif
