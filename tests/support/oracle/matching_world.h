/*
 * Random rule files and requests, as their generator represents them, and the answers that they
 * must get according to the sentences of weir.yaml(5), taken literally. Shares nothing with src/
 * but the constants of the public headers.
 */
#ifndef WEIR_TESTS_MATCHING_WORLD_H
#define WEIR_TESTS_MATCHING_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <weir_rules.h>

#include "support/oracle/oracle_trace.h"

enum { M_PATH, M_METHOD, M_HOST, M_IP, M_USER, M_TIER, M_ORG, M_ATTRIBUTES };
extern const char *const matching_names[M_ATTRIBUTES];

#define M_LIMITS 12
#define M_LIST 3
#define M_REQUESTS 60
#define M_TEXT 64

struct matching_address {
    bool v6;
    unsigned char bytes[16];
};

/* One of the values of a condition: a pattern, or a network. */
struct matching_value {
    char pattern[M_TEXT];
    struct matching_address network;
    unsigned prefix;
    unsigned spelling; /* which of several notations the file uses */
};

struct matching_condition {
    int attribute;
    unsigned n;
    struct matching_value values[3];
};

struct matching_conditions {
    unsigned n;
    struct matching_condition at[3];
};

struct matching_part {
    unsigned n;
    int alternatives[3];
};

struct matching_tier {
    char name[M_TEXT];
    unsigned burst;
};

struct matching_limit {
    unsigned id;
    struct matching_conditions when;
    struct matching_conditions unless;
    unsigned parts;
    struct matching_part key[3];
    unsigned burst;
    unsigned group; /* 0: none */
    bool shadow;
    bool deny_missing;
    unsigned ipv4_prefix; /* 0: not in the file */
    unsigned ipv6_prefix;
    int tier_by;
    int tier_default; /* -1: none */
    unsigned tiers_n;
    struct matching_tier tiers[3];
    bool overrides; /* by user, from the file that all limits share */
};

struct matching_list {
    unsigned n;
    struct matching_conditions at[M_LIST];
};

struct matching_request {
    bool has[M_ATTRIBUTES];
    char value[M_ATTRIBUTES][M_TEXT]; /* normalised; unused for M_IP */
    struct matching_address ip;
    bool has_header; /* the header X-Tier */
    char header[M_TEXT];
    uint64_t spelling;
    bool peek;
};

struct matching_world {
    bool derives; /* a request without a tier gets one from the header, or from a file by user */
    unsigned limits_n;
    struct matching_limit limits[M_LIMITS];
    struct matching_list block;
    struct matching_list allow;
    unsigned requests_n;
    struct matching_request requests[M_REQUESTS];
};

/* Rows of the files that the rules name. */
struct matching_row {
    const char *value;
    const char *answer;
    unsigned burst;
};
#define M_ROWS 3
extern const struct matching_row matching_tier_rows[M_ROWS];
extern const struct matching_row matching_override_rows[M_ROWS];
extern const char *const matching_user_lines[M_ROWS];
#define M_USER_FILE "file:users.txt" /* a value that stands for those lines */

/* ---- matching_make.c ---- */

void matching_make(struct oracle_random *g, struct matching_world *world);

/* ---- matching_text.c ---- */

/* Writes the files that the rules name into a folder. */
void matching_write_files(const char *folder);

/* Writes the rule file. */
void matching_print(FILE *out, const struct matching_world *world);

/* The attributes of a request as they are sent, in one of many notations. */
#define M_SPELLED 512
struct matching_spelled {
    unsigned n;
    char values[M_ATTRIBUTES + 2][M_SPELLED];
    struct weir_rules_attribute attributes[M_ATTRIBUTES + 2];
};
void matching_spell(const struct matching_request *request, struct matching_spelled *out);
void matching_print_request(FILE *out, const struct matching_request *request);

/* ---- matching_naive.c ---- */

/* The units taken of one key of one limit. */
struct matching_count {
    char key[512];
    unsigned used;
};

struct matching_state {
    unsigned n;
    struct matching_count counts[M_REQUESTS * M_LIMITS];
    uint64_t unmatched, allow_listed, block_listed, missing, tier_unknown, shadow_denied;
};

/* The fields that are compared. Each limit is a token bucket that does not refill during a test. */
struct matching_answer {
    int verdict;
    int reason;
    unsigned applied, missing, shadow_denied;
    uint64_t remaining; /* if a limit decided */
    char limit[WEIR_RULES_NAME];
    char tier[WEIR_RULES_NAME];
    char shadow[WEIR_RULES_NAME];
};

void matching_ask(const struct matching_world *world, const struct matching_request *asked,
                  struct matching_state *state, struct matching_answer *answer);

#endif
