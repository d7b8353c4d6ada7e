/* Requests as JSON: a member for each of a struct ask. */
#ifndef WEIR_SERVER_HTTP_HTTP_JSON_H
#define WEIR_SERVER_HTTP_HTTP_JSON_H

#include <jansson.h>

#include "server/ask/operations.h"
#include "server/http/http_routes.h"

/* Values and names of members in one object that is sent; the largest question has half as many. */
#define HTTP_JSON_VALUES 1024

/* Returns the body as JSON, to be freed by json_decref(); NULL after a 400, also if it has more than
 * values_most values and names. */
json_t *http_read_json(struct exchange *x, size_t values_most);

/*
 * Reads the members that the operation takes. Returns 0 or WEIR_EINVAL: not an object, a member that
 * is not allowed, not good, or missing.
 */
int http_read_ask(json_t *object, const struct operation_row *row, struct ask *ask,
                  struct weir_error *error);

#endif
