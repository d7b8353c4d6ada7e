/*
 * weir-bench rules: what it costs to find the limits of a request.
 *
 *   bench_rules.c         arguments, rounds, the table and the JSON object
 *   bench_rules_laps.c    what is measured
 *   bench_rules_world.c   rule sets, and the requests that are asked
 */
#ifndef WEIR_BENCH_RULES_H
#define WEIR_BENCH_RULES_H

#include <weir_rules.h>

#include "rules/compiled/ruleset.h"

#define BENCH_RULES_REQUESTS 4096
#define BENCH_RULES_ATTRIBUTES 5 /* path, method, ip, user, tier */
#define BENCH_RULES_MATCHES 3    /* limits that match one request, at most */

/* The kinds of globs: every tenth limit is one, of each kind in turn. */
#define BENCH_RULES_GLOBS 5

/*
 * A request as it has been read, small, so that thousands of them leave the caches to
 * the rules: a server has one request at hand, not a list.
 */
struct bench_request {
    uint8_t ip[4];
    uint8_t path_len, method_len, user_len, tier_len;
    char texts[56]; /* one behind the other */
};

/* The same as it is asked. */
struct bench_question {
    struct weir_rules_attribute attributes[BENCH_RULES_ATTRIBUTES];
    char ip[24];
};

/* Rules compiled for matching, the same rules open for asking, and their requests. */
struct bench_world {
    struct ruleset *set;
    struct weir_rules *rules;
    unsigned user, tier; /* the numbers of these attributes */
    uint64_t present;    /* in all requests */
    struct bench_request *requests;
    struct bench_question *questions;
    uint64_t now_ns; /* of the last question */
};

/* Rules with `limits` limits, the first glob of kind `glob`. 0, or -1 after saying why. */
int bench_world_create(unsigned limits, unsigned glob, struct bench_world *world);
void bench_world_destroy(struct bench_world *world);

/* Each asks the requests of a world in turn, n times; the sum of what was found, or 0 on error. */
uint64_t bench_match(struct bench_world *world, uint64_t n);
uint64_t bench_read(struct bench_world *world, uint64_t n);
uint64_t bench_ask(struct bench_world *world, uint64_t n);
uint64_t bench_normalise(struct bench_world *world, uint64_t n);
uint64_t bench_normalise_odd(struct bench_world *world, uint64_t n);

#endif
