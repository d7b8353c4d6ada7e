/* A question as a JSON object: each route says which members it takes. */
#ifndef WEIR_SERVER_HTTP_HTTP_QUESTION_H
#define WEIR_SERVER_HTTP_HTTP_QUESTION_H

#include <jansson.h>

#include "rules/file/config.h"
#include "server/http/http_routes.h"

enum http_member {
    HTTP_LIMIT,
    HTTP_KEY,
    HTTP_TIER,
    HTTP_COST,
    HTTP_MAX_WAIT,
    HTTP_ATTRIBUTES,
    HTTP_TTL,
    HTTP_RESERVATION,
    HTTP_ACTUAL,
    HTTP_UNITS,
    HTTP_FOR,
    HTTP_MEMBERS
};

/* Texts belong to the JSON. */
struct http_question {
    struct text limit;
    struct weir_rules_value parts[CONFIG_KEY_PARTS_MAX];
    size_t parts_count;
    struct text tier;
    uint64_t cost; /* 0: not given; likewise the next two */
    uint64_t max_wait_ms;
    uint64_t ttl_ms;
    struct text reservation;
    uint64_t actual;
    uint64_t units;  /* 1 if it is not given */
    uint64_t for_ms; /* VERB_FOREVER if it is null or not given */
    struct weir_rules_attribute attributes[WEIR_RULES_ATTRIBUTES_MAX];
    size_t attributes_count;
    unsigned given; /* 1 << member */
};

/* 0 or WEIR_EINVAL: not an object, a member that is not allowed, not good, or missing. */
int http_read_question(const json_t *object, unsigned allowed, unsigned needed,
                       struct http_question *q, struct weir_error *error);

/* The limit and key that it names. */
struct weir_rules_key http_key_of(const struct http_question *q);

#endif
