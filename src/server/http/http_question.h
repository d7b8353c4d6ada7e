/* Reads a question from a JSON object. Each route says which members it takes. */
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
    HTTP_MEMBERS
};

/* Texts point into the JSON, which must outlive this. */
struct http_question {
    struct text limit;
    struct weir_rules_value parts[CONFIG_KEY_PARTS_MAX];
    size_t parts_count;
    struct text tier;
    uint64_t cost; /* 0: not given; the same for the next two */
    uint64_t max_wait_ms;
    uint64_t ttl_ms;
    struct text reservation;
    uint64_t actual;
    struct weir_rules_attribute attributes[WEIR_RULES_ATTRIBUTES_MAX];
    size_t attributes_count;
    unsigned given; /* bits 1 << member */
};

/* `allowed` and `needed` are bits as in `given`. Returns 0; or WEIR_EINVAL if it is not an
 * object, or if a member is not allowed, has a wrong value, or is missing. */
int http_read_question(const json_t *object, unsigned allowed, unsigned needed,
                       struct http_question *q, struct weir_error *error);

/* Returns the limit and key that the question names. */
struct weir_rules_key http_key_of(const struct http_question *q);

#endif
