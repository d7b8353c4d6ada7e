/* Explanations of requests as JSON: {"verdict",...,"attributes","list","limits"}. */
#ifndef WEIR_SERVER_SANDBOX_EXPLAIN_JSON_H
#define WEIR_SERVER_SANDBOX_EXPLAIN_JSON_H

#include "server/http/http_routes.h"

/*
 * Puts what the rules say about a request, without the beginning of the object:
 * "attributes":{...},"list":...,"limits":[...]}. Returns 0 or the error of rules_explain().
 */
int explain_put_rest(struct buffer *to, struct weir_rules *rules,
                     const struct weir_rules_question *question, uint64_t now_ns,
                     struct weir_error *error);

/* Puts the whole object, from the answer to a peek and the rest. */
void explain_put(struct buffer *to, const struct answer *a, struct weir_text rest);

extern const struct http_route explain_routes[]; /* explain_route.c */

#endif
