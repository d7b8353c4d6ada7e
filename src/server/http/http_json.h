/* Requests as JSON: a member for each of a struct ask. */
#ifndef WEIR_SERVER_HTTP_HTTP_JSON_H
#define WEIR_SERVER_HTTP_HTTP_JSON_H

#include <jansson.h>

#include "server/ask/operations.h"
#include "server/http/http_routes.h"

/* Returns the body as JSON, to be freed by json_decref(); NULL after a 400. */
json_t *http_read_json(struct exchange *x);

/*
 * Reads the members that the operation takes. Returns 0 or WEIR_EINVAL: not an object, a member that
 * is not allowed, not good, or missing.
 */
int http_read_ask(json_t *object, const struct operation_row *row, struct ask *ask,
                  struct weir_error *error);

/* Returns the largest number that JSON can give for this member. */
uint64_t http_number_most(const struct ask_member_row *row);

#endif
